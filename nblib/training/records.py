"""Training records: `training.json` and tables in `<run>/trainings/<name>/`. `made_from` in the JSON is all that decides the
training's result: by it a finished training is found again, and an interrupted one goes on."""

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from nblib import artefacts, paths
from nblib.errors import StudyError

CHECKPOINT_STEPS = 100  # between checkpoints
RECORD = "training.json"


@dataclass(frozen=True)
class TrainingRecord:
    """The record of a training."""

    folder: Path
    about: Mapping[str, Any]  # what `training.json` says: base, variant, seed, alpha, training_data, training_items, …

    def table(self, name: str) -> pd.DataFrame:
        """A table of it; empty where none was written."""
        file = self.folder / f"{name}.csv"
        return artefacts.read_table(file) if file.is_file() else pd.DataFrame()


def texts_sha256(rows: Iterable[Iterable[Any]]) -> str:
    """SHA-256 of training examples in their order: the fields of each (texts, labels)."""
    lines = (json.dumps([str(field) for field in row]) + "\n" for row in rows)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def load(run_dir: str | Path, name: str) -> TrainingRecord:
    """The record of a run's training; StudyError where there is none."""
    file = paths.inside(run_dir, "trainings", name) / RECORD
    if not file.is_file():
        raise StudyError(f"There is no training {name} in {run_dir}. Train it: nblib run 04 out.ipynb -p name {name} …")
    return TrainingRecord(file.parent, artefacts.read_json(file))


def find(
    folder: str | Path, made_from: Mapping[str, Any], ignored: Sequence[str] = ("device",)
) -> TrainingRecord | None:
    """The record in a folder, where it is of just this training, on whatever machine: what the machine decided is `ignored`."""
    file = paths.resolve(folder) / RECORD
    about = artefacts.read_json(file) if file.is_file() else {}
    kept, wanted = (
        {key: value for key, value in one.items() if key not in ignored}
        for one in (about.get("made_from", {}), artefacts.as_json(made_from))
    )
    return TrainingRecord(file.parent, about) if about and kept == wanted else None


def save(
    folder: str | Path, made_from: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], **about: Any
) -> TrainingRecord:
    """Leave the record of a training: tables with rows as CSV, then the JSON (`about` and `made_from`), last as all is done."""
    folder = paths.writable_folder(folder)
    for name, table in tables.items():
        if len(table):
            artefacts.write_table(table, folder / f"{name}.csv")
    artefacts.write_json(folder / RECORD, {**artefacts.provenance(**about), "made_from": dict(made_from)})
    return TrainingRecord(folder, artefacts.read_json(folder / RECORD))


def forget(folder: str | Path) -> None:
    """Remove a record, or a training's checkpoints; another folder stays."""
    if (paths.resolve(folder) / RECORD).is_file():
        shutil.rmtree(paths.resolve(folder), ignore_errors=True)


def reserve_folder(folder: str | Path, made_from: Mapping[str, Any]) -> Path:
    """Reserve a folder for the checkpoints of this training; StudyError where it holds those of another."""
    folder = paths.writable_folder(folder)
    if last_checkpoint(folder) and not find(folder, made_from):
        raise StudyError(f"{folder} holds the checkpoints of another training. Remove it, or choose another name.")
    artefacts.write_json(folder / RECORD, {"made_from": dict(made_from)})
    return folder


def last_checkpoint(folder: Path) -> str | None:
    """The last checkpoint to go on from; a half-written one is removed."""
    from transformers.trainer_utils import get_last_checkpoint

    for checkpoint in folder.glob("checkpoint-*"):
        try:
            json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))  # is written last
        except (OSError, ValueError):
            shutil.rmtree(checkpoint)
    return get_last_checkpoint(str(folder))


def arguments(settings: Any) -> dict[str, Any]:
    """Of transformers' trainers, from `TrainingSettings` or `LoraSettings`."""
    import torch  # takes seconds, which those who read records don't need

    gpu = torch.cuda.is_available()
    steps = {"num_train_epochs": settings.epochs, "per_device_train_batch_size": settings.batch_size}
    steps |= {"learning_rate": settings.learning_rate, "warmup_steps": 0.1, "seed": settings.seed}
    machine = {"bf16": settings.bf16, "use_cpu": not gpu, "dataloader_pin_memory": gpu, "report_to": "none"}
    return {**steps, **machine, "save_steps": CHECKPOINT_STEPS, "save_total_limit": 1, "logging_steps": 0.02}


def run(trainer: Any, folder: Path, remedy: str) -> pd.DataFrame:
    """Run a trainer of transformers, from the last checkpoint in `folder` if there is one; a StudyError, with the remedy, where
    it runs out of memory. The history: step, epoch, loss (a mean since the row before), learning_rate."""
    import torch

    try:
        trainer.train(resume_from_checkpoint=last_checkpoint(folder))
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:  # torch has several
        wants = any(words in str(error) for words in ("out of memory", "not enough memory", "allocate memory"))
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) and not wants:
            raise
        raise StudyError(f"Out of memory. {remedy} Remove {folder}: its checkpoints are of these settings.") from error
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    return pd.DataFrame(logged, columns=["step", "epoch", "loss", "learning_rate"]).astype(float)
