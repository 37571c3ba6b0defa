"""Tables as HTML in the notebook."""

import hashlib
from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

import pandas as pd
from IPython.display import Markdown
from pandas.io.formats.style import Styler

from nblib.results import words

CSS = [
    {"selector": "th", "props": "text-align: left; font-weight: 600;"},
    {"selector": "td", "props": "font-variant-numeric: tabular-nums;"},
    {"selector": "caption", "props": "text-align: left; font-weight: 600; padding-bottom: .4em;"},
]
LONG = 40  # rows; a longer table scrolls below its header
HEADER = "position: sticky; top: 0; background: var(--jp-layout-color0, var(--pst-color-background, Canvas));"
SCROLLING = [
    {"selector": "", "props": "display: block; max-height: 36em; overflow: auto;"},
    {"selector": "thead th", "props": HEADER},
]


def show(table: pd.DataFrame, caption: str, digits: int = 2, html: Sequence[str] = ()) -> Styler:
    """The table with a caption, a fixed number of digits, and a dash for what is missing; a long one scrolls. No viewer reads
    dollars in it as formulas.

    Args:
        html: columns that hold HTML (`edits`); all others are escaped.
    """
    table = table.reset_index(drop=True)  # the index is hidden, and a repeated one can't be styled
    numbers = table.select_dtypes("number")
    whole = (numbers.isna() | (numbers % 1 == 0)).all()
    formats = {column: "{:.0f}" if whole[column] else f"{{:.{digits}f}}" for column in numbers}
    texts = [column for column in table.columns if not pd.api.types.is_numeric_dtype(table[column])]
    return (
        table.style.format(formats, na_rep="–", escape="html")
        .hide(axis="index")
        .set_caption(escape(caption, quote=False))
        .set_table_styles(CSS + SCROLLING * (len(table) > LONG))
        .format(subset=list(html))
        .set_table_attributes('class="mathjax_ignore tex2jax_ignore"')
        .set_properties(subset=texts, **{"text-align": "left"})
        .set_uuid(hashlib.sha256(caption.encode()).hexdigest()[:8])  # not random: saved tables are compared
    )


def edits(before: str, after: str) -> str:
    """The second text as HTML, word by word: what the first had is struck through, what is new is underlined."""
    old, new = before.split(), after.split()
    parts = []
    for change, start, end, new_start, new_end in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        dropped, added = escape(" ".join(old[start:end])), escape(" ".join(new[new_start:new_end]))
        if change == "equal":
            parts.append(added)
        else:
            parts += [f"<del>{dropped}</del>"] * bool(dropped) + [f"<ins>{added}</ins>"] * bool(added)
    return " ".join(parts)


def findings(*sentences: str) -> Markdown:
    """A notebook's findings, one bullet each."""
    return Markdown("\n".join(f"- {escape(sentence, quote=False)}" for sentence in sentences))


def filled(table: pd.DataFrame) -> pd.DataFrame:
    """The table without empty columns."""
    return table.loc[:, (table.notna() & (table != "")).any()]


def described(rows: pd.DataFrame) -> pd.DataFrame:
    """Measurements in words, with their index: system, items, trained_on."""
    texts = [
        (words.system(row), words.items(row), words.training(row.trained_on, row.training_items))
        for _, row in rows.iterrows()
    ]
    return pd.DataFrame(texts, columns=["system", "items", "trained_on"], index=rows.index)


def measured(recorded: pd.DataFrame) -> Styler:
    """Measurements as a notebook shows them: in words, without what is the same in every row of a run."""
    table = described(recorded).join(recorded[["metric", "value", "n"]])
    table["benchmark"] = [words.benchmark(*pair) for pair in zip(recorded.benchmark, recorded.corpus, strict=True)]
    table["interval"] = interval_text(recorded.ci_low, recorded.ci_high)
    columns = "system benchmark metric value interval n items trained_on".split()
    return show(filled(table[columns]), "As recorded: what this notebook measured")


def interval_text(low: pd.Series, high: pd.Series, digits: int = 2) -> list[str]:
    """Intervals as text, "" where there is none."""
    return [f"{a:.{digits}f} – {b:.{digits}f}" if a == a else "" for a, b in zip(low, high, strict=True)]
