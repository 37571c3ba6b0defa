"""LoRAs in folders: on their own base again, or a clear refusal."""

import json

import pandas as pd
import pytest
import torch
from peft import LoraConfig, get_peft_model
from support.close import SUM, assert_close, close
from support.language import tiny_llama

from nblib import artefacts
from nblib.models import language_models, llm_adapters
from nblib.models.llm_adapters import LoraError


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama")


@pytest.fixture
def adapter(base, tmp_path):
    from dataclasses import replace

    plain = language_models.load(str(base), device="cpu")
    config = LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["q_proj"], init_lora_weights=False)
    tuned = replace(plain, model=get_peft_model(plain.model, config))
    return llm_adapters.save(tuned, tmp_path / "hedge", "# Card", base=str(base), pairs=12)


def test_a_folder_has_adapter_card_and_sidecar_and_nothing_else(adapter):
    files = ["README.md", "adapter_config.json", "adapter_model.safetensors"]
    assert sorted(file.name for file in adapter.iterdir()) == files
    assert sorted(file.name for file in adapter.parent.iterdir()) == ["hedge", "hedge.json"]
    about = json.loads((adapter.parent / "hedge.json").read_text())
    assert about["pairs"] == 12 and "commit" in about


def test_the_base_alone_and_with_its_adapter_are_two_models(base, adapter):
    plain, tuned = llm_adapters.load(str(base), dtype="float32"), llm_adapters.load(str(base), adapter, dtype="float32")
    assert (plain.name, tuned.name) == ("tiny-llama", "hedge")
    ids = torch.tensor([[5, 6, 7]])
    assert not close(plain.model(ids).logits, tuned.model(ids).logits, times=SUM)
    assert llm_adapters.fingerprint(plain) != llm_adapters.fingerprint(tuned)
    again = llm_adapters.load(str(base), adapter, dtype="float32")
    assert llm_adapters.fingerprint(tuned) == llm_adapters.fingerprint(again)
    assert llm_adapters.fingerprint(plain) != llm_adapters.fingerprint(llm_adapters.load(str(base), dtype="bfloat16"))


def test_an_adapter_of_another_base_is_refused_and_says_whose_it_is(base, adapter, tmp_path):
    other = tiny_llama(tmp_path / "other", seed=1)
    with pytest.raises(LoraError, match=rf"was trained on {base}, not on {other}\. Set base to {base}"):
        llm_adapters.load(str(other), adapter)


def test_an_adapter_that_does_not_fit_is_refused(base, adapter, tmp_path):
    wider = tiny_llama(tmp_path / "wider", hidden=64)
    config = adapter / "adapter_config.json"
    artefacts.sidecar(adapter).unlink()  # as if it came from elsewhere
    config.write_text(json.dumps({**json.loads(config.read_text()), "base_model_name_or_path": str(wider)}))
    with pytest.raises(LoraError, match=r"doesn't fit .*wider"):
        llm_adapters.load(str(wider), adapter)
    (adapter / "adapter_model.safetensors").write_bytes(b"damaged")
    config.write_text(json.dumps({**json.loads(config.read_text()), "base_model_name_or_path": str(base)}))
    with pytest.raises(LoraError, match="or is damaged"):
        llm_adapters.load(str(base), adapter)


def test_a_fingerprint_is_the_same_in_another_process():
    """Settings hold sets, and a set of texts has another order in each process: only a sorted one can be compared."""
    config = LoraConfig(target_modules={"v_proj", "q_proj", "k_proj"})
    assert ("target_modules", "['k_proj', 'q_proj', 'v_proj']") in llm_adapters._settings(config)
    assert not [text for _, text in llm_adapters._settings(config) if text.startswith(("{'", "set("))]


def test_a_folder_without_an_adapter_is_refused(base, tmp_path):
    with pytest.raises(
        LoraError, match=r"No adapter at .*: it has no adapter_config\.json\. Make one: nblib run 05 out"
    ):
        llm_adapters.load(str(base), tmp_path)


def test_a_card_says_what_was_measured():
    scored = pd.DataFrame({"kind": ["negation"], "n": [400], "base": [51.25], "tuned": [88.0]})
    card = llm_adapters.model_card("hedge", {"base": "gemma", "epochs": 2}, "16 pairs.", scored, 61.2)
    assert "| negation | 400 | 51.2 | 88.0 |" in card
    assert "| epochs | 2 |" in card and "base_model: gemma\nlibrary_name: peft" in card


def test_exact_logits_have_no_ties_that_bfloat16_makes(base):
    model = llm_adapters.load(str(base)).model
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.inference_mode():
        rough = model(ids).logits
        with llm_adapters.exact_logits(model):
            with llm_adapters.exact_logits(model):  # as if it were one
                pass
            exact = model(ids).logits
        again = model(ids).logits
    assert (rough.dtype, exact.dtype, again.dtype) == (torch.bfloat16, torch.float32, torch.bfloat16)
    for logits in (rough, again):
        assert_close(logits, exact, "bfloat16")
    assert len(exact.unique()) > len(rough.unique())


def test_exact_logits_of_some_tokens_are_those_among_all(base):
    model, ids = llm_adapters.load(str(base)).model, torch.tensor([[5, 6, 7, 8]])
    with torch.inference_mode():
        with llm_adapters.exact_logits(model):
            everything = model(ids).logits
        with llm_adapters.exact_logits(model, [7, 2]):
            some = model(ids).logits
        assert model(ids).logits.shape == everything.shape
    assert_close(some, everything[..., [7, 2]], "bfloat16")  # of hidden states in bfloat16
