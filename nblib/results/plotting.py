"""One figure style, and one way to save a figure: SVG and the data behind it as CSV, both byte-reproducible."""

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from adjustText import adjust_text
from IPython import get_ipython
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nblib import artefacts, paths
from nblib.results.measurements import DECIMALS

# Okabe and Ito's colours, distinct for every common kind of colour vision, each with one meaning in all figures; other series
# take `PALETTE` in its order
PUBLISHED = "#000000"  # what a paper prints
OURS = "#009E73"  # what was measured here
TRAINED = "#CC79A7"  # a system that this study trained, as a diamond
NEGATION = "#D55E00"  # a negation, or the choice of one
PARAPHRASE = "#0072B2"  # a text that isn't negated: a paraphrase, a hedge, an edited document
PARTIAL = "#E69F00"  # measured by another protocol
SAMPLE = "#56B4E9"  # measured on a sample
MUTED, ABSENT = "#999999", "#D9D9D9"  # guessing and other references; nothing measured
PALETTE = [PARAPHRASE, NEGATION, OURS, TRAINED, PARTIAL, SAMPLE, PUBLISHED, MUTED]


def use_style() -> None:
    """Set the study's figure style for this session, in which a notebook shows figures as SVG, and as PNG for viewers that show
    nobody's SVG (GitHub's, and JupyterLab until the notebook is trusted)."""
    title = {"axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left"}
    lines = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "grid.linewidth": 0.6}
    files = {"svg.hashsalt": "nblib", "svg.fonttype": "none", "figure.dpi": 96, "savefig.dpi": 150}
    look = {**title, **lines, **files, "font.family": "DejaVu Sans", "figure.constrained_layout.use": True}
    sns.set_theme(context="notebook", style="whitegrid", palette=PALETTE, rc=look)
    if get_ipython():
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", "png", metadata={"Date": None, "Creator": None})


def set_title(ax: Axes, finding: str) -> None:
    """Put a finding above the axes as their title, in as many lines as their width takes: call it after what narrows them."""
    ax.figure.draw_without_rendering()  # the layout as it will be
    character = 0.66 * ax.title.get_fontsize() * ax.figure.dpi / 72  # the mean width of a bold one
    finding = re.sub(r"(?<!\w)-(?=\d)", "−", finding)  # of numbers
    ax.set_title(textwrap.fill(finding, max(20, int(ax.bbox.width / character)), break_on_hyphens=False))


def colour_of(trained_on: str) -> str:
    """The colour of a system, by what this study trained it on ("": nothing)."""
    return TRAINED if trained_on else OURS


def label_points(
    ax: Axes, x: Iterable[float], y: Iterable[float], labels: Iterable[str], others: Iterable[tuple[float, float]] = ()
) -> None:
    """Label each point without covering another label or point, or one of the `others`. Call it last: it goes by the axes as
    they are."""
    x, y = list(x), list(y)
    ax.figure.draw_without_rendering()  # the layout as it will be
    texts = [ax.text(*point, label, fontsize=8) for *point, label in zip(x, y, labels, strict=True)]
    line = {"arrowstyle": "-", "color": MUTED, "lw": 0.6}
    limit = {"iter_lim": 500}  # one of time would not be reproducible
    known = pd.DataFrame([*zip(x, y, strict=True), *others], columns=["x", "y"]).dropna()
    adjust_text(
        texts,
        x=known.x.tolist(),
        y=known.y.tolist(),
        ax=ax,
        expand=(1.1, 1.4),
        force_text=(0.3, 0.6),
        arrowprops=line,
        **limit,
    )


def interval_plot(
    ax: Axes,
    table: pd.DataFrame,
    *,
    label: str = "system",
    value: str = "value",
    low: str = "low",
    high: str = "high",
    published: str | None = None,
    colour: str = OURS,
    name: str = "ours",
    filled: bool = True,
) -> None:
    """Draw our values as dots with intervals, and published values as ticks: one line per label, the first row's (or category)
    on top, each further dot of a line a little lower.

    Args:
        table: a row without a `value` gets no dot, one without `low` and `high` no interval.
        label, value, low, high, published: names of columns.
        name: of our values, for a legend.
    """
    column = table[label]
    order = list(column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column.unique())
    line = column.map({name: index for index, name in enumerate(order)}).astype(float)
    measured = table[value].notna()
    below = 0.15 * column[measured].groupby(column[measured], observed=True).cumcount()
    if published is not None:
        ax.plot(table[published].astype(float), line, "|", ms=14, color=PUBLISHED, alpha=0.6, label="published")
    ours = table[measured]
    arms = [(ours[value] - ours[low]).fillna(0), (ours[high] - ours[value]).fillna(0)]
    marker = "D" if colour == TRAINED else "o"  # not by colour alone
    dots = {"fmt": marker, "color": colour, "mfc": None if filled else "white", "label": name}
    ax.errorbar(ours[value], line[measured] + below, xerr=arms, **dots)
    ax.set(yticks=range(len(order)), yticklabels=order, ylim=(len(order) - 0.5, -0.5), ylabel="")


def trade_off(ax: Axes, table: pd.DataFrame, x: str, y: str, *, kind: str, arrows: Iterable[tuple] = ()) -> None:
    """Draw one score against another: a dot for each row, coloured by its `kind`, and `arrows` (pairs of points) from a base to
    what was made of it."""
    sns.scatterplot(table, x=x, y=y, hue=kind, s=60, ax=ax)
    for start, end in arrows:
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": MUTED})
    sns.move_legend(ax, "upper left", bbox_to_anchor=(1, 1))


def change_map(ax: Axes, changes: pd.DataFrame, rows: str, columns: str) -> None:
    """Draw changes (difference, low, high, in points) by two of their columns as coloured numbers, in brackets where the interval
    includes 0; rows and columns in the order in which they come."""
    clear = (changes.low > 0) | (changes.high < 0)
    number = changes.difference.map("{:+.1f}".format).str.replace("-", "−")
    shown = changes.assign(shown=number.where(clear, "(" + number + ")"))
    grid = shown.pivot(index=rows, columns=columns, values=["difference", "shown"]).loc[shown[rows].unique()]
    grid = grid.reindex(columns=shown[columns].unique(), level=1)
    style = {"cmap": "PuOr", "center": 0, "fmt": "", "cbar_kws": {"label": "change (points)"}}
    sns.heatmap(grid.difference.astype(float), annot=grid.shown.fillna(""), ax=ax, **style)
    ax.set(xlabel="", ylabel="")
    ax.tick_params(axis="y", rotation=0)


def curves(ax: Axes, table: pd.DataFrame, x: str) -> None:
    """Draw the values of a table over one of its columns, a line for each `set`; beyond eight, colours come again, dashed."""
    for index, (name, part) in enumerate(table.groupby("set", sort=False)):
        again = {"ls": "--", "marker": "s", "mfc": "white"} if index >= len(PALETTE) else {"marker": "o"}
        line = part.sort_values(x)
        ax.plot(line[x], line.value, ms=5, color=PALETTE[index % len(PALETTE)], label=name, **again)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")


def save_figure(figure: Figure, target: str | Path, data: pd.DataFrame) -> None:
    """Write `<target>.svg` and the figure's data, rounded, as `<target>.csv`."""
    target = paths.resolve(target)
    # hashsalt again: a notebook that changed rcParams must not change the ids inside the SVG
    with paths.write_atomically(f"{target}.svg") as draft, mpl.rc_context({"svg.hashsalt": target.name}):
        figure.savefig(draft, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    artefacts.write_table(data.round(DECIMALS), f"{target}.csv")
