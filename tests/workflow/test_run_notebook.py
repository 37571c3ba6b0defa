"""Headless execution: strict about what goes in, and a failing cell fails the run with the copy kept."""

import json
import math
import subprocess
import sys

import nbformat
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nblib import paths
from nblib.workflow import cli, run_notebook
from nblib.workflow.run_notebook import ExecutionError

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
    command = [sys.executable, "-m", "nblib.workflow.cli", "run", *map(str, arguments)]
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
    assert done.returncode == 2
    assert "error: toy, cell [" in done.stderr
    assert "ValueError: no <luck> today" in done.stderr
    assert not output.exists(), "what has the notebook's name came to its end"
    output = output.with_name("out.partial.ipynb")
    assert str(output) in done.stderr
    assert "\x1b[" not in done.stderr.split("Traceback")[-1]
    assert done.stderr.rstrip().splitlines()[-1].startswith("error: toy, cell [")
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
        ({"share": 10**400}, "share is a float"),
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
        run_notebook.execute(str(notebook), tmp_path / "run" / "out.ipynb", given)
    assert not (tmp_path / "run").exists()


def test_parameters_that_fit_are_accepted(notebook):
    given = {"count": 3, "share": 1, "name": "y", "fail": True, "sizes": [2, 3]}
    assert run_notebook.check_parameters(notebook, given) == given
    assert run_notebook.check_parameters(notebook, {"count": 3})["share"] == 0.5


def test_a_command_lines_parameters_are_yaml_and_single_ones_win():
    read = run_notebook.read_parameters("{a: 1, b: [x, 2]}", [["a", "2"], ["c=true"], ["d", "x=y"]])
    assert read == {"a": 2, "b": ["x", 2], "c": True, "d": "x=y"}
    assert run_notebook.read_parameters("", []) == {}


@pytest.mark.parametrize(
    ("text", "value"), [("2e-05", 2e-5), ("1E3", 1000.0), ("-2.5e+1", -25.0), ("e5", "e5"), ("2e-x", "2e-x")]
)
def test_a_number_with_an_exponent_is_a_number_as_in_json(text, value):
    assert run_notebook.read_parameters(f"{{rate: {text}}}", [["own", text]]) == {"rate": value, "own": value}


def test_what_the_workflow_writes_is_read_back():
    parameters = {"rate": 4e-05, "tiny": 1e-12, "count": 3, "names": ["x", "1e5x"], "on": True}
    assert run_notebook.read_parameters(json.dumps(parameters), []) == parameters


@pytest.mark.parametrize(
    ("mapping", "pairs"), [("{a: [", []), ("just text", []), ("[1, 2]", []), ("{}", [["a", "{b: ["]])]
)
def test_parameters_that_are_no_yaml_mapping_are_refused(mapping, pairs):
    with pytest.raises(ExecutionError, match=r"A parameter is not YAML|-y needs a mapping"):
        run_notebook.read_parameters(mapping, pairs)


@pytest.mark.parametrize("pair", [["seed"], ["seed", "1", "2"]])
def test_a_parameter_without_one_value_is_refused(pair):
    with pytest.raises(ExecutionError, match="-p takes a name and a value, as in -p seed 1 or -p seed=1"):
        run_notebook.read_parameters("{}", [pair])


@pytest.mark.parametrize("name", ["99", "0", "nothing.ipynb", ""])
def test_an_unknown_notebook_lists_the_known_ones(name, tmp_path):
    with pytest.raises(ExecutionError, match=r"names \d+ notebooks. There are: 01_diagnosis, "):
        run_notebook.execute(name, tmp_path / "out.ipynb", {})


@pytest.mark.parametrize("name", ["06", "06_negation_adapter", "06_negation_adapter.ipynb"])
def test_a_notebook_is_found_by_number_and_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_notebook.find_notebook(name) == paths.NOTEBOOKS / "06_negation_adapter.ipynb"


@pytest.mark.parametrize(
    "output", ["notebooks/06_negation_adapter.ipynb", "notebooks/new.ipynb", "notebooks/x/y.ipynb"]
)
def test_an_output_among_the_sources_is_refused(notebook, output):
    with pytest.raises(ExecutionError, match="would overwrite a source"):
        run_notebook.execute(str(notebook), output, {})
    assert not (paths.NOTEBOOKS / "new.ipynb").exists()


def test_a_notebook_is_not_executed_over_itself(notebook):
    before = notebook.read_bytes()
    with pytest.raises(ExecutionError, match="would overwrite a source"):
        run_notebook.execute(str(notebook), notebook, {})
    assert notebook.read_bytes() == before


