"""`nblib record official`: compare a finished run with the reference figures, list the differences, copy.

CSV and SVG are recorded; what differs from the reference by rounding alone, as it does between processors, stays as it is. Of
the official run the executed notebooks are recorded as well, and the predictions, so that comparisons need no model; where a
notebook runs once for each model, the executed copies alone, which show the figures and tables.
"""

import math
import re
import shutil
from collections import Counter
from itertools import chain
from pathlib import Path

from nblib import artefacts, paths
from nblib.errors import StudyError
from nblib.workflow import archive, documents

WITH_NOTEBOOKS = {"official"}
LABEL = re.compile(r">([^<]*)</text>")  # of an SVG
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)")
# By how much two numbers may differ: a share of the larger, or so many units of the last printed digit (a whole number by none);
# coordinates by points
RELATIVE, UNITS, POINTS = 2e-4, 1.5, 0.5
# What follows from numbers: the fingerprint of weights trained here, the name of a shape in an SVG
DIGEST = re.compile(r"\b[0-9a-f]{64}\b|(?<=[#\"])[mp][0-9a-f]{10}\b")
STATE = re.compile(r"· commit (\S+) ·")  # in the line that a notebook prints first (provenance)


def files(folder: Path) -> dict[str, Path]:
    """The files below a folder by their names in it."""
    return {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}


def agree(made: Path, kept: Path) -> bool:
    """Whether two files say the same: CSV or SVG the same text but for rounding, others the same bytes."""
    if made.suffix not in (".csv", ".svg") or made.read_bytes() == kept.read_bytes():
        return made.read_bytes() == kept.read_bytes()
    one, other = made.read_text(encoding="utf-8"), kept.read_text(encoding="utf-8")
    if made.suffix == ".csv":
        return _same(one, other)
    labels = ("\n".join(LABEL.findall(text)) for text in (one, other))
    return _same(*labels) and _same(LABEL.sub("", one), LABEL.sub("", other), POINTS)


def _same(one: str, other: str, points: float = 0) -> bool:
    """Whether two texts are the same but for numbers that differ by rounding, or by so many points of a drawing."""
    one, other = DIGEST.sub("", one), DIGEST.sub("", other)
    if NUMBER.sub("", one) != NUMBER.sub("", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    units = ((a, b, max(_unit(a), _unit(b))) for a, b in pairs if a != b)
    return all(
        math.isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=points or UNITS * unit * (unit < 1))
        for a, b, unit in units
    )


def _unit(number: str) -> float:
    """What the last digit of a printed number counts."""
    mantissa, _, exponent = number.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def differences(made: dict[str, Path], kept: dict[str, Path]) -> dict[str, list[str]]:
    """Names by what recording would do: "new", "changed", "gone" (among the reference files, but not in this run)."""
    changed = [name for name in made.keys() & kept.keys() if not agree(made[name], kept[name])]
    return {"new": sorted(made.keys() - kept), "changed": sorted(changed), "gone": sorted(kept.keys() - made)}


def record(scale: str) -> dict[str, list[str]]:
    """Bring `figures/<scale>/` to what the run's figures say; return the file names that are "new", "changed" and "gone", and the
    "texts" (README) filled in anew. A StudyError, which leaves the record as it is: there is no finished run, or not all its
    notebooks were made by one clean commit."""
    run, target = paths.inside("runs", scale), paths.inside(paths.FIGURES, scale)
    if not (run / "figures" / "scoreboard.csv").is_file():
        raise StudyError(f"No finished run in {run}. Run: make study SCALE={scale}")
    made = {name: file for name, file in files(run / "figures").items() if file.suffix in (".csv", ".svg")}
    if scale in WITH_NOTEBOOKS:
        trainings = run.glob("trainings/*/training.json")
        swept = {file.parent.name for file in trainings if artefacts.read_json(file).get("variant")}  # too many to keep
        executed = {name: file for name, file in files(run / "notebooks").items() if ".partial." not in name}
        notebooks = {f"notebooks/{name}": file for name, file in executed.items() if file.stem not in swept}
        _check_commits(notebooks, scale)
        by_model = {name.split("/")[0] for name in executed if "/" in name}
        made = {name: file for name, file in made.items() if name.split("/")[0] not in by_model}
        packed = archive.archive(scale).name
        archive.pack(scale, run / packed)
        made |= {name: run / name for name in (packed, f"{packed}.json")} | notebooks
    found = differences(made, files(target))
    for name in found["new"] + found["changed"]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made[name], target / name)
    for name in found["gone"]:
        (target / name).unlink()
    return {**found, "texts": documents.update(target)} if scale in WITH_NOTEBOOKS else found


def _check_commits(notebooks: dict[str, Path], scale: str) -> None:
    """Refuse executed notebooks of uncommitted code, or of another commit than most."""
    named = {name: set(STATE.findall(file.read_text(encoding="utf-8"))) for name, file in notebooks.items()}
    commits = [one for one, _ in Counter(chain.from_iterable(named.values())).most_common()]
    clean = [one for one in commits if one != "unknown" and not one.endswith("+changes")]
    wrong = set(commits) - set(clean[:1])
    if those := [name for name, own in named.items() if own & wrong]:
        raise StudyError(
            f"A record needs one clean commit, and this run names {', '.join(commits)}: {len(those)} notebooks, first "
            f"{those[0]}. Commit the code, execute these again (make study SCALE={scale}), and record then."
        )
