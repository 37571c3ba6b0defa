"""Whether a model's folder is whole: libraries fill in what is missing, with random weights or made-up tokenizers.

The checks are for folders on this machine. A model of the hub is fetched whole, at its pinned revision.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from nblib import artefacts
from nblib.errors import StudyError
from nblib.models.folders import ADAPTER_CONFIG

if TYPE_CHECKING:
    from torch.nn import Module

MODULES = "modules.json"
TOKENIZERS = (  # a vocabulary is in one of these
    "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model",
)  # fmt: skip
PICKLES = ("pytorch_model*.bin", "adapter_model*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def check_folder(folder: Path) -> None:
    """Check what is in a model's folder before it is loaded.

    Raises:
        StudyError: pickled weights alone, no tokenizer, or this study made it and it is not as it was written.
    """
    artefacts.check(folder)
    for pickle in _files(folder, PICKLES):
        if not any(pickle.parent.glob("*.safetensors")):
            raise StudyError(
                f"{pickle} holds pickled weights, which can run code when they are read. Save them as safetensors: "
                "model.save_pretrained(folder) where you trust them."
            )
    if not (folder / ADAPTER_CONFIG).is_file() and not _files(folder, TOKENIZERS):
        raise StudyError(
            f"{folder} has no tokenizer (none of {', '.join(TOKENIZERS)}). Save the model's tokenizer there."
        )


def check_modules(folder: Path) -> None:
    """Refuse a bare transformer, which sentence-transformers would give a pooling that nobody chose."""
    if not (folder / MODULES).is_file():
        raise StudyError(
            f"{folder} has no {MODULES}, so its pooling isn't known. Save the whole model there with sentence-transformers."
        )


def check_weights(model: "Module", folder: Path) -> None:
    """Hold the names of a loaded sentence-transformers model's transformer weights against those in its folder.

    Raises:
        StudyError: one is missing, and was given random values, or one is unexpected, and was left out.
    """
    from transformers import PreTrainedModel

    transformer = next((part for part in model.modules() if isinstance(part, PreTrainedModel)), None)
    if transformer is None:
        return
    modules = folder / MODULES
    place = json.loads(modules.read_text(encoding="utf-8"))[0]["path"] if modules.is_file() else ""
    in_folder, prefix = _names(folder / place), f"{transformer.base_model_prefix}."
    without_head = transformer.base_model is transformer
    if without_head and any(name.startswith(prefix) for name in in_folder):  # of a model with one, which isn't used
        in_folder = {name for name in in_folder if name.startswith(prefix)}
    tied = getattr(transformer, "all_tied_weights_keys", None) or {}  # the same weights under a second name
    wanted, kept, twice = (
        {name.removeprefix(prefix) for name in names} for names in (transformer.state_dict(), in_folder, tied)
    )
    ignored = ("position_ids", "pooler." if without_head else "position_ids")  # constants in older files; not used
    for fault, names in (("lacks", wanted - kept - twice), ("has unexpected", kept - wanted)):
        if found := sorted(name for name in names if not any(word in name for word in ignored)):
            raise StudyError(
                f"The model in {folder} {fault} weights: {len(found)}, the first {found[0]}. Its configuration is "
                "another model's, or it was saved in part: save it whole."
            )


def check_lora(model: "Module", folder: Path) -> None:
    """Hold the number of a loaded LoRA's weights against that in its folder.

    Raises:
        StudyError: they differ: a part of it is missing, or was left out.
    """
    saved, loaded = (sum("lora_" in name for name in names) for names in (_names(folder), model.state_dict()))
    if saved != loaded:
        raise StudyError(
            f"{folder} has {saved} weights of a LoRA, and its base takes {loaded}. Save it whole, or load it on the base that "
            "it was trained on."
        )


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The files of these names in a folder and in those right below, where modules lie."""
    return [file for pattern in patterns for place in (pattern, f"*/{pattern}") for file in sorted(folder.glob(place))]


def _names(folder: Path) -> set[str]:
    """The names of the weights in a folder."""
    from safetensors import safe_open

    names = set()
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="numpy") as opened:
            names.update(opened.keys())
    return names
