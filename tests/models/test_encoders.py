"""Encoders: the right weights or a clear refusal, and a fingerprint of whatever shapes an embedding."""

import json
import re
import shutil

import pytest
import torch
import yaml

from nblib import artefacts, paths
from nblib.errors import StudyError
from nblib.models import encoders, registry, weights
from nblib.models.folders import ADAPTER_CONFIG
from nblib.models.registry import ModelError, ModelSpec
from nblib.training import interpolation


@pytest.fixture
def copy_of_tiny(tiny_encoder_folder, tmp_path):
    """A function that copies the tiny model to a folder of a given name."""
    return lambda name: shutil.copytree(tiny_encoder_folder, tmp_path / name)


def test_an_unknown_name_lists_near_matches_and_the_way_without_a_network():
    with pytest.raises(ModelError, match=r"'all-MiniLM-L6-v3'.*Did you mean all-MiniLM-L6-v2.*weights\.txt"):
        encoders.load("all-MiniLM-L6-v3")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", r"Did you mean all-MiniLM-L6-v2.*weights\.txt"),
        ("nobody/nothing", r"'nobody/nothing' could be loaded from the hub.*Registered: .*weights\.txt"),
    ],
)
def test_a_name_of_the_hub_out_of_reach_is_told_the_way_without_a_network(name, message):
    with pytest.raises(ModelError, match=message):
        encoders.load(name)


def test_an_unreachable_registered_model_is_not_told_its_own_name():
    with pytest.raises(ModelError, match=r"bge-base-en-v1\.5") as error:
        encoders.load("bge-base-en-v1.5")
    assert "Did you mean" not in str(error.value)


def test_a_folder_that_holds_no_model_is_refused(tmp_path):
    with pytest.raises(StudyError, match="has no tokenizer"):
        encoders.load(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"not safetensors", None])
def test_damaged_weights_in_a_folder_are_refused(copy_of_tiny, content):
    folder = copy_of_tiny("damaged")
    file = folder / weights.WEIGHTS
    file.write_bytes(file.read_bytes()[:-100] if content is None else content)
    with pytest.raises(ModelError, match=r"could be loaded from a folder.*Safetensor"):
        encoders.load(str(folder))


def test_a_local_folder_says_itself_what_it_wants_and_does_not_pass_for_a_registered_model(copy_of_tiny):
    folder = copy_of_tiny("bge-base-en-v1.5")
    settings = folder / "config_sentence_transformers.json"
    wanted = {"prompts": {"query": "find: ", "document": "text: "}, "similarity_fn_name": "dot"}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | wanted))
    spec = encoders.load(str(folder), device="cpu").spec
    assert (spec.name, spec.similarity, spec.max_length) == ("bge-base-en-v1.5-local", "dot", 64)
    assert [spec.prompt(role) for role in ("symmetric", "query", "document")] == ["", "find: ", "text: "]


def test_a_local_folder_needs_no_remote_code_switch_whatever_its_name(copy_of_tiny):
    assert encoders.load(str(copy_of_tiny("gte-base-en-v1.5")), device="cpu").name == "gte-base-en-v1.5-local"


def test_weights_are_loaded_in_float32(tiny_encoder):
    assert {str(tensor.dtype) for tensor in tiny_encoder.model.parameters()} == {"torch.float32"}
    assert not tiny_encoder.model.training


def test_the_fingerprint_is_that_of_the_content_and_not_of_the_place(tiny_encoder, copy_of_tiny):
    assert encoders.load(str(copy_of_tiny("elsewhere")), device="cpu").fingerprint == tiny_encoder.fingerprint


def test_the_fingerprint_changes_with_a_weight_the_length_the_pooling_and_the_tokenizer(tiny_encoder, copy_of_tiny):
    import torch

    encoder = encoders.load(str(copy_of_tiny("changed")), device="cpu")
    seen = {encoder.fingerprint}
    encoder.model.max_seq_length = 32
    seen.add(encoders.fingerprint(encoder.model))
    with torch.no_grad():
        next(encoder.model.parameters())[0, 0] += 1e-3
    seen.add(encoders.fingerprint(encoder.model))
    for number, (file, old, new) in enumerate(
        [
            ("1_Pooling/config.json", '"mean"', '"cls"'),
            ("tokenizer_config.json", '"do_lower_case": true', '"do_lower_case": false'),
        ]
    ):
        folder = copy_of_tiny(f"edited{number}")
        content = (folder / file).read_text()
        assert old in content
        (folder / file).write_text(content.replace(old, new))
        seen.add(encoders.load(str(folder), device="cpu").fingerprint)
    assert len(seen) == 5
    assert tiny_encoder.fingerprint in seen


