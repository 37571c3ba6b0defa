"""The site of a run: pages from templates with their figures and data, in one folder to open or send.

Nothing in it depends on when or how fast the run was made: the report of record is compared line by line.
"""

import os
import re
import shutil
from itertools import groupby
from pathlib import Path

import pandas as pd
from filelock import FileLock
from jinja2 import Environment, PackageLoader, StrictUndefined

from nblib import paths, results
from nblib.results import comparison, exhibits, published, tables
from nblib.results.measurements import DECIMALS
from nblib.results.report import content, executed, items, markup
from nblib.results.report.content import Cell
from nblib.results.report.executed import Executed

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
    draft, target = run / ".report", run / "report"
    with FileLock(paths.cache() / f"report_{scale}.lock"):  # of a running study and of its last job
        notebooks = executed.find(run)
        measured = results.load(run)
        board = results.scoreboard(measured, run, scale)
        file = run / "figures" / "13_results" / "tab_claims.csv"
        claims = pd.read_csv(file, keep_default_na=False) if file.is_file() else pd.DataFrame()
        shutil.rmtree(draft, ignore_errors=True)  # what a killed process left
        try:
            shutil.copytree(ASSETS, paths.writable_folder(draft), dirs_exist_ok=True)
            for before, notebook, after in zip([None, *notebooks[:-1]], notebooks, [*notebooks[1:], None], strict=True):
                cells = content.cells(notebook)
                shown = {"executed": notebook, "cells": cells, "before": before, "after": after}
                _write(draft / notebook.page, "notebook.html.j2", scale=scale, **shown)
                _copy_figures(cells, notebook, draft)
            for name, table in {"scoreboard": board.round(DECIMALS), "measurements": measured}.items():
                table.to_csv(draft / f"{name}.csv", index=False, lineterminator="\n")
            coming = to_come(scale, notebooks)
            listed = items.write(run, draft)
            if listed:
                _write(draft / "items.html", "items.html.j2", scale=scale, index=listed)
            about = index(board, claims, notebooks) | {"items": listed}
            _write(draft / "index.html", "index.html.j2", scale=scale, coming=coming, **about)
            if provisional:
                os.utime(draft / "index.html", (0, 0))
            shutil.rmtree(target, ignore_errors=True)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return target / "index.html"


def to_come(scale: str, notebooks: list[Executed]) -> list[Executed]:
    """The study's notebooks that have no page yet, as their sources; none for a run that isn't configured, such as lab."""
    if not (paths.CONFIG / f"{scale}.yaml").is_file():
        return []
    there = {notebook.source for notebook in notebooks}
    files = [file for file in sorted(paths.NOTEBOOKS.glob("*.ipynb")) if file.stem not in there]
    return [executed.read(file, paths.NOTEBOOKS.parent) for file in files]


def index(board: pd.DataFrame, claims: pd.DataFrame, notebooks: list[Executed]) -> dict[str, object]:
    """The content of the index: the claims, the scoreboard, coverage, and the notebooks in their order.

    Args:
        claims: notebook 13's table of claims; empty where it wasn't executed.
    """
    coverage, numbers = results.coverage(board), board.published.notna()
    groups = [(source, list(group)) for source, group in groupby(notebooks, key=lambda notebook: notebook.source)]
    last = next((notebook for notebook in notebooks if notebook.number == "13"), None)
    return {
        "papers": published.PAPERS,
        "printed": int(numbers.sum()),
        "in_full": int((numbers & board.measured.eq("full")).sum()),
        "agree": int(results.reproduced(board).sum()),
        "claims": [{**row, "link": _exhibit_link(row, coverage, last)} for row in claims.to_dict("records")],
        "findings": content.findings(last) if last else "",
        "board": ranked(board).to_dict("records"),
        "coverage": coverage.to_dict("records"),
        "kinds": {kind: kind.replace(" ", "_").replace("-", "_") for kind in comparison.MEASURED},
        "groups": groups,
        "executed_numbers": {notebook.number for notebook in notebooks},
        "commits": sorted({str(notebook.provenance["commit"]) for notebook in notebooks if notebook.provenance}),
    }


def _exhibit_link(claim: dict[str, str], coverage: pd.DataFrame, last: Executed | None) -> str:
    """Where notebook 13's page has the exhibit of a claim; "" without that page."""
    titles = coverage.set_index(["paper", "exhibit"]).title
    heading = f"{claim['paper'].capitalize()}, {claim['exhibit']}: {titles[claim['paper'], claim['exhibit']]}"
    return f"{last.page}#{markup.anchor(heading)}" if last else ""


def ranked(board: pd.DataFrame) -> pd.DataFrame:
    """The scoreboard for reading: what was measured most nearly first, what wasn't run last; n and interval as text."""
    place = board.measured.map({kind: place for place, kind in enumerate(comparison.MEASURED)})
    rows = board.assign(interval=tables.interval_text(board.ci_low, board.ci_high))
    rows["items"] = [exhibits.n_text(*pair) for pair in zip(board.n, board.n_printed, strict=True)]
    return rows.loc[place.sort_values(kind="stable").index]


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
