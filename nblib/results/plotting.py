"""One figure style, and one way to save a figure: SVG and the data behind it as CSV, both byte-reproducible."""

import textwrap
from collections.abc import Iterable, Mapping
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

# Okabe and Ito's colours, distinct for every common kind of colour vision. Each has one meaning in all figures; series without
# such a meaning (benchmarks, variants) take `PALETTE` in its order.
PUBLISHED = "#000000"  # what a paper prints
OURS = "#009E73"  # what was measured here
TRAINED = "#CC79A7"  # a system that this study trained
NEGATION = "#D55E00"  # a negation, or the choice of one
PARAPHRASE = "#0072B2"  # a text that isn't negated: a paraphrase, a hedge, an edited document
PARTIAL = "#E69F00"  # measured by another protocol
SAMPLE = "#56B4E9"  # measured on a sample
MUTED, ABSENT = "#999999", "#D9D9D9"  # guessing and other references; nothing measured
# How nearly something was measured, in the order of `comparison.MEASURED`; stand-ins are hatched
COVERAGE = [
    {"color": OURS}, {"color": SAMPLE}, {"color": PARTIAL},
    {"color": "white", "edgecolor": MUTED, "hatch": "////", "linewidth": 0}, {"color": ABSENT},
]  # fmt: skip
CHARACTER = 0.66  # the mean width of a bold character, as a part of the font's size
PALETTE = [PARAPHRASE, NEGATION, OURS, TRAINED, PARTIAL, SAMPLE, PUBLISHED, MUTED]


def use_style() -> None:
    """Set the study's figure style for this session, in which a notebook shows figures as SVG."""
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
    if get_ipython():
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", metadata={"Date": None, "Creator": None})


def state(ax: Axes, finding: str) -> None:
    """Put a finding above the axes as their title, in as many lines as their width takes.

    Call it after whatever narrows the axes: tick labels, a legend beside them.
    """
    ax.figure.draw_without_rendering()  # the layout as it will be
    size = ax.title.get_fontsize() * ax.figure.dpi / 72
    ax.set_title(textwrap.fill(finding, max(20, int(ax.bbox.width / (CHARACTER * size))), break_on_hyphens=False))


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
    name: str = "ours",
    filled: bool = True,
) -> None:
    """Draw our values as dots with intervals, and published values as ticks: one line per label, the first on top.

    Rows with the same label share a line: a second dot is a little below the first, ticks stay on the line.

    Args:
        table: a row without a `value` gets no dot, one without `low` and `high` no interval. The lines have the order of the
            rows, or of the categories where `label` is categorical.
        label, value, low, high, published: names of columns.
        name: of our values, for a legend.
        filled: whether dots are filled or hollow, to tell two kinds of values of one colour apart.
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
    ax.errorbar(
        ours[value],
        line[measured] + below,
        xerr=arms,
        fmt="o",
        color=colour,
        mfc=None if filled else "white",
        label=name,
    )
    ax.set(yticks=range(len(order)), yticklabels=order, ylim=(len(order) - 0.5, -0.5), ylabel="")


def trade_off(
    ax: Axes, table: pd.DataFrame, x: str, y: str, *, kind: str, arrows: Iterable[tuple] = (), **look: object
) -> None:
    """Draw one score against another: a dot for each row, coloured by its `kind`, with a legend beside the axes.

    Args:
        arrows: pairs of points, from a base to what was made of it.
        look: of the dots, as seaborn names it.
    """
    sns.scatterplot(table, x=x, y=y, hue=kind, s=60, ax=ax, **look)
    for start, end in arrows:
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": MUTED})
    sns.move_legend(ax, "upper left", bbox_to_anchor=(1, 1))


def curves(ax: Axes, table: pd.DataFrame, x: str, by: str = "set") -> None:
    """Draw the values of a table over one of its columns: a line for each name in the column `by`, and a legend beside the axes.

    Beyond eight lines the colours come again with dashes and hollow squares.
    """
    for place, (name, part) in enumerate(table.groupby(by, sort=False)):
        again = {"ls": "--", "marker": "s", "mfc": "white"} if place >= len(PALETTE) else {"marker": "o"}
        line = part.sort_values(x)
        ax.plot(line[x], line.value, ms=5, color=PALETTE[place % len(PALETTE)], label=name, **again)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")


def before_after(ax: Axes, scores: pd.DataFrame, base: str, tuned: str, chances: Mapping[str, float]) -> None:
    """Draw an encoder's scores before and after a training, a line for each benchmark that both were measured on, and what
    guessing scores there; the title says how many the training raises.

    Args:
        scores: system, benchmark, value, ci_low, ci_high.
        chances: the score of guessing by benchmark, in the order of the lines.
    """
    both = [name for name in chances if {base, tuned} <= set(scores.system[scores.benchmark == name])]
    scores = scores[scores.benchmark.isin(both)]
    scores = scores.assign(benchmark=pd.Categorical(scores.benchmark, both))
    ax.plot([chances[name] for name in both], range(len(both)), "|", ms=14, mew=2, color=MUTED, label="guessing")
    intervals = {"label": "benchmark", "low": "ci_low", "high": "ci_high"}
    interval_plot(ax, scores[scores.system == base], name=base, **intervals)
    interval_plot(ax, scores[scores.system == tuned], name=tuned, colour=TRAINED, **intervals)
    bounds = [scores[scores.system == one].set_index("benchmark") for one in (base, tuned)]
    higher = (bounds[1].ci_low > bounds[0].ci_high.reindex(bounds[1].index)).sum()
    ax.set_title(f"{tuned}: {higher} of {len(both)} scores rise beyond both intervals")
    ax.set_xlabel("percent, or correlation × 100; 95 % intervals")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, fontsize="small")


def save_figure(figure: Figure, target: str | Path, data: pd.DataFrame) -> list[Path]:
    """Write `<target>.svg` and the figure's data, rounded, as `<target>.csv`; return both paths."""
    target = paths.resolve(target)
    svg, table = (target.with_name(f"{target.name}.{kind}") for kind in ("svg", "csv"))
    # hashsalt again: a notebook that changed rcParams must not change the ids inside the SVG
    with paths.write_atomically(svg) as draft, mpl.rc_context({"svg.hashsalt": target.name}):
        figure.savefig(draft, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    artefacts.write_table(data.round(DECIMALS), table)
    return [svg, table]
