"""The notebooks: their anatomy (every source), and that plain papermill runs them from anywhere."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from nblib import paths

SOURCES = sorted(paths.NOTEBOOKS.glob("*.ipynb"))


@pytest.fixture(params=SOURCES, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def parameters(notebook):
    return [cell for cell in code(notebook) if "parameters" in cell.metadata.get("tags", [])]


def test_a_source_has_no_outputs_and_the_environments_own_kernel(notebook):
    assert not any(cell.outputs or cell.execution_count for cell in code(notebook))
    assert (notebook.metadata.kernelspec.name, notebook.metadata.kernelspec.language) == ("python3", "python")


def test_it_opens_with_question_inputs_outputs_and_cost(notebook):
    first = notebook.cells[0].source
    assert first.startswith("# ")
    assert all(f"**{word}.**" in first for word in ("Question", "Inputs", "Outputs", "Cost"))


def test_its_one_parameters_cell_has_typed_commented_literals(notebook):
    (cell,) = parameters(notebook)
    assert "check_parameters(globals())\nplotting.use_style()" in code(notebook)[code(notebook).index(cell) + 1].source
    lines = cell.source.splitlines()
    for statement in ast.parse(cell.source).body:
        assert isinstance(statement, ast.AnnAssign), ast.unparse(statement)
        ast.literal_eval(statement.value)
        assert "#" in "".join(lines[statement.lineno - 1 : statement.end_lineno]), (
            f"no comment: {ast.unparse(statement)}"
        )


def test_its_links_lead_to_its_neighbours_and_to_its_executed_copy(notebook, request):
    links = re.findall(r"\]\(([^)]+)\)", notebook.cells[0].source.split("**Question.**")[0])
    stem = request.node.callspec.params["notebook"].stem
    place = [file.stem for file in SOURCES].index(stem)
    neighbours = [file.name for file in (SOURCES[place - 1 : place] if place else []) + SOURCES[place + 1 : place + 2]]
    *sources, executed = links
    assert sorted(sources) == sorted([*neighbours, "README.md"])
    assert re.fullmatch(rf"\.\./figures/official/notebooks/{stem}(/[\w.-]+)?\.ipynb", executed)
    assert (paths.NOTEBOOKS / executed).is_file()


def test_it_says_how_to_get_the_kernel_before_it_imports_anything_else(notebook):
    first, second = code(notebook)[:2]
    assert "nblib" in second.source
    known = first.source.replace('"nblib"', '"json"')
    exec(known, {})
    with pytest.raises(SystemExit, match="make lab"):
        exec(first.source.replace('"nblib"', '"no_such_package"'), {})


def test_its_lines_of_code_fit_a_browser(notebook):
    assert [line for cell in code(notebook) for line in cell.source.splitlines() if len(line) > 100] == []


def test_it_is_short_and_has_no_logic_of_its_own(notebook):
    cells = code(notebook)
    assert len(cells) <= 30
    logic = [cell for cell in cells if cell not in parameters(notebook)]  # of parameters there are as many as it takes
    lines = {cell.id: len(cell.source.splitlines()) - 5 * ("plt.subplots" in cell.source) for cell in logic}
    assert not {name: number for name, number in lines.items() if number > 15}  # a figure is drawn where it is shown
    whole = "\n".join(cell.source for cell in cells)
    assert not [node for node in ast.walk(ast.parse(whole)) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    assert "filterwarnings" not in whole


def test_it_ends_with_findings_and_what_to_try(notebook):
    headings = [
        line
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("## ")
    ]
    assert headings[-2:] == ["## Findings", "## Try this"]


def test_what_to_try_are_three_values_that_its_parameters_take(notebook):
    (cell,) = parameters(notebook)
    statements = ast.parse(cell.source).body
    defaults = {statement.target.id: ast.literal_eval(statement.value) for statement in statements}
    bullets = re.findall(r"^- (.+)$", notebook.cells[-1].source, re.MULTILINE)
    variations = [re.match(r"`(\w+) = ([^`]+)`", bullet) for bullet in bullets]
    assert len(variations) == 3 and all(variations), bullets
    for name, value in (variation.groups() for variation in variations):
        assert name in defaults, name
        assert type(ast.literal_eval(value)) is type(defaults[name]), (name, value)
        assert ast.literal_eval(value) != defaults[name], name


@pytest.mark.notebooks
def test_plain_papermill_runs_a_notebook_from_another_directory(tmp_path):
    out = tmp_path / "out.ipynb"
    run = subprocess.run(
        [sys.executable, "-m", "papermill", "--no-progress-bar", str(paths.NOTEBOOKS / "02_synthesis.ipynb"), str(out),
         "-p", "size", "20", "-p", "run_dir", str(tmp_path / "run")],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    assert (tmp_path / "run" / "synthesis" / "variants.parquet").exists()
    assert not Path(tmp_path / "runs").exists()
