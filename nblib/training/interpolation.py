"""Before and after fine-tuning: prepare the base, add a LoRA, interpolate between base and tuned weights, save.

`interpolate` goes part of the way from the base to the tuned weights, `save` leaves a folder that plain
`SentenceTransformer(folder)` loads.
"""

import copy
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn

from nblib import paths
from nblib.models.folders import FinetuningError, edit_adapter_config, model_folder


def prepare(model: SentenceTransformer, pooling: str = "base") -> SentenceTransformer:
    """A base as it is trained from, with its pooling set.

    Raises:
        FinetuningError: the base is no transformer that sentence-transformers can train.
    """
    if not isinstance(model, SentenceTransformer) or not hasattr(model[0], "auto_model"):
        raise FinetuningError(
            "The base is no text encoder with trainable transformer weights. Give a sentence-transformers model."
        )
    if pooling != "base":
        place = next((place for place, module in enumerate(model) if isinstance(module, Pooling)), None)
        if place is None:
            raise FinetuningError("The base has no pooling to change. Set pooling to 'base'.")
        model[place] = Pooling(model.get_embedding_dimension(), pooling_mode=pooling)
    return model


def add_lora(model: SentenceTransformer, rank: int, seed: int) -> SentenceTransformer:
    """The model with a LoRA on every linear layer of the transformer's blocks; only that will be trained."""
    from peft import LoraConfig

    torch.manual_seed(seed)  # of the adapter's first weights
    layers = [(name, layer) for name, layer in model[0].auto_model.named_modules() if "pooler" not in name]
    linear = {name.rsplit(".", 1)[-1] for name, layer in layers if isinstance(layer, nn.Linear)}
    model.add_adapter(LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules=sorted(linear), exclude_modules=r".*pooler.*",
    ))  # fmt: skip
    return model


def interpolate(base: nn.Module, tuned: nn.Module, alpha: float) -> nn.Module:
    """The encoder, or any other model, α of the way from the base to the tuned weights (0: the base, 1: tuned, LoRA merged).

    Part of the way keeps much of what was learnt and forgets less of what was known (Wortsman et al. 2022).

    Args:
        base: the model `tuned` was trained from, with its pooling (`prepare`).

    Raises:
        FinetuningError: the two have different weights.
    """
    model = copy.deepcopy(base)
    start, end = model.state_dict(), _merged(tuned)
    if {key: value.shape for key, value in start.items()} != {key: value.shape for key, value in end.items()}:
        raise FinetuningError(
            "The weights have different shapes. Interpolate between a base and what was trained from it."
        )
    model.load_state_dict({
        key: torch.lerp(value, end[key], alpha) if value.is_floating_point() else value for key, value in start.items()
    })  # fmt: skip
    return model.eval()


def _merged(model: nn.Module) -> dict[str, Tensor]:
    """A model's weights under the names they have without LoRA, with the LoRA's change added."""
    from peft.tuners.lora import LoraLayer

    weights = {key.replace(".base_layer", ""): value for key, value in model.state_dict().items() if "lora_" not in key}
    for name, layer in model.named_modules():
        if isinstance(layer, LoraLayer):
            weights[f"{name}.weight"] = layer.get_base_layer().weight + layer.get_delta_weight("default")
    return weights


def save(
    model: SentenceTransformer | CrossEncoder | MultiVectorEncoder,
    folder: str | Path,
    card: str,
    **about: Any,
) -> Path:
    """Leave a model as a folder with a model card and a provenance sidecar; nothing half-written is ever there.

    Args:
        card: what to say of it (`tuning.model_card`).
        about: for the sidecar.
    """
    with model_folder(folder, card, about) as draft:
        model.save_pretrained(str(draft), create_model_card=False)
    return paths.resolve(folder)


def save_adapter(model: SentenceTransformer, folder: str | Path, card: str, alpha: float = 1.0, **about: Any) -> Path:
    """Leave a trained LoRA alone, scaled by α: `SentenceTransformer(base).load_adapter(folder)` gives `interpolate`'s model.

    Raises:
        FinetuningError: the model was not trained with method "lora".
    """
    transformer = model[0].auto_model
    if not getattr(transformer, "peft_config", None):
        raise FinetuningError("There is no LoRA in this model. Train with method 'lora'.")
    with model_folder(folder, card, about) as draft:
        transformer.save_pretrained(str(draft))
        edit_adapter_config(draft, about.get("base"), alpha)
    return paths.resolve(folder)
