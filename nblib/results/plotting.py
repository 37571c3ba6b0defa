"""One figure style, and one way to save a figure: SVG and the data behind it as CSV, both byte-reproducible."""

from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from adjustText import adjust_text
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nblib import artefacts, paths
from nblib.results.measurements import DECIMALS

# Okabe and Ito's colours, distinct for every common kind of colour vision.
PARAPHRASE, NEGATION, OURS, PUBLISHED, MUTED = "#0072B2", "#D55E00", "#009E73", "#000000", "#999999"
PARTIAL, ABSENT = "#E69F00", "#D9D9D9"  # measured by another protocol, not at all
# How nearly something was measured, in the order of `comparison.MEASURED`; stand-ins are hatched
COVERAGE = [
    {"color": OURS}, {"color": "#56B4E9"}, {"color": PARTIAL},
    {"color": "white", "edgecolor": MUTED, "hatch": "////", "linewidth": 0}, {"color": ABSENT},
]  # fmt: skip
EDITS = [PARAPHRASE, NEGATION]
PALETTE = [PARAPHRASE, NEGATION, OURS, "#CC79A7", PARTIAL, "#56B4E9", "#F0E442", PUBLISHED]


def use_style() -> None:
    """Set the study's figure style for this session."""
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette=PALETTE,
        rc={
            "svg.hashsalt": "nblib", "svg.fonttype": "none", "figure.dpi": 96, "savefig.dpi": 150,
            "figure.constrained_layout.use": True, "axes.spines.top": False, "axes.spines.right": False,
            "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left", "legend.frameon": False,
            "font.family": "DejaVu Sans", "grid.linewidth": 0.6,
        },
    )  # fmt: skip


def label_points(ax: Axes, x: Iterable[float], y: Iterable[float], labels: Iterable[str]) -> None:
    """Label each point without covering another label or point; a line joins a distant label to its point.

    Call it last: the labels are placed for the current limits, scale and legend of the axes.
    """
    x, y = list(x), list(y)
    ax.figure.draw_without_rendering()  # the layout as it will be
    texts = [ax.text(*point, label, fontsize=8) for *point, label in zip(x, y, labels, strict=True)]
    line = {"arrowstyle": "-", "color": MUTED, "lw": 0.6}
    # a limit of iterations, as one of time is not reproducible
    adjust_text(texts, x=x, y=y, ax=ax, expand=(1.1, 1.4), force_text=(0.3, 0.6), iter_lim=500, arrowprops=line)


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
) -> None:
    """Draw our values as dots with intervals, and published values as ticks: one line per label, the first on top.

    Rows with the same label share a line: a second dot is a little below the first, ticks stay on the line.

    Args:
        table: a row without a `value` gets no dot, one without `low` and `high` no interval. The lines have the order of the
            rows, or of the categories where `label` is categorical.
        label, value, low, high, published: names of columns.
    """
    column = table[label]
    order = list(column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column.unique())
    line = column.map({name: place for place, name in enumerate(order)}).astype(float)
    measured = table[value].notna()
    below = 0.15 * column[measured].groupby(column[measured], observed=True).cumcount()
    if published is not None:
        ax.plot(table[published].astype(float), line, "|", ms=14, color=PUBLISHED, alpha=0.6, label="published")
    ours = table[measured]
    arms = [(ours[value] - ours[low]).fillna(0), (ours[high] - ours[value]).fillna(0)]
    ax.errorbar(ours[value], line[measured] + below, xerr=arms, fmt="o", color=colour, label="ours")
    ax.set(yticks=range(len(order)), yticklabels=order, ylim=(len(order) - 0.5, -0.5), ylabel="")


def save_figure(figure: Figure, target: str | Path, data: pd.DataFrame) -> list[Path]:
    """Write `<target>.svg` and the figure's data, rounded, as `<target>.csv`; return both paths."""
    target = paths.resolve(target)
    svg, table = (target.with_name(f"{target.name}.{kind}") for kind in ("svg", "csv"))
    # hashsalt again: a notebook that changed rcParams must not change the ids inside the SVG
    with paths.write_atomically(svg) as draft, mpl.rc_context({"svg.hashsalt": target.name}):
        figure.savefig(draft, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    artefacts.write_table(data.round(DECIMALS), table)
    return [svg, table]