def test_an_unwritable_output_ends_with_a_message_that_names_it(notebook, tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="2"):
        cli.main(["run", str(notebook), str(tmp_path / "file" / "run" / "out.ipynb")])
    assert f"error: The folder {tmp_path}/file/run can't be made" in capsys.readouterr().err


# --- whatever is typed: a value or one sentence --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["{a: 2001-99-99}", "{a: !!timestamp x}", "{a: !!python/object:os.system x}", "[" * 5000, "\x00"]
)
def test_yaml_that_is_no_value_is_one_sentence(text):
    with pytest.raises(ExecutionError, match=r"^A parameter is not YAML: .*\Z"):  # in which a dot is no line end
        run_notebook.read_parameters(text, [])


YAML = [
    "{", "}", "[", "]", "-", "?", "!!", "!!int", "!!binary", "!!set", "&a", "*a", "<<:", "|", ">", "2001-99-99",
    "1:99", "0o9", ".inf", "seed", "%YAML", "---", "\"", "'", "#", ": ", " ", "\n", "\t", "\ud800",
]  # fmt: skip


@settings(max_examples=300)
@given(text=st.lists(st.sampled_from(YAML) | st.text(max_size=3), max_size=10).map("".join))
def test_any_text_is_parameters_or_one_sentence(text):
    for arguments in [(text, []), ("{}", [[text]]), ("{}", [["seed", text]])]:
        try:
            assert isinstance(run_notebook.read_parameters(*arguments), dict)
        except ExecutionError as error:
            assert str(error)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2), max_leaves=4,
)  # fmt: skip
SOURCES = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
DECLARED = {source: run_notebook.check_parameters(source, {}) for source in SOURCES}
CONFIGURED = [
    (scale, number, section["common"])
    for scale in ("quick", "official", "paper")
    for number, section in yaml.safe_load((paths.CONFIG / f"{scale}.yaml").read_text()).items()
    if isinstance(section, dict) and "common" in section
]


@pytest.mark.parametrize(
    ("scale", "number", "given"), CONFIGURED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_a_scale_says_of_a_notebook_are_its_parameters(scale, number, given):
    run_notebook.check_parameters(run_notebook.find_notebook(number), given)


@settings(max_examples=150)
@given(source=st.sampled_from(SOURCES), data=st.data(), value=VALUES)
def test_a_parameter_of_the_study_has_its_defaults_type_and_is_not_negative_or_is_refused(source, data, value):
    name = data.draw(st.sampled_from(sorted(DECLARED[source])) | st.text(max_size=5))
    try:
        taken = run_notebook.check_parameters(source, {name: value})[name]
    except ExecutionError:
        return
    default = DECLARED[source][name]
    assert isinstance(taken, int | float if isinstance(default, float) else type(default))
    for number in taken if isinstance(taken, list) else [taken]:
        assert (
            not isinstance(number, int | float) or isinstance(default, list) or (number >= 0 and math.isfinite(number))
        )


@settings(max_examples=100)
@given(
    name=st.text(max_size=6)
    | st.sampled_from(["06*", "*", "0?", "[0]", "..", "/", "~", "x" * 5000, "\x00", "06_neg\n"])
)
def test_any_name_of_a_notebook_finds_one_or_is_one_sentence(name):
    try:
        assert run_notebook.find_notebook(name).suffix == ".ipynb"
    except ExecutionError as error:
        assert len(str(error)) < 2000


def test_a_notebook_whose_process_dies_is_one_sentence(notebook, tmp_path, capsys):
    nb = nbformat.read(notebook, 4)
    nb.cells[2].source = "import os; os.kill(os.getpid(), 9)"
    nbformat.write(nb, notebook)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["run", str(notebook), str(tmp_path / "out.ipynb")])
    assert "error: toy: its process died, probably for want of memory." in capsys.readouterr().err


def test_an_error_that_the_user_can_mend_is_said_once(notebook, tmp_path, capsys):
    nb = nbformat.read(notebook, 4)
    nb.cells[2].source = "from nblib import corpora\ncorpora.load('none')"
    nbformat.write(nb, notebook)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["run", str(notebook), str(tmp_path / "out.ipynb")])
    said = [line for line in capsys.readouterr().err.splitlines() if "orpus" in line]
    assert len(said) == 1
    assert said[0].startswith("error: toy, cell [2]: CorpusError: No corpus called 'none'.")
    assert "Traceback" not in (tmp_path / "out.partial.ipynb").read_text()


def test_a_file_that_is_no_notebook_is_one_sentence(tmp_path):
    file = tmp_path / "x.ipynb"
    for content in ["", "{", '{"cells": 1}', "\x00"]:
        file.write_text(content)
        with pytest.raises(ExecutionError, match=r"x\.ipynb"):
            run_notebook.execute(str(file), tmp_path / "out.ipynb", {"a": 1})
