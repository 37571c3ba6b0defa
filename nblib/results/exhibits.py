"""Each exhibit of a run: the printed numbers beside ours, and a summary in one line."""

from html import escape

import pandas as pd
from IPython.display import Markdown
from pandas.io.formats.style import Styler

from nblib.results import tables
from nblib.results.comparison import AGREEING, SHOWN


def exhibit(board: pd.DataFrame, covered: pd.Series) -> list[Markdown | Styler]:
    """What a notebook displays of an exhibit: title, summary, the command that runs the rest, and the measured rows.

    Args:
        board: a scoreboard (`results.scoreboard`).
        covered: the exhibit's row of `results.coverage`.
    """
    name = f"{covered.paper.capitalize()}, {covered.exhibit}"
    run = f" In full: `{covered.command}`." if covered.command else ""
    rows = of_exhibit(board, covered.paper, covered.exhibit)
    shown = [Markdown(f"### {name}: {covered.title}\n\n{escape(summary(rows), quote=False)}{run}")]
    measured = table(rows)
    return [*shown, tables.show(measured, name)] if len(measured) else shown


def of_exhibit(board: pd.DataFrame, paper: str, exhibit: str) -> pd.DataFrame:
    """The rows of one exhibit."""
    return board[(board.paper == paper) & (board.exhibit == exhibit)]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """The measured rows of an exhibit for reading, without empty columns: the interval as text, n as "543 of 550" where the
    printed number has another."""
    rows = rows[rows.value.notna()]
    shown = rows[["system", "benchmark", "metric", "published", "value"]].rename(columns={"value": "ours"})
    shown = shown.assign(interval=tables.interval_text(rows.ci_low, rows.ci_high), difference=rows.difference)
    shown = shown.join(rows[["measured", "agrees", "measured_system", "measured_metric"]])
    shown["n"] = [n_text(*pair) for pair in zip(rows.n, rows.n_printed, strict=True)]
    shown = shown.join(rows[["data", "trained_on", "note"]])
    shown.loc[shown.measured_system == shown.system, "measured_system"] = ""
    filled = [column for column in shown if (shown[column].notna() & (shown[column] != "")).any()]
    return shown[filled].reset_index(drop=True)


def n_text(n: float, n_printed: float) -> str:
    """The items behind our number, and behind the printed one where those are others."""
    if n != n:
        return ""
    return f"{n:,.0f}" if n_printed != n_printed or n == n_printed else f"{n:,.0f}; printed: {n_printed:,.0f}"


def summary(rows: pd.DataFrame) -> str:
    """A summary of an exhibit's rows in one line: what was measured how nearly, and whether it agrees."""
    parts = []
    full = rows[rows.measured == "full"]
    numbers = full[full.published.notna()]
    if len(numbers):
        parts.append(_agreement(numbers))
    if len(full) > len(numbers):
        parts.append("Ours is drawn from the same data.")
    for measured, words in [
        ("sample", "on a sample (other or fewer items, or systems)"),
        ("other protocol", "by another protocol"),
        ("stand-in", "by a stand-in, with which no printed number compares"),
    ]:
        part = rows[rows.measured == measured]
        if len(part):
            gaps = part.difference.dropna()
            span = f": {gaps.min():+.2f} to {gaps.max():+.2f}" if len(gaps) > 1 else f": {gaps.sum():+.2f}" * len(gaps)
            parts.append(f"{_rows(part)} measured {words}{span}.")
    absent = rows[rows.measured == "not run"]
    if len(absent) == len(rows):
        return "Not run."
    if len(absent):
        parts.append(f"{_rows(absent)} not run.")
    return " ".join(parts)


def _rows(rows: pd.DataFrame) -> str:
    shown = rows.metric.eq(SHOWN).all()
    if shown and rows.system.eq("the exhibit").all():
        return "The exhibit is"
    unit = "system" if shown else "number"
    return f"1 {unit} is" if len(rows) == 1 else f"{len(rows)} {unit}s are"


def _agreement(rows: pd.DataFrame) -> str:
    agree = rows.agrees.isin(AGREEING)
    count = "1 number is" if len(rows) == 1 else f"{len(rows)} numbers are"
    agreeing = "1 agrees" if agree.sum() == 1 else f"{agree.sum()} agree"
    text = f"{count} measured in full: {agreeing} (within rounding or our interval)"
    gaps = rows.difference.abs()
    if gaps.notna().any() and not agree.all():
        far = rows.loc[gaps.idxmax()]
        what = ", ".join(filter(None, [far.system, far.benchmark, far.metric]))
        text += f"; the largest difference is {far.value - far.published:+.2f} ({what}: {far.value:.2f} for {far.published:.2f})"
    return text + "."


def headline(board: pd.DataFrame) -> str:
    """The agreement of a run in one sentence: over scores, each once however many tables repeat it."""
    scores = board[board.difference.notna() & ~board.metric.str.startswith("cosine")]
    once = scores.drop_duplicates(["benchmark", "published", "value"])
    parts = []
    for measured, words in [("full", "in full"), ("sample", "on samples"), ("other protocol", "by another protocol")]:
        rows = once[once.measured == measured]
        if len(rows):
            agree, gaps = rows.agrees.isin(AGREEING).sum(), rows.difference.abs()
            spread = f"median difference {gaps.median():.2f}, largest {gaps.max():.2f} points"
            parts.append(f"{agree} of {len(rows)} measured {words} ({spread})")
    return f"Printed scores that agree with ours, each counted once: {'; '.join(parts)}." if parts else ""
