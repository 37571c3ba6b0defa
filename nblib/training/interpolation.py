"""Before and after fine-tuning: prepare the base, add or save a LoRA, interpolate between base and tuned weights."""

import copy
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from nblib import artefacts
from nblib.errors import StudyError


def prepare(model: SentenceTransformer, pooling: str = "base") -> SentenceTransformer:
    """A base as it is trained from, with its pooling set. StudyError: it can't be trained, or has no pooling."""
    if not isinstance(model, SentenceTransformer) or not hasattr(model[0], "auto_model"):
        raise StudyError("The base is no text encoder with trainable transformer weights. Choose another.")
    if pooling != "base":
        index = next((index for index, module in enumerate(model) if isinstance(module, Pooling)), None)
        if index is None:
            raise StudyError("The base has no pooling to change. Set pooling to 'base'.")
        model[index] = Pooling(model.get_embedding_dimension(), pooling_mode=pooling)
    return model


def add_lora(model: SentenceTransformer, rank: int, seed: int) -> SentenceTransformer:
    """The model with a LoRA on every linear layer of the transformer's blocks, all that will be trained."""
    from peft import LoraConfig

    torch.manual_seed(seed)  # of the adapter's first weights
    layers = [(name, layer) for name, layer in model[0].auto_model.named_modules() if "pooler" not in name]
    linear = {name.rsplit(".", 1)[-1] for name, layer in layers if isinstance(layer, nn.Linear)}
    options = {"target_modules": sorted(linear), "exclude_modules": r".*pooler.*"}
    model.add_adapter(LoraConfig(r=rank, lora_alpha=2 * rank, **options))
    return model


def interpolate(base: nn.Module, tuned: nn.Module, alpha: float) -> nn.Module:
    """The model α of the way from the base (`prepare`) to the tuned weights, a LoRA merged (Wortsman et al. 2022)."""
    from peft.tuners.lora import LoraLayer

    end = {key.replace(".base_layer", ""): value for key, value in tuned.state_dict().items() if "lora_" not in key}
    for name, layer in tuned.named_modules():
        if isinstance(layer, LoraLayer):
            end[f"{name}.weight"] = layer.get_base_layer().weight + layer.get_delta_weight("default")
    model = copy.deepcopy(base)
    start = model.state_dict()
    between = {key: torch.lerp(value, end[key], alpha) for key, value in start.items() if value.is_floating_point()}
    model.load_state_dict({**start, **between})
    return model.eval()


def save_lora(model: SentenceTransformer, folder: Path, base: str, alpha: float) -> None:
    """Leave a LoRA alone, scaled by α: `SentenceTransformer(base).load_adapter(folder)` gives `interpolate`'s model."""
    model[0].auto_model.save_pretrained(str(folder))
    file = folder / "adapter_config.json"  # peft's
    config = artefacts.read_json(file)
    config |= {"lora_alpha": config["lora_alpha"] * alpha, "base_model_name_or_path": base}
    artefacts.write_json(file, config)
