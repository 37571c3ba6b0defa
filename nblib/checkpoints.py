"""The folders of a training: its checkpoints while it runs, and the model it leaves, whole or not at all."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint

from nblib import paths, provenance


class FinetuningError(ValueError):
    """A training that can't be run or taken up again, or models that don't belong together."""


# --- while it runs ----------------------------------------------------------------------------------------------------


def claim(folder: Path, about: dict[str, Any]) -> None:
    """Make the folder this training's, or see that it is.

    Args:
        about: what the training is: settings, number of examples, a hash of their texts.

    Raises:
        FinetuningError: it holds the checkpoints of another.
    """
    mine = json.loads(json.dumps(about))
    file = folder / "training.json"
    if file.is_file() and last_checkpoint(folder) and json.loads(file.read_text(encoding="utf-8")) != mine:
        raise FinetuningError(
            f"{folder} holds the checkpoints of another training. Remove the folder, or give this training another name."
        )
    with paths.write_atomically(file) as draft:
        draft.write_text(json.dumps(mine, indent=2) + "\n", encoding="utf-8")


def last_checkpoint(folder: Path) -> str | None:
    """The last checkpoint to go on from; one that a kill left half-written (its state is written last) is removed."""
    for checkpoint in folder.glob("checkpoint-*"):
        if not (checkpoint / TRAINER_STATE_NAME).is_file():
            shutil.rmtree(checkpoint)
    return get_last_checkpoint(str(folder))


def forget(folder: str | Path) -> None:
    """Remove a finished training's checkpoints."""
    shutil.rmtree(paths.resolve(folder), ignore_errors=True)


def out_of_memory(error: Exception) -> bool:
    """Whether that is what an error says: torch has several for it."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "memory" in str(error)


# --- what it leaves ---------------------------------------------------------------------------------------------------


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """An empty folder beside the target to write into, gone afterwards."""
    draft = target.with_name(f".{target.name}.saving")
    shutil.rmtree(draft, ignore_errors=True)  # what a killed process left
    try:
        yield paths.writable_folder(draft)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def in_place(draft: Path, target: Path, card: str, about: dict[str, Any]) -> Path:
    """Put a drafted folder in its place, with a model card inside and a provenance sidecar beside it."""
    (draft / "README.md").write_text(card, encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)
    provenance.write_sidecar(target, **about)
    return target
