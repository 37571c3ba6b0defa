"""Any system by one name, under one protocol."""

import numpy as np
import pytest
from support.close import SUM, assert_close

from nblib.models import embeddings, rankers, systems
from nblib.models.negation_adapter import AdapterError, NegationAdapter
from nblib.models.registry import ModelError

QUERIES, DOCUMENTS = ["the dog is red", "the dog is red", "the cat"], ["a dog is not red", "the man", "the house"]


@pytest.fixture
def adapter(tmp_path):
    rng = np.random.default_rng(0)
    anchors = rng.normal(size=(20, 32))
    return str(NegationAdapter(grid=[4.0]).fit(anchors, anchors + rng.normal(size=anchors.shape), -anchors).save(
        tmp_path / "adapter.safetensors"
    ))  # fmt: skip


def test_every_kind_is_loaded_by_name(tiny_encoder_folder, adapter):
    found = {}
    for name in (
        "TF-IDF",
        f"maxsim:{tiny_encoder_folder}",
        str(tiny_encoder_folder),
        f"{tiny_encoder_folder}+{adapter}",
    ):
        system = systems.load(name, device="cpu")
        assert system.score(QUERIES, DOCUMENTS).shape == (3,) and len(system.fingerprint) == 64 and system.source
        found[system.name] = system.kind
    assert found == {
        "TF-IDF": "tf-idf", "maxsim-tiny-encoder": "late-interaction", "tiny-encoder": "bi-encoder",
        "tiny-encoder+adapter": "bi-encoder",
    }  # fmt: skip


def test_a_folder_is_loaded_as_what_was_saved_in_it(tiny_encoder_folder, tmp_path):
    late = systems.load(f"maxsim:{tiny_encoder_folder}", device="cpu")
    late.model.save_pretrained(str(tmp_path / "tokens"))
    again = systems.load(str(tmp_path / "tokens"), device="cpu")
    assert (again.kind, again.name) == ("late-interaction", "tokens")
    assert_close(again.score(QUERIES, DOCUMENTS), late.score(QUERIES, DOCUMENTS), times=SUM)


def test_what_does_not_exist_is_named(tiny_encoder_folder):
    with pytest.raises(ModelError, match="nowhere"):
        systems.load("nowhere")
    with pytest.raises(AdapterError, match=r"No adapter at .*absent.safetensors"):
        systems.load(f"{tiny_encoder_folder}+absent.safetensors")
    with pytest.raises(rankers.RankerError, match="PaddlePaddle"):
        systems.load("rocketqa-v1")


def test_an_encoders_score_is_its_similarity_under_the_asked_prompts(tiny_encoder):
    from dataclasses import replace

    spec = replace(tiny_encoder.spec, query_prompt="she ", similarity="dot")
    system = systems.BiEncoder(replace(tiny_encoder, spec=spec))
    ask, answer = (embeddings.encode(system.encoder, texts, role=role) for texts, role in
                   [(QUERIES, "query"), (DOCUMENTS, "document")])  # fmt: skip
    assert (system.score(QUERIES, DOCUMENTS) == embeddings.similarity(ask, answer, "dot")).all()
    same = ("symmetric", "symmetric")
    assert np.allclose(system.score(QUERIES, QUERIES, roles=same, similarity="cosine"), 1)


def test_in_training_a_text_is_encoded_once_and_nothing_is_kept_on_disk(tiny_encoder, fresh_cache, monkeypatch):
    from dataclasses import replace

    system, calls = systems.BiEncoder(replace(tiny_encoder, cacheable=False)), []
    whole = embeddings.encode
    monkeypatch.setattr(embeddings, "encode", lambda *given, **options: calls.append(given) or whole(*given, **options))
    first = system.score(QUERIES, DOCUMENTS)
    assert_close(system.score(QUERIES[::-1], DOCUMENTS[::-1]), first[::-1])
    assert len(calls) == 2 and not list(fresh_cache.rglob("*.sqlite"))


def test_other_weights_are_another_system(tiny_encoder_folder):
    one, other = (systems.load(f"maxsim:{tiny_encoder_folder}", device="cpu") for _ in range(2))
    assert one.fingerprint == other.fingerprint
    next(iter(other.model.parameters())).data.neg_()
    assert one.fingerprint != other.fingerprint
