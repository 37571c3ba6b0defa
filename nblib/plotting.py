"""One figure style, and one way to save a figure: SVG, PNG and the data behind it as CSV, all byte-reproducible."""

from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from adjustText import adjust_text
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nblib import paths
from nblib.results import DECIMALS

# Okabe and Ito's colours: told apart by every common kind of colour vision.
PARAPHRASE, NEGATION, OURS, PUBLISHED, MUTED = "#0072B2", "#D55E00", "#009E73", "#000000", "#999999"
PALETTE = [PARAPHRASE, NEGATION, OURS, "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", PUBLISHED]


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
    """Write beside each point what it is, where it covers no other label or point; a line leads to one that had to move far.

    Call it last: the labels are placed for the axes' limits, scale and legend as they are then.
    """
    x, y = list(x), list(y)
    ax.figure.draw_without_rendering()  # the layout as it will be
    texts = [ax.text(*point, label, fontsize=8) for *point, label in zip(x, y, labels, strict=True)]
    line = {"arrowstyle": "-", "color": MUTED, "lw": 0.6}
    # a limit of iterations, as one of time is not reproducible
    adjust_text(texts, x=x, y=y, ax=ax, expand=(1.1, 1.4), force_text=(0.3, 0.6), iter_lim=500, arrowprops=line)


def save_figure(figure: Figure, name: str, data: pd.DataFrame, run_dir: str | Path) -> list[Path]:
    """Write `<run_dir>/figures/<name>.{svg,png,csv}`; the CSV holds what the figure shows, rounded to 4 decimals.

    Returns:
        The three paths.
    """
    folder = paths.resolve(run_dir) / "figures"
    written = []
    for suffix, metadata in [("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})]:
        target = folder / f"{name}.{suffix}"
        # hashsalt again: a notebook that changed rcParams must not change the ids inside the SVG
        with paths.write_atomically(target) as draft, mpl.rc_context({"svg.hashsalt": name}):
            figure.savefig(draft, format=suffix, metadata=metadata, bbox_inches="tight")
        written.append(target)
    table = folder / f"{name}.csv"
    with paths.write_atomically(table) as draft:
        data.round(DECIMALS).to_csv(draft, index=False, lineterminator="\n")
    return [*written, table]
