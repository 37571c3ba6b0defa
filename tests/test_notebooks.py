"""The notebooks: their anatomy (every source), and that plain papermill runs them from anywhere."""

import ast
import os
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
    for line in cell.source.splitlines():
        statement = ast.parse(line).body[0]
        assert isinstance(statement, ast.AnnAssign), line
        ast.literal_eval(statement.value)
        assert "#" in line, f"no comment: {line}"


def test_it_is_short_and_has_no_logic_of_its_own(notebook):
    cells = code(notebook)
    assert len(cells) <= 30
    logic = [cell for cell in cells if cell not in parameters(notebook)]  # of parameters there are as many as it takes
    long = [cell.source for cell in logic if sum(bool(line.strip()) for line in cell.source.splitlines()) > 15]
    assert not long, long
    whole = "\n".join(cell.source for cell in cells)
    assert not [node for node in ast.walk(ast.parse(whole)) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    assert "filterwarnings" not in whole


def test_it_ends_with_findings_and_a_check_of_its_outputs(notebook):
    assert any(cell.source.startswith("## Findings") for cell in notebook.cells)
    assert code(notebook)[-1].source.splitlines()[-1].startswith("assert ")


@pytest.mark.notebooks
def test_plain_papermill_runs_a_notebook_from_another_directory(tmp_path):
    out = tmp_path / "out.ipynb"
    run = subprocess.run(
        [sys.executable, "-m", "papermill", "--no-progress-bar", str(paths.NOTEBOOKS / "06_negation_adapter.ipynb"), str(out),
         "-p", "encoder", "all-MiniLM-L6-v2", "-p", "repeats", "2", "-p", "run_dir", str(tmp_path / "run")],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    assert (tmp_path / "run" / "adapters" / "all-MiniLM-L6-v2.safetensors").exists()
    assert not Path(tmp_path / "runs").exists()
