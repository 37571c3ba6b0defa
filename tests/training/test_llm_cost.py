"""The arithmetic of a training's cost, held against the published size and a model that is really built."""

from dataclasses import replace

import pytest
from support.language import tiny_llama
from transformers import AutoConfig, LlamaConfig

from nblib.models import language_models
from nblib.training import llm_cost, llm_lora
from nblib.training.llm_lora import Settings


def values(config, settings, **options):
    options = {"pairs": 496_000, "tokens": 80, **options}
    return llm_cost.estimate(config, settings, **options).set_index("item").value


def test_llama_3_8b_has_the_published_number_of_parameters():
    found = llm_cost.size(llm_cost.llama_3_8b(), Settings("any"))
    assert found.total == 8_030_261_248
    assert found.total - found.blocks == 2 * 128_256 * 4096
    assert found.lora == 41_943_040  # rank 16 on the seven projections of 32 layers


def test_counts_are_those_of_a_model_that_is_built(tmp_path):
    folder = tiny_llama(tmp_path / "tiny")
    settings = Settings(str(folder), rank=4)
    model = llm_lora.add_lora(language_models.load(str(folder), device="cpu"), settings)
    found = llm_cost.size(AutoConfig.from_pretrained(folder), settings)
    trained, everything = model.get_nb_trainable_parameters()
    assert (found.lora, found.total) == (trained, everything - trained)


def test_tied_embeddings_count_once():
    small = {"vocab_size": 100, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1}
    small["num_attention_heads"] = 2
    tied, apart = (
        llm_cost.size(LlamaConfig(**small, tie_word_embeddings=tie), Settings("any")) for tie in (True, False)
    )
    assert apart.total - tied.total == 800 and apart.blocks == tied.blocks


def test_the_papers_training_fits_one_gpu_in_bfloat16():
    config, settings = llm_cost.llama_3_8b(), Settings("any")
    full = values(config, settings)
    assert full.weights == pytest.approx(8_030_261_248 * 2 / 2**30)
    assert full.memory < 24
    assert full.memory == pytest.approx(full.weights + full["LoRA and optimiser"] + full.activations)
    assert full.time == pytest.approx(6 * 6_979_588_096 * 80 * 496_000 * 20 / (312e12 * 0.4) / 3600)


def test_what_saves_memory_does_and_costs_time():
    config, settings = llm_cost.llama_3_8b(), Settings("any")
    full = values(config, settings)
    kept = values(config, replace(settings, checkpointing=False))
    assert kept.activations > 5 * full.activations and kept.time == pytest.approx(full.time * 4 / 6)
    several = values(config, settings, gpus=8)
    assert several.time == pytest.approx(full.time / 8) and several.weights == full.weights


def test_the_estimate_names_what_does_not_fit():
    table = llm_cost.estimate(llm_cost.llama_3_8b(), Settings("any"), 1000, 80, llm_cost.Gpu("small one", 8, 50))
    assert table.set_index("item").how["memory"] == "does not fit one small one"
