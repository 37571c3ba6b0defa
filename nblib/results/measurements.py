"""Measurements: every score of the study once, with its n, its interval and what the system was trained on.

A measurement is a row of keys and numbers (`COLUMNS`), for which `words` has what people read. Each notebook writes its own
rows to `<run>/results/*.csv`.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from nblib import artefacts, corpora, paths
from nblib.errors import StudyError, readable

SYSTEM = ["system", "base", "variant", "seed", "adapter"]
ITEMS = ["benchmark", "corpus", "split", "part", "sample", "protocol", "layer"]
NUMBERS = ["value", "ci_low", "ci_high", "n", "training_items"]
COLUMNS = [*SYSTEM, *ITEMS, "metric", *NUMBERS[:4], "scale", "trained_on", "training_items", "fingerprint"]
TEXTS = [name for name in COLUMNS if name not in NUMBERS]
KEY = [*SYSTEM, *ITEMS, "metric", "scale"]  # no two measurements have all of these in common
DECIMALS = 4  # further digits depend on the number of threads


class ResultsError(StudyError):
    """A table of measurements that breaks the schema."""


def record(table: pd.DataFrame | Iterable[Mapping], **constants: object) -> pd.DataFrame:
    """Measurements of a table: its columns that are `COLUMNS`, filled up by constants; what neither names is empty.

    Args:
        table: a row per measurement, with at least those of the following that `constants` lacks; others are left out.
            system: by its own name, also where it stands in for a paper's.
            base, variant, seed: of a training in a sweep ("0+1": a mean over seeds).
            adapter: how an adapter's weights are applied; `variant` then says how it was fitted.
            benchmark: its key in the catalogue, or what else was measured ("gsm8k_errors").
            corpus, split, part, sample: the items; of a sample the number of rows or pairs.
            protocol: which of several ways to measure. layer: of a model's embeddings.
            metric, value, ci_low, ci_high: in the papers' unit (percent, cosine, count), with a 95 % interval. n: of items.
            trained_on, training_items: key of what this study trained it on ("": nothing), and how many anchors or pairs.
            fingerprint: of the weights and settings that shape the value.

    Raises:
        ResultsError: a constant is no column, or see `validate`.
    """
    if unknown := sorted(set(constants) - set(COLUMNS)):
        raise ResultsError(f"A measurement has no column {', '.join(unknown)}. It has: {', '.join(COLUMNS)}.")
    rows = table if isinstance(table, pd.DataFrame) else pd.DataFrame(list(table))
    rows = rows.assign(**constants).reindex(columns=COLUMNS)
    return validate(rows.assign(**rows[TEXTS].astype(object).fillna("")), "These measurements")


def validate(table: pd.DataFrame, where: str) -> pd.DataFrame:
    """The table with its columns in order, numbers as floats and rounded; a ResultsError where a column is missing, a number
    isn't one, a value is absent, or something is measured twice."""
    if missing := [column for column in COLUMNS if column not in table]:
        raise ResultsError(f"{where}: no column {', '.join(missing)}; a measurement has {', '.join(COLUMNS)}.")
    try:
        numbers = table[NUMBERS].apply(pd.to_numeric).astype(float).round(DECIMALS)
    except (ValueError, TypeError) as error:
        raise ResultsError(f"{where}: columns {', '.join(NUMBERS)} must hold numbers ({error}).") from error
    table = table[COLUMNS].assign(**numbers, **table[TEXTS].astype(str))
    faults = {
        "have no finite value": ~table.value.abs().lt(math.inf),
        "are repeated (a cell that adds to another cell's rows does so when it is run again)": table.duplicated(KEY),
    }
    for fault, rows in faults.items():
        if rows.any():
            first = " / ".join(filter(None, table[rows].iloc[0][KEY]))
            raise ResultsError(f"{where}: {rows.sum()} measurements {fault}, first: {first}.")
    return table


def save(table: pd.DataFrame, path: str | Path, **about: object) -> pd.DataFrame:
    """Write measurements (see `record`) as CSV, with what is known `about` them in the sidecar."""
    table = validate(table, str(path))
    artefacts.write_table(table, path, about)
    return table


def load(run_dir: str | Path) -> pd.DataFrame:
    """All measurements in `<run_dir>/results/`; a FileNotFoundError where there are none, a ResultsError where a file breaks
    the schema, or two measure the same thing."""
    folder = paths.resolve(run_dir) / "results"
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise FileNotFoundError(f"No results in {folder}. Run `make study`, or execute a notebook.")
    tables = [validate(read(file), str(file)) for file in files]
    return validate(pd.concat(tables, ignore_index=True), str(folder))


def read(file: str | Path) -> pd.DataFrame:
    """A file of measurements as it is, where an empty text stays a text; a ResultsError where it is no CSV."""
    with readable(file, "Run the notebook again that wrote it.", ResultsError):
        empty = {column: [""] for column in NUMBERS}
        return pd.read_csv(file, dtype=dict.fromkeys(TEXTS, str), keep_default_na=False, na_values=empty)


def is_mini(table: pd.DataFrame) -> pd.Series:
    """Whether a measurement is on data of our own, with which no printed number compares."""
    return table.corpus.map({name: not corpus.official for name, corpus in corpora.entries().items()}).eq(True)