@pytest.mark.parametrize("name", [name for name, spec in registry.entries().items() if spec.remote_code])
def test_remote_code_is_refused_without_the_switch(name):
    with pytest.raises(ModelError, match=rf"{name} runs code from Alibaba-NLP/.*allow_remote_code"):
        encoders.load(name)


# --- the registry --------------------------------------------------------------------------------------------------------


def test_weight_packages_of_the_registry_and_of_weights_txt_are_the_same():
    lines = (paths.PROJECT_ROOT / "weights.txt").read_text().splitlines()
    pinned = {re.fullmatch(r"([\w.-]+)==[\w.]+", line).group(1) for line in lines if line and line[0] != "#"}
    packages = [spec.package for spec in registry.entries().values() if spec.package]
    modules = {
        re.sub("[-_.]+", "-", package["module"].format(part=part))
        for package in packages
        for part in range(1, package.get("parts", 1) + 1)
    }

    def plain(name):
        return re.sub(r"[-_.]|0+(?=\d)", "", name)

    # a package in parts may come with a package of its own name that holds nothing but the list of them
    umbrellas = {name for name in pinned if any(plain(module).startswith(plain(name) + "part") for module in modules)}
    assert {plain(name) for name in pinned - umbrellas} == {plain(module) for module in modules}


def test_registry_entries_are_pinned_and_complete():
    for name, spec in registry.entries().items():
        assert bool(spec.hub) or bool(spec.package), name
        assert not spec.package or re.fullmatch("[0-9a-f]{64}", spec.sha256), name
        assert not spec.remote_code or re.fullmatch("[0-9a-f]{40}", spec.revision or ""), f"{name}: unpinned code"
        # pooling and length come with the models of the sentence-transformers library
        assert (spec.hub or "").startswith("sentence-transformers/") or (spec.max_length and spec.pooling), name
        assert spec.similarity in ("cosine", "dot"), name


def test_no_two_files_of_the_registry_name_the_same_encoder():
    files = [yaml.safe_load((paths.DATA / "registries" / file).read_text()) for file in registry.REGISTRIES]
    encoders = [name for part in files for name in part]
    assert sorted(encoders) == sorted(registry.entries())


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


@pytest.mark.parametrize("name", ["e5-base-v2", "e5-large-v2"])
def test_e5_gets_its_prefixes(name):
    spec = registry.entries()[name]
    assert [spec.prompt(role) for role in ("symmetric", "query", "document")] == ["query: ", "query: ", "passage: "]


@pytest.fixture
def lora(copy_of_tiny, tmp_path):
    """The folder of a LoRA, as notebook 04 leaves it, for a copy of the tiny model."""
    base = copy_of_tiny("base")
    model = interpolation.add_lora(encoders.load(str(base), device="cpu").model, rank=2, seed=0)
    for name, tensor in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.constant_(tensor, 0.1)  # an untrained LoRA changes nothing
    return interpolation.save_adapter(model, tmp_path / "tuned", "card", base=str(base))


def test_the_folder_of_a_lora_is_an_encoder_on_its_base(lora, copy_of_tiny):
    base, tuned = encoders.load(str(lora.with_name("base")), device="cpu"), encoders.load(str(lora), device="cpu")
    assert (tuned.name, tuned.spec.max_length) == ("tuned", base.spec.max_length)
    assert tuned.fingerprint != base.fingerprint
    assert abs(tuned.model.encode("the red door") - base.model.encode("the red door")).max() > 1e-3


def test_a_lora_on_another_base_is_refused(lora):
    settings = lora / ADAPTER_CONFIG
    config = json.loads(settings.read_text())
    settings.write_text(json.dumps({**config, "base_model_name_or_path": str(lora.with_name("nowhere"))}))
    artefacts.sidecar(lora).unlink()  # as if it came from elsewhere
    with pytest.raises(ModelError, match="nowhere"):
        encoders.load(str(lora))
    settings.write_text(json.dumps({**config, "r": 3}))
    with pytest.raises(ModelError, match=r"The LoRA in .*tuned can't be put on its base"):
        encoders.load(str(lora))


def test_a_tokenizer_alone_counts_the_tokens_of_the_whole_text():
    whole = encoders.load("all-MiniLM-L6-v2").model.tokenizer
    alone = encoders.load_tokenizer("all-MiniLM-L6-v2")
    for text in ("It is not open.", "not " * 600):
        assert alone.encode(text).ids == whole(text, truncation=False, verbose=False).input_ids
    with pytest.raises(ModelError, match="Did you mean all-MiniLM-L6-v2"):
        encoders.load_tokenizer("all-MiniLM-L6-v3")
