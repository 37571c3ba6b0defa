"""What a LoRA training costs before it is run: memory and time by arithmetic, from a model's configuration alone.

The model is built on torch's meta device, so that its parameters are counted exactly and take no memory. `estimate` lists what is
approximate.
"""

from dataclasses import dataclass

import pandas as pd
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PretrainedConfig

from nblib.training.llm_lora import Settings

GIB = 2**30
ADAM = 16  # bytes a trained parameter: weight, gradient and the optimiser's two moments, float32
INNER = 34  # bytes a token and dimension that a block keeps for its backward pass (Korthikanti et al. 2022; fused attention)


@dataclass(frozen=True)
class Gpu:
    """A GPU: memory in GiB, dense bfloat16 operations in 10¹² a second, and the share of them that training reaches."""

    name: str
    memory: float
    teraflops: float
    share: float = 0.4


A100 = Gpu("A100 80 GB", 80, 312)


def llama_3_8b() -> LlamaConfig:
    """The configuration of Llama-3-8B(-Instruct), the paper's LLM."""
    return LlamaConfig(
        vocab_size=128_256, hidden_size=4096, intermediate_size=14_336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, max_position_embeddings=8192, rope_theta=500_000.0, tie_word_embeddings=False,
    )  # fmt: skip


@dataclass(frozen=True)
class Size:
    """A model's parameters: all, those of its transformer blocks, those of its LoRA."""

    total: int
    blocks: int
    lora: int


def size(config: PretrainedConfig, settings: Settings) -> Size:
    """Count the parameters of a model and of a LoRA on it, without weights."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    total = sum(weight.numel() for weight in model.parameters())  # tied ones once
    ends = {id(model.get_input_embeddings().weight), id(model.get_output_embeddings().weight)}
    outside = sum(weight.numel() for weight in model.parameters() if id(weight) in ends)
    targets = [
        layer for name, layer in model.named_modules()
        if name.rsplit(".", 1)[-1] in settings.targets and isinstance(layer, torch.nn.Linear)
    ]  # fmt: skip
    lora = sum(settings.rank * (layer.in_features + layer.out_features) for layer in targets)
    return Size(total, total - outside, lora)


def operations(config: PretrainedConfig, settings: Settings, pairs: int, tokens: float) -> float:
    """What a training computes: 2 operations a parameter and token for the forward pass, 2 for the backward pass, which frozen
    weights halve, 2 for what checkpointing computes again; the vocabulary's logits at one token a pair are left out.

    Args:
        pairs: in an epoch.
        tokens: of a pair, on average.
    """
    return _passes(settings) * size(config, settings).blocks * tokens * pairs * settings.epochs


def _passes(settings: Settings) -> int:
    """Operations a parameter and token."""
    return 6 if settings.checkpointing else 4


def estimate(
    config: PretrainedConfig, settings: Settings, pairs: int, tokens: float, gpu: Gpu = A100, gpus: int = 1
) -> pd.DataFrame:
    """Memory of each GPU (GiB) and time (hours) of a training.

    Exact: parameters, weights, optimiser. Approximate: activations (`INNER`), time (`operations` at the GPU's `share` of its
    peak).

    Args:
        pairs: in an epoch.
        tokens: of a pair, on average.

    Returns:
        item, value, unit, how (the arithmetic).
    """
    counted = size(config, settings)
    per_weight = 2 if settings.bf16 else 4
    weights = counted.total * per_weight / GIB
    trained = counted.lora * ADAM / GIB
    at_once = settings.batch_size / gpus * tokens
    block = at_once * config.hidden_size * INNER
    kept = at_once * config.hidden_size * 2
    layers = config.num_hidden_layers
    activations = (layers * kept + block if settings.checkpointing else layers * block) / GIB
    memory = weights + trained + activations
    hours = operations(config, settings, pairs, tokens) / (gpu.teraflops * 1e12 * gpu.share * gpus) / 3600
    steps = settings.epochs * -(-pairs // settings.batch_size)
    work = f"{_passes(settings)} × {counted.blocks / 1e9:.2f} · 10⁹ × {tokens:.0f} tokens × {pairs * settings.epochs:,} pairs"
    how_kept = "checkpoints" if settings.checkpointing else "all kept"
    rows = [
        ("parameters", counted.total / 1e9, "10⁹", f"{counted.blocks / 1e9:.2f} of them in {layers} blocks"),
        ("trained parameters", counted.lora / 1e6, "10⁶", f"rank {settings.rank} on {', '.join(settings.targets)}"),
        ("weights", weights, "GiB", f"{per_weight:g} bytes a parameter of the blocks, {per_weight} of the embeddings"),
        ("LoRA and optimiser", trained, "GiB", f"{ADAM} bytes a trained parameter"),
        ("activations", activations, "GiB", f"{at_once:.0f} tokens at once, {how_kept}"),
        ("memory", memory, "GiB", f"{'fits' if memory < 0.9 * gpu.memory else 'does not fit'} one {gpu.name}"),
        ("steps", steps / 1e3, "10³", f"{settings.epochs} epochs of {pairs:,} pairs, {settings.batch_size} a step"),
        ("time", hours, "hours", f"{work} at {100 * gpu.share:.0f} % of {gpus} × {gpu.teraflops:g} · 10¹² a second"),
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["item", "value", "unit", "how"])
