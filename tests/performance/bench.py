"""`make bench`: ours beside the way it is commonly done, alternately in one run.

The tables go to figures/performance.

usage: bench.py [--only encoding|other|query|backends|growth] [--case TEXT] [--rounds N] [--sample N] [--out FOLDER]
"""

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import backends
import cases
import encoding
import growth
import measure
import pandas as pd
import query

from nblib import artefacts, paths

FOLDER = paths.FIGURES / "performance"
SUITES = {"encoding": encoding.cases, "other": cases.cases, "query": query.cases, "backends": backends.cases}


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--only", choices=[*SUITES, "growth"], help="these cases alone")
    given.add_argument("--case", default="", help="of a suite, the cases with this text in their name alone")
    given.add_argument("--rounds", type=int, default=3, help="of every way (default: %(default)s)")
    given.add_argument(
        "--sample", type=int, help="rows of a benchmark, anchors, requests (default: some seconds' worth)"
    )
    given.add_argument("--out", type=Path, default=FOLDER, help="folder of the tables (default: %(default)s)")
    given = given.parse_args()
    about = {"rounds": given.rounds, "sample": given.sample, **measure.machine()}
    for name, suite in SUITES.items():
        for case in suite(given.sample) if given.only in (None, name) else ():
            if given.case not in case.label:
                continue
            say(f"{case.label} ({case.n})")
            table = measure.compare(case, given.rounds)
            say(table[measure.COLUMNS[2:]].to_string(index=False, float_format="{:.3g}".format))
            write(table, given.out / f"{slug(case.label)}.csv", about)
    if given.only in (None, "growth") and not given.case:
        for table in growth.tables(given.sample is not None):
            say(table.to_string(index=False, float_format="{:.3g}".format))
            write(table, given.out / "growth" / f"{slug(table.what.iloc[0])}.csv", about)


def write(table: pd.DataFrame, file: Path, about: dict) -> None:
    """A case's table with its sidecar; the load says whether the machine was idle."""
    artefacts.write_table(table, file, {**about, "load": os.getloadavg()[0]}, float_format="%.4g")


def slug(label: str) -> str:
    return re.sub(r"\W+", "_", label.split(";")[0].lower()).strip("_")[:60]


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="bench") as tempfile.tempdir:  # of every case
        main()
