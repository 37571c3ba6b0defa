"""`nblib record official`: compare a finished run with the reference figures, list the differences, copy.

Nothing else writes below `figures/`. CSV and SVG are recorded; `nblib export` makes the other formats. For the official run the
report is built and recorded, so that a reviewer needs no run, and the predictions, so that comparisons need no model.
"""

import filecmp
import shutil
from pathlib import Path

import pandas as pd

from nblib import paths, results
from nblib.errors import StudyError
from nblib.models.encoders import BFLOAT16
from nblib.results import measurements, report
from nblib.results.report import executed
from nblib.workflow import archive, documents

WITH_REPORT = {"official"}
KEPT = {".csv", ".svg"}
MOST_BYTES = 12_000_000  # of a report, which is part of every clone


class RecordError(StudyError):
    """A run that can't be recorded."""


def files(folder: Path) -> dict[str, Path]:
    """The files below a folder by their names in it."""
    return {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}


def differences(made: dict[str, Path], kept: dict[str, Path]) -> dict[str, list[str]]:
    """Names by what recording would do: "new", "changed", "gone" (among the reference files, but not in this run)."""
    changed = [name for name in made.keys() & kept.keys() if not filecmp.cmp(made[name], kept[name], shallow=False)]
    return {
        "new": sorted(made.keys() - kept.keys()),
        "changed": sorted(changed),
        "gone": sorted(kept.keys() - made.keys()),
    }


def changed_scores(run: Path, record: Path) -> list[str]:
    """Measurements that differ between a run's figures and the reference ones, as lines "name: old → new"; none where there
    are no reference measurements yet."""
    tables = [folder / "measurements.csv" for folder in (record, run)]
    if not all(table.is_file() for table in tables):
        return []
    old, new = (measurements.read(table).set_index(results.KEY).value for table in tables)
    both = pd.concat([old, new], axis=1, keys=["old", "new"], join="inner")
    moved = both[both.old.ne(both.new)]
    return [f"{' / '.join(map(str, name))}: {row.old} → {row.new}" for name, row in moved.iterrows()]


def record(scale: str) -> dict[str, list[str]]:
    """Make `figures/<scale>/` equal to the run's figures, with report and predictions; return the file names that are "new",
    "changed" and "gone", the "scores" that changed, and the "texts" (README, docs) filled in anew. An error leaves
    the record as it is.

    Raises:
        RecordError: there is no finished run, its report is too large, it has scores in bfloat16, or not all its
            pages were made by one clean commit.
        ReportError, StudyError: the report can't be built, or a comparing notebook is missing.
    """
    run, target = paths.inside("runs", scale), paths.inside(paths.FIGURES, scale)
    if not (run / "figures" / "scoreboard.csv").is_file():
        raise RecordError(f"No finished run in {run}. Run: make study SCALE={scale}")
    _check_precision(run)
    made = {name: file for name, file in files(run / "figures").items() if file.suffix in KEPT}
    if scale in WITH_REPORT:
        _check_states(run)
        packed = archive.archive(scale).name
        archive.pack(scale, run / packed)
        made |= {name: run / name for name in (packed, f"{packed}.json")}
        made |= {f"report/{name}": file for name, file in _report(scale).items()}
    found = {**differences(made, files(target)), "scores": changed_scores(run / "figures", target)}
    for name in found["new"] + found["changed"]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made[name], target / name)
    for name in found["gone"]:
        (target / name).unlink()
    if scale in WITH_REPORT:
        found["texts"] = documents.update(documents.Record(target))
    return found


def _check_precision(run: Path) -> None:
    """Refuse scores in bfloat16: float32 is the precision of record."""
    table = run / "figures" / "measurements.csv"
    systems = measurements.read(table).system if table.is_file() else pd.Series(dtype=str)
    if faster := sorted({name for name in systems if name.endswith(BFLOAT16)}):
        raise RecordError(
            f"{run} has scores in bfloat16, which are for exploring: {', '.join(faster)}. Remove results/07_{faster[0]}.csv "
            f"and the like, make the comparison again (make study SCALE={run.name}), and record then."
        )


def _check_states(run: Path) -> None:
    """Refuse pages that name uncommitted code, or more than one commit."""
    named = {notebook.page: notebook.states for notebook in executed.find(run)}
    states = sorted(set().union(*named.values()))
    unclean = [state for state in states if state.endswith("+changes") or state == "unknown"]
    if unclean or len(states) > 1:
        wrong = set(unclean or states[1:])
        pages = [page for page, found in named.items() if found & wrong]
        raise RecordError(
            f"A record needs one clean commit, and this run names {', '.join(states)}: {len(pages)} pages, first {pages[0]}. "
            f"Commit the code, execute these notebooks again (make study SCALE={run.name}), and record then."
        )


def _report(scale: str) -> dict[str, Path]:
    pages = files(report.build(scale).parent)
    size = sum(file.stat().st_size for file in pages.values())
    if size > MOST_BYTES:
        raise RecordError(
            f"The report has {size:,} bytes, more than the {MOST_BYTES:,} to commit. Remove notebooks of the sweep that need no "
            f"page: runs/{scale}/sweep/notebooks."
        )
    return pages
