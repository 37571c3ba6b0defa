"""Headless execution: strict about what goes in, and a failing cell fails the run with the copy kept."""

import json
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nblib import execution, paths
from nblib.execution import ExecutionError

PARAMETERS = 'count: int = 2  # how many\nshare: float = 0.5\nname: str = "x"\nfail: bool = False\nsizes: list = [1]\n'
BODY = 'import os\nif fail: raise ValueError("no <luck> today")\nprint("ran in", os.getcwd(), count * 2, share)'


@pytest.fixture
def notebook(tmp_path):
    """A tiny notebook with a parameters cell, which fails if it is told to."""
    cells = [
        new_markdown_cell("# Toy"),
        new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
        new_code_cell(BODY),
        new_code_cell('print("after")'),
    ]
    kernel = {"name": "somebody", "display_name": "somebody's own", "language": "python"}
    file = tmp_path / "toy.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), file)
    return file


def run_command(*arguments, cwd):
    command = [sys.executable, "-m", "nblib.execution", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def text_of(executed):
    outputs = [output for cell in nbformat.read(executed, 4).cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs)


def test_a_notebook_runs_with_its_parameters_from_any_working_directory(notebook, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    output = tmp_path / "run" / "out.ipynb"
    done = run_command(notebook, output, "-y", "{count: 3, share: 1}", "-p", "count", 4, cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    assert text_of(output) == f"ran in {paths.PROJECT_ROOT} 8 1\nafter\n"
    assert list(elsewhere.iterdir()) == []
    assert text_of(notebook) == "", "the source stays as it was"


def test_a_failing_cell_leaves_the_executed_copy_and_a_non_zero_exit_with_the_message(notebook, tmp_path):
    output = tmp_path / "run" / "out.ipynb"
    done = run_command(notebook, output, "-p", "fail", "true", cwd=tmp_path)
    assert done.returncode == 1
    assert "error: toy, cell [" in done.stderr
    assert "ValueError: no <luck> today" in done.stderr
    assert str(output) in done.stderr
    assert "\x1b[" not in done.stderr.split("Traceback")[-1]
    errors = [o for cell in nbformat.read(output, 4).cells for o in cell.get("outputs", []) if o.output_type == "error"]
    assert [error.evalue for error in errors] == ["no <luck> today"]
    assert "after" not in text_of(output)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cuont": 1}, "toy has no parameter 'cuont'. It has: count, share, name, fail, sizes"),
        ({"count": "1"}, "parameter count is a int .default 2., not '1'"),
        ({"count": 1.5}, "count is a int"),
        ({"count": True}, "count is a int"),
        ({"share": True}, "share is a float"),
        ({"name": 5}, "name is a str"),
        ({"fail": 0}, "fail is a bool"),
        ({"sizes": "[1]"}, "sizes is a list"),
        ({"count": None}, "count is a int"),
    ],
)
def test_an_unknown_parameter_or_one_of_another_type_is_refused_before_anything_runs(
    notebook, tmp_path, given, message
):
    with pytest.raises(ExecutionError, match=message):
        execution.execute(str(notebook), tmp_path / "run" / "out.ipynb", given)
    assert not (tmp_path / "run").exists()


def test_parameters_that_fit_are_accepted(notebook):
    execution.check_parameters(notebook, {"count": 3, "share": 1, "name": "y", "fail": True, "sizes": [2, 3]})


def test_a_command_lines_parameters_are_yaml_and_single_ones_win():
    read = execution.read_parameters("{a: 1, b: [x, 2]}", [["a", "2"], ["c", "true"], ["d", "text"]])
    assert read == {"a": 2, "b": ["x", 2], "c": True, "d": "text"}
    assert execution.read_parameters("", []) == {}


@pytest.mark.parametrize(
    ("text", "value"), [("2e-05", 2e-5), ("1E3", 1000.0), ("-2.5e+1", -25.0), ("e5", "e5"), ("2e-x", "2e-x")]
)
def test_a_number_with_an_exponent_is_a_number_as_in_json(text, value):
    assert execution.read_parameters(f"{{rate: {text}}}", [["own", text]]) == {"rate": value, "own": value}


def test_what_the_workflow_writes_is_read_back():
    parameters = {"rate": 4e-05, "tiny": 1e-12, "count": 3, "names": ["x", "1e5x"], "on": True}
    assert execution.read_parameters(json.dumps(parameters), []) == parameters


@pytest.mark.parametrize(
    ("mapping", "pairs"), [("{a: [", []), ("just text", []), ("[1, 2]", []), ("{}", [["a", "{b: ["]])]
)
def test_parameters_that_are_no_yaml_mapping_end_with_a_message(notebook, tmp_path, mapping, pairs):
    arguments = [item for name, value in pairs for item in ("-p", name, value)]
    with pytest.raises(SystemExit, match=r"error: (A parameter is not YAML|-y needs a mapping)"):
        execution.main([str(notebook), str(tmp_path / "out.ipynb"), "-y", mapping, *arguments])


@pytest.mark.parametrize("name", ["99", "0", "nothing.ipynb", ""])
def test_an_unknown_notebook_lists_the_known_ones(name, tmp_path):
    with pytest.raises(ExecutionError, match=r"names \d+ notebooks. There are: 01_diagnosis, "):
        execution.execute(name, tmp_path / "out.ipynb", {})


@pytest.mark.parametrize("name", ["06", "06_negation_adapter", "06_negation_adapter.ipynb"])
def test_a_notebook_is_found_by_number_and_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert execution.find_notebook(name) == paths.NOTEBOOKS / "06_negation_adapter.ipynb"


@pytest.mark.parametrize(
    "output", ["notebooks/06_negation_adapter.ipynb", "notebooks/new.ipynb", "notebooks/x/y.ipynb"]
)
def test_an_output_among_the_sources_is_refused(notebook, output):
    with pytest.raises(ExecutionError, match="would overwrite a source"):
        execution.execute(str(notebook), output, {})
    assert not (paths.NOTEBOOKS / "new.ipynb").exists()


def test_a_notebook_is_not_executed_over_itself(notebook):
    before = notebook.read_bytes()
    with pytest.raises(ExecutionError, match="would overwrite a source"):
        execution.execute(str(notebook), notebook, {})
    assert notebook.read_bytes() == before


def test_an_unwritable_output_ends_with_a_message_that_names_it(notebook, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=rf"error: Can't write to {tmp_path}/file/run"):
        execution.main([str(notebook), str(tmp_path / "file" / "run" / "out.ipynb")])
