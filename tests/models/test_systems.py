"""Any system by one name, under one protocol."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from support.close import SUM, assert_close
from support.encoders import fitted_adapter

from nblib.models import embeddings, systems
from nblib.models.registry import ModelError

QUERIES, DOCUMENTS = ["the dog is red", "the dog is red", "the cat"], ["a dog is not red", "the man", "the house"]


def test_every_architecture_is_loaded_by_name(tiny_encoder_folder, tmp_path):
    adapter = fitted_adapter().save(tmp_path / "adapter.safetensors")
    names = ["TF-IDF", f"maxsim:{tiny_encoder_folder}", str(tiny_encoder_folder), f"{tiny_encoder_folder}+{adapter}"]
    loaded = [systems.load(name, device="cpu") for name in names]
    for system in loaded:
        scores = system.score(QUERIES, DOCUMENTS, roles=("symmetric", "symmetric"))
        assert scores.shape == (3,) and len(system.fingerprint) == 64 and system.source
    assert [(system.name, system.architecture, system.base) for system in loaded] == [
        ("TF-IDF", "tf-idf", None),
        ("maxsim-tiny-encoder", "late-interaction", None),
        ("tiny-encoder", "bi-encoder", None),
        ("tiny-encoder+adapter", "bi-encoder", "tiny-encoder"),
    ]
    loaded[1].model.save_pretrained(str(tmp_path / "tokens"))
    again = systems.load(str(tmp_path / "tokens"), device="cpu")
    assert (again.architecture, again.name) == ("late-interaction", "tokens")
    assert_close(again.score(QUERIES, DOCUMENTS), loaded[1].score(QUERIES, DOCUMENTS), times=SUM)


def test_an_encoder_and_its_adapter_are_looked_for_in_the_working_directory(tiny_encoder_folder, tmp_path, monkeypatch):
    fitted_adapter().save(tmp_path / "adapter.safetensors")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").symlink_to(tiny_encoder_folder)
    assert systems.load("mine+adapter.safetensors", device="cpu").adapter == "original_norms"


def test_what_does_not_exist_is_named(tiny_encoder_folder):
    with pytest.raises(ModelError, match="nowhere"):
        systems.load("nowhere")
    with pytest.raises(FileNotFoundError, match=r"absent.safetensors"):
        systems.load(f"{tiny_encoder_folder}+absent.safetensors", device="cpu")


def test_an_encoders_score_is_its_similarity_under_the_asked_prompts(tiny_encoder):
    model = copy.deepcopy(tiny_encoder.model)
    model.prompts, model.similarity_fn_name = {"query": "she "}, "dot"
    system = systems.BiEncoder(replace(tiny_encoder, model=model, fingerprint="asks"))
    query = embeddings.encode(system.encoder, QUERIES, role="query")
    document = embeddings.encode(system.encoder, DOCUMENTS, role="document")
    assert (system.score(QUERIES, DOCUMENTS) == embeddings.similarity(query, document, "dot")).all()
    same = ("symmetric", "symmetric")
    assert np.allclose(system.score(QUERIES, QUERIES, roles=same, similarity="cosine"), 1)
