"""Each exhibit of a run: the printed numbers beside ours, and a summary in one sentence."""

from html import escape

import pandas as pd
from IPython.display import Markdown
from pandas.io.formats.style import Styler

from nblib.results import tables
from nblib.results.scoreboard import AGREEING, SHOWN, WHOLE

PHRASES = {
    "full": "measured in full",
    "sample": "measured on a sample (other or fewer items, or systems)",
    "other protocol": "measured by another protocol",
    "stand-in": "measured by a stand-in, with which no printed number compares",
    "not run": "not run",
}


def exhibit(board: pd.DataFrame, covered: pd.Series) -> list[Markdown | Styler]:
    """What a notebook displays of an exhibit (a row of `scoreboard.coverage`): title, summary, the command that runs the rest,
    and the measured rows."""
    name = f"{covered.paper.capitalize()}, {covered.exhibit}"
    run = f" In full: `{covered.command}`." if covered.command else ""
    rows = board[(board.paper == covered.paper) & (board.exhibit == covered.exhibit)]
    shown = [Markdown(f"### {name}: {covered.title}\n\n{escape(describe_exhibit(rows), quote=False)}{run}")]
    measured = table(rows)
    return [*shown, tables.show(measured, name)] if len(measured) else shown


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """The measured rows of an exhibit for reading, without empty columns: the interval as text, n as "543; printed: 550" where
    the printed number has another."""
    rows = rows[rows.value.notna()]
    described = tables.described(rows.assign(system=rows.measured_system))
    other = rows.n_printed.notna() & (rows.n != rows.n_printed)
    shown = rows.rename(columns={"value": "ours"}).assign(
        interval=tables.interval_text(rows.ci_low, rows.ci_high),
        measured_system=described.system.where(described.system != rows.system, ""),
        n=rows.n.map("{:,.0f}".format) + rows.n_printed.map("; printed: {:,.0f}".format).where(other, ""),
        items=described["items"],
        trained_on=described.trained_on,
    )
    columns = (
        "system benchmark metric published ours interval difference measured agrees measured_system measured_metric"
    )
    return tables.filled(shown[[*columns.split(), "n", "items", "trained_on", "note"]]).reset_index(drop=True)


def describe_exhibit(rows: pd.DataFrame) -> str:
    """An exhibit's rows in one sentence: how many were measured how nearly, and how far they are from the printed numbers."""
    parts = []
    for measured, phrase in PHRASES.items():
        part = rows[rows.measured == measured]
        if len(part):
            gaps, agree = part.difference.dropna().round(2) + 0, int(part.agrees.isin(AGREEING).sum())  # + 0: no -0.00
            parts.append(f"{len(part)} {phrase}")
            if measured == "full" and part.published.notna().any():
                parts[-1] += f", of which {agree} agree{'s' * (agree == 1)} (within rounding or our interval)"
            parts[-1] += f", off by {gaps.min():+.2f} to {gaps.max():+.2f}" * bool(len(gaps))
    unit = "number" if rows.metric.ne(SHOWN).any() else "exhibit" if rows.system.eq(WHOLE).all() else "system"
    return f"Of {len(rows)} {unit}{'s' * (len(rows) > 1)}: {'; '.join(parts)}."


def compared_scores(board: pd.DataFrame) -> pd.DataFrame:
    """The rows of a scoreboard that compare a score with a printed one, each score once however many tables repeat it; without
    cosines and guessing."""
    scores = board[board.difference.notna() & ~board.metric.str.startswith("cosine") & (board.system != "Random")]
    return scores.drop_duplicates(["benchmark", "published", "value"])


def describe_agreement(board: pd.DataFrame) -> str:
    """The agreement of a run in two sentences: how many of all printed numbers are compared, and of scores (without those of
    guessing), each once however many tables repeat it, how many agree."""
    numbers = board[board.published.notna()].drop_duplicates(["system", "benchmark", "metric", "published"])
    stood_in, not_run = (int((numbers.measured == how).sum()) for how in ("stand-in", "not run"))
    once, parts = compared_scores(board), []
    for measured, phrase in [
        ("full", "in full"),
        ("sample", "on fewer or other items"),
        ("other protocol", "by another protocol"),
    ]:
        rows = once[once.measured == measured]
        if len(rows):
            agree, gaps = rows.agrees.isin(AGREEING).sum(), rows.difference.abs()
            spread = f"median difference {gaps.median():.2f}, largest {gaps.max():.2f} points"
            parts.append(f"{agree} of {len(rows)} measured {phrase} ({spread})")
    if not parts:
        return ""
    counted = f"Of {len(numbers)} distinct printed numbers {len(numbers) - stood_in - not_run} are compared with ours, "
    counted += f"{stood_in} have a stand-in, {not_run} were not run."
    said = f"{counted} Scores that agree (cosines, chance levels and counts aside): {'; '.join(parts)}."
    split = bool(once.protocol.astype(str).str.startswith("splits").any())
    return said + " For random splits our interval is the mean ± 1.96 sd over the splits." * split
