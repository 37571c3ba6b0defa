"""lm-eval's model that reads a common beginning once gives what lm-eval's own gives."""

import pytest
import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from support.close import assert_close
from support.language import tiny_llama
from transformers import (
    AutoTokenizer,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
)

from nblib.benchmarks.llm import reader
from nblib.models import language_models
from nblib.models.onednn import linear_by_onednn

SIZES = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 4, "pad_token_id": 0, "eos_token_id": 3}
ATTENTION = {"intermediate_size": 64, "num_attention_heads": 4, "max_position_embeddings": 64}
LAYERS = {"sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"] * 2}
GEMMA = {**SIZES, **ATTENTION, **LAYERS, "head_dim": 8, "num_key_value_heads": 1}
MODELS = {
    "all tokens": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, **ATTENTION)),
    "a window of six": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**GEMMA)),
    "a state": lambda: MambaForCausalLM(MambaConfig(**SIZES, state_size=4)),
}
EXAMPLES = [7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
ENDS = [[20, 21, 22], [20, 21, 23, 24, 25, 26], [30], [], [20, 21, 22, 40]]
PROMPTS = [*([*EXAMPLES, *end] for end in ENDS), [9], [31, 32, 33], [34, 35, 0, 0]]  # zeros, as padding has
ANSWERS = [[41], [42], [43, 44, 45], [41, 46]]


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = MODELS[request.param]().eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data *= 8  # probabilities far apart
    return model


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return AutoTokenizer.from_pretrained(tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama"))


@pytest.fixture
def tokens_read(model):
    """How many tokens a model was given since the list was empty."""
    counts = []
    hook = model.get_input_embeddings().register_forward_pre_hook(lambda _, inputs: counts.append(inputs[0].numel()))
    yield counts
    hook.remove()


def keeps_tokens(model):
    return model.config.model_type != "mamba"


def likelihoods(kind, model, tokenizer, batch_size=1):
    requests = [(("", ""), prompt, answer) for prompt in PROMPTS for answer in ANSWERS]
    return kind(pretrained=model, tokenizer=tokenizer, batch_size=batch_size)._loglikelihood_tokens(requests)


@pytest.mark.parametrize("batch_size", [1, 3])
def test_probabilities_are_those_of_prompts_read_one_by_one(model, tokenizer, tokens_read, batch_size):
    wanted = likelihoods(HFLM, model, tokenizer)
    apart, _ = sum(tokens_read), tokens_read.clear()
    found = likelihoods(reader.Reader, model, tokenizer, batch_size)
    if batch_size == 1:  # a common beginning is read once
        assert sum(tokens_read) < apart / 2 if keeps_tokens(model) else sum(tokens_read) == apart
    assert_close([one[0] for one in found], [one[0] for one in wanted], times=100)
    assert [one[1] for one in found] == [one[1] for one in wanted]
    assert len({round(one[0], 3) for one in found}) > 20  # no two prompts are taken for each other


def test_texts_are_those_of_prompts_read_whole(model, tokenizer, tokens_read):
    def texts(kind):
        lm = kind(pretrained=model, tokenizer=tokenizer, batch_size=4)
        asked = [(tokenizer.decode(prompt), {"until": ["</s>"], "max_gen_toks": 9}) for prompt in PROMPTS[:5]]
        requests = [Instance("generate_until", {}, one, place) for place, one in enumerate(asked)]
        return lm.generate_until(requests, disable_tqdm=True)

    wanted = texts(HFLM)
    apart, _ = sum(tokens_read), tokens_read.clear()
    assert texts(reader.Reader) == wanted
    assert len(set(wanted)) > 1
    assert sum(tokens_read) < apart if keeps_tokens(model) else sum(tokens_read) == apart


def test_logits_in_float32_have_no_ties_that_bfloat16_makes(tmp_path):
    model = language_models.load(str(tiny_llama(tmp_path / "tiny-llama")), dtype="bfloat16", device="cpu").model
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.inference_mode():
        rough = model(ids).logits
        with reader.float32_logits(model), linear_by_onednn(model):
            exact = model(ids).logits
        again = model(ids).logits
    assert (rough.dtype, exact.dtype, again.dtype) == (torch.bfloat16, torch.float32, torch.bfloat16)
    for logits in (rough, again):
        assert_close(logits, exact, "bfloat16")
    assert len(exact.unique()) > len(rough.unique())
