"""lm-eval's model that reads a common beginning once gives what lm-eval's own gives."""

import pytest
import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from support.close import assert_close
from support.language import tiny_llama
from transformers import (
    AutoConfig,
    AutoTokenizer,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
)

from nblib.benchmarks.llm import reader

SIZES = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 4, "pad_token_id": 0, "eos_token_id": 3}
ATTENTION = {"intermediate_size": 64, "num_attention_heads": 4, "max_position_embeddings": 64}
MODELS = {
    "all tokens": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, **ATTENTION)),
    "a window of six": lambda: Gemma3ForCausalLM(
        Gemma3TextConfig(
            **SIZES, **ATTENTION, sliding_window=6, head_dim=8, num_key_value_heads=1,
            layer_types=["sliding_attention", "full_attention"] * 2,
        )
    ),
    "a state": lambda: MambaForCausalLM(MambaConfig(**SIZES, state_size=4)),
}  # fmt: skip
EXAMPLES = [7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
PROMPTS = [
    [*EXAMPLES, 20, 21, 22],
    [*EXAMPLES, 20, 21, 23, 24, 25, 26],
    [*EXAMPLES, 30],
    EXAMPLES,
    [*EXAMPLES, 20, 21, 22, 40],
    [9],
    [31, 32, 33],
]
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


def likelihoods(kind, model, tokenizer, batch_size=1):
    requests = [(("", ""), prompt, answer) for prompt in PROMPTS for answer in ANSWERS]
    return kind(pretrained=model, tokenizer=tokenizer, batch_size=batch_size)._loglikelihood_tokens(requests)


@pytest.mark.parametrize("batch_size", [1, 3])
def test_probabilities_are_those_of_prompts_read_one_by_one(model, tokenizer, batch_size):
    wanted = likelihoods(HFLM, model, tokenizer)
    found = likelihoods(reader.Reader, model, tokenizer, batch_size)
    assert_close([one[0] for one in found], [one[0] for one in wanted], times=100)
    assert [one[1] for one in found] == [one[1] for one in wanted]
    assert len({round(one[0], 3) for one in found}) > 20  # no two prompts are taken for each other


def test_a_common_beginning_is_read_once(model, tokenizer, tokens_read):
    likelihoods(HFLM, model, tokenizer)
    apart, _ = sum(tokens_read), tokens_read.clear()
    likelihoods(reader.Reader, model, tokenizer)
    together = sum(tokens_read)
    if reader._can_go_back(model.config):
        assert together < apart / 2
    else:
        assert together == apart


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
    assert sum(tokens_read) < apart if reader._can_go_back(model.config) else sum(tokens_read) == apart


def test_only_attention_can_go_back():
    assert reader._can_go_back(LlamaConfig()) and reader._can_go_back(Gemma3TextConfig())
    assert not reader._can_go_back(MambaConfig())
    assert not reader._can_go_back(
        AutoConfig.for_model("lfm2", num_hidden_layers=2, layer_types=["conv", "full_attention"])
    )
