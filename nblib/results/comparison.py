"""The scoreboard: every printed number with the measurement that answers it, how nearly it does, and whether the two agree.

Two questions are kept apart. `measured` says what was measured: the same system on the same items by the paper's protocol
("full"), or something nearer to or further from that. `agrees` says whether the two numbers are the same. Only what is measured
in full and agrees is "reproduced".
"""

import math
from pathlib import Path

import pandas as pd

from nblib import artefacts, paths
from nblib.results import answers, measurements, published
from nblib.results.answers import Answer

CELL = ["paper", "exhibit", "system", "benchmark", "metric"]
COLUMNS = [
    *CELL, "published", "value", "ci_low", "ci_high", "difference", "measured", "agrees", "measured_system", "measured_metric",
    "trained_on", "data", "n", "n_printed", "note", "scale",
]  # fmt: skip
MEASURED = ("full", "sample", "other protocol", "stand-in", "not run")
ROUNDING, INTERVAL, NOTHING = "within rounding", "within our interval", "nothing printed"
AGREEING = (ROUNDING, INTERVAL)
UNITS = ("percent", "cosine", "pairs", "words", "items")
SHOWN = "shown"  # the metric of an exhibit that prints no numbers


def expected() -> pd.DataFrame:
    """One row per printed score of every exhibit (without derived differences), and for exhibits without numbers one row per
    system shown.

    Returns:
        CELL, published, printed (the number's digits).
    """
    listed = published.exhibits()
    tables = []
    for paper in published.PAPERS:
        table = published.load(paper)
        in_list = table.exhibit.isin(listed.exhibit[listed.paper == paper])
        derived = (table.metric == "confidence_interval") | table.metric.str.endswith("_delta")
        rows = table[in_list & table.unit.isin(UNITS) & table.value.notna() & ~derived & (table.system != "chance")]
        tables.append(rows[[*CELL, "printed"]].assign(published=rows.value))
    table = pd.concat(tables).drop_duplicates(CELL)
    numbered = set(zip(table.paper, table.exhibit, strict=True))
    shown = [
        dict(zip(CELL, (exhibit.paper, exhibit.exhibit, system.strip(), "", SHOWN), strict=True)) | {"printed": ""}
        for exhibit in listed.itertuples()
        if (exhibit.paper, exhibit.exhibit) not in numbered
        for system in (exhibit.systems or "the exhibit").split(";")
    ]
    return pd.concat([table, pd.DataFrame(shown)], ignore_index=True)


