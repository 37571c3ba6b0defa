"""The results schema: every score of the study with the number that its paper prints, and what is missing.

A result is a row with `COLUMNS`; scores are in the paper's unit (percent, cosine). Notebooks write rows to
`<run>/results/*.csv`; `load` reads them all; `scoreboard` adds the printed numbers that were not run; `coverage` counts by
exhibit.
"""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import paths
from nblib.errors import StudyError
from nblib.results import published

COLUMNS = [
    "paper", "exhibit", "system", "benchmark", "metric", "published", "ours", "ci_low", "ci_high", "n", "scale", "data",
    "model", "status",
]  # fmt: skip
STATUSES = ("reproduced", "partial", "not run")
NUMBERS = ["published", "ours", "ci_low", "ci_high", "n"]
KEY = ["paper", "exhibit", "system", "benchmark", "metric"]
UNIQUE = [*KEY, "data", "model", "scale"]  # no two rows of a table have all of these in common
DECIMALS = 4  # further digits depend on the number of threads


class ResultsError(StudyError):
    """A results table that breaks the schema."""


def row(
    paper: str,
    exhibit: str,
    system: str,
    benchmark: str,
    metric: str,
    ours: float,
    *,
    n: int,
    scale: str,
    data: str,
    official: bool,
    model: str | None = None,
    stand_in: bool = False,
    interval: tuple[float, float] = (math.nan, math.nan),
) -> dict:
    """One result; the printed number is looked up, the status derived.

    Args:
        system: the paper's name.
        ours: our score, in the paper's unit.
        interval: its 95 % confidence interval (or mean ± sd over repeats, as in the paper).
        data: the data of the score, starting with the corpus's name in the registry.
        official: whether that is the official benchmark in full.
        model: what was run, if not just `system` (an adapter's weighting, the members of an average).
        stand_in: `model` is a proxy for the system, so the result is partial.
    """
    printed = published.value_or_nan(paper, exhibit, system, metric, benchmark)
    status = "reproduced" if official and not stand_in else "partial"
    low, high = interval
    values = (paper, exhibit, system, benchmark, metric, printed, ours, low, high, n, scale, data, model or system)
    return dict(zip(COLUMNS, (*values, status), strict=True))


def validate(table: pd.DataFrame, where: str) -> pd.DataFrame:
    """The table with its columns in order, numbers as floats and rounded.

    Raises:
        ResultsError: a column is missing, a status unknown, a row repeated, or a "reproduced" row without score or official data.
    """
    if missing := [column for column in COLUMNS if column not in table]:
        raise ResultsError(f"{where}: no column {', '.join(missing)}; a results table has {', '.join(COLUMNS)}.")
    table = table[COLUMNS].copy()
    for column in NUMBERS:
        try:
            table[column] = pd.to_numeric(table[column]).astype(float).round(DECIMALS)
        except (ValueError, TypeError) as error:
            raise ResultsError(f"{where}: column {column} must hold numbers ({error}).") from error
    if unknown := set(table.status) - set(STATUSES):
        raise ResultsError(f"{where}: unknown status {', '.join(map(repr, unknown))}; known: {', '.join(STATUSES)}.")
    repeated = table[table.duplicated(UNIQUE)]
    if len(repeated):
        first = " / ".join(map(str, repeated.iloc[0][UNIQUE]))
        raise ResultsError(
            f"{where}: {len(repeated)} rows are repeated, first: {first}. A cell that adds to another cell's rows repeats them "
            "when it is run again: make a new list instead."
        )
    without_score = ~np.isfinite(table.ours) & (table.metric != "shown")  # a picture has none
    invalid = table[(table.status == "reproduced") & (without_score | ~comparable(table.data))]
    if len(invalid):
        first = " / ".join(map(str, invalid.iloc[0][KEY]))
        raise ResultsError(
            f"{where}: {len(invalid)} 'reproduced' rows without a score on official data, first: {first}."
        )
    return table


def save(rows: list[dict], path: str | Path) -> pd.DataFrame:
    """Validate rows (see `row`) and write them as CSV."""
    table = validate(pd.DataFrame(rows), str(path))
    paths.write_csv(table, path)
    return table


def load(run_dir: str | Path) -> pd.DataFrame:
    """All results in `<run_dir>/results/`, in the order of the file names.

    Raises:
        FileNotFoundError: there are none.
        ResultsError: a file breaks the schema.
    """
    folder = paths.resolve(run_dir) / "results"
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise FileNotFoundError(f"No results in {folder}. Run `make study`, or execute a notebook.")
    return pd.concat([validate(_read(file), str(file)) for file in files], ignore_index=True)


