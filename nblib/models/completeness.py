"""Whether a model's local folder is whole: libraries fill in what is missing, with random weights or made-up tokenizers."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from nblib import artefacts
from nblib.errors import StudyError

if TYPE_CHECKING:
    from sentence_transformers.base.model import BaseModel
    from torch.nn import Module

LORA_SETTINGS = "adapter_config.json"  # peft's file in the folder of a LoRA
# A vocabulary is in one of these
TOKENIZERS = "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model"
PICKLES = "pytorch_model*.bin", "adapter_model*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl"


def check_folder(folder: Path) -> None:
    """A StudyError for a folder with pickled weights alone, without a tokenizer, or not as this study wrote it."""
    artefacts.check(folder)
    for pickle in (file for pattern in PICKLES for file in folder.rglob(pattern)):
        if not any(pickle.parent.glob("*.safetensors")):
            why = "which can run code when they are read. Save them as safetensors where you trust them"
            raise StudyError(f"{pickle} holds pickled weights, {why}.")
    if not (folder / LORA_SETTINGS).is_file() and not any(file for name in TOKENIZERS for file in folder.rglob(name)):
        raise StudyError(f"{folder} has no tokenizer ({', '.join(TOKENIZERS)}). Save the model's tokenizer there.")


def check_weights(model: "BaseModel", folder: Path) -> None:
    """A StudyError where a sentence-transformers model has random weights for what its folder lacks, or lacks what is there."""
    if (transformer := model.transformers_model) is None:
        return
    modules = folder / "modules.json"
    path = json.loads(modules.read_text(encoding="utf-8"))[0]["path"] if modules.is_file() else ""
    _, keys = type(transformer).from_pretrained(folder / path, output_loading_info=True, device_map="meta")
    parts = {name for name, _ in transformer.named_children()} - {"pooler"}  # another head isn't read
    for fault in ("missing", "unexpected"):
        if names := sorted(name for name in keys[f"{fault}_keys"] if parts & {*name.split(".")[:2]}):
            said = f"{len(names)} weights are {fault}, the first {names[0]}"
            raise StudyError(f"In the model in {folder} {said}. Save it whole, with its own configuration.")


def check_lora(model: "Module", folder: Path) -> None:
    """A StudyError where a loaded LoRA has another number of weights than its folder."""
    from safetensors import safe_open

    with safe_open(folder / "adapter_model.safetensors", framework="numpy") as file:
        saved, loaded = (sum("lora_" in name for name in names) for names in (file.keys(), model.state_dict()))
    if saved != loaded:
        raise StudyError(f"{folder} has {saved} weights of a LoRA, and its base takes {loaded}. Save it whole.")
