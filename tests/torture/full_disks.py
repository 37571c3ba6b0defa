"""A disk that fills up while something is written: the file is named, what was there stays, and the next run completes.

The disk is a small file system in memory, which only root can mount; without that, these cases are left out.
"""

import os
import random
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import nbformat
import numpy as np
import pandas as pd
from campaign import MISSED, Kind, Step
from nbformat.v4 import new_markdown_cell, new_notebook
from support import faults
from support.encoders import fitted_adapter, tiny, toy_examples

from nblib import artefacts, paths, results
from nblib.benchmarks import scoring
from nblib.models import embeddings
from nblib.models.folders import model_folder
from nblib.results import report
from nblib.training import tuning
from nblib.training.trainer import Settings

SIZE = 4 * 2**20  # bytes
MOUNTED: list[Path] = []


def filling(make: Callable[[Path, Path], Callable[[], Path]], folder: Path) -> Step:
    """Leave a drawn number of bytes free, write, free the disk, and write again.

    Args:
        make: given a folder for what is needed and the disk, gives what writes; that returns the artefact.
    """
    disk, needs, filler = folder / "disk", folder / "needs", folder / "disk" / "filler"
    disk.mkdir()
    needs.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", disk], check=True)
    MOUNTED.append(disk)
    write = make(needs, disk)

    def step(chance: random.Random) -> tuple[str, str]:
        size = os.statvfs(disk)
        free = size.f_bavail * size.f_frsize
        filler.write_bytes(bytes(max(0, free - int(2 ** chance.uniform(9, 20)))))
        try:
            said = ""
            write()
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            known = isinstance(error, faults.StudyError | PermissionError)
            found = "named" if known and str(disk) in said and "\n" not in said else "TRACEBACK"
        finally:
            filler.unlink()
        if not said:
            return MISSED, ""
        if found == "named":
            artefact = write()
            if artefact.suffix not in (".html", ".sqlite") and not artefacts.is_whole(artefact):
                return "CUT AFTER RERUN", str(artefact)
            if drafts := [file for file in disk.rglob(".*.tmp") if file.exists()]:
                return "DRAFT LEFT", str(drafts)
        return found, said

    return step


def unmount() -> None:
    """Give all disks back; their folders can be removed then."""
    while MOUNTED:
        subprocess.run(["umount", "-l", MOUNTED.pop()], check=False)


def scores(needs: Path, disk: Path) -> Callable[[], Path]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": [f"n-{k}" for k in range(20_000)], "cluster": range(20_000)})

    def write() -> Path:
        scoring.save_predictions(table.assign(margin=rng.normal(size=len(table))), disk, "tiny", "nevir", asked={})
        return next((disk / "scores" / "tiny").glob("*.parquet"))

    return write


def adapter(needs: Path, disk: Path) -> Callable[[], Path]:
    fitted = fitted_adapter(2000)
    return lambda: fitted.save(disk / "adapters" / "tiny.safetensors", encoder="tiny")


def encoder(needs: Path, disk: Path) -> Callable[[], Path]:
    model = tiny(needs).model

    def write() -> Path:
        with model_folder(disk / "encoders" / "hedge", "# hedge", {"seed": 0}) as draft:
            model.save_pretrained(str(draft), create_model_card=False)
        return disk / "encoders" / "hedge"

    return write


def training(needs: Path, disk: Path) -> Callable[[], Path]:
    """Its checkpoints are what fills the disk."""
    tiny(needs)
    settings = Settings(str(needs / "model"), epochs=2, batch_size=4, bf16=False)
    places = disk / "encoders" / "x", disk / "trainings" / "x", disk / "checkpoints" / "x"

    def write() -> Path:
        with mock.patch.object(tuning.trainer, "CODE_VERSION", random.random()):  # or it would be found again
            return tuning.tune("bi-encoder", settings, toy_examples(), *places).folder

    return write


def store(needs: Path, disk: Path) -> Callable[[], Path]:
    encoder, numbers = tiny(needs), iter(range(10**9))

    def write() -> Path:
        with mock.patch.dict(os.environ, NBLIB_CACHE=str(disk / "cache")):
            embeddings.encode(encoder, [f"boat {next(numbers)}" for _ in range(400)])
        return next((disk / "cache" / "embeddings").glob("*.sqlite"))

    return write


def site(needs: Path, disk: Path) -> Callable[[], Path]:
    folder = disk / "runs" / "toy"
    rows = [results.row("tiny", "NevIR", "accuracy", 12.5, data="nevir test", n=80, scale="toy")]
    results.save(rows, folder / "results" / "07_tiny.csv", notebook="07_encoder_benchmarks")
    (folder / "notebooks").mkdir()
    said = {"papermill": {"parameters": {}, "duration": 1.0, "end_time": "2026-01-01T00:00:01"}}
    page = new_notebook(cells=[new_markdown_cell("# 01 Toy\n\n**Question.** Why?\n\n" + 9000 * "word ")], metadata=said)
    nbformat.write(page, folder / "notebooks" / "01_toy.ipynb")

    def write() -> Path:
        with mock.patch.object(paths, "PROJECT_ROOT", disk):
            return report.build("toy")

    return write


KINDS = [
    Kind("full disk", name, 6, partial(filling, make))
    for name, make in {
        "scores": scores, "adapter": adapter, "encoder": encoder, "training": training, "embedding store": store,
        "report": site,
    }.items()
    if hasattr(os, "geteuid") and os.geteuid() == 0
]  # fmt: skip
