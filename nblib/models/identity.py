"""What makes a model this one: a fingerprint of everything that shapes a vector or a score."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.nn import Module

NOT_IN_VECTORS = {"_name_or_path", "architectures", "dtype", "transformers_version", "use_cache"}  # of a configuration
# What the files of a tokenizer say of its last call, and of how it was read
STATE = "truncation padding truncation_strategy max_length stride pad_to_multiple_of pad_token_type_id".split()
STATE += ["is_local", "local_files_only"]
SIDES = "truncation_side", "padding_side"  # the default is written only after a call


def fingerprint(model: "Module", *described: object) -> str:
    """SHA-256 of a model's weights with their names, precisions and shapes, of its settings (prompts, similarity, truncation;
    those of each module; the network's configuration), of its tokenizers' files, and of what else is described as text."""
    import torch

    text = json.dumps(_settings(model), sort_keys=True, default=str)
    digest = hashlib.sha256("\n".join([type(model).__name__, text, repr(model), *map(str, described)]).encode())
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _settings(model: "Module") -> dict[str, object]:
    """What the library would save of a model beside its weights, by module."""
    from sentence_transformers.base.model import BaseModel
    from sentence_transformers.base.modules import Module
    from transformers import PreTrainedModel

    settings: dict[str, object] = {}
    if isinstance(model, BaseModel):
        saved = model._get_model_config()
        forwarded = {name: names for name, names in (model.module_kwargs or {}).items() if names}
        settings["model"] = {key: saved[key] for key in saved if key != "__version__"}, forwarded
    for name, module in model.named_modules():
        if isinstance(module, Module):
            about = {key: str(value) for key, value in module.get_config_dict().items()}
            length = getattr(module, "max_seq_length", None)
            settings[name] = type(module).__name__, about, length, tokenizer_files(getattr(module, "tokenizer", None))
        elif isinstance(module, PreTrainedModel):
            config = module.config.to_dict()
            settings[name] = {key: config[key] for key in config if key not in NOT_IN_VECTORS}
    return settings


def tokenizer_files(tokenizer: object) -> dict[str, str]:
    """The SHA-256 of each file that a tokenizer is saved in."""
    known = dict.fromkeys(STATE) | {side: getattr(tokenizer, side, None) for side in SIDES}
    with tempfile.TemporaryDirectory() as folder:
        if hasattr(tokenizer, "save_pretrained"):
            tokenizer.save_pretrained(folder)
        elif hasattr(tokenizer, "save"):  # the tokenizers library's; sentence-transformers' for word vectors
            is_file = type(tokenizer).__module__.startswith("tokenizers")
            tokenizer.save(f"{folder}/tokenizer.json" if is_file else folder)
        files = {}
        for file in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
            content = file.read_bytes()
            if file.name in ("tokenizer.json", "tokenizer_config.json"):
                content = json.dumps(json.loads(content) | known, sort_keys=True).encode()
            files[file.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()
    return files
