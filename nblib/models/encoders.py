"""Encoders by name: registered ones (out of their PyPI package or of the hub), folders, LoRAs on their base, ids on the hub."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nblib import paths
from nblib.models import loading, registry
from nblib.models.identity import fingerprint
from nblib.models.registry import ModelError, ModelSpec, Role

if TYPE_CHECKING:
    import numpy as np
    from sentence_transformers import SentenceTransformer

# The names of prompts by role, as the library looks for them
PROMPTS = {"symmetric": (), "query": ("query",), "document": ("document", "passage", "corpus")}


@dataclass(frozen=True)
class Encoder:
    """A loaded encoder: the model, with its prompts and similarity, and a fingerprint of all that shapes its embeddings."""

    name: str
    model: "SentenceTransformer"
    fingerprint: str
    source: str = ""  # a hub's id and revision, or a folder
    base: "Encoder | None" = None  # from whose vectors a negation adapter's are computed, by `transform`
    transform: "Callable[[np.ndarray], np.ndarray] | None" = None
    adapter: str = ""  # key of the adapter's weighting
    cacheable: bool = True  # on disk; embeddings of a model in training are kept in `memory`
    memory: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def symmetric(self) -> bool:
        """Whether texts can be encoded without a role: two towers need a default route for that."""
        from sentence_transformers.base.modules import Router

        if not isinstance(next(iter(self.model.children()), None), Router):
            return True
        try:
            return bool(len(self.model.encode(["A text."], show_progress_bar=False)))
        except ValueError:
            return False

    def prompt(self, role: Role) -> str:
        """What the model puts before a text in this role (symmetric: STS, paraphrases)."""
        prompts = self.model.prompts
        return prompts.get(
            next((name for name in PROMPTS[role] if name in prompts), self.model.default_prompt_name), ""
        )


def load(name: str, *, allow_remote_code: bool = False, device: str | None = None) -> Encoder:
    """Load an encoder in float32.

    Args:
        name: a registered name, a local folder (see `loading.locate`), or an id on the hub.
        allow_remote_code: let a model that needs it run code of its own.
        device: None takes a GPU where there is one.

    Raises:
        ModelError: nothing of that name can be loaded, it is no encoder, or its weights aren't those of the registry.
        StudyError: see `completeness`.
    """
    options = {"allow_remote_code": allow_remote_code, "device": device}
    spec = registry.find(name)
    if spec and spec.remote_code and not allow_remote_code:
        raise ModelError(f"{spec.name} runs code from {spec.hub}. If you trust it, set allow_remote_code for this run.")
    folder = loading.locate(name)
    if (kind := loading.class_of(folder)) != loading.ENCODER:
        raise ModelError(f"{name} is a {kind}; an encoder is needed here, a {loading.ENCODER}.")
    model = loading.read(folder, kind, **options)
    if spec := spec or _of_bare_lora(folder):
        model = _as_registered(model, spec, options)
    label, source = describe(name, folder)
    return Encoder(label, model, fingerprint(model), source)


def describe(name: str, folder: Path) -> tuple[str, str]:
    """What the scores of a model are filed under, and where it is from.

    A folder called like a registered model isn't that model.
    """
    if spec := registry.find(name):
        return spec.name, f"{spec.hub or spec.name}@{spec.revision}" if spec.revision else spec.hub or spec.name
    cached = folder.parent.parent.name
    if cached.startswith("models--"):  # of the hub's cache
        hub = cached.removeprefix("models--").replace("--", "/")
        return hub.replace("/", "__"), f"{hub}@{folder.name}"
    folder = folder.resolve()
    source = folder.relative_to(paths.PROJECT_ROOT) if folder.is_relative_to(paths.PROJECT_ROOT) else folder
    return folder.name + "-local" * (folder.name in registry.names()), source.as_posix()


def _of_bare_lora(folder: Path) -> ModelSpec | None:
    """The registered base of a folder with a LoRA and nothing else."""
    bare = (folder / loading.LORA_SETTINGS).is_file() and not (folder / "modules.json").is_file()
    return registry.find(loading.lora_base(folder)) if bare else None


def _as_registered(model: "SentenceTransformer", spec: ModelSpec, options: dict) -> "SentenceTransformer":
    """The model with the registry's length and similarity, its prompts where the model has none, and its tower for queries."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router

    if spec.query_encoder:
        tower = load(spec.query_encoder, **options).model
        modules = [Router.for_query_document(query_modules=list(tower), document_modules=list(model))]
        model = SentenceTransformer(modules=modules, device=str(model.device), prompts=tower.prompts).eval()
    if spec.max_length:
        model.max_seq_length = spec.max_length
    if spec.similarity:
        model.similarity_fn_name = spec.similarity
    prompts = {role: getattr(spec, f"{role}_prompt") for role in PROMPTS}
    if any(prompts.values()) and not any(model.prompts.values()):
        model.prompts, model.default_prompt_name = prompts, "symmetric"
    return model
