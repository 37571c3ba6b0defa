"""What an exhibit comes to: its rows beside the printed ones, and one line of reading made from the numbers."""

from html import escape

import pandas as pd
from IPython.display import Markdown
from pandas.io.formats.style import Styler

from nblib import results, tables


def exhibit(board: pd.DataFrame, covered: pd.Series) -> list[Markdown | Styler]:
    """What a notebook displays of an exhibit: its title, the line of reading, the command that runs the rest, and the table of
    what was measured.

    Args:
        board: a scoreboard (`results.scoreboard`).
        covered: the exhibit's row of `results.coverage`.
    """
    title = f"### {covered.paper.capitalize()}, {covered.exhibit}: {covered.title}"
    run = f" In full: `{covered.command}`." if covered.command else ""
    text = Markdown(f"{title}\n\n{escape(sentence(board, covered.paper, covered.exhibit), quote=False)}{run}")
    measured = table(board, covered.paper, covered.exhibit)
    return (
        [text, tables.show(measured, f"{covered.paper.capitalize()}, {covered.exhibit}")] if len(measured) else [text]
    )


def table(board: pd.DataFrame, paper: str, exhibit: str) -> pd.DataFrame:
    """The measured rows of an exhibit: `tables.beside`'s columns, the difference with its interval as text; columns without
    any entry are left out."""
    rows = _of(board, paper, exhibit)
    rows = rows[(rows.status != "not run") & rows.ours.notna()]
    shown = tables.beside(rows, paper, exhibit)
    shown["difference"] = [
        ""
        if pd.isna(gap)
        else f"{gap:+.2f}" + ("" if pd.isna(low) else f" ({low - printed:+.2f} to {high - printed:+.2f})")
        for gap, low, high, printed in zip(shown.difference, rows.ci_low, rows.ci_high, rows.published, strict=True)
    ]
    filled = [column for column in shown if (shown[column].notna() & (shown[column] != "")).any()]
    return shown[filled]


def sentence(board: pd.DataFrame, paper: str, exhibit: str) -> str:
    """The line of reading: how many printed numbers were measured as printed and how near they come, how far off other
    readings, samples and stand-ins lie, what has no printed number beside it, what is not run."""
    rows = _of(board, paper, exhibit)
    found, absent = rows[rows.status != "not run"], rows[rows.status == "not run"]
    printed = found[found.published.notna() & found.ours.notna() & results.comparable(found.data)]
    same = as_printed(printed)
    others = printed.drop(same.index)
    alone = found[found.metric != "shown"].drop(printed.index)
    small = (~results.comparable(alone.data)).sum()
    numbered = bool(rows.published.notna().any())
    said = []
    if len(same):
        said.append(_agreement(same))
    if len(others):
        gaps = others.ours - others.published
        span = f"{gaps.min():+.2f} to {gaps.max():+.2f}" if len(gaps) > 1 else f"{gaps.item():+.2f}"
        said.append(
            f"{len(others)} {'more ' * bool(len(same))}by another reading, on other data or with a stand-in: {span}."
        )
    if small:
        said.append(f"{small} measured on authored data, with which no printed number compares.")
    if len(alone) > small:
        said.append(f"{len(alone) - small} measured{' beyond what is printed' * numbered}.")
    if (found.metric == "shown").any():
        said.append("Drawn from our own data.")
    if len(found) and not numbered:
        said.append("The paper prints no score here.")
    pictures = (absent.metric == "shown").sum()
    if pictures:
        said.append(
            f"{pictures} of the systems shown not run." if absent.system.iloc[0] != "the exhibit" else "Not run."
        )
    if len(absent) > pictures:
        said.append(f"{len(absent) - pictures} of the numbers printed not run.")
    return " ".join(said)


def as_printed(rows: pd.DataFrame) -> pd.DataFrame:
    """Of rows with a printed number those measured with the system itself, on the official data; the first where one was
    measured in several ways (the paper's own comes first)."""
    own = rows[(rows.status == "reproduced") & (rows.model == rows.system)]
    return own.drop_duplicates(results.KEY)


def scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Of rows with a printed number the systems' scores on the scale of 0 to 100, each printed number once for what it was
    measured on, however many tables reprint it; no counts and lengths of a data set, no cosines."""
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


def _of(board: pd.DataFrame, paper: str, exhibit: str) -> pd.DataFrame:
    return board[(board.paper == paper) & (board.exhibit == exhibit)]
