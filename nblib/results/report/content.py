"""The content of a page: an executed notebook's texts, code, and outputs as figures, tables and printed text.

A picture in an output is shown as the SVG that its cell saved (`outputs.figure`), with its data; the name is read from the cell.
Widgets are shown in their static form. Durations and paths, which differ between runs of the same code, are left out, and so is
stderr with its bars and warnings.
"""

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape

import nbformat
from markupsafe import Markup
from nbformat import NotebookNode

from nblib import paths
from nblib.results.report import markup
from nblib.results.report.executed import SWEEP, Executed

WIDGET = "application/vnd.jupyter.widget-view+json"
DURATION = re.compile(
    r"\d[\d,.]*(?= (?:s|ms|seconds|minutes|hours)\b| (?:texts|tokens|triples|pairs|prompts) a second| texts and )"
)
TITLE = re.compile(r'<text style="font-weight: 700;[^>]*>([^<]+)</text>')  # plotting.use_style: axes' titles are bold
SIZE = re.compile(r'<svg [^>]*width="([\d.]+)pt" height="([\d.]+)pt"')
SECTION = re.compile(r'<h2 id="([^"]+)">(.*?)<a [^>]*class="anchor"', re.DOTALL)
NOTICE = "papermill-error-cell-tag"  # of papermill's own cells in a notebook that failed
# A notebook's links to its neighbours' sources. A page has links of its own, to their pages.
# What pandas' tables have beside their texts: names and styles of single cells, indentation; two thirds of their bytes
STYLING = re.compile(
    r' id="T_\w+_(?:row|level)\w+"| class="(?:data|row_heading|col_heading|blank|index_name)[^"]*"'
    r"|^#T_\w+_(?:row|level)[^{]*\{[^}]*\}|(?<=>)\s+(?=<)",
    re.MULTILINE,
)
NAVIGATION = re.compile(r"^.*\[all notebooks\]\(README\.md\).*\n+", re.MULTILINE)


@dataclass(frozen=True)
class Output:
    """One output.

    Attributes:
        kind: "figure", "picture", "html", "text" or "error".
        html: markup of html, text and error.
        file: the saved figure or table without its ending, relative to the site's `figures/`; "" where none was saved.
        alt: the text alternative of a figure or picture.
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
    """The cells to show, in order."""
    shown, section, number = [], executed.heading, 0
    for cell in executed.notebook.cells:
        if NOTICE in cell.metadata.get("tags", []):
            continue
        if cell.cell_type == "markdown":
            headings = re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE)
            section = re.sub(r"[*`]", "", headings[-1]) if headings else section
            shown.append(Cell(text=markup.markdown(NAVIGATION.sub("", cell.source))))
        elif cell.cell_type == "code":
            number += 1
            outputs = list(_outputs(cell, executed, section))
            shown.append(Cell(code=markup.code(cell.source), number=number, outputs=outputs))
    return shown


def findings(executed: Executed) -> Markup:
    """The notebook's findings as markup."""
    return markup.markdown(_lasting(executed.findings)) if executed.findings else Markup()


def headings(cells: list[Cell]) -> list[tuple[str, str]]:
    """The sections of a page: id and title, for its contents."""
    found = [pair for cell in cells for pair in SECTION.findall(cell.text)]
    return [(name, unescape(re.sub("<[^>]+>", "", title))) for name, title in found]


def download(executed: Executed) -> str:
    """The executed notebook as a file to open in JupyterLab: with its printed outputs and tables, without pictures (which the
    page has as SVG), bars, clocks and paths."""
    notebook = copy.deepcopy(executed.notebook)
    notebook.metadata = {key: value for key, value in notebook.metadata.items() if key == "kernelspec"}
    for cell in notebook.cells:
        cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
        if cell.cell_type == "code":
            cell.outputs = [_kept(output) for output in cell.outputs if output.get("name") != "stderr"]
    return nbformat.writes(notebook)


def _kept(output: NotebookNode) -> NotebookNode:
    """An output without what differs between runs, and without pictures."""
    if "text" in output:
        output.text = _lasting(output.text)
    if "data" in output:
        output.metadata = {}
        texts = {kind: _lasting(text) for kind, text in output.data.items() if kind.startswith("text/")}
        output.data = {kind: STYLING.sub("", text) for kind, text in texts.items()}
    return output


def _outputs(cell: NotebookNode, executed: Executed, section: str) -> Iterator[Output]:
    figures = _saved("figure", "image/png", cell, executed)
    tables = _saved("table", "text/html", cell, executed)
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
    """A text without durations and the project's path, which differ between runs and machines."""
    return DURATION.sub("…", text).replace(f"{paths.PROJECT_ROOT}/", "")


def _saved(method: str, type_: str, cell: NotebookNode, executed: Executed) -> Iterator[str]:
    """The saved figure or table behind each output of a type in a cell, "" where it is unknown.

    The names are literals in the calls of `outputs.figure` and `outputs.table`; for a notebook that is executed for several
    models they end in the model, which is also the name of the executed copy.
    """
    ending = f"_{executed.name}" if executed.name else ""
    names = [f"{executed.source}/{method[:3]}_{name}{ending}" for name in _names(method, cell.source)]
    there = [name for name in names if (executed.run / "figures" / f"{name}.csv").is_file()]
    shown = sum(type_ in output.get("data", {}) for output in cell.outputs)
    below = f"{SWEEP}/" if executed.sweep else ""
    return iter([f"{below}{name}" for name in there] if len(there) == shown else [""] * shown)


def _names(method: str, source: str) -> list[str]:
    """The second arguments of a cell's calls of `outputs.<method>`, in their order, as far as they are literals."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:  # of a reader's own notebook: a shell line, say
        return []
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == f"outputs.{method}"]
    calls = sorted((call for call in calls if len(call.args) > 1), key=lambda call: (call.lineno, call.col_offset))
    return [call.args[1].value for call in calls if isinstance(call.args[1], ast.Constant)]


def _figure(file: str, png: str, executed: Executed, section: str) -> Output:
    svg = markup.inert_svg(executed.saved(f"{file}.svg")) if file else ""
    if not svg:  # not saved, or no picture alone: the one in the notebook does as well
        return Output("picture", alt=section, png=png.replace("\n", ""))
    titles = "; ".join(map(unescape, TITLE.findall(svg)))
    points = SIZE.search(svg)
    width, height = (round(float(point) * 4 / 3) for point in (points.groups() if points else (0, 0)))
    return Output("figure", file=file, alt=". ".join(filter(None, [section, titles])), width=width, height=height)
