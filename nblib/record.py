"""`python -m nblib.record official`: hold a finished run against the figures of record, check the claims, copy.

Nothing else writes below `figures/`. The published text makes claims ("all-mpnet-base-v2 gets 31.9"); a run whose numbers
don't bear them out is not recorded.
"""

import argparse
import filecmp
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml

from nblib import paths, results


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


def differences(run: Path, record: Path) -> dict[str, list[str]]:
    """File names by what recording would do: "new", "changed", "gone" (of record, but not made by this run)."""
    made, kept = (
        {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()} for folder in (run, record)
    )
    changed = [name for name in made & kept if not filecmp.cmp(run / name, record / name, shallow=False)]
    return {"new": sorted(made - kept), "changed": sorted(changed), "gone": sorted(kept - made)}


def changed_scores(run: Path, record: Path) -> list[str]:
    """Scores that differ between two scoreboards, old and new, as lines to read."""
    boards = [folder / "scoreboard.csv" for folder in (record, run)]
    if not all(board.is_file() for board in boards):
        return []
    key = [*results.KEY, "data", "model"]
    old, new = (pd.read_csv(board).set_index(key).ours.dropna() for board in boards)
    both = pd.concat([old.groupby(level=key).first(), new.groupby(level=key).first()], axis=1, keys=["old", "new"])
    moved = both[both.old.ne(both.new)]
    return [f"{' / '.join(map(str, name))}: {row.old} → {row.new}" for name, row in moved.iterrows()]


def record(scale: str) -> dict[str, list[str]]:
    """Check the claims, then make `figures/<scale>/` equal to the run's figures; returns what changed: file names by
    "new", "changed" and "gone", and the "scores" that moved.

    Raises:
        RecordError: there is no finished run, or it contradicts a claim; nothing is copied then.
    """
    run, target = paths.resolve(f"runs/{scale}"), paths.FIGURES / scale
    if not (run / "figures" / "scoreboard.csv").is_file():
        raise RecordError(f"No finished run in {run}. Make it: make study SCALE={scale}")
    table = results.load(run)
    wrong = [problem for claim in claims(scale) if (problem := claim.check(table))]
    if wrong:
        raise RecordError("The run contradicts what the study says (config/claims.yaml):\n  " + "\n  ".join(wrong))
    found = {**differences(run / "figures", target), "scores": changed_scores(run / "figures", target)}
    for name in found["new"] + found["changed"]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run / "figures" / name, target / name)
    for name in found["gone"]:
        (target / name).unlink()
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m nblib.record", description=__doc__.splitlines()[0])
    parser.add_argument("scale")
    scale = parser.parse_args().scale
    try:
        found = record(scale)
    except (RecordError, results.ResultsError, FileNotFoundError) as error:
        sys.exit(f"error: {error}")
    lines = [f"{what}: {name}" for what, names in found.items() for name in names]
    sys.stdout.write("\n".join([*lines, f"figures/{scale} is now equal to runs/{scale}/figures."]) + "\n")


if __name__ == "__main__":
    main()
