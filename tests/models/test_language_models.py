"""Language models: the right weights in a folder that plain transformers can use, or a clear refusal."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from support.close import SUM, close
from support.language import tiny_llama
from transformers import BertConfig, BertForMaskedLM

from nblib import artefacts
from nblib.errors import StudyError
from nblib.models import language_models, weights

REGISTERED = "smollm2-135m-instruct-q4"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama")


@pytest.fixture
def copy_of_tiny(tiny, tmp_path):
    return lambda name: shutil.copytree(tiny, tmp_path / name)


def load(folder, lora=None, **options):
    return language_models.load(str(folder), lora, device="cpu", **options)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_folder_is_loaded_as_it_is(tiny, dtype, monkeypatch):
    loaded = load(tiny, dtype=dtype)
    assert (loaded.name, loaded.folder, language_models.folder(str(tiny))) == ("tiny-llama", tiny, tiny)
    monkeypatch.chdir(tiny.parent)
    assert language_models.folder("tiny-llama") == tiny, "a folder of the working directory"
    assert {tensor.dtype for tensor in loaded.model.parameters()} == {getattr(torch, dtype)}
    assert not loaded.model.training
    ids = loaded.tokenizer("the red door", return_tensors="pt").input_ids
    assert loaded.model.generate(ids, max_new_tokens=3, do_sample=False).shape[1] == ids.shape[1] + 3


def test_a_folder_called_like_a_registered_model_does_not_pass_for_it(copy_of_tiny):
    assert load(copy_of_tiny(REGISTERED)).name == f"{REGISTERED}-local"


def test_an_encoder_or_a_masked_lm_is_no_language_model(tiny_encoder_folder, copy_of_tiny):
    with pytest.raises(StudyError, match=r"tiny-encoder holds no causal LM: \d+ weights are missing, the first cls"):
        load(tiny_encoder_folder)
    folder = copy_of_tiny("masked")
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    BertForMaskedLM(BertConfig(vocab_size=200, **size)).save_pretrained(folder)  # nothing is missing
    with pytest.raises(StudyError, match="logits of BertLMHeadModel depend on later tokens"):
        load(folder)


@pytest.mark.parametrize("damage", ["no configuration", "half the weights", "no weights"])
def test_a_damaged_folder_is_refused(copy_of_tiny, damage):
    folder = copy_of_tiny("damaged")
    file = folder / weights.WEIGHTS
    if damage == "no configuration":
        (folder / "config.json").unlink()
    elif damage == "half the weights":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        file.unlink()
    with pytest.raises(StudyError, match=rf"{folder} can't be read"):
        load(folder)


def test_what_cannot_be_had_is_refused_by_name():
    with pytest.raises(
        StudyError, match=r"'smollm2-135m-instruct'.*Did you mean smollm2-135m-instruct-q4 .*weights\.txt"
    ):
        load("smollm2-135m-instruct")
    for name in ("nobody/nothing@v1", "Llama-3-8B-Instruct"):
        spec = language_models.entries().get(name)
        with pytest.raises(
            StudyError, match=f"{spec.hub if spec else 'nobody/nothing'}'.* could not be had from the hub"
        ):
            load(name)


def test_the_hub_is_asked_for_the_pinned_revision_and_for_no_weights_twice(monkeypatch, tiny):
    asked = []

    def download(hub, **options):
        asked.append((hub, options["revision"]))
        assert {"*.bin", "*.pth"} <= set(options["ignore_patterns"])
        return str(tiny)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    pinned = language_models.entries()["Llama-3-8B-Instruct"]
    assert load("Llama-3-8B-Instruct").name == "Llama-3-8B-Instruct"
    assert load("someone/model@v2").name == "someone__model@v2"
    assert asked == [(pinned.hub, pinned.revision), ("someone/model", "v2")]


def test_smollm_generates_with_its_settings_set_back_from_encoding(kept_cache):
    model = load("smollm2-135m-instruct-q4")
    assert model.model.config.use_cache
    assert model.tokenizer.model_max_length == model.model.config.max_position_embeddings == 8192
    turn = [{"role": "user", "content": "What is 2+3? Answer with a number."}]
    ids = model.tokenizer.apply_chat_template(turn, add_generation_prompt=True, return_tensors="pt", return_dict=False)
    answer = model.model.generate(ids, max_new_tokens=8, do_sample=False)[0, ids.shape[1] :]
    assert model.tokenizer.decode(answer).startswith("2 + 3 = 5")


@pytest.fixture
def lora(tiny, tmp_path):
    plain = load(tiny)
    config = LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["q_proj"], init_lora_weights=False)
    tuned = replace(plain, model=get_peft_model(plain.model, config))
    return language_models.save_lora(tuned, tmp_path / "hedge", base=str(tiny), pairs=12)


def test_a_lora_is_a_folder_with_card_and_sidecar_and_nothing_else(lora):
    files = ["README.md", "adapter_config.json", "adapter_model.safetensors"]
    assert sorted(file.name for file in lora.iterdir()) == files
    assert sorted(file.name for file in lora.parent.iterdir()) == ["hedge", "hedge.json"]
    assert artefacts.about(lora)["pairs"] == 12


def test_the_base_alone_and_with_its_lora_are_two_models(tiny, lora):
    plain, tuned = load(tiny), load(tiny, lora)
    assert (plain.name, tuned.name) == ("tiny-llama", "hedge")
    ids = torch.tensor([[5, 6, 7]])
    assert not close(plain.model(ids).logits, tuned.model(ids).logits, times=SUM)
    again, rough = load(tiny, lora), load(tiny, dtype="bfloat16")
    first, second, third, fourth = map(language_models.fingerprint, (plain, tuned, again, rough))
    assert second == third and len({first, second, fourth}) == 3


def test_a_fingerprint_knows_no_order_of_a_set(tiny):
    """A set of texts has another order in each process."""
    model = load(tiny)

    def fingerprint(modules):
        model.model.peft_config = {"default": LoraConfig(target_modules=["q_proj"])}
        model.model.peft_config["default"].target_modules = modules
        return language_models.fingerprint(model)

    names = "q_proj k_proj v_proj o_proj".split()
    assert fingerprint(set(names)) == fingerprint(sorted(names)) != fingerprint(names)


def test_a_fingerprint_knows_what_generation_is_told_beside_the_configurations_tokens(tiny):
    model = load(tiny)
    plain = language_models.fingerprint(model)
    model.model.generation_config.pad_token_id = 3  # in the configuration, too, where it means anything
    assert language_models.fingerprint(model) == plain
    model.model.generation_config.repetition_penalty = 1.3
    penalised = language_models.fingerprint(model)
    model.model.generation_config.eos_token_id = [3, 5]
    assert len({plain, penalised, language_models.fingerprint(model)}) == 3


def edit_base(lora, name):
    """Another base in a LoRA's settings, as if the LoRA came from elsewhere."""
    artefacts.sidecar(lora).unlink(missing_ok=True)
    settings = json.loads((lora / "adapter_config.json").read_text())
    (lora / "adapter_config.json").write_text(json.dumps(settings | {"base_model_name_or_path": name}))


def test_a_lora_of_another_base_or_none_is_refused(tiny, lora, tmp_path):
    other = tiny_llama(tmp_path / "other", seed=1)
    with pytest.raises(StudyError, match=rf"was trained on {tiny}, not on {other}"):
        load(other, lora)
    wider = tiny_llama(tmp_path / "wider", hidden=64)
    edit_base(lora, str(wider))
    with pytest.raises(StudyError, match=r"A LoRA for .*wider is needed"):
        load(wider, lora)
    edit_base(lora, str(tiny))
    weights_file, settings = lora / "adapter_model.safetensors", lora / "adapter_config.json"
    whole = load_file(weights_file)
    save_file({name: weight for name, weight in whole.items() if ".layers.1." not in name}, weights_file)
    with pytest.raises(StudyError, match="weights of a LoRA"):
        load(tiny, lora)
    for damage in (weights_file, settings):
        damage.write_bytes(b"damaged")
        with pytest.raises(StudyError, match=rf"{lora} can't be read"):
            load(tiny, lora)
    with pytest.raises(StudyError, match=r"A LoRA for .* is needed: train one"):
        load(tiny, tmp_path)
