"""Hostile texts and pictures: whatever a data set, a model or a tampered file holds, the report shows it and runs nothing."""

import json

import nbformat
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from support.hostile_html import PIECES, active

from nblib import paths
from nblib.results.report import content, executed, markup

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join)


@pytest.mark.parametrize("gate", ["clean", "markdown", "inline", "code", "terminal", "breakable"])
@settings(max_examples=120)
@given(text=TEXTS)
@example(text="<table><tr>")
def test_no_text_comes_through_a_gate_as_anything_but_a_text(gate, text):
    assert list(active(str(getattr(markup, gate)(text)))) == []


@settings(max_examples=60)
@given(texts=st.lists(TEXTS, min_size=7, max_size=7))
def test_no_part_of_an_executed_notebook_becomes_active(tmp_path_factory, texts):
    source, heading, printed, table, found, error, plain = (f"{text}\ud800" for text in texts)
    outputs = [
        new_output("stream", name="stdout", text=printed), new_output("execute_result", data={"text/html": table}),
        new_output("display_data", data={"text/markdown": found}), new_output("display_data", data={"text/plain": plain}),
        new_output("error", ename=error, evalue=error, traceback=[error]),
    ]  # fmt: skip
    cells = [new_markdown_cell(f"# {heading}"), new_code_cell(source, outputs=outputs)]
    file = tmp_path_factory.getbasetemp() / "notebooks" / "01_toy.ipynb"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(new_notebook(cells=cells)))
    shown = executed.read(file, file.parents[1])
    for cell in content.cells(shown):
        parts = [cell.text, cell.code, *(output.html for output in cell.outputs), content.findings(shown)]
        assert [found for part in parts for found in active(str(part))] == []


# --- figures -----------------------------------------------------------------------------------------------------------

INERT = """<?xml version="1.0" encoding="utf-8"?>
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="72.5pt" height="36pt" xmlns="http://www.w3.org/2000/svg">
<defs><style type="text/css">*{stroke-linejoin: round}</style><clipPath id="c"><rect/></clipPath></defs>
<g clip-path="url(#c)"><use xlink:href="#m" style="fill: #262626"/><path d="M 1 2"/><text>p = javascript: 1</text></g>
<image xlink:href="data:image/png;base64,AAAA"/></svg>"""
HOSTILE = {
    "script": ("<path", "<script>c()</script><path"),
    "event": ("<path", '<path onload="c()"'),
    "link": ("<path", '<a xlink:href="https://elsewhere"><path/></a><path'),
    "page": ("<path", '<foreignObject><p xmlns="http://www.w3.org/1999/xhtml">x</p></foreignObject><path'),
    "html script": ("<path", '<s:script xmlns:s="http://www.w3.org/1999/xhtml">c()</s:script><path'),
    "animation": ("<path", '<set attributeName="href" to="javascript:c()"/><path'),
    "picture from elsewhere": ("data:image/png;base64,AAAA", "https://elsewhere/x.png"),
    "svg in a picture": ("data:image/png;base64,AAAA", "data:image/svg+xml;base64,AAAA"),
    "use from elsewhere": ('"#m"', '"https://elsewhere/x.svg#m"'),
    "style from elsewhere": ("*{", "@import 'https://elsewhere';*{"),
    "font from elsewhere": ("fill: #262626", "fill: url(https://elsewhere/x)"),
    "stylesheet": ("<svg", '<?xml-stylesheet href="https://elsewhere"?><svg'),
    "entity": ("<svg", '<!DOCTYPE svg [<!ENTITY e "x">]><svg'),
    "no XML": ("</svg>", ""),
}


def saved(folder, svg):
    """A run with one notebook and its one figure."""
    output = new_output("display_data", data={"image/png": PIXEL})
    cell = new_code_cell('outputs.figure(figure, "x", data)', outputs=[output], execution_count=1)
    (folder / "notebooks").mkdir(parents=True)
    nbformat.write(new_notebook(cells=[new_markdown_cell("# 01 Toy"), cell]), folder / "notebooks" / "01_toy.ipynb")
    (folder / "figures" / "01_toy").mkdir(parents=True)
    (folder / "figures" / "01_toy" / "fig_x.csv").touch()
    (folder / "figures" / "01_toy" / "fig_x.svg").write_bytes(svg)
    (shown,) = content.cells(executed.find(folder)[0])[-1].outputs
    return shown


def test_a_figure_that_is_a_picture_alone_is_copied(tmp_path):
    assert saved(tmp_path, INERT.encode()).kind == "figure"


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_figure_that_could_do_more_is_replaced_by_the_notebooks_picture(kind, tmp_path):
    before, after = HOSTILE[kind]
    assert INERT.count(before) == 1
    shown = saved(tmp_path, INERT.replace(before, after).encode())
    assert (shown.kind, shown.file, shown.png) == ("picture", "", PIXEL)


def test_a_figure_that_is_no_text_or_not_there_is_replaced_too(tmp_path):
    assert saved(tmp_path / "a", b"\xff\xfe\x00").kind == "picture"
    assert saved(tmp_path / "b", b"").kind == "picture"


def test_every_figure_of_record_is_a_picture_alone():
    figures = sorted(paths.FIGURES.rglob("*.svg"))
    assert figures
    assert [file for file in figures if not markup.inert_svg(file)] == []
