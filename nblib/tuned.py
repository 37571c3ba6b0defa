"""What fine-tuning starts from and what it leaves: bases made ready, LoRAs, weights between two encoders, folders.

`interpolate` goes part of the way from the base to the tuned weights, `save` leaves a folder that plain
`SentenceTransformer(folder)` loads.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn

from nblib import paths
from nblib.checkpoints import FinetuningError, drafted, in_place


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
    linear = {name.rsplit(".", 1)[-1] for name, layer in _blocks(model) if isinstance(layer, nn.Linear)}
    model.add_adapter(LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules=sorted(linear), exclude_modules=r".*pooler.*",
    ))  # fmt: skip
    return model


def _blocks(model: SentenceTransformer) -> Iterator[tuple[str, nn.Module]]:
    return ((name, layer) for name, layer in model[0].auto_model.named_modules() if "pooler" not in name)


def interpolate(base: nn.Module, tuned: nn.Module, alpha: float) -> nn.Module:
    """The encoder, or any other model, α of the way from the base to the tuned weights (0: the base, 1: tuned, LoRA merged).

    Part of the way keeps much of what was learnt and forgets less of what was known (Wortsman et al. 2022).

    Args:
        base: the model `tuned` was trained from, with its pooling (`prepare`).

    Raises:
        FinetuningError: the two have different weights.
    """
    blend = copy.deepcopy(base)
    start, end = blend.state_dict(), _merged(tuned)
    if {key: value.shape for key, value in start.items()} != {key: value.shape for key, value in end.items()}:
        raise FinetuningError("Weights of different shapes: interpolate between a base and what was trained from it.")
    blend.load_state_dict({
        key: torch.lerp(value, end[key], alpha) if value.is_floating_point() else value for key, value in start.items()
    })  # fmt: skip
    return blend.eval()


def _merged(model: nn.Module) -> dict[str, Tensor]:
    """A model's weights under the names they have without LoRA, with the LoRA's change added."""
    from peft.tuners.lora import LoraLayer

    weights = {key.replace(".base_layer", ""): value for key, value in model.state_dict().items() if "lora_" not in key}
    for name, layer in model.named_modules():
        if isinstance(layer, LoraLayer):
            weights[f"{name}.weight"] = layer.get_base_layer().weight + layer.get_delta_weight("default")
    return weights


def save(
    model: SentenceTransformer | CrossEncoder | MultiVectorEncoder, folder: str | Path, card: str, **about: Any
) -> Path:
    """Leave a model as a folder with a model card and a provenance sidecar; nothing half-written is ever there.

    Args:
        card: what to say of it (`model_card`).
        about: for the sidecar.
    """
    target = paths.resolve(folder)
    with drafted(target) as draft:
        model.save_pretrained(str(draft), create_model_card=False)
        return in_place(draft, target, card, about)


def recipe(encoder: str | Path) -> str:
    """The recipe that notebook 04 trained an encoder by, from the sidecar of its folder; "" for any other encoder."""
    sidecar = paths.resolve(f"{encoder}.json")
    return json.loads(sidecar.read_text(encoding="utf-8")).get("recipe", "") if sidecar.is_file() else ""


def save_adapter(model: SentenceTransformer, folder: str | Path, card: str, alpha: float = 1.0, **about: Any) -> Path:
    """Leave a trained LoRA alone, scaled by α: `SentenceTransformer(base).load_adapter(folder)` is `interpolate`'s blend.

    Raises:
        FinetuningError: the model was not trained with method "lora".
    """
    transformer = model[0].auto_model
    if not getattr(transformer, "peft_config", None):
        raise FinetuningError("There is no LoRA in this model. Train with method 'lora'.")
    target = paths.resolve(folder)
    with drafted(target) as draft:
        transformer.save_pretrained(str(draft))
        file = draft / "adapter_config.json"
        config = json.loads(file.read_text(encoding="utf-8"))
        config["lora_alpha"] *= alpha
        config["base_model_name_or_path"] = about.get("base", config.get("base_model_name_or_path"))
        file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        return in_place(draft, target, card, about)
