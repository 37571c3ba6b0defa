"""What a page shows of an executed notebook: its texts, its code, and its outputs as figures, tables and printed text.

A picture in an output is shown as the SVG that its cell saved (`plotting.save_figure`), with the data behind it; the name
is read from the cell. Widgets leave their static form. What differs from run to run of the same code is left out, so that
their pages are the same; and so is stderr, whose bars and warnings are for who watches a run and not for who reads of it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

from markupsafe import Markup
from nbformat import NotebookNode

from nblib import paths
from nblib.report import markup
from nblib.report.executed import SWEEP, Executed

WIDGET = "application/vnd.jupyter.widget-view+json"
DURATION = re.compile(
    r"\d[\d,.]*(?= (?:s|ms|seconds|minutes|hours)\b| (?:texts|tokens|triples|pairs|prompts) a second| texts and )"
)
TITLE = re.compile(r'<text style="font-weight: 700;[^>]*>([^<]+)</text>')  # plotting.use_style: axes' titles are bold
SIZE = re.compile(r'<svg [^>]*width="([\d.]+)pt" height="([\d.]+)pt"')
NOTICE = "papermill-error-cell-tag"  # of papermill's own cells in a notebook that failed


@dataclass(frozen=True)
class Output:
    """One output.

    Attributes:
        kind: "figure", "picture", "html", "text" or "error".
        html: of html, text and error: what to show; markup.
        file: of a figure the saved figure's name, of html the saved table's; "" where none was saved. Below `figures/`.
        alt: of a figure or picture: what stands in for it.
        width: of a figure, in CSS pixels; `height` likewise.
        png: of a picture: the PNG, base64.
    """

    kind: str
    html: str = ""
    file: str = ""
    alt: str = ""
    width: int = 0
    height: int = 0
    png: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell: a text, or code with its outputs; both markup."""

    text: str = ""
    code: str = ""
    number: int = 0
    outputs: list[Output] = field(default_factory=list)


def cells(executed: Executed) -> list[Cell]:
    """What there is to show, in order."""
    shown, section, number = [], executed.heading, 0
    for cell in executed.notebook.cells:
        if NOTICE in cell.metadata.get("tags", []):
            continue
        if cell.cell_type == "markdown":
            headings = re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE)
            section = re.sub(r"[*`]", "", headings[-1]) if headings else section
            shown.append(Cell(text=markup.markdown(cell.source)))
        elif cell.cell_type == "code":
            number += 1
            shown.append(
                Cell(code=markup.code(cell.source), number=number, outputs=list(_outputs(cell, executed, section)))
            )
    return shown


def findings(executed: Executed) -> Markup:
    """What the notebook found: the last text it generated (DESIGN: "Findings")."""
    texts = [output.data["text/markdown"] for cell in executed.notebook.cells for output in cell.get("outputs", [])
             if "text/markdown" in output.get("data", {})]  # fmt: skip
    return markup.markdown(_lasting(texts[-1])) if texts else Markup()


def _outputs(cell: NotebookNode, executed: Executed, section: str) -> Iterator[Output]:
    figures = _saved("fig", "image/png", cell, executed)
    tables = _saved("tab", "text/html", cell, executed)
    for output in cell.outputs:
        data = output.get("data", {})
        if output.output_type == "stream":
            if output.name == "stdout":
                yield Output("text", markup.terminal(_lasting(output.text)))
        elif output.output_type == "error":
            yield Output("error", markup.terminal(_lasting("\n".join(output.traceback))))
        elif "image/png" in data:
            yield _figure(next(figures), data["image/png"], executed, section)
        elif "text/html" in data:
            yield Output("html", markup.clean(data["text/html"]), file=next(tables))
        elif "text/markdown" in data:
            yield Output("html", markup.markdown(_lasting(data["text/markdown"])))
        elif "text/plain" in data and WIDGET not in data:
            yield Output("text", markup.terminal(_lasting(data["text/plain"])))


def _lasting(text: str) -> str:
    """A text without what another run or another machine would say otherwise: durations, and where the project lies."""
    return DURATION.sub("…", text).replace(f"{paths.PROJECT_ROOT}/", "")


def _saved(kind: str, type_: str, cell: NotebookNode, executed: Executed) -> Iterator[str]:
    """The saved figure or table behind each output of a type in a cell, "" where none is to be told.

    The one placeholder in such a name is what the notebook was executed for, which is also the executed copy's name.
    """
    names = re.findall(rf'"({kind}_\d\d_[^"]+)"', cell.source)
    names = [re.sub(r"\{[^}]+\}", lambda _: executed.name, name) for name in names]
    there = [name for name in names if (executed.run / "figures" / f"{name}.csv").is_file()]
    shown = sum(type_ in output.get("data", {}) for output in cell.outputs)
    below = f"{SWEEP}/" if executed.sweep else ""
    return iter([f"{below}{name}" for name in there] if len(there) == shown else [""] * shown)


def _figure(file: str, png: str, executed: Executed, section: str) -> Output:
    if not file:
        return Output("picture", alt=section, png=png.replace("\n", ""))
    svg = (executed.run / "figures" / f"{Path(file).name}.svg").read_text(encoding="utf-8")
    titles = "; ".join(map(unescape, TITLE.findall(svg)))
    points = SIZE.search(svg)
    width, height = (round(float(point) * 4 / 3) for point in (points.groups() if points else (0, 0)))
    return Output("figure", file=file, alt=". ".join(filter(None, [section, titles])), width=width, height=height)
