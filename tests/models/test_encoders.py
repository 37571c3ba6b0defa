"""Encoders: the right weights or a clear refusal, and a fingerprint of whatever shapes an embedding."""

import json
import re
import shutil

import pytest
import torch
import yaml
from peft import LoraConfig
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from support.close import SUM, assert_close, close

from nblib import paths
from nblib.errors import StudyError
from nblib.models import embeddings, encoders, loading, registry, systems
from nblib.models.loading import LORA_SETTINGS
from nblib.models.registry import ModelError, ModelSpec
from nblib.training import interpolation


@pytest.fixture
def copy_of_tiny(tiny_encoder_folder, tmp_path):
    """A function that copies the tiny model to a folder of a given name."""
    return lambda name: shutil.copytree(tiny_encoder_folder, tmp_path / name)


@pytest.mark.parametrize("name", ["sentence-transformers/all-MiniLM-L5-v2", "nobody/nothing", "bge-base-en-v1.5"])
def test_what_is_out_of_reach_is_named_with_near_matches_and_the_way_without_a_network(name):
    with pytest.raises(ModelError, match=rf"{name}' .*from the hub.*weights\.txt") as error:
        encoders.load(name)
    assert ("Did you mean all-MiniLM-L6-v2" in str(error.value)) == ("MiniLM" in name)


def test_a_registered_model_has_its_hub_id_too_and_a_folder_of_that_name_is_another(copy_of_tiny):
    by_id = encoders.load("sentence-transformers/all-MiniLM-L6-v2", device="cpu")
    assert by_id.name == "all-MiniLM-L6-v2" and by_id.source.startswith("sentence-transformers/all-MiniLM-L6-v2@")
    for name in ("gte-base-en-v1.5", "TF-IDF"):
        assert encoders.load(str(copy_of_tiny(name)), device="cpu").name == f"{name}-local"


def test_a_model_in_the_hubs_cache_is_its_id_by_whatever_path(tmp_path):
    snapshot = tmp_path / "models--org--name/snapshots/0123"
    assert encoders.describe(str(snapshot), snapshot) == ("org__name", "org/name@0123")
    own = tmp_path / "snapshots/mine"
    assert encoders.describe(str(own), own) == ("mine", str(own))


def test_remote_code_is_refused_without_the_switch():
    with pytest.raises(ModelError, match=r"gte-base-en-v1\.5 runs code from Alibaba-NLP/.*allow_remote_code"):
        encoders.load("gte-base-en-v1.5")


def test_registry_entries_are_pinned_and_complete_and_in_one_file_alone():
    files = [yaml.safe_load((paths.DATA / "registries" / file).read_text()) for file in registry.REGISTRIES]
    assert sorted(name for part in files for name in part) == sorted(registry.entries())
    for name, spec in registry.entries().items():
        assert bool(spec.hub) or bool(spec.package), name
        assert not spec.package or re.fullmatch("[0-9a-f]{64}", spec.sha256), name
        assert not spec.remote_code or re.fullmatch("[0-9a-f]{40}", spec.revision or ""), f"{name}: unpinned code"
        # lengths come with the models of the sentence-transformers library
        assert (spec.hub or "").startswith("sentence-transformers/") or spec.max_length, name


def test_the_registrys_settings_are_put_on_a_model_and_a_tower_for_queries_routes_them(copy_of_tiny, monkeypatch):
    folders = {name: copy_of_tiny(name) for name in ("document", "query")}
    specs = {
        "both": ModelSpec("both", hub="document", query_encoder="asks", similarity="dot", max_length=16),
        "asks": ModelSpec("asks", hub="query", query_prompt="she ", symmetric_prompt="he "),
    }
    monkeypatch.setattr(registry, "entries", lambda: specs)
    monkeypatch.setattr(loading, "download", lambda hub, *_, **__: folders[hub])
    with torch.no_grad():  # another tower
        other = encoders.load("query", device="cpu").model
        next(other.parameters()).mul_(2)
        other.save(str(folders["query"]))
    both, asks = (encoders.load(name, device="cpu") for name in ("both", "asks"))
    assert [asks.prompt(role) for role in ("query", "document", "symmetric")] == ["she ", "", "he "]
    assert (both.model.similarity_fn_name, both.model.max_seq_length, both.prompt("query")) == ("dot", 16, "she ")
    plain = encoders.load(str(folders["document"]), device="cpu").model
    for role in ("document", "symmetric"):
        assert_close(embeddings.encode(both, ["the dog"], role=role), plain.encode(["the dog"]))
    assert_close(embeddings.encode(both, ["the dog"], role="query"), asks.model.encode_query(["the dog"]))


@pytest.fixture
def lora(copy_of_tiny, tmp_path):
    """The folder of a LoRA for a copy of the tiny model."""
    base = copy_of_tiny("base")
    model = interpolation.add_lora(encoders.load(str(base), device="cpu").model, rank=2, seed=0)
    for name, tensor in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.constant_(tensor, 0.1)  # an untrained LoRA changes nothing
    interpolation.save_lora(model, tmp_path / "tuned", str(base), alpha=1.0)
    return tmp_path / "tuned"


def test_the_folder_of_a_lora_is_an_encoder_on_its_base(lora):
    base, tuned = (encoders.load(str(lora.with_name(name)), device="cpu") for name in ("base", "tuned"))
    assert (tuned.name, tuned.model.max_seq_length) == ("tuned", base.model.max_seq_length)
    assert tuned.fingerprint != base.fingerprint
    expected = SentenceTransformer(str(lora.with_name("base")), device="cpu")
    expected.load_adapter(str(lora))
    assert_close(tuned.model.encode("the red door"), expected.encode("the red door"))
    assert not close(tuned.model.encode("the red door"), base.model.encode("the red door"))


def test_a_lora_of_a_cross_encoder_brings_the_head_that_it_was_trained_with(copy_of_tiny, tmp_path):
    config = LoraConfig(target_modules=["query"], modules_to_save=["classifier"], init_lora_weights=False)
    model = CrossEncoder(str(copy_of_tiny("base")), num_labels=1, device="cpu")
    model.add_adapter(config)
    model.save_pretrained(str(tmp_path / "tuned"))
    scores = systems.load(str(tmp_path / "tuned"), device="cpu").score(["the dog"], ["the red door"])
    assert_close(scores, model.predict([("the dog", "the red door")], activation_fn=torch.nn.Identity()), times=SUM)


def test_a_lora_on_another_base_or_in_part_is_refused(lora):
    settings, file = lora / LORA_SETTINGS, lora / "adapter_model.safetensors"
    config, tensors = json.loads(settings.read_text()), load_file(file)
    for changed, message in [
        ({"base_model_name_or_path": "nowhere"}, "nowhere"),
        ({"base_model_name_or_path": str(lora)}, "tuned is a LoRA on a LoRA"),
        ({"r": 3}, "tuned could not be loaded"),
    ]:
        settings.write_text(json.dumps(config | changed))
        with pytest.raises(ModelError, match=message):
            encoders.load(str(lora))
    settings.write_text(json.dumps(config))
    save_file({name: tensor for name, tensor in tensors.items() if ".1." not in name}, file, metadata={"format": "pt"})
    with pytest.raises(StudyError, match=r"tuned has 12 weights of a LoRA, and its base takes 24"):
        encoders.load(str(lora))
