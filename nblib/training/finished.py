"""Whether a training has been done before: by what it was trained from, never by source files.

A trained model's provenance sidecar names what it was trained from under `TRAINED_FROM`. So the same training is found
again and not run twice.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nblib import artefacts, paths

TRAINED_FROM = "trained_from"  # the sidecar's key


def fingerprint(
    code_version: int, settings: Mapping[str, Any], texts_sha256: str, base_fingerprint: str, device: str
) -> str:
    """SHA-256 of what decides a training's result.

    Args:
        code_version: of the training code, raised by hand when trained weights change.
        settings: all of them, with the seed and the precision; what JSON doesn't know counts as its text.
        texts_sha256: of the training texts in their order (`texts_sha256`).
        device: "cpu" or "cuda".
    """
    trained_from = {
        "recipe": code_version, "settings": dict(settings), "texts": texts_sha256, "base": base_fingerprint, "device": device,
    }  # fmt: skip
    return hashlib.sha256(json.dumps(trained_from, sort_keys=True, default=str).encode()).hexdigest()


def texts_sha256(rows: Iterable[Iterable[Any]]) -> str:
    """SHA-256 of training examples in their order: the fields of each (texts, labels)."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([str(field) for field in row]).encode() + b"\n")
    return digest.hexdigest()


def is_finished(folder: str | Path, fingerprint: str) -> bool:
    """Whether the folder holds a model that was trained from just that."""
    return paths.resolve(folder).is_dir() and artefacts.about(folder).get(TRAINED_FROM) == fingerprint
