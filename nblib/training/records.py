"""Training records: what a training was made from and what it measured, kept apart from its weights.

Below `<run>/trainings/<name>/` stand `training.json` (settings, checksums of what it was made from, when and by which commit)
and the tables that a notebook shows of it. So a training can be shown where its weights are not.
"""

import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from nblib import artefacts, paths

FILE = "training.json"
# Trainings from before there were records name their settings alone: what else made them can't be compared.
CHECKSUMS = {"code_version": "code version", "texts": "texts", "base_weights": "base weights", "dev": "dev data"}


@dataclass(frozen=True)
class Record:
    """The record of a training.

    Attributes:
        folder: where it lies.
        about: what `training.json` says.
        unknown: what the record doesn't name of the training that was asked for.
    """

    folder: Path
    about: Mapping[str, Any]
    unknown: tuple[str, ...] = ()

    def table(self, name: str) -> pd.DataFrame:
        """A table with the very numbers that were written; empty where none was."""
        file = self.folder / f"{name}.csv"
        return artefacts.read_table(file) if name in self.about["tables"] else pd.DataFrame()

    def table_or(self, name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """A table of the record, or a new one that is made and kept there."""
        if name not in self.about["tables"]:
            self.add(name, make())
        return artefacts.read_table(self.folder / f"{name}.csv")

    def add(self, name: str, table: pd.DataFrame, **about: Any) -> "Record":
        """The record with one more table, or another one of that name, and what is known of it."""
        artefacts.write_table(table, self.folder / f"{name}.csv")
        about = {**self.about, **about, "tables": sorted({*self.about["tables"], name})}
        artefacts.write_json(self.folder / FILE, about)
        return Record(self.folder, about, self.unknown)

    def complete(self, made_from: Mapping[str, Any]) -> "Record":
        """The record with all that made the training, for which its weights vouch: they are here, with a fingerprint of it."""
        about = {**self.about, "made_from": dict(made_from)}
        artefacts.write_json(self.folder / FILE, about)
        return Record(self.folder, about)


def is_alone(run_dir: str | Path, name: str) -> bool:
    """Whether a run has the record of a training, and no longer its weights."""
    run = paths.resolve(run_dir)
    return (run / "trainings" / name / FILE).is_file() and not any(
        (run / kind / name).is_dir() for kind in ("encoders", "llms")
    )


def save(folder: str | Path, made_from: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], **about: Any) -> Record:
    """Leave the record of a training that was just run, in the place of an earlier one.

    Args:
        made_from: all that decides the training's result (`find`).
        tables: those with rows are kept, as CSV.
        about: what else is known of it.
    """
    folder = paths.resolve(folder)
    if (folder / FILE).is_file():
        shutil.rmtree(folder)
    record = Record(folder, artefacts.provenance(**about, made_from=dict(made_from), tables=[]))
    for name, table in tables.items():
        record = record.add(name, table) if len(table) else record
    artefacts.write_json(folder / FILE, record.about)
    return record


def load(folder: str | Path) -> Record | None:
    """The record in a folder; None where there is none."""
    file = paths.resolve(folder) / FILE
    return Record(file.parent, artefacts.read_json(file)) if file.is_file() else None


def find(
    folder: str | Path, made_from: Mapping[str, Any], tables: Collection[str], about: Mapping[str, Any],
    apart_from: Collection[str] = (),
) -> Record | None:  # fmt: skip
    """The record in a folder, where it has these tables and is of just this training.

    Args:
        made_from: of the training that is asked for; what JSON doesn't know counts as its text. A record that lacks some of
            `CHECKSUMS` fits by the rest.
        about: what else is known of it: without a checksum of the texts, their name and number must be those of the record.
        apart_from: what may be other than that.
    """
    if (record := load(folder)) is None:
        return None
    kept = record.about
    named, asked = kept["made_from"], artefacts.as_json(made_from)
    unknown = [name for name in asked if name not in named]
    differing = [name for name, value in named.items() if name not in apart_from and asked.get(name) != value]
    if "texts" in unknown:
        differing += [
            name for name, value in about.items() if name not in ("scale", "name") and kept.get(name) != value
        ]
    if differing or not CHECKSUMS.keys() >= set(unknown) or not set(tables) <= set(kept["tables"]):
        return None
    return replace(record, unknown=tuple(CHECKSUMS[name] for name in unknown))


@dataclass(frozen=True)
class Trained:
    """A finished training.

    Attributes:
        folder: of the model that is kept.
        record: what was measured, and where it comes from.
        found: it was trained before, and nothing was trained now.
        has_model: whether the model is in its folder, or the record is all that is left.
    """

    folder: Path
    record: Record
    found: bool = False
    has_model: bool = True

    @property
    def history(self) -> pd.DataFrame:
        """The loss (see `trainer.train`, `llm_lora.train`)."""
        return self.record.table("history")

    @property
    def seconds(self) -> float:
        """What the training took."""
        return self.record.about["seconds"]

    @property
    def sentence(self) -> str:
        """Where the training comes from: which commit made it, when, and what can't be compared with what was asked for."""
        if not self.found:
            return "Trained now."
        about, unknown = self.record.about, self.record.unknown
        made = f"Trained at commit {about['commit']} on {about['finished'][:10]}"
        if self.has_model:
            return f"{made}."
        settings = f" The settings are these; it has no checksum of {', '.join(unknown)}, which may differ." * bool(
            unknown
        )
        return f"{made}. Its weights aren't here, so its record is shown (again = True trains anew).{settings}"
