"""Headless execution: strict about what goes in, and a failing cell fails the run with the copy kept."""

import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nblib import paths
from nblib.errors import StudyError
from nblib.workflow import cli, run_notebook

PARAMETERS = 'count: int = 2  # how many\nshare: float = 0.5\nname: str = "x"\nfail: bool = False\nsizes: list = [1]\n'
BODY = 'import os\nif fail: raise ValueError("no <luck> today")\nprint("ran in", os.getcwd(), count * 2, share)'


@pytest.fixture
def notebook(tmp_path):
    """A tiny notebook with a parameters cell, which fails if it is told to."""
    cells = [
        new_markdown_cell("# Toy\n\n[← 01](01.ipynb) · [all notebooks](README.md)\n\n**Question.**"),
        new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
        new_code_cell(BODY),
        new_code_cell('print("after")'),
    ]
    kernel = {"name": "somebody", "display_name": "somebody's own", "language": "python"}
    file = tmp_path / "toy.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), file)
    return file


def run_command(*arguments, cwd):
    command = [sys.executable, "-m", "nblib.workflow.cli", "run", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def text_of(executed):
    outputs = [output for cell in nbformat.read(executed, 4).cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs)


def test_a_notebook_runs_with_its_parameters_from_any_working_directory(notebook, tmp_path):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    output = tmp_path / "run" / "out.ipynb"
    done = run_command(notebook, output, "-y", "{count: 3, share: 1}", "-p", "count", 4, cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    assert text_of(output) == f"ran in {paths.PROJECT_ROOT} 8 1\nafter\n"
    assert nbformat.read(output, 4).cells[0].source == "# Toy\n\n**Question.**", "links lead nowhere from there"
    assert list(elsewhere.iterdir()) == []
    assert text_of(notebook) == "", "the source stays as it was"


def test_a_failing_cell_leaves_the_executed_copy_and_a_non_zero_exit_with_the_message(notebook, tmp_path):
    output = tmp_path / "run" / "out.ipynb"
    done = run_command(notebook, output, "-p", "fail", "true", cwd=tmp_path)
    assert done.returncode == 2 and "error: toy, cell [" in done.stderr
    assert "ValueError: no <luck> today" in done.stderr
    assert not output.exists(), "what has the notebook's name came to its end"
    output = output.with_name("out.partial.ipynb")
    assert str(output) in done.stderr and "\x1b[" not in done.stderr.split("Traceback")[-1]
    assert done.stderr.rstrip().splitlines()[-1].startswith("error: toy, cell [")
    errors = [o for cell in nbformat.read(output, 4).cells for o in cell.get("outputs", []) if o.output_type == "error"]
    assert [error.evalue for error in errors] == ["no <luck> today"] and "after" not in text_of(output)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cuont": 1}, "toy has no parameter 'cuont'. It has: count, share, name, fail, sizes"),
        ({"count": "1"}, "count must be a int and is '1'. .* -y '{\"count\": 2}'"),
        ({"count": True}, "count must be a int"),
        ({"share": 10**400}, "share must be a float"),
        ({"sizes": "[1]"}, "sizes must be a list"),
        ({"sizes": ["1"]}, "sizes must be a list of int"),
        ({"name": False}, 'name must be a str and is False. .* -y \'{"name": "x"}\''),
    ],
)
def test_an_unknown_parameter_or_one_of_another_type_is_refused_before_anything_runs(
    notebook, tmp_path, given, message
):
    with pytest.raises(StudyError, match=message):
        run_notebook.execute(str(notebook), tmp_path / "run" / "out.ipynb", given)
    assert not (tmp_path / "run").exists()


def test_parameters_that_fit_are_accepted(notebook):
    given = {"count": 3, "share": 1, "name": "y", "fail": True, "sizes": [2, 3]}
    assert run_notebook.check_parameters(notebook, given) == given
    assert run_notebook.check_parameters(notebook, {"count": 3})["share"] == 0.5


TYPED = ["no", "007", "2024-06-01", "1e5", "null", "", "[a", "a: b", "x # y", "don't"]


@pytest.mark.parametrize(("typed", "text"), [*zip(TYPED, TYPED, strict=True), ('"no"', "no"), ("'1e5'", "1e5")])
def test_a_text_is_taken_as_it_is_typed(notebook, typed, text):
    read = run_notebook.read_parameters(notebook, [], [["name", typed], ["sizes", "[1, 2]"]])
    assert read == {"name": text, "sizes": [1, 2]}
    assert run_notebook.check_parameters(notebook, read)["name"] == text


def test_a_command_lines_parameters_are_yaml_and_single_ones_win(notebook):
    pairs = [["a", "2"], ["c=true"], ["d", "x=y"], ["f", "-1E3"]]
    read = run_notebook.read_parameters(notebook, ["{a: 1, b: [x, 2], e: 0}", "{e: 2e-05}", ""], pairs)
    assert read == {"a": 2, "b": ["x", 2], "c": True, "d": "x=y", "e": 2e-5, "f": -1000.0}
    assert run_notebook.read_parameters(notebook, [], []) == {}
    for mapping, pairs in [("{a: [", []), ("[1, 2]", []), ("", [["seed"]]), ("", [["a", "1", "2"]])]:
        with pytest.raises(StudyError, match="Not YAML, no mapping"):
            run_notebook.read_parameters(notebook, [mapping], pairs)


@pytest.mark.parametrize("name", ["0", "nothing.ipynb", ""])
def test_an_unknown_notebook_lists_the_known_ones(name, tmp_path):
    with pytest.raises(StudyError, match=r"names \d+ notebooks. There are: 01_diagnosis, "):
        run_notebook.execute(name, tmp_path / "out.ipynb", {})


@pytest.mark.parametrize("name", ["06", "06_negation_adapter.ipynb"])
def test_a_notebook_is_found_by_number_and_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_notebook.find_notebook(name) == paths.NOTEBOOKS / "06_negation_adapter.ipynb"


def test_an_output_among_the_sources_is_refused(notebook):
    before = notebook.read_bytes()
    for output in (paths.NOTEBOOKS / "x" / "y.ipynb", notebook):
        with pytest.raises(StudyError, match="would overwrite a source"):
            run_notebook.execute(str(notebook), output, {})
    assert notebook.read_bytes() == before


def test_a_notebook_whose_process_dies_is_one_sentence(notebook, tmp_path, capsys):
    nb = nbformat.read(notebook, 4)
    nb.cells[2].source = "import os; os.kill(os.getpid(), 9)"
    nbformat.write(nb, notebook)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["run", str(notebook), str(tmp_path / "out.ipynb")])
    assert "error: toy: its process died, probably for want of memory." in capsys.readouterr().err


def test_a_file_that_is_no_notebook_is_one_sentence(tmp_path):
    file = tmp_path / "x.ipynb"
    for content in ["", '{"cells": 1}']:
        file.write_text(content)
        with pytest.raises(StudyError, match=r"x\.ipynb"):
            run_notebook.execute(str(file), tmp_path / "out.ipynb", {"a": 1})
