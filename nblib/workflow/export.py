"""Export of the reference figures as PNG, and of the reference tables as HTML and LaTeX."""

from pathlib import Path

import matplotlib
import pandas as pd

from nblib import paths
from nblib.errors import StudyError, readable
from nblib.results import tables

DOTS_PER_INCH = 150


class ExportError(StudyError):
    """A scale without reference figures."""


def export(scale: str, target: Path) -> tuple[int, int]:
    """Export everything below a folder, by notebook; return how many figures and how many tables.

    Raises:
        ExportError: there are no reference figures of that scale.
    """
    kept = paths.FIGURES / scale
    figures = sorted(kept.glob("[0-9]*/fig_*.svg"))
    if not figures:
        known = sorted(folder.name for folder in paths.FIGURES.iterdir() if folder.is_dir())
        raise ExportError(f"No reference figures in {kept}. There are: {', '.join(known)}.")
    for svg in figures:
        with paths.write_atomically(target / svg.relative_to(kept).with_suffix(".png")) as draft:
            with readable(svg, "It is in git: git checkout figures", ExportError):
                picture = png(svg)
            draft.write_bytes(picture)
    found = sorted(kept.glob("[0-9]*/tab_*.csv"))
    for csv in found:
        with readable(csv, "It is in git: git checkout figures", ExportError):
            table, caption = (
                pd.read_csv(csv, keep_default_na=False, na_values=[""]),
                f"{csv.parent.name}: {csv.stem[4:]}",
            )
        page, source = tables.show(table, caption).to_html(), tables.latex(table, caption, f"tab:{csv.stem[4:]}")
        for ending, text in {".html": page, ".tex": source}.items():
            with paths.write_atomically(target / csv.relative_to(kept).with_suffix(ending)) as draft:
                draft.write_text(text, encoding="utf-8")
    return len(figures), len(found)


def png(svg: Path) -> bytes:
    """A figure of `plotting.save_figure` as PNG, in its own font."""
    import resvg_py  # a Rust library in its wheel: no Cairo, no browser

    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    font = {"font_dirs": [str(fonts)], "font_family": "DejaVu Sans", "skip_system_fonts": True}
    return bytes(resvg_py.svg_to_bytes(svg_path=str(svg), dpi=DOTS_PER_INCH, **font))
