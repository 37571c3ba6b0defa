"""`python -m nblib.record official`: hold a finished run against the figures of record, check the claims, copy.

Nothing else writes below `figures/`. The published text makes claims ("all-mpnet-base-v2 gets 31.9"); a run whose numbers
don't bear them out is not recorded. Of the official run the report is recorded as well, made anew from what is recorded,
so that a reviewer needs no run, and the predictions, so that notebooks 08 and 11 need no model.
"""

import argparse
import filecmp
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml

from nblib import paths, predictions, report, results

WITH_REPORT = {"official"}  # of the other scales anybody can make it
MOST_BYTES = 10_000_000  # of a report: more would weigh down every clone


class RecordError(ValueError):
    """A run that can't be recorded."""


@dataclass(frozen=True)
class Claim:
    """A number the published text states: where it stands in the results, its value and how far a run may lie off."""

    scale: str
    where: dict[str, str]
    value: float
    tolerance: float

    def check(self, table: pd.DataFrame) -> str:
        """What is wrong, or ""."""
        fits = pd.Series(True, index=table.index)
        for column, value in self.where.items():
            fits &= table[column] == value
        named = ", ".join(self.where.values())
        if not fits.any():
            return f"{named}: no such result, claimed {self.value}"
        found = table.loc[fits, "ours"]
        off = found[~((found - self.value).abs() <= self.tolerance)]  # NaN is off, too
        return f"{named}: {off.iloc[0]}, claimed {self.value} ± {self.tolerance}" if len(off) else ""


def claims(scale: str) -> list[Claim]:
    """The claims about a scale, from `config/claims.yaml`."""
    declared = yaml.safe_load((paths.CONFIG / "claims.yaml").read_text(encoding="utf-8"))
    return [Claim(**item) for item in declared if item["scale"] == scale]


def files(folder: Path) -> dict[str, Path]:
    """The files below a folder by their names in it."""
    return {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}


def differences(made: dict[str, Path], kept: dict[str, Path]) -> dict[str, list[str]]:
    """Names by what recording would do: "new", "changed", "gone" (of record, but not made by this run)."""
    changed = [name for name in made.keys() & kept.keys() if not filecmp.cmp(made[name], kept[name], shallow=False)]
    return {
        "new": sorted(made.keys() - kept.keys()),
        "changed": sorted(changed),
        "gone": sorted(kept.keys() - made.keys()),
    }


def changed_scores(run: Path, record: Path) -> list[str]:
    """Scores that differ between two scoreboards, old and new, as lines to read."""
    boards = [folder / "scoreboard.csv" for folder in (record, run)]
    if not all(board.is_file() for board in boards):
        return []
    key = [*results.KEY, "data", "model"]
    old, new = (
        pd.read_csv(board, keep_default_na=False, na_values={"ours": [""]}).set_index(key).ours.dropna()
        for board in boards
    )
    both = pd.concat([old.groupby(level=key).first(), new.groupby(level=key).first()], axis=1, keys=["old", "new"])
    moved = both[both.old.ne(both.new)]
    return [f"{' / '.join(map(str, name))}: {row.old} → {row.new}" for name, row in moved.iterrows()]


def record(scale: str) -> dict[str, list[str]]:
    """Check the claims, then make `figures/<scale>/` equal to the run's figures, with report and predictions; returns what
    changed: file names by "new", "changed" and "gone", and the "scores" that moved.

    Raises:
        RecordError: there is no finished run, it contradicts a claim, or its report is too large; nothing is copied then.
        ReportError, PredictionsError: no report can be made of it, or it has no notebook 08; nothing is copied then.
    """
    run, target = paths.resolve(f"runs/{scale}"), paths.FIGURES / scale
    if not (run / "figures" / "scoreboard.csv").is_file():
        raise RecordError(f"No finished run in {run}. Make it: make study SCALE={scale}")
    table = results.load(run)
    wrong = [problem for claim in claims(scale) if (problem := claim.check(table))]
    if wrong:
        raise RecordError("The run contradicts what the study says (config/claims.yaml):\n  " + "\n  ".join(wrong))
    made = files(run / "figures")
    if scale in WITH_REPORT:
        packed = predictions.archive(scale).name
        predictions.pack(scale, run / packed)
        made |= {packed: run / packed} | {f"report/{name}": file for name, file in _report(scale).items()}
    found = {**differences(made, files(target)), "scores": changed_scores(run / "figures", target)}
    for name in found["new"] + found["changed"]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made[name], target / name)
    for name in found["gone"]:
        (target / name).unlink()
    return found


def _report(scale: str) -> dict[str, Path]:
    pages = files(report.build(scale).parent)
    size = sum(file.stat().st_size for file in pages.values())
    if size > MOST_BYTES:
        raise RecordError(
            f"The report has {size:,} bytes, more than the {MOST_BYTES:,} to be committed. Leave out of the sweep's notebooks "
            f"what needs no page: runs/{scale}/sweep/notebooks."
        )
    return pages


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m nblib.record", description=__doc__.splitlines()[0])
    parser.add_argument("scale")
    scale = parser.parse_args().scale
    try:
        found = record(scale)
    except (
        RecordError, report.ReportError, predictions.PredictionsError, results.ResultsError, FileNotFoundError, PermissionError,
    ) as error:  # fmt: skip
        sys.exit(f"error: {error}")
    lines = [f"{what}: {name}" for what, names in found.items() for name in names]
    sys.stdout.write("\n".join([*lines, f"figures/{scale} is now equal to runs/{scale}/figures."]) + "\n")


if __name__ == "__main__":
    main()
