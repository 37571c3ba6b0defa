"""Run a trainer with checkpoints: reserve their folder, resume from the last, remove them in the end."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import Trainer
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint

from nblib import artefacts, paths
from nblib.models.folders import FinetuningError

RESERVED = "training.json"  # in each folder of checkpoints


def reserve_folder(folder: Path, about: dict[str, Any]) -> None:
    """Reserve the folder for this training.

    Args:
        about: describes the training: architecture, settings, a hash of its texts.

    Raises:
        FinetuningError: it holds the checkpoints of another.
    """
    mine = artefacts.as_json(about)
    file = folder / RESERVED
    if file.is_file() and last_checkpoint(folder) and artefacts.read_json(file) != mine:
        raise FinetuningError(
            f"{folder} holds the checkpoints of another training. Remove the folder, or give this training another name."
        )
    artefacts.write_json(file, mine)


def last_checkpoint(folder: Path) -> str | None:
    """The last checkpoint to go on from; one that a kill or a full disk left half-written is removed."""
    for checkpoint in folder.glob("checkpoint-*"):
        try:
            json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))  # is written last
        except (OSError, ValueError):
            shutil.rmtree(checkpoint)
    return get_last_checkpoint(str(folder))


def forget(folder: str | Path) -> None:
    """Remove a finished training's checkpoints; another folder stays."""
    if (paths.resolve(folder) / RESERVED).is_file():
        shutil.rmtree(paths.resolve(folder), ignore_errors=True)


def run(trainer: Trainer, folder: Path, out_of_memory: FinetuningError) -> pd.DataFrame:
    """Run a trainer, from the last checkpoint in `folder` if there is one.

    Args:
        out_of_memory: raised where the memory doesn't suffice (torch has several errors for that).

    Returns:
        The history: step, epoch, loss (a mean over the steps since the row before), learning_rate.
    """
    try:
        trainer.train(resume_from_checkpoint=last_checkpoint(folder))
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) and "memory" not in str(error):
            raise
        raise out_of_memory from error
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    return pd.DataFrame(logged, columns=["step", "epoch", "loss", "learning_rate"]).astype(float)
