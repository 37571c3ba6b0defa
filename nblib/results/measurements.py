"""Measurements: every score of the study once, with its n, its interval and what the system was trained on.

A measurement is a row with `COLUMNS`. Each notebook writes its own to `<run>/results/*.csv`; `load` reads them all. A printed
number is never part of a measurement: `comparison` joins the two.
"""

import math
from pathlib import Path

import pandas as pd

from nblib import artefacts, paths
from nblib.errors import StudyError, readable

COLUMNS = [
    "system", "benchmark", "metric", "data", "n", "value", "ci_low", "ci_high", "scale", "trained_on", "fingerprint",
]  # fmt: skip
KEY = ["system", "benchmark", "metric", "data", "scale"]  # no two measurements have all of these in common
NUMBERS = ["n", "value", "ci_low", "ci_high"]
DECIMALS = 4  # further digits depend on the number of threads


class ResultsError(StudyError):
    """A table of measurements that breaks the schema."""


def row(
    system: str,
    benchmark: str,
    metric: str,
    value: float,
    *,
    data: str,
    n: int,
    scale: str,
    interval: tuple[float, float] = (math.nan, math.nan),
    trained_on: str = "",
    fingerprint: str = "",
) -> dict[str, object]:
    """One measurement.

    Args:
        system: what was measured, by its own name (never by the name of a paper's system for which it stands in).
        benchmark: its label; a mini set's ends in "(mini)".
        value: in the unit that the papers print (percent, cosine, count).
        data: the corpus and split; a sample says so.
        n: items behind the value.
        interval: its 95 % confidence interval (or mean ± sd over repeats).
        trained_on: what this study trained the system on; "" for a published system as it is.
        fingerprint: of the weights and settings that shape the value.
    """
    low, high = interval
    values = (system, benchmark, metric, data, n, value, low, high, scale, trained_on, fingerprint)
    return dict(zip(COLUMNS, values, strict=True))


def validate(table: pd.DataFrame, where: str) -> pd.DataFrame:
    """The table with its columns in order, numbers as floats and rounded.

    Raises:
        ResultsError: a column is missing, a number isn't one, a value is absent, or something is measured twice.
    """
    if missing := [column for column in COLUMNS if column not in table]:
        raise ResultsError(f"{where}: no column {', '.join(missing)}; a measurement has {', '.join(COLUMNS)}.")
    table = table[COLUMNS].copy()
    for column in NUMBERS:
        try:
            table[column] = pd.to_numeric(table[column]).astype(float).round(DECIMALS)
        except (ValueError, TypeError) as error:
            raise ResultsError(f"{where}: column {column} must hold numbers ({error}).") from error
    for column in [name for name in COLUMNS if name not in NUMBERS]:
        table[column] = table[column].astype(str)
    absent = table[~table.value.abs().lt(math.inf)]
    if len(absent):
        raise ResultsError(f"{where}: {len(absent)} measurements have no finite value, first: {_name(absent)}.")
    repeated = table[table.duplicated(KEY)]
    if len(repeated):
        raise ResultsError(
            f"{where}: {len(repeated)} measurements are repeated, first: {_name(repeated)}. Each is taken once, by one "
            "notebook. A cell that adds to another cell's rows repeats them when it is run again: make a new list instead."
        )
    return table


def _name(rows: pd.DataFrame) -> str:
    return " / ".join(map(str, rows.iloc[0][KEY]))


def save(rows: list[dict], path: str | Path, **about: object) -> pd.DataFrame:
    """Validate measurements (see `row`) and write them as CSV, with what is known `about` them in the sidecar."""
    table = validate(pd.DataFrame(rows, columns=None if rows else COLUMNS), str(path))
    artefacts.write_table(table, path, about)
    return table


def add(rows: list[dict], path: str | Path, **about: object) -> pd.DataFrame:
    """Put measurements into a file beside those that are there, in place of those of the same benchmarks; see `save`."""
    file = paths.resolve(path)
    if not file.is_file():
        return save(rows, file, **about)
    earlier, known = read(file), artefacts.about(file)
    others = earlier[~earlier.benchmark.isin([one["benchmark"] for one in rows])]
    return save(
        [*others.to_dict("records"), *rows], file, **{**known, **about, "others_by": known.get("commit", "unknown")}
    )


def load(run_dir: str | Path) -> pd.DataFrame:
    """All measurements in `<run_dir>/results/`, in the order of the file names.

    Raises:
        FileNotFoundError: there are none.
        ResultsError: a file breaks the schema, or two files measure the same thing.
    """
    folder = paths.resolve(run_dir) / "results"
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise FileNotFoundError(f"No results in {folder}. Run `make study`, or execute a notebook.")
    tables = [validate(read(file), str(file)) for file in files]
    return validate(pd.concat(tables, ignore_index=True), str(folder))


def read(file: str | Path) -> pd.DataFrame:
    """A file of measurements as it is; an empty text stays a text.

    Raises:
        ResultsError: it is no CSV; names the file.
    """
    texts = {column: str for column in COLUMNS if column not in NUMBERS}
    with readable(file, "Run the notebook again that wrote it.", ResultsError):
        return pd.read_csv(file, dtype=texts, keep_default_na=False, na_values={column: [""] for column in NUMBERS})


def is_mini(table: pd.DataFrame) -> pd.Series:
    """Whether a measurement is on authored data of our own, with which no printed number compares."""
    return table.data.str.contains("mini", case=False) | table.data.str.contains("authored")
