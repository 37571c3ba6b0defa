"""`nblib record official`: compare a finished run with the reference figures, list the differences, copy.

Nothing else writes below `figures/`. CSV and SVG are recorded; what differs from the reference by rounding alone, as it does
between processors, stays as it is. Of the official run the executed notebooks are recorded as well, and the predictions, so that
comparisons need no model.
"""

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import paths, results
from nblib.errors import StudyError
from nblib.results import measurements
from nblib.workflow import archive, documents

WITH_NOTEBOOKS = {"official"}
KEPT = {".csv", ".svg"}
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)")
# By how much two numbers may differ: a share of the larger, or so many units of the last printed digit; coordinates by points
RELATIVE, UNITS, POINTS = 2e-4, 1.5, 0.5
STATE = re.compile(r"· commit (\S+) ·")  # in the line that a notebook prints first (provenance)


class RecordError(StudyError):
    """A run that can't be recorded."""


def files(folder: Path) -> dict[str, Path]:
    """The files below a folder by their names in it."""
    return {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}


def agree(made: Path, kept: Path) -> bool:
    """Whether two files say the same: CSV or SVG the same text but for rounding, others the same bytes."""
    if made.read_bytes() == kept.read_bytes():
        return True
    if made.suffix not in KEPT:
        return False
    one, other = made.read_text(encoding="utf-8"), kept.read_text(encoding="utf-8")
    if NUMBER.sub("", one) != NUMBER.sub("", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(_close(a, b, POINTS if made.suffix == ".svg" else UNITS * max(_unit(a), _unit(b))) for a, b in pairs)


def _close(one: str, other: str, absolute: float) -> bool:
    return one == other or math.isclose(float(one), float(other), rel_tol=RELATIVE, abs_tol=absolute)


def _unit(number: str) -> float:
    """What the last digit of a printed number counts."""
    mantissa, _, exponent = number.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def differences(made: dict[str, Path], kept: dict[str, Path]) -> dict[str, list[str]]:
    """Names by what recording would do: "new", "changed", "gone" (among the reference files, but not in this run)."""
    return {
        "new": sorted(made.keys() - kept.keys()),
        "changed": sorted(name for name in made.keys() & kept.keys() if not agree(made[name], kept[name])),
        "gone": sorted(kept.keys() - made.keys()),
    }


def changed_scores(run: Path, record: Path) -> list[str]:
    """Measurements that differ between a run's figures and the reference ones by more than rounding, as lines
    "name: old → new"; none where there are no reference measurements yet."""
    tables = [folder / "measurements.csv" for folder in (record, run)]
    if not all(table.is_file() for table in tables):
        return []
    old, new = (measurements.read(table).set_index(results.KEY).value for table in tables)
    both = pd.concat([old, new], axis=1, keys=["old", "new"], join="inner")
    moved = both[~np.isclose(both.old, both.new, rtol=RELATIVE, atol=UNITS * 10.0**-measurements.DECIMALS)]
    return [f"{' / '.join(map(str, name))}: {row.old} → {row.new}" for name, row in moved.iterrows()]


def record(scale: str) -> dict[str, list[str]]:
    """Bring `figures/<scale>/` to what the run's figures say; return the file names that are "new", "changed" and "gone", the
    "scores" that changed, and the "texts" (README) filled in anew. An error leaves the record as it is.

    Raises:
        RecordError: there is no finished run, or not all its notebooks were made by one clean commit.
        StudyError: a comparing notebook is missing.
    """
    run, target = paths.inside("runs", scale), paths.inside(paths.FIGURES, scale)
    if not (run / "figures" / "scoreboard.csv").is_file():
        raise RecordError(f"No finished run in {run}. Run: make study SCALE={scale}")
    made = {name: file for name, file in files(run / "figures").items() if file.suffix in KEPT}
    if scale in WITH_NOTEBOOKS:
        notebooks = {f"notebooks/{name}": file for name, file in files(run / "notebooks").items()}
        _check_states(notebooks, scale)
        packed = archive.archive(scale).name
        archive.pack(scale, run / packed)
        made |= {name: run / name for name in (packed, f"{packed}.json")} | notebooks
    found = {**differences(made, files(target)), "scores": changed_scores(run / "figures", target)}
    for name in found["new"] + found["changed"]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made[name], target / name)
    for name in found["gone"]:
        (target / name).unlink()
    if scale in WITH_NOTEBOOKS:
        found["texts"] = documents.update(documents.Record(target))
    return found


def _check_states(notebooks: dict[str, Path], scale: str) -> None:
    """Refuse executed notebooks of uncommitted code, or of more than one commit."""
    named = {name: set(STATE.findall(file.read_text(encoding="utf-8"))) for name, file in notebooks.items()}
    states = sorted(set().union(*named.values()))
    unclean = [state for state in states if state.endswith("+changes") or state == "unknown"]
    if unclean or len(states) > 1:
        wrong = set(unclean or states[1:])
        those = [name for name, found in named.items() if found & wrong]
        raise RecordError(
            f"A record needs one clean commit, and this run names {', '.join(states)}: {len(those)} notebooks, first {those[0]}. "
            f"Commit the code, execute these again (make study SCALE={scale}), and record then."
        )
