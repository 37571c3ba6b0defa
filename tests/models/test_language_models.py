"""Language models: the right weights in a folder that plain transformers can use, or a clear refusal."""

import json
import re
import shutil

import gguf
import numpy as np
import pytest
import torch
from support.language import tiny_llama

from nblib.errors import StudyError
from nblib.models import completeness, language_models, registry, weights
from nblib.models.language_models import LanguageModelError

GEMMA = "gemma-3-270m-q4"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama")


@pytest.fixture
def copy_of_tiny(tiny, tmp_path):
    return lambda name: shutil.copytree(tiny, tmp_path / name)


# --- folders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_folder_is_loaded_as_it_is(tiny, dtype):
    loaded = language_models.load(str(tiny), dtype=dtype, device="cpu")
    assert (loaded.name, loaded.folder, language_models.folder(str(tiny))) == ("tiny-llama", tiny, tiny)
    assert {tensor.dtype for tensor in loaded.model.parameters()} == {getattr(torch, dtype)}
    assert not loaded.model.training
    ids = loaded.tokenizer("the red door", return_tensors="pt").input_ids
    assert loaded.model.generate(ids, max_new_tokens=3, do_sample=False).shape[1] == ids.shape[1] + 3


def test_a_folder_called_like_a_registered_model_does_not_pass_for_it(copy_of_tiny):
    assert language_models.load(str(copy_of_tiny(GEMMA)), device="cpu").name == f"{GEMMA}-local"


def test_a_folder_without_a_tokenizer_is_refused(copy_of_tiny):
    folder = copy_of_tiny("mute")
    for file in completeness.TOKENIZERS:
        (folder / file).unlink(missing_ok=True)
    with pytest.raises(StudyError, match=rf"{folder} has no tokenizer .*Save the model's tokenizer there"):
        language_models.load(str(folder))


def test_an_encoder_is_no_language_model(tiny_encoder_folder):
    with pytest.raises(
        LanguageModelError, match=r"tiny-encoder holds no causal LM: \d+ weights are missing, the first cls"
    ):
        language_models.load(str(tiny_encoder_folder))


def test_a_masked_lm_is_no_language_model_though_nothing_is_missing(copy_of_tiny):
    from transformers import BertConfig, BertForMaskedLM

    folder = copy_of_tiny("masked")
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    BertForMaskedLM(BertConfig(vocab_size=200, **size)).save_pretrained(folder)
    with pytest.raises(LanguageModelError, match="logits of BertLMHeadModel depend on later tokens"):
        language_models.load(str(folder))


@pytest.mark.parametrize("damage", ["no configuration", "another architecture", "half the weights", "no weights"])
def test_a_damaged_folder_is_refused(copy_of_tiny, damage):
    folder = copy_of_tiny("damaged")
    file, settings = folder / weights.WEIGHTS, folder / "config.json"
    if damage == "no configuration":
        settings.unlink()
    elif damage == "another architecture":
        settings.write_text(json.dumps(json.loads(settings.read_text()) | {"model_type": "t5"}))
    elif damage == "half the weights":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        file.unlink()
    with pytest.raises(LanguageModelError, match=rf"{folder} holds no causal LM"):
        language_models.load(str(folder))


# --- names ------------------------------------------------------------------------------------------------------------


def test_an_unknown_name_lists_what_is_near_and_the_way_without_a_network():
    with pytest.raises(LanguageModelError, match=r"'gemma-3-270m'.*Did you mean gemma-3-270m-q4\?.*weights\.txt"):
        language_models.load("gemma-3-270m")


@pytest.mark.parametrize("name", ["Llama-3-8B-Instruct", "nobody/nothing", "nobody/nothing@v1"])
def test_what_the_hub_does_not_give_is_refused_by_name(name):
    spec = language_models.entries().get(name)
    with pytest.raises(LanguageModelError, match=f"{spec.hub if spec else 'nobody/nothing'} can't be had from the hub"):
        language_models.load(name)


