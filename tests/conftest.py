"""What all tests share: a cache of their own, the official data only where asked for, and a tiny encoder made on the spot."""

import copy
import os
import string
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from encoders import toy_triples

from nblib import models

os.environ.setdefault(
    "HF_HUB_OFFLINE", "1"
)  # read on import: a model that isn't here is refused at once, not after a minute
WORDS = [
    "the",
    "a",
    "an",
    "is",
    "was",
    "are",
    "not",
    "no",
    "never",
    "any",
    "it",
    "he",
    "she",
    "they",
    "man",
    "woman",
    "dog",
    "cat",
    "door",
    "open",
    "closed",
    "house",
    "red",
    "green",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say of a test that can't run here why it can't."""
    for item in items:
        if item.get_closest_marker("official") and not os.environ.get("NBLIB_DATA"):
            item.add_marker(pytest.mark.skip(reason="NBLIB_DATA is not set"))
        if item.get_closest_marker("gpu") and not _has_gpu():
            item.add_marker(pytest.mark.skip(reason="torch sees no CUDA device"))


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tests neither read nor write the developer's cache."""
    folder = tmp_path_factory.mktemp("cache")
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
    """For a module that needs Gemma: a cache that outlives the session, since dequantising takes a minute or more."""
    folder = Path(request.config.cache.mkdir("nblib"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NBLIB_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def tiny_encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers model with random weights: BERT, 2 layers of 32 dimensions, WordPiece, mean pooling."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    base, folder = tmp_path_factory.mktemp("tiny_base"), tmp_path_factory.mktemp("tiny") / "tiny-encoder"
    letters = [*string.ascii_lowercase, *string.digits]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.punctuation, *letters]
    vocabulary += [f"##{letter}" for letter in letters] + [word for word in WORDS if word not in letters]
    (base / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = BertModel(
            BertConfig(
                vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                intermediate_size=64, max_position_embeddings=64, initializer_range=0.5,
            )
        )  # fmt: skip
    model.save_pretrained(base)
    BertTokenizerFast.from_pretrained(base, model_max_length=64).save_pretrained(base)
    transformer = Transformer(str(base), max_seq_length=64)
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="session")
def tiny_encoder(tiny_encoder_folder: Path) -> models.Encoder:
    """The tiny model, loaded."""
    return models.load(str(tiny_encoder_folder), device="cpu")


@pytest.fixture(scope="session")
def toy(tiny_encoder_folder):
    """A training of 12 steps: three epochs of two passes over six anchors, four at a time."""
    from nblib.finetuning import Settings

    return Settings(str(tiny_encoder_folder), learning_rate=1e-2, epochs=3, batch_size=4, bf16=False, rank=4)


@pytest.fixture(scope="session")
def full(toy, tmp_path_factory):
    from nblib import finetuning

    return finetuning.train(toy, toy_triples(), tmp_path_factory.mktemp("full"), checkpoint_steps=100)


@pytest.fixture(scope="session")
def lora(toy, tmp_path_factory):
    from nblib import finetuning

    return finetuning.train(replace(toy, method="lora"), toy_triples(), tmp_path_factory.mktemp("lora"))[0]


@pytest.fixture
def base(tiny_encoder):
    return copy.deepcopy(tiny_encoder.model)
