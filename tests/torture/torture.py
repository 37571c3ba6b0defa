"""The campaign of faults: kills, full disks, damaged artefacts and bad input, with a table of what came of them.

    make torture                 what is left of the campaign, for an hour at most
    make torture MINUTES=5       a slice of it

Each case is drawn from the seed, its kind and its number. `runs/torture/cases_<seed>.csv` keeps them, so the next call goes on
where this one stops; remove it to begin anew. The exit status is 1 if a case had a bad outcome.
"""

import argparse
import csv
import logging
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import damages
import full_disks
import inputs
import kills
import pandas as pd
from campaign import BAD, GOOD, MISSED, Kind

from nblib import paths, provenance

KINDS = [*inputs.KINDS, *damages.KINDS, *full_disks.KINDS, *kills.KINDS]
FAULTS = list(dict.fromkeys(kind.fault for kind in KINDS))
COLUMNS = ["fault", "kind", "number", "outcome", "seconds", "cpu_seconds", "commit", "said"]


ABOUT = """\
`make torture` writes this page's table. *Named*: one sentence says which file and how to mend it, or why an input is
refused. *Whole*: what is read is what was written, or the input is taken. *As an edit*: a file that people edit was
changed and is still well-formed. *Nothing yet*: the work counts as not begun, and the next run does it. The other
outcomes break [a promise](promises.md); a killed job is run again before its files are looked at.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="when to stop (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of everything drawn (default: %(default)s)")
    parser.add_argument("--fault", nargs="+", choices=FAULTS, default=FAULTS, help="these alone (default: all)")
    parser.add_argument("--page", type=Path, help="write the table to this Markdown page, too")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    record = paths.writable_folder("runs/torture") / f"cases_{given.seed}.csv"
    end = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, NBLIB_CACHE=f"{folder}/cache"):
        try:
            for kind in KINDS:
                if kind.fault in given.fault:
                    run(kind, Path(folder), given.seed, record, end)
        finally:
            full_disks.unmount()
    cases = read(record)
    table = summary(cases)
    table.to_csv(record.with_name(f"table_{given.seed}.csv"), index=False)
    page = markdown(table, cases, given.seed)
    for file in filter(None, [record.with_name(f"table_{given.seed}.md"), given.page]):
        file.write_text(page, encoding="utf-8")
    sys.stdout.write(page)
    raise SystemExit(bool(cases.outcome.isin(BAD).any()))


def run(kind: Kind, folder: Path, seed: int, record: Path, end: float) -> None:
    """Do what is left of a kind's cases, until the end; each is written down at once."""
    known = read(record)
    known = known[(known.fault == kind.fault) & (known.kind == kind.name)]
    hits, number = (known.outcome != MISSED).sum(), len(known)
    if hits >= kind.cases or time.monotonic() > end:
        return
    own = folder / re.sub(r"\W+", "-", f"{kind.fault} {kind.name}")
    own.mkdir()
    with quiet():
        step = kind.prepare(own)
    commit = provenance.collect()["commit"]
    with record.open("a", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        while hits < kind.cases and time.monotonic() < end:
            started, cpu = time.perf_counter(), used()
            with quiet():
                outcome, said = step(random.Random(f"{seed} {kind.fault} {kind.name} {number}"))
            took = f"{time.perf_counter() - started:.4f}", f"{used() - cpu:.4f}"
            shown = " ".join(said.split())[:300] if outcome in BAD else ""
            rows.writerow([kind.fault, kind.name, number, outcome, *took, commit, shown])
            stream.flush()
            hits, number = hits + (outcome != MISSED), number + 1


def used() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


class quiet:
    """Send standard error to nowhere: bars, and warnings of damage that is meant."""

    def __enter__(self) -> None:
        self.saved, self.nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(self.nowhere, 2)

    def __exit__(self, *_: object) -> None:
        os.dup2(self.saved, 2)
        os.close(self.saved)
        os.close(self.nowhere)


def read(record: Path) -> pd.DataFrame:
    """The cases so far."""
    if not record.is_file():
        return pd.DataFrame(columns=COLUMNS)
    return pd.read_csv(record, names=COLUMNS, keep_default_na=False, on_bad_lines="skip")


def summary(cases: pd.DataFrame) -> pd.DataFrame:
    """A row a kind, a sum a fault: how many cases, how many of each outcome, and what they took."""
    cases = cases[cases.outcome != MISSED]
    rows = []
    for kind in KINDS:
        rows.append(
            counted(kind.fault, kind.name, kind.cases, cases[(cases.fault == kind.fault) & (cases.kind == kind.name)])
        )
    for fault in FAULTS:
        planned = sum(kind.cases for kind in KINDS if kind.fault == fault)
        rows.append(counted(fault, "sum", planned, cases[cases.fault == fault]))
    return pd.DataFrame(rows)


def counted(fault: str, kind: str, planned: int, cases: pd.DataFrame) -> dict[str, object]:
    counts = {outcome.lower(): (cases.outcome == outcome).sum() for outcome in (*GOOD, *BAD)}
    times = {
        "seconds": cases.seconds.astype(float).sum().round(1),
        "CPU": cases.cpu_seconds.astype(float).sum().round(1),
    }
    return {"fault": fault, "kind": kind, "planned": planned, "done": len(cases), **counts, **times}


def markdown(table: pd.DataFrame, cases: pd.DataFrame, seed: int) -> str:
    """The page."""
    return "\n".join([*_page(table, cases, seed), ""])


def _page(table: pd.DataFrame, cases: pd.DataFrame, seed: int) -> Iterator[str]:
    about = provenance.collect()
    commits = ", ".join(dict.fromkeys(cases.commit)) or "none"
    yield "# What faults, damage and bad input do\n"
    yield ABOUT
    yield f"Seed {seed}; commit {commits}; {about['finished'][:10]};"
    yield f"{about['platform']}, Python {about['python']}.\n"
    yield f"| {' | '.join(table.columns)} |"
    yield "|" + "---|" * len(table.columns)
    for row in table.itertuples(index=False):
        yield f"| {' | '.join(map(str, row))} |"
    bad = cases[cases.outcome.isin(BAD)]
    if len(bad):
        yield "\nThe first of each bad outcome:\n"
        for row in bad.drop_duplicates(["fault", "kind", "outcome"]).itertuples():
            yield f"- {row.fault}, {row.kind} {row.number}, {row.outcome.lower()}: {row.said}"


if __name__ == "__main__":
    main()