def agreement(printed: str, value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Whether a value agrees with a printed number.

    Args:
        printed: the number with its digits as printed ("34.91"); "" where nothing is printed.
        low, high: the value's interval, where it has one.

    Returns:
        "within rounding" (the value rounds to the printed digits), "within our interval", "differs by …", or "nothing printed".
    """
    if not printed:
        return NOTHING
    number = float(printed)
    digits = len(printed.partition(".")[2])
    if abs(value - number) <= 0.5 * 10**-digits + 1e-9:
        return ROUNDING
    if low <= number <= high:
        return INTERVAL
    return f"differs by {value - number:+.{max(digits, 1)}f}"


def scoreboard(measured: pd.DataFrame, run_dir: str | Path, scale: str) -> pd.DataFrame:
    """Every expected row with its answer; what nothing answers is "not run".

    Args:
        measured: from `measurements.load`.
        run_dir: where the figures lie that show the exhibits without numbers.

    Returns:
        COLUMNS, a row per printed number or shown system.
    """
    by_name = dict(list(measured.groupby("system")))
    rows = []
    for cell in expected().itertuples(index=False):
        found = _shown(cell, by_name, run_dir) if cell.metric == SHOWN else _answered(cell, by_name)
        row = {name: getattr(cell, name) for name in CELL} | {"published": cell.published, "scale": scale}
        rows.append({"measured": "not run", "agrees": "", **row, **found})
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    texts = ["agrees", "measured_system", "measured_metric", "trained_on", "data", "note"]
    return table.assign(**{name: table[name].astype(object).fillna("") for name in texts})


def _answered(cell: tuple, by_name: dict[str, pd.DataFrame]) -> dict[str, object]:
    answer = answers.of(cell.paper, cell.exhibit, cell.benchmark, cell.metric)
    if answer is None:
        return {}
    for name, stands_in in answers.candidates(cell.paper, cell.exhibit, cell.system):
        item = _measurement(answer, by_name.get(f"{name}{answer.suffix}"), stands_in)
        if item is not None:
            return _judged(cell, answer, item, stands_in)
    return {"n_printed": answer.n or math.nan}


def _measurement(answer: Answer, rows: pd.DataFrame | None, stands_in: bool) -> pd.Series | None:
    """The measurement of a system that answers: on most of the official items, else on a mini set. A stand-in's items may be
    others."""
    if rows is None:
        return None
    rows = rows[rows.metric == answer.measured]
    own_items = rows.data.str.startswith(answer.data) | stands_in
    official = rows[(rows.benchmark == answer.label) & own_items]
    if len(official):
        exact = official[official.n == answer.n]
        return (exact if len(exact) else official.sort_values("n", ascending=False, kind="stable")).iloc[0]
    mini = rows[rows.benchmark == f"{answer.label} (mini)"]
    return mini.iloc[0] if len(mini) else None


def _judged(cell: tuple, answer: Answer, item: pd.Series, stands_in: bool) -> dict[str, object]:
    mini = bool(measurements.is_mini(item.to_frame().T).item())
    if stands_in or answer.stand_in or mini:
        measured = "stand-in"
    elif answer.protocol:
        measured = "other protocol"
    else:
        measured = "full" if not answer.n or item.n == answer.n else "sample"
    comparable = measured != "stand-in"
    agrees = agreement(cell.printed, item.value, item.ci_low, item.ci_high) if comparable else ""
    if comparable and not answer.compared and agrees != ROUNDING:
        agrees = "differs"
    difference = item.value - cell.published if comparable and answer.compared else math.nan
    notes = [answer.stand_in, answer.protocol, answer.note, "a mini set, which no printed number compares with" * mini]
    return {
        "value": item.value, "ci_low": item.ci_low, "ci_high": item.ci_high, "difference": difference, "measured": measured,
        "agrees": agrees, "measured_system": item.system, "measured_metric": item.metric, "trained_on": item.trained_on,
        "data": item.data, "n": item.n, "n_printed": answer.n or math.nan, "note": "; ".join(filter(None, notes)),
    }  # fmt: skip


def _shown(cell: tuple, by_name: dict[str, pd.DataFrame], run_dir: str | Path) -> dict[str, object]:
    """What shows an exhibit without numbers: for an exhibit of systems, those of them that were measured at all."""
    picture = next((one for one in answers.pictures() if (one.paper, one.exhibit) == (cell.paper, cell.exhibit)), None)
    if picture is None:
        return {}
    run, names = paths.resolve(run_dir), [""]
    if cell.system != "the exhibit":
        names = [name for name, _ in answers.candidates(cell.paper, cell.exhibit, cell.system) if name in by_name]
    patterns = [f"{picture.file.replace('{system}', name)}.csv" for name in names]
    files = [file for pattern in patterns for file in sorted((run / "figures").glob(pattern))]
    if not files:
        return {}
    sidecars = [artefacts.about(file) for file in sorted((run / "results").glob(f"{picture.notebook}_*.csv"))]
    mini = any(about.get("data") == "mini" for about in sidecars)
    note = "; ".join(filter(None, [picture.note, "drawn from a mini set" * mini]))
    return {
        "measured": "stand-in" if mini else picture.measured, "agrees": NOTHING, "n": len(artefacts.read_table(files[0])),
        "data": f"{files[0].parent.name}/{files[0].stem}", "note": note,
    }  # fmt: skip


def reproduced(board: pd.DataFrame) -> pd.Series:
    """Whether a row is reproduced: measured in full, by the paper's protocol, and in agreement with the printed number."""
    return board.measured.eq("full") & board.agrees.isin(AGREEING)


def coverage(board: pd.DataFrame) -> pd.DataFrame:
    """Per exhibit how many of its rows are measured how nearly, and how many of those in full agree.

    Args:
        board: a scoreboard.

    Returns:
        paper, exhibit, title, notebook, rows, full, sample, other_protocol, stand_in, not_run, reproduced, verdict (one phrase),
        command (which runs the rest).
    """
    counts = board.groupby(["paper", "exhibit"]).measured.value_counts().unstack(fill_value=0)
    counts = counts.reindex(columns=list(MEASURED), fill_value=0)
    counts["reproduced"] = reproduced(board).groupby([board.paper, board.exhibit]).sum()
    counts["rows"] = counts[list(MEASURED)].sum(axis=1)
    counts["printed"] = board.metric.ne(SHOWN).groupby([board.paper, board.exhibit]).sum()
    counts["verdict"] = [_verdict(row) for _, row in counts.iterrows()]
    counts = counts.rename(columns=lambda name: name.replace(" ", "_").replace("-", "_")).reset_index()
    table = published.exhibits().drop(columns="systems").merge(counts, on=["paper", "exhibit"], validate="1:1")
    scales = ["official", "paper"] if "quick" in set(board.scale) else ["paper"]
    command = "; ".join(f"make study SCALE={scale}" for scale in scales)
    table["command"] = ["" if row.full == row.rows else command for row in table.itertuples()]
    order = ["paper", "exhibit", "title", "notebook", "rows", "full", "sample", "other_protocol", "stand_in", "not_run"]
    return table[[*order, "reproduced", "verdict", "command"]]


def _verdict(row: pd.Series) -> str:
    own = row["full"] + row["sample"] + row["other protocol"]
    if row["full"] == row["rows"]:
        if not row["printed"]:
            return "shown in full"
        agree = row["reproduced"] == row["rows"]
        return "reproduced" if agree else f"measured in full, {row['reproduced']} of {row['rows']} agree"
    if own:
        return "measured in part"
    return "stand-ins alone" if row["stand-in"] else "not run"
