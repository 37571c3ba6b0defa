"""Encoders: the right weights or a clear refusal, and a fingerprint of whatever shapes an embedding."""

import json
import re
import shutil

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from support.close import assert_close, close

from nblib import paths
from nblib.errors import StudyError
from nblib.models import encoders, registry
from nblib.models.completeness import LORA_SETTINGS
from nblib.models.registry import ModelError, ModelSpec
from nblib.training import interpolation


@pytest.fixture
def copy_of_tiny(tiny_encoder_folder, tmp_path):
    """A function that copies the tiny model to a folder of a given name."""
    return lambda name: shutil.copytree(tiny_encoder_folder, tmp_path / name)


@pytest.mark.parametrize("name", ["sentence-transformers/all-MiniLM-L6-v2", "nobody/nothing", "bge-base-en-v1.5"])
def test_what_is_out_of_reach_is_named_with_near_matches_and_the_way_without_a_network(name):
    with pytest.raises(ModelError, match=rf"{name}' could be loaded from .*weights\.txt") as error:
        encoders.load(name)
    assert ("Did you mean all-MiniLM-L6-v2" in str(error.value)) == ("MiniLM" in name)


def test_a_local_folder_says_itself_what_it_wants_and_does_not_pass_for_a_registered_model(copy_of_tiny):
    folder = copy_of_tiny("gte-base-en-v1.5")  # whose registered namesake needs remote code
    settings = folder / "config_sentence_transformers.json"
    wanted = {"prompts": {"query": "find: ", "document": "text: "}, "similarity_fn_name": "manhattan"}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | wanted))
    encoder = encoders.load(str(folder), device="cpu")
    assert {str(tensor.dtype) for tensor in encoder.model.parameters()} == {"torch.float32"}
    spec = encoder.spec
    assert (spec.name, spec.similarity, spec.max_length) == ("gte-base-en-v1.5-local", "manhattan", 64)
    assert [spec.prompt(role) for role in ("symmetric", "query", "document")] == ["", "find: ", "text: "]


def test_the_fingerprint_changes_with_a_weight_the_length_the_pooling_and_the_tokenizer(tiny_encoder, copy_of_tiny):
    encoder = encoders.load(str(copy_of_tiny("changed")), device="cpu")
    assert encoder.fingerprint == tiny_encoder.fingerprint, "the place doesn't count"
    seen = {encoder.fingerprint}
    encoder.model.max_seq_length = 32
    seen.add(encoders.fingerprint(encoder.model))
    with torch.no_grad():
        next(encoder.model.parameters())[0, 0] += 1e-3
    seen.add(encoders.fingerprint(encoder.model))
    for file, old, new in [
        ("1_Pooling/config.json", '"mean"', '"cls"'),
        ("tokenizer_config.json", '"do_lower_case": true', '"do_lower_case": false'),
    ]:
        folder = copy_of_tiny(f"edited{len(seen)}")
        content = (folder / file).read_text()
        assert old in content
        (folder / file).write_text(content.replace(old, new))
        seen.add(encoders.load(str(folder), device="cpu").fingerprint)
    assert len(seen) == 5


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


def test_two_towers_are_loaded_and_told_from_either(copy_of_tiny, monkeypatch):
    document, query = str(copy_of_tiny("document")), str(copy_of_tiny("query"))
    specs = {
        "both": ModelSpec("both", hub=document, query_encoder="asks", similarity="dot"),
        "asks": ModelSpec("asks", hub=query, query_prompt="she "),
    }
    monkeypatch.setattr(encoders, "entries", lambda: specs)
    both, asks = (encoders.load(name, device="cpu") for name in ("both", "asks"))
    assert both.query_tower.name == "asks" and asks.query_tower is None
    assert len({both.fingerprint, asks.fingerprint, encoders.fingerprint(both.model)}) == 2  # the copies are alike


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
    assert (tuned.name, tuned.spec.max_length) == ("tuned", base.spec.max_length)
    assert tuned.fingerprint != base.fingerprint
    expected = SentenceTransformer(str(lora.with_name("base")), device="cpu")
    expected.load_adapter(str(lora))
    assert_close(tuned.model.encode("the red door"), expected.encode("the red door"))
    assert not close(tuned.model.encode("the red door"), base.model.encode("the red door"))


def test_a_lora_on_another_base_or_in_part_is_refused(lora):
    settings, file = lora / LORA_SETTINGS, lora / "adapter_model.safetensors"
    config, tensors = json.loads(settings.read_text()), load_file(file)
    for changed, message in [
        ({"base_model_name_or_path": "nowhere"}, "nowhere"),
        ({"r": 3}, "can't be put on its base"),
    ]:
        settings.write_text(json.dumps(config | changed))
        with pytest.raises(ModelError, match=message):
            encoders.load(str(lora))
    settings.write_text(json.dumps(config))
    save_file({name: tensor for name, tensor in tensors.items() if ".1." not in name}, file, metadata={"format": "pt"})
    with pytest.raises(StudyError, match=r"tuned has 12 weights of a LoRA, and its base takes 24"):
        encoders.load(str(lora))