def _read(file: Path) -> pd.DataFrame:
    """A results file; an empty text stays a text."""
    texts = {column: str for column in COLUMNS if column not in NUMBERS}
    return pd.read_csv(file, dtype=texts, keep_default_na=False, na_values={column: [""] for column in NUMBERS})


def expected() -> pd.DataFrame:
    """One row per printed score of every exhibit (without derived deltas), and for exhibits without numbers one row per system
    (metric "shown")."""
    listed = published.exhibits()
    tables = []
    for paper in published.PAPERS:
        printed = published.load(paper)
        in_list = printed.exhibit.isin(listed.exhibit[listed.paper == paper])
        score = printed.unit.isin(["percent", "cosine", "pairs", "words", "items"]) & printed.value.notna()
        derived = (printed.metric == "confidence_interval") | printed.metric.str.endswith("_delta")
        rows = printed[in_list & score & ~derived]
        tables.append(rows[KEY].assign(published=rows.value))
    table = pd.concat(tables).drop_duplicates(KEY)
    numbered = set(zip(table.paper, table.exhibit, strict=True))
    shown = [
        dict(zip(KEY, (exhibit.paper, exhibit.exhibit, system.strip(), "", "shown"), strict=True))
        for exhibit in listed.itertuples()
        if (exhibit.paper, exhibit.exhibit) not in numbered
        for system in (exhibit.systems or "the exhibit").split(";")
    ]
    return pd.concat([table, pd.DataFrame(shown)], ignore_index=True)


def comparable(data: pd.Series) -> pd.Series:
    """Whether printed numbers compare with results on these data: not with a miniature or the authored anchors."""
    return ~(data.str.contains("mini", case=False) | data.eq("authored anchors"))


def scoreboard(results: pd.DataFrame, scale: str) -> pd.DataFrame:
    """The results, and below them everything expected that has no result, as "not run"."""
    wanted = expected()
    present = set(results[KEY].itertuples(index=False, name=None))
    present |= {(*shown, "", "shown") for shown in results[KEY[:3]].itertuples(index=False, name=None)}
    is_open = [key not in present for key in wanted[KEY].itertuples(index=False, name=None)]
    open_rows = wanted[is_open].assign(scale=scale, status="not run", data="", model="")
    missing = validate(open_rows.reindex(columns=COLUMNS), "scoreboard")
    # an empty frame would change the dtypes
    return pd.concat([results, missing], ignore_index=True) if len(missing) else results.copy()


def coverage(board: pd.DataFrame) -> pd.DataFrame:
    """Per exhibit how many of the expected rows are reproduced, partial and not run. The status is "reproduced" if all are, "not
    run" if nothing at all is measured (no proxy either), else "partial".

    Args:
        board: a scoreboard.

    Returns:
        paper, exhibit, title, notebook, reproduced, partial, not_run, beyond (results for none of the expected rows: proxies,
        further systems), status, command (which runs the rest).
    """
    rank = {status: place for place, status in enumerate(STATUSES)}
    wanted = expected()
    best: dict[tuple, str] = {}
    expected_keys, beyond = set(wanted[KEY].itertuples(index=False, name=None)), Counter()
    for item in board.itertuples():
        exhibit = (item.paper, item.exhibit)
        keys = [(*exhibit, item.system, item.benchmark, item.metric), (*exhibit, item.system, "", "shown")]
        for key in keys:
            if key not in best or rank[item.status] < rank[best[key]]:
                best[key] = item.status
        if item.status != "not run" and item.metric != "shown" and expected_keys.isdisjoint(keys):
            beyond[exhibit] += 1
    wanted["status"] = [best.get(key, "not run") for key in wanted[KEY].itertuples(index=False, name=None)]
    counts = wanted.groupby(["paper", "exhibit"]).status.value_counts().unstack(fill_value=0)
    counts = counts.reindex(columns=STATUSES, fill_value=0).rename(columns={"not run": "not_run"}).reset_index()
    table = published.exhibits().drop(columns="systems").merge(counts, on=["paper", "exhibit"], validate="1:1")
    total = table[["reproduced", "partial", "not_run"]].sum(axis=1)
    table["beyond"] = [beyond[exhibit] for exhibit in zip(table.paper, table.exhibit, strict=True)]
    table["status"] = "partial"
    table.loc[table.reproduced == total, "status"] = "reproduced"
    table.loc[(table.not_run == total) & (table.beyond == 0), "status"] = "not run"
    scales = ["official", "paper"] if "quick" in set(board.scale) else ["paper"]
    command = "; ".join(f"make study SCALE={scale}" for scale in scales)
    table["command"] = ["" if status == "reproduced" else command for status in table.status]
    return table
