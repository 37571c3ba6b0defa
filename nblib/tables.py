"""Tables for people: the paper's number beside ours, as HTML in the notebook and as CSV, HTML and LaTeX on disk."""

import hashlib
from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape
from pathlib import Path

import pandas as pd
from IPython.display import Markdown
from pandas.io.formats.style import Styler

from nblib import paths
from nblib.results import DECIMALS, comparable

CSS = [
    {"selector": "th", "props": "text-align: left; font-weight: 600;"},
    {"selector": "td", "props": "font-variant-numeric: tabular-nums;"},
    {"selector": "caption", "props": "text-align: left; font-weight: 600; padding-bottom: .4em;"},
]


def show(table: pd.DataFrame, caption: str, digits: int = 2, html: Sequence[str] = ()) -> Styler:
    """The table as a reader should see it: caption, fixed number of digits, a dash for what is missing.

    Args:
        html: columns that hold HTML (`edits`); all others are escaped.
    """
    table = table.reset_index(drop=True)  # the index is hidden, and a repeated one can't be styled
    integers = [column for column in table.columns if _whole(table[column])]
    formats = {
        column: "{:.0f}" if column in integers else f"{{:.{digits}f}}" for column in table.select_dtypes("number")
    }
    texts = [column for column in table.columns if not pd.api.types.is_numeric_dtype(table[column])]
    return (
        table.style.format(formats, na_rep="–", escape="html")
        .hide(axis="index")
        .set_caption(escape(caption, quote=False))
        .set_table_styles(CSS)
        .format(subset=list(html))
        .set_properties(subset=texts, **{"text-align": "left"})
        .set_uuid(hashlib.sha256(caption.encode()).hexdigest()[:8])  # not random: saved tables are compared
    )


def _whole(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and bool((column.dropna() % 1 == 0).all())


def save_table(table: pd.DataFrame, name: str, caption: str, run_dir: str | Path, digits: int = 2) -> Styler:
    """Write `<run_dir>/figures/<name>.{csv,html,tex}` and return what the notebook shows."""
    folder = paths.resolve(run_dir) / "figures"
    styled = show(table, caption, digits)
    with paths.write_atomically(folder / f"{name}.csv") as draft:
        table.round(DECIMALS).to_csv(draft, index=False, lineterminator="\n")
    with paths.write_atomically(folder / f"{name}.html") as draft:
        draft.write_text(styled.to_html(), encoding="utf-8")
    with paths.write_atomically(folder / f"{name}.tex") as draft:
        draft.write_text(
            table.to_latex(
                index=False,
                caption=latex_text(caption),
                label=f"tab:{name}",
                na_rep="--",
                float_format=f"%.{digits}f",
                escape=True,
            ),
            encoding="utf-8",
        )
    return styled


def edits(before: str, after: str) -> str:
    """The second text as HTML, with what it drops of the first struck through and what it adds underlined, word by word."""
    old, new = before.split(), after.split()
    parts = []
    for kind, start, end, new_start, new_end in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        dropped, added = escape(" ".join(old[start:end])), escape(" ".join(new[new_start:new_end]))
        if kind == "equal":
            parts.append(added)
        else:
            parts += [f"<del>{dropped}</del>"] * bool(dropped) + [f"<ins>{added}</ins>"] * bool(added)
    return " ".join(parts)


def latex_text(text: str) -> str:
    """Text with the characters LaTeX would take for commands or comments escaped."""
    return text.translate({ord(sign): f"\\{sign}" for sign in "%&#_${}"})


def findings(*sentences: str) -> Markdown:
    """A notebook's findings, sentences made from this run's numbers, as one bullet each."""
    return Markdown("\n".join(f"- {escape(sentence, quote=False)}" for sentence in sentences))


def beside(results: pd.DataFrame, paper: str, exhibit: str) -> pd.DataFrame:
    """The rows of an exhibit (of the results schema) as a table: system, benchmark, metric, published, ours, difference,
    interval, n, data, model, status. There is no difference between a score on a miniature and one on the official data."""
    rows = results[(results.paper == paper) & (results.exhibit == exhibit)]
    interval = [
        f"{low:.2f} – {high:.2f}" if pd.notna(low) else "" for low, high in zip(rows.ci_low, rows.ci_high, strict=True)
    ]
    table = rows[["system", "benchmark", "metric", "published", "ours"]].assign(
        difference=(rows.ours - rows.published).where(comparable(rows.data)), interval=interval, n=rows.n
    )
    return table.join(rows[["data", "model", "status"]]).reset_index(drop=True)
