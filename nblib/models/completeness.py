"""Whether a model is whole: libraries fill in what is missing, with random weights or made-up tokenizers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nblib import artefacts
from nblib.errors import StudyError

if TYPE_CHECKING:
    from sentence_transformers.base.model import BaseModel
    from sentence_transformers.base.modules import Transformer
    from torch.nn import Module

# A vocabulary is in one of these
TOKENIZERS = "tokenizer.json", "vocab.*", "*.model", "*.tiktoken"
PICKLES = "pytorch_model*.bin", "adapter_model*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl"
IN_LORA = "base_model.model."  # before a weight's name in peft's file
POSITIONS = "position_embeddings", "position_embedding", "wpe"  # tables with a row for each place


def check_folder(folder: Path) -> None:
    """A StudyError for a folder with pickled weights alone, or not as this study wrote it."""
    artefacts.check(folder)
    # A model's parts lie at most two folders deep; who names a large folder shouldn't wait
    for pickle in (file for part in ("", "*/", "*/*/") for pattern in PICKLES for file in folder.glob(part + pattern)):
        if not any(pickle.parent.glob("*.safetensors")):
            why = "which can run code when they are read. Save them as safetensors where you trust them"
            raise StudyError(f"{pickle} holds pickled weights, {why}.")


def check_model(model: "BaseModel", folder: Path, lora: Path | None = None) -> None:
    """Check each transformer of a loaded model. StudyError: it has random weights for what its folder, and that of a LoRA to
    come, lack, or lacks what is there; its folder has no tokenizer; its texts may be longer than its network can read."""
    trained = {name.removeprefix(IN_LORA) for name in _lora_weights(lora)} if lora else set()
    for module, part in _transformers(list(model), folder):
        if not any(file for pattern in TOKENIZERS for file in part.glob(pattern)):
            raise StudyError(f"{part} has no tokenizer ({', '.join(TOKENIZERS)}). Save the model's tokenizer there.")
        read = [config["method_output_name"] for config in module.modality_config.values()]
        _check_weights(module.model, part, unread=set() if "pooler_output" in read else {"pooler"}, trained=trained)
        for name, table in module.model.named_modules():
            if name.endswith(POSITIONS) and hasattr(table, "num_embeddings"):
                places = table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
                if (module.max_seq_length or 0) > places:
                    said = f"a max_seq_length of {module.max_seq_length}, and its network has {places} positions"
                    raise StudyError(f"{part} has {said}. Set max_seq_length to {places} or less.")


def _transformers(modules: list["Module"], folder: Path) -> "Iterator[tuple[Transformer, Path]]":
    """The transformers among saved modules, those of a Router's routes too, each with its folder."""
    from sentence_transformers.base.modules import Router, Transformer

    listed = folder / "modules.json"
    places = [entry["path"] for entry in json.loads(listed.read_text("utf-8"))] if listed.is_file() else [""]
    found = [(module, folder / place) for module, place in zip(modules, places, strict=False)]
    for module, place in found:
        if isinstance(module, Transformer):
            yield module, place
        elif isinstance(module, Router):
            file = next(file for name in ("router_config.json", "config.json") if (file := place / name).is_file())
            for route, names in json.loads(file.read_text("utf-8"))["structure"].items():
                routed = zip(module.sub_modules[route], names, strict=True)
                yield from ((one, place / name) for one, name in routed if isinstance(one, Transformer))


def _check_weights(network: "Module", folder: Path, unread: set[str], trained: set[str]) -> None:
    _, keys = type(network).from_pretrained(folder, output_loading_info=True, device_map="meta")
    parts = {name for name, _ in network.named_children()} - unread  # another head isn't read
    for fault in ("missing", "unexpected"):
        names = sorted(name for name in {*keys[f"{fault}_keys"]} - trained if parts & {*name.split(".")[:2]})
        if fault == "unexpected":
            names = [name for name in names if ".pooler." not in name]  # of a head that the network doesn't have
        if names:
            said = f"{len(names)} weights are {fault}, the first {names[0]}"
            raise StudyError(f"In the model in {folder} {said}. Save it whole, with its own configuration.")


def check_lora(model: "Module", folder: Path) -> None:
    """A StudyError where a loaded LoRA has another number of weights than its folder."""
    saved, loaded = (sum("lora_" in name for name in names) for names in (_lora_weights(folder), model.state_dict()))
    if saved != loaded:
        raise StudyError(f"{folder} has {saved} weights of a LoRA, and its base takes {loaded}. Save it whole.")


def _lora_weights(folder: Path) -> list[str]:
    from safetensors import safe_open

    with safe_open(folder / "adapter_model.safetensors", framework="numpy") as file:
        return list(file.keys())
