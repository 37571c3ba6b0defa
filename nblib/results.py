"""The one results schema: every score of the study beside the number its paper prints, and what is still missing.

A result is a row with `COLUMNS`; scores are in the unit the paper prints (percent, cosine). Notebooks write their rows to
`<run>/results/*.csv`; `load` reads them all; `scoreboard` adds the printed numbers nobody has run; `coverage` counts
them by exhibit.
"""

import math
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import paths, published

COLUMNS = [
    "paper", "exhibit", "system", "benchmark", "metric", "published", "ours", "ci_low", "ci_high", "n", "scale", "data",
    "model", "status",
]  # fmt: skip
STATUSES = ("reproduced", "partial", "not run")
NUMBERS = ["published", "ours", "ci_low", "ci_high", "n"]
KEY = ["paper", "exhibit", "system", "benchmark", "metric"]
DECIMALS = 4  # past this, sums differ with the number of threads, and files of record could not be compared


class ResultsError(ValueError):
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
        system: the name the paper uses.
        ours: our score, in the unit the paper prints.
        interval: its 95 % confidence interval (or mean ± sd over repeats, where the paper gives that), same unit.
        data: what it was measured on, starting with the corpus's name in the registry.
        official: whether that is the official benchmark in full.
        model: what was run, where there is more to say than `system` (an adapter's reading, the members of an average).
        stand_in: `model` only stands in for the system, which makes the result partial.
    """
    try:
        printed = published.value(paper, exhibit, system, metric, benchmark)
    except KeyError:
        printed = math.nan
    status = "reproduced" if official and not stand_in else "partial"
    low, high = interval
    values = (paper, exhibit, system, benchmark, metric, printed, ours, low, high, n, scale, data, model or system)
    return dict(zip(COLUMNS, (*values, status), strict=True))


def validate(table: pd.DataFrame, where: str) -> pd.DataFrame:
    """The table with its columns in order, numbers as floats and rounded.

    Raises:
        ResultsError: a column is missing, a status unknown, or a "reproduced" row lacks a score or official data.
    """
    missing = [column for column in COLUMNS if column not in table]
    if missing:
        raise ResultsError(f"{where}: no column {', '.join(missing)}; a results table has {', '.join(COLUMNS)}.")
    table = table[COLUMNS].copy()
    for column in NUMBERS:
        try:
            table[column] = pd.to_numeric(table[column]).astype(float).round(DECIMALS)
        except (ValueError, TypeError) as error:
            raise ResultsError(f"{where}: column {column} must hold numbers ({error}).") from error
    unknown = set(table.status) - set(STATUSES)
    if unknown:
        raise ResultsError(f"{where}: unknown status {', '.join(map(repr, unknown))}; known: {', '.join(STATUSES)}.")
    reproduced = table.status == "reproduced"
    empty = ~np.isfinite(table.ours) & (table.metric != "shown")  # a picture is drawn, not measured
    hollow = table[reproduced & (empty | ~comparable(table.data))]
    if len(hollow):
        first = " / ".join(hollow.iloc[0][KEY])
        raise ResultsError(
            f"{where}: {len(hollow)} 'reproduced' rows without a score on official data, first: {first}."
        )
    return table


def save(rows: list[dict], path: str | Path) -> pd.DataFrame:
    """Validate rows (see `row`) and write them as CSV."""
    table = validate(pd.DataFrame(rows), str(path))
    with paths.write_atomically(path) as draft:
        table.to_csv(draft, index=False, lineterminator="\n")
    return table


def load(run_dir: str | Path) -> pd.DataFrame:
    """All results that the notebooks of a run have left in `<run_dir>/results/`, in the order of their file names.

    Raises:
        FileNotFoundError: there are none.
        ResultsError: a file breaks the schema.
    """
    folder = paths.resolve(run_dir) / "results"
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise FileNotFoundError(f"No results in {folder}. `make study` makes them; so does executing a notebook.")
    return pd.concat([validate(_read(file), str(file)) for file in files], ignore_index=True)


def _read(file: Path) -> pd.DataFrame:
    """A results file with its texts as they were written: an empty benchmark is a text, not a missing one."""
    texts = {column: str for column in COLUMNS if column not in NUMBERS}
    return pd.read_csv(file, dtype=texts, keep_default_na=False, na_values={column: [""] for column in NUMBERS})


def expected() -> pd.DataFrame:
    """What the papers show: one row per printed score of every exhibit (derived deltas aside), and for exhibits that
    print no number one row per system shown (metric "shown")."""
    listed = published.exhibits()
    tables = []
    for paper in published.PAPERS:
        printed = published.load(paper)
        in_list = printed.exhibit.isin(listed.exhibit[listed.paper == paper])
        score = (
            printed.unit.isin(["percent", "cosine", "pairs", "words", "items"])
            & printed.value.notna()
            & (printed.metric != "confidence_interval")
        )
        rows = printed[in_list & score & ~printed.metric.str.endswith("_delta")]
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
    """Of what results were measured on: whether a printed number compares with it; none does with a miniature or with the
    authored anchors."""
    return ~(data.str.contains("mini", case=False) | data.eq("authored anchors"))


def scoreboard(results: pd.DataFrame, scale: str) -> pd.DataFrame:
    """The results, and below them as "not run" everything expected that no result answers."""
    wanted = expected()
    answered = set(results[KEY].itertuples(index=False, name=None))
    shown = set(results[["paper", "exhibit", "system"]].itertuples(index=False, name=None))
    open_rows = [
        {**dict.fromkeys(COLUMNS, ""), **item, "ours": None, "ci_low": None, "ci_high": None, "n": None,
         "scale": scale, "status": "not run"}
        for item in wanted.to_dict("records")
        if tuple(item[key] for key in KEY) not in answered
        and not (item["metric"] == "shown" and (item["paper"], item["exhibit"], item["system"]) in shown)
    ]  # fmt: skip
    missing = validate(pd.DataFrame(open_rows, columns=COLUMNS), "scoreboard")
    # pandas would drop the columns of an empty frame's dtype when concatenating
    return pd.concat([results, missing], ignore_index=True) if len(missing) else results.copy()


def coverage(board: pd.DataFrame) -> pd.DataFrame:
    """Per exhibit: how many of the expected rows are reproduced, partial and not run, and the exhibit's status:
    reproduced where all of them are, not run where nothing at all is measured (no stand-in either), else partial.

    Args:
        board: a scoreboard.

    Returns:
        paper, exhibit, title, notebook, reproduced, partial, not_run, beyond (results that answer none of the expected rows:
        stand-ins, further systems), status, command (what runs the rest).
    """
    rank = {status: place for place, status in enumerate(STATUSES)}
    wanted = expected()
    best: dict[tuple, str] = {}
    for item in board.itertuples():
        for key in [(item.paper, item.exhibit, item.system, item.benchmark, item.metric),
                    (item.paper, item.exhibit, item.system, "", "shown")]:  # fmt: skip
            if key not in best or rank[item.status] < rank[best[key]]:
                best[key] = item.status
    wanted["status"] = [best.get(key, "not run") for key in wanted[KEY].itertuples(index=False, name=None)]
    counts = wanted.groupby(["paper", "exhibit"]).status.value_counts().unstack(fill_value=0)
    counts = counts.reindex(columns=STATUSES, fill_value=0).rename(columns={"not run": "not_run"}).reset_index()
    table = published.exhibits().drop(columns="systems").merge(counts, on=["paper", "exhibit"], validate="1:1")
    total = table[["reproduced", "partial", "not_run"]].sum(axis=1)
    answered = set(wanted[KEY].itertuples(index=False, name=None))
    extra = [
        item.status != "not run" and item.metric != "shown"
        and (item.paper, item.exhibit, item.system, item.benchmark, item.metric) not in answered
        and (item.paper, item.exhibit, item.system, "", "shown") not in answered
        for item in board.itertuples()
    ]  # fmt: skip
    beyond = board[extra].groupby(["paper", "exhibit"]).size()
    table["beyond"] = [beyond.get(place, 0) for place in zip(table.paper, table.exhibit, strict=True)]
    table["status"] = "partial"
    table.loc[table.reproduced == total, "status"] = "reproduced"
    table.loc[(table.not_run == total) & (table.beyond == 0), "status"] = "not run"
    scales = ["official", "paper"] if "quick" in set(board.scale) else ["paper"]
    command = "; ".join(f"make study SCALE={scale}" for scale in scales)
    table["command"] = ["" if status == "reproduced" else command for status in table.status]
    return table
