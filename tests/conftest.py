"""What all tests share: a cache of their own, the official data only where asked for, and a tiny random encoder."""

import copy
import gc
import os
import string
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from support.encoders import save_bert, toy_examples

from nblib.models import encoders

# Read on import: a model that isn't here is refused at once, not after a minute
os.environ.setdefault("HF_HUB_OFFLINE", "1")
gc.set_threshold(50_000, 20, 100)  # what is imported stays: it need not be looked through again and again
WORDS = "the a an is was are not no never any it he she they man woman dog cat door open closed house red green".split()

# The same examples in every run, and none that fails because the machine is busy
settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The study at its smallest starts first, since it takes longest; a test that can't run here says why it can't."""
    items.sort(key=lambda item: item.path.name != "test_workflow.py")
    for item in items:
        if item.get_closest_marker("official") and not os.environ.get("NBLIB_DATA"):
            item.add_marker(pytest.mark.skip(reason="NBLIB_DATA is not set"))
        if item.get_closest_marker("gpu"):
            import torch  # seconds, which a run without these tests saves

            item.add_marker(pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"))


def pytest_collection_finish() -> None:
    """Keep what is imported out of garbage collection: every training ends in a full one, which otherwise takes a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def little_to_collect() -> None:
    """Likewise what later modules import, and the tables they keep: a million objects by the end."""
    if len(gc.get_objects()) > 250_000:
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tests neither read nor write the developer's cache. Parallel workers share one: what it holds is encoded once."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NBLIB_CACHE", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def official_data_only_where_marked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that isn't marked `official` behaves the same with and without the official files."""
    if not request.node.get_closest_marker("official"):
        monkeypatch.delenv("NBLIB_DATA", raising=False)


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for one test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("NBLIB_CACHE", str(folder))
    return folder


@pytest.fixture(scope="module")
def kept_cache(request: pytest.FixtureRequest) -> Iterator[Path]:
    """For a module with a real language model: a cache that outlives the session, since dequantising takes a minute."""
    folder = Path(request.config.cache.mkdir("nblib"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NBLIB_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def tiny_encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers model with random weights: BERT, 2 layers of 32 dimensions, WordPiece, mean pooling."""
    letters = [*string.ascii_lowercase, *string.digits]
    words = [*string.punctuation, *letters, *(f"##{letter}" for letter in letters)]
    words += [word for word in WORDS if word not in letters]
    options = {"num_attention_heads": 4, "max_position_embeddings": 64, "initializer_range": 0.5}
    base, folder = tmp_path_factory.mktemp("tiny_base"), tmp_path_factory.mktemp("tiny") / "tiny-encoder"
    save_bert(base, words, 64, seed=7, **options).save(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="session")
def tiny_encoder(tiny_encoder_folder: Path) -> encoders.Encoder:
    """The tiny model, loaded."""
    return encoders.load(str(tiny_encoder_folder), device="cpu")


@pytest.fixture(scope="session")
def toy(tiny_encoder_folder):
    """A training of 12 steps: three epochs of two passes over six anchors, four at a time."""
    from nblib.training.trainer import TrainingSettings

    steps = {"learning_rate": 1e-2, "epochs": 3, "batch_size": 4}
    return TrainingSettings(str(tiny_encoder_folder), **steps, bf16=False, rank=4)


@pytest.fixture(scope="session")
def full(toy, tmp_path_factory):
    from nblib.training import trainer

    return trainer.train(toy, toy_examples(), tmp_path_factory.mktemp("full"))


@pytest.fixture(scope="session")
def lora(toy, tmp_path_factory):
    from nblib.training import trainer

    return trainer.train(replace(toy, method="lora"), toy_examples(), tmp_path_factory.mktemp("lora"))[0]


@pytest.fixture
def base(tiny_encoder):
    return copy.deepcopy(tiny_encoder.model)
