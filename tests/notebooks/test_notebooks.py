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


def test_there_are_notebooks():
    assert SOURCES


def test_a_source_has_no_outputs_and_the_environments_own_kernel(notebook):
    assert not any(cell.outputs or cell.execution_count for cell in code(notebook))
    assert (notebook.metadata.kernelspec.name, notebook.metadata.kernelspec.language) == ("python3", "python")


def test_it_opens_with_question_inputs_outputs_and_cost(notebook):
    first = notebook.cells[0].source
    assert first.startswith("# ")
    assert all(f"**{word}.**" in first for word in ("Question", "Inputs", "Outputs", "Cost"))


def test_its_one_parameters_cell_has_typed_commented_literals(notebook):
    (cell,) = parameters(notebook)
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
    long = {cell.id: lines for cell in logic if (lines := len(cell.source.splitlines())) > 15}
    assert not long
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


MUTATING = {"append", "extend", "insert", "update", "pop", "remove", "clear", "setdefault"}


class Repeatability(ast.NodeVisitor):
    """Follows a cell in the order it runs; `changed` are the names that it reads before it assigns them, and then changes."""

    def __init__(self):
        self.assigned, self.read, self.changed = set(), set(), set()

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.read |= {node.id} - self.assigned
        else:
            self.changed |= {node.id} & self.read
            self.assigned.add(node.id)

    def visit_Assign(self, node):
        for part in (node.value, *node.targets):
            self.visit(part)

    def visit_AugAssign(self, node):
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self.changed |= {node.target.id} - self.assigned

    def visit_For(self, node):
        for part in (node.iter, node.target, *node.body):
            self.visit(part)

    def visit_Call(self, node):
        self.generic_visit(node)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in MUTATING
            and isinstance(node.func.value, ast.Name)
        ):
            self.changed |= {node.func.value.id} - self.assigned

    def visit_ListComp(self, node):
        before = set(self.assigned), set(self.read)
        inner = Repeatability()
        for generator in node.generators:
            inner.visit(generator.iter)
            inner.visit(generator.target)
            for condition in generator.ifs:
                inner.visit(condition)
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                inner.visit(getattr(node, part))
        self.assigned, self.read = before[0], before[1] | (inner.read - before[0])

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Lambda(self, node):
        inner = Repeatability()
        inner.assigned = {argument.arg for argument in node.args.args}
        inner.visit(node.body)
        self.read |= inner.read - self.assigned


def changed_from_their_own_value(source):
    """Names with which a cell, run twice, would give something else the second time."""
    cell = Repeatability()
    cell.visit(ast.parse(source))
    return cell.changed


def test_the_check_of_cells_finds_what_is_not_repeatable():
    for source in (
        "rows += more",
        "rows = rows + more",
        "use(x)\nx = 1",
        "rows.append(1)",
        "for x in y:\n    rows += [x]",
    ):
        assert changed_from_their_own_value(source), source
    for source in (
        "rows = []\nrows += more",
        "rows = [x for x in rows_before]",
        "x = 1\nx = x + 1",
        "for x in y:\n    use(x)",
    ):
        assert not changed_from_their_own_value(source), source


def test_a_cell_gives_the_same_when_it_is_run_twice(notebook):
    found = {cell.id: names for cell in code(notebook) if (names := changed_from_their_own_value(cell.source))}
    assert not found


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
