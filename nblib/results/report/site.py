"""The site of a run: pages from templates with their figures and data, in one folder to open or send.

Nothing in it depends on when or how fast the run was made: the reference report is compared line by line.
"""

import os
import re
import shutil
from pathlib import Path

import pandas as pd
from filelock import FileLock
from jinja2 import Environment, PackageLoader, StrictUndefined

from nblib import paths, results
from nblib.errors import readable
from nblib.results.measurements import DECIMALS
from nblib.results.report import content, executed, front, items, markup
from nblib.results.report.content import Cell
from nblib.results.report.executed import Executed, ReportError

ASSETS = Path(__file__).with_name("assets")
# Of matplotlib's SVGs: a font not every machine has, named in every text; turns by nothing; millionths of a point.
FONT = ("font-family: 'DejaVu Sans'; ", "<svg ", "<svg font-family=\"'DejaVu Sans', Verdana, sans-serif\" ")
NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*\)"')
SHAPE, DIGITS = re.compile(r"<(?:path|use)\b[^>]*>"), re.compile(r"(?<=\.\d\d)\d+")
TIDY = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
PAGES = Environment(loader=PackageLoader("nblib.results.report"), **TIDY)
PAGES.filters |= {
    "capitalize_first": lambda text: text[:1].upper() + text[1:],
    "markdown": markup.markdown,
    "inline": markup.inline,
    "breakable": markup.breakable,
    "first_part": lambda text: re.split(r"(?<=\))[;.] |\. ", text)[0],
    "basename": lambda file: Path(file).name,
}


def build(scale: str, *, provisional: bool = False) -> Path:
    """Make `runs/<scale>/report/` from the run's executed notebooks and results; returns its index.

    Of a study that goes on, it has the notebooks that have finished, and the index names those to come.

    Args:
        provisional: a study is running that will make the report again; its index is dated back, so that Snakemake does.

    Raises:
        ReportError: no notebook of that scale has been executed, or one can't be read.
        ResultsError: a results file breaks the schema.
        FileNotFoundError: there are no results.
    """
    run = paths.resolve(f"runs/{scale}")
    target = run / "report"
    with FileLock(paths.cache() / f"report_{scale}.lock"):  # of a running study and of its last job
        notebooks = executed.find(run)
        measured = results.load(run)
        board = results.scoreboard(measured, run, scale)
        file = run / "figures" / "13_results" / "tab_claims.csv"
        with readable(file, "Run notebook 13 again.", ReportError):
            claims = pd.read_csv(file, keep_default_na=False) if file.is_file() else pd.DataFrame()
        with paths.write_atomically(target) as draft:
            shutil.copytree(ASSETS, paths.writable_folder(draft), dirs_exist_ok=True)
            shown = _write_notebooks(notebooks, scale, draft)
            for name, table in {"scoreboard": board.round(DECIMALS), "measurements": measured}.items():
                table.to_csv(draft / f"{name}.csv", index=False, lineterminator="\n")
            coming = to_come(scale, notebooks)
            listed = items.write(run, draft)
            if listed:
                _write(draft / "items.html", "items.html.j2", scale=scale, index=listed)
            _write(
                draft / "scoreboard.html",
                "scoreboard.html.j2",
                scale=scale,
                board=front.ranked(board).to_dict("records"),
            )
            about = (
                front.index(board, claims, notebooks) | front.glance(measured, board) | front.pictures(notebooks, shown)
            )
            _write(draft / "index.html", "index.html.j2", scale=scale, coming=coming, items=listed, **about)
            front.write_search(draft / "search.js", notebooks, shown, about["coverage"])
            if provisional:
                os.utime(draft / "index.html", (0, 0))
    return target / "index.html"


def to_come(scale: str, notebooks: list[Executed]) -> list[Executed]:
    """The study's notebooks that have no page yet, as their sources; none for a run that isn't configured, such as lab."""
    if not (paths.CONFIG / f"{scale}.yaml").is_file():
        return []
    there = {notebook.source for notebook in notebooks}
    files = [file for file in sorted(paths.NOTEBOOKS.glob("*.ipynb")) if file.stem not in there]
    return [executed.read(file, paths.NOTEBOOKS.parent) for file in files]


def _write_notebooks(notebooks: list[Executed], scale: str, site: Path) -> dict[str, list[Cell]]:
    """Write a page for each notebook, its figures and data, and the notebook; return what each page shows."""
    shown = {notebook.page: content.cells(notebook) for notebook in notebooks}
    for before, notebook, after in zip([None, *notebooks[:-1]], notebooks, [*notebooks[1:], None], strict=True):
        cells = shown[notebook.page]
        about = {"executed": notebook, "cells": cells, "headings": content.headings(cells)}
        _write(site / notebook.page, "notebook.html.j2", scale=scale, before=before, after=after, **about)
        _copy_figures(cells, notebook, site)
        copied = site / "notebooks" / Path(notebook.page).with_suffix(".ipynb")
        paths.writable_folder(copied.parent)
        copied.write_text(content.download(notebook), encoding="utf-8")
    return shown


def _write(file: Path, template: str, **shown: object) -> None:
    file.write_text(PAGES.get_template(template).render(**shown).rstrip() + "\n", encoding="utf-8")


def _copy_figures(cells: list[Cell], notebook: Executed, site: Path) -> None:
    for output in (output for cell in cells for output in cell.outputs if output.file):
        target = site / "figures" / output.file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(notebook.saved(f"{output.file}.csv"), f"{target}.csv")
        if output.kind == "figure":
            svg = notebook.saved(f"{output.file}.svg").read_text(encoding="utf-8")
            Path(f"{target}.svg").write_text(slim(svg), encoding="utf-8")


def slim(svg: str) -> str:
    """The same picture in fewer bytes, and with a font to fall back on."""
    family, root, rooted = FONT
    svg = NO_TURN.sub("", svg.replace(family, "").replace(root, rooted, 1))
    return SHAPE.sub(lambda shape: DIGITS.sub("", shape[0]), svg)
