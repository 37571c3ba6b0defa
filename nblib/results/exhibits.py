"""Each exhibit of a run: its rows with the printed numbers, and a summary in one line."""

from html import escape

import pandas as pd
from IPython.display import Markdown
from pandas.io.formats.style import Styler

from nblib import results
from nblib.results import schema, tables


def exhibit(board: pd.DataFrame, covered: pd.Series) -> list[Markdown | Styler]:
    """What a notebook displays of an exhibit: title, summary, the command that runs the rest, and the measured rows.

    Args:
        board: a scoreboard (`results.scoreboard`).
        covered: the exhibit's row of `results.coverage`.
    """
    name = f"{covered.paper.capitalize()}, {covered.exhibit}"
    run = f" In full: `{covered.command}`." if covered.command else ""
    text = escape(summary(board, covered.paper, covered.exhibit), quote=False)
    shown = [Markdown(f"### {name}: {covered.title}\n\n{text}{run}")]
    measured = table(board, covered.paper, covered.exhibit)
    return [*shown, tables.show(measured, name)] if len(measured) else shown


def table(board: pd.DataFrame, paper: str, exhibit: str) -> pd.DataFrame:
    """The measured rows of an exhibit: the columns of `tables.with_published`, the difference with its interval as text;
    without empty columns."""
    rows = tables.of_exhibit(board, paper, exhibit)
    rows = rows[(rows.status != "not run") & rows.ours.notna()]
    shown = tables.with_published(rows, paper, exhibit)
    intervals = zip(shown.difference, rows.ci_low - rows.published, rows.ci_high - rows.published, strict=True)
    shown["difference"] = [_difference(*interval) for interval in intervals]
    filled = [column for column in shown if (shown[column].notna() & (shown[column] != "")).any()]
    return shown[filled]


def _difference(gap: float, low: float, high: float) -> str:
    if pd.isna(gap):
        return ""
    return f"{gap:+.2f}" + ("" if pd.isna(low) else f" ({low:+.2f} to {high:+.2f})")


def summary(board: pd.DataFrame, paper: str, exhibit: str) -> str:
    """A summary in one line: how many printed numbers were measured as printed and how near they are, the differences of other
    variants, samples and proxies, what has no printed number, what is not run."""
    rows = tables.of_exhibit(board, paper, exhibit)
    found, absent = rows[rows.status != "not run"], rows[rows.status == "not run"]
    printed = found[found.published.notna() & found.ours.notna() & schema.comparable(found.data)]
    same = as_printed(printed)
    others = printed.drop(same.index)
    alone = found[found.metric != "shown"].drop(printed.index)
    small = (~schema.comparable(alone.data)).sum()
    numbered = bool(rows.published.notna().any())
    parts = []
    if len(same):
        parts.append(_agreement(same))
    if len(others):
        gaps = others.ours - others.published
        span = f"{gaps.min():+.2f} to {gaps.max():+.2f}" if len(gaps) > 1 else f"{gaps.item():+.2f}"
        more = "more " * bool(len(same))
        parts.append(f"{len(others)} {more}of another variant, on other data or by a proxy: {span}.")
    if small:
        parts.append(f"{small} measured on authored data, with which no printed number compares.")
    if len(alone) > small:
        parts.append(f"{len(alone) - small} measured{' beyond what is printed' * numbered}.")
    if (found.metric == "shown").any():
        parts.append("The figure shows our own data.")
    if len(found) and not numbered:
        parts.append("The paper prints no score here.")
    pictures = (absent.metric == "shown").sum()
    if pictures:
        whole = absent.system.iloc[0] == "the exhibit"
        parts.append("Not run." if whole else f"{pictures} of the systems shown not run.")
    if len(absent) > pictures:
        parts.append(f"{len(absent) - pictures} of the numbers printed not run.")
    return " ".join(parts)


def as_printed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows measured with the system itself on the official data; one per printed number, the paper's own variant first."""
    own = rows[(rows.status == "reproduced") & (rows.model == rows.system)]
    return own.drop_duplicates(results.KEY)


def scores(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that are scores of systems from 0 to 100 (no cosines, no counts and lengths of a data set), each once, however
    many tables reprint it."""
    scale = ~rows.metric.str.startswith("cosine") & ~(rows.paper.eq("weller") & rows.exhibit.eq("Table 1"))
    scale &= rows.exhibit != "Error analysis"
    reproduced_first = rows[scale].sort_values("status", key=lambda status: status != "reproduced", kind="stable")
    return reproduced_first.drop_duplicates(["benchmark", "published", "ours"])


def _agreement(rows: pd.DataFrame) -> str:
    gaps = (rows.ours - rows.published).abs()
    far = rows.loc[gaps.idxmax()]
    what = ", ".join(filter(None, [far.system, far.benchmark, far.metric]))
    bounded = rows[rows.ci_low.notna()]
    held = ((bounded.ci_low <= bounded.published) & (bounded.published <= bounded.ci_high)).sum()
    inside = f"; {held} of {len(bounded)} lie within our interval" if len(bounded) else ""
    count = "1 number was" if len(rows) == 1 else f"{len(rows)} numbers were"
    return (
        f"{count} measured as printed: {gaps.median():.2f} off in the median, at most {gaps.max():.2f} ({what}: "
        f"{far.ours:.2f} for {far.published:.2f}){inside}."
    )