def test_the_hub_is_asked_for_the_pinned_revision_and_for_no_weights_twice(monkeypatch, tiny):
    asked = []

    def download(hub, **options):
        asked.append((hub, options["revision"]))
        assert not any("bin" in pattern or "pth" in pattern for pattern in options["allow_patterns"])
        return str(tiny)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    pinned = language_models.entries()["Llama-3-8B-Instruct"]
    assert language_models.load("Llama-3-8B-Instruct", device="cpu").name == "Llama-3-8B-Instruct"
    assert language_models.load("someone/model@v2", device="cpu").name == "someone__model@v2"
    language_models.folder("someone/model")
    assert asked == [(pinned.hub, pinned.revision), ("someone/model", "v2"), ("someone/model", None)]


def test_registry_entries_are_pinned_and_have_a_source():
    for name, spec in language_models.entries().items():
        assert spec.hub or registry.entries()[spec.encoder].package, name
        assert not spec.hub or re.fullmatch("[0-9a-f]{40}", spec.revision), name


# --- Gemma from its weight package ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gemma(kept_cache):
    if weights.from_package(registry.entries()[GEMMA]) is None:
        pytest.skip("Gemma's weight package is not installed (weights.txt)")
    return language_models.load(GEMMA, device="cpu")


def test_gemma_shares_the_encoders_weights_on_disk(gemma, kept_cache):
    assert gemma.folder == kept_cache / "language_models" / GEMMA == language_models.folder(GEMMA)
    assert (gemma.folder / weights.WEIGHTS).samefile(kept_cache / "models" / GEMMA / weights.WEIGHTS)
    own = sum(file.stat().st_size for file in gemma.folder.iterdir() if not file.is_symlink())
    assert own < 50e6
    assert [item.name for item in gemma.folder.parent.iterdir()] == [GEMMA]


def test_gemma_has_the_weights_of_the_package_at_both_ends(gemma, tmp_path):
    archive = weights._join(weights._parts(registry.entries()[GEMMA].package), tmp_path / "weights.gguf")
    packed = {tensor.name: tensor for tensor in weights.gguf_reader(archive).tensors}
    layers = gemma.model.model.layers
    for name, ours in {
        "token_embd.weight": gemma.model.lm_head.weight,
        "blk.0.attn_q.weight": layers[0].self_attn.q_proj.weight,
        "blk.9.ffn_down.weight": layers[9].mlp.down_proj.weight,
        "blk.17.attn_output.weight": layers[17].self_attn.o_proj.weight,
    }.items():
        theirs = gguf.dequantize(packed[name].data, packed[name].tensor_type)
        assert np.array_equal(ours.detach().numpy(), theirs), name
    assert "output.weight" not in packed
    assert gemma.model.lm_head.weight is gemma.model.get_input_embeddings().weight


def test_gemma_generates_with_its_settings_set_back_from_encoding(gemma):
    assert gemma.model.config.use_cache
    assert gemma.model.generation_config.use_cache
    assert gemma.tokenizer.model_max_length == gemma.model.config.max_position_embeddings == 32768
    assert gemma.tokenizer.chat_template is None, "a base model"
    settings = json.loads((gemma.folder / "config.json").read_text())
    assert settings["architectures"] == ["Gemma3ForCausalLM"]
    ids = gemma.tokenizer("One, two, three, four, five,", return_tensors="pt").input_ids
    answer = gemma.model.generate(ids, max_new_tokens=8, do_sample=False)[0, ids.shape[1] :]
    assert gemma.tokenizer.decode(answer).startswith(" six, seven, eight")


def test_the_folder_is_made_anew_when_the_weights_it_leads_to_are_gone(gemma, kept_cache):
    link = gemma.folder / weights.WEIGHTS
    link.unlink()
    link.symlink_to("nowhere")
    assert (language_models.folder(GEMMA) / weights.WEIGHTS).samefile(kept_cache / "models" / GEMMA / weights.WEIGHTS)
