"""Recording: whatever is recorded is equal to the run, and what differs is said."""

import re
from html import unescape

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from support.language import ngrams

from nblib import corpora, paths
from nblib.analysis import contamination, gsm8k
from nblib.errors import StudyError
from nblib.workflow import archive, cli, record


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a finished run and a record."""
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    for folder, files in {
        "runs/toy/figures": {"scoreboard.csv": "s", "same.csv": "1", "changed.csv": "new", "sub/fig.svg": "<svg/>"},
        "figures/toy": {"same.csv": "1", "changed.csv": "old", "gone.csv": "x"},
    }.items():
        for name, text in files.items():
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).write_text(text)


def tree(folder):
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


FOUND = {"new": ["scoreboard.csv", "sub/fig.svg"], "changed": ["changed.csv"], "gone": ["gone.csv"]}


@pytest.mark.parametrize(
    ("name", "one", "other", "same"),
    [
        ("x.csv", "a,0.1234\n", "a,0.1235\n", True),  # one unit of the last digit
        ("x.csv", "a,0.1234\n", "a,0.1237\n", False),
        ("x.csv", "12.3 ± 0.4", "12.3 ± 0.4 (n)", False),
        ("x.csv", "all-MiniLM-L6-v2,1", "all-MiniLM-L6-v3,1", False),  # a name's digits are no number
        ("x.csv", "812345.1", "812399.9", True),  # less than a five-thousandth
        ("x.csv", "1e-05", "3e-05", False),
        ("x.csv", "1 of 3, 1 against", "2 of 3, 0 against", False),  # no rounding changes a count
        ("x.svg", "M 10.24 3.1", "M 10.61 3.0", True),  # half a point
        ("x.svg", "M 10.24 3.1", "M 11.24 3.1", False),
        ("x.svg", "<text>r = 82.0</text>", "<text>r = 82.1</text>", True),  # a label's number as a table's
        ("x.svg", "<text>r = 82.0</text>", "<text>r = 82.4</text>", False),
        ("x.svg", '<use href="#m8a560a4cb5"/>', '<use href="#m15978608a3"/>', True),  # a shape's name
        ("x.csv", "mine," + "a1" * 32, "mine," + "b2" * 32, True),  # weights trained on another processor
        ("x.xz", "1.0001", "1.0002", False),
    ],
)
def test_files_that_differ_by_rounding_alone_agree(tmp_path, name, one, other, same):
    for folder, text in {"made": one, "kept": other}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    assert record.agree(tmp_path / "made" / name, tmp_path / "kept" / name) == same
    assert record.agree(tmp_path / "made" / name, tmp_path / "made" / name)


def test_a_recorded_run_is_equal_to_the_figures_of_record_and_what_changed_is_listed(project, tmp_path, capsys):
    execute(tmp_path / "runs/toy/notebooks/01_diagnosis.ipynb", "unknown")  # of other scales none is recorded
    cli.main(["record", "toy"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == [f"{what}: {name}" for what, names in FOUND.items() for name in names]
    assert lines[-1] == "figures/toy has what differs of runs/toy beyond rounding."
    made = tree(tmp_path / "runs/toy/figures")
    assert tree(tmp_path / "figures/toy") == {name: made[name] for name in made if not name.endswith(".json")}
    assert record.record("toy") == {"new": [], "changed": [], "gone": []}


def execute(file, state):
    """An executed notebook that names a code state at its head."""
    said = new_output("stream", name="stdout", text=f"scale toy · commit {state} · torch 2.13 on CPU\n")
    about = {"papermill": {"parameters": {}, "end_time": "2026"}}
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=[new_code_cell("x", outputs=[said])], metadata=about), file)


@pytest.fixture
def with_notebooks(project, tmp_path, monkeypatch):
    """A scale whose executed notebooks and predictions are recorded."""
    monkeypatch.setattr(record, "WITH_NOTEBOOKS", {"toy"})
    monkeypatch.setattr(record.documents, "update", lambda made_from: [])
    for name in archive.COMPARING:
        execute(tmp_path / f"runs/toy/notebooks/{name}.ipynb", "abc123")


def test_executed_notebooks_and_predictions_are_recorded_below_the_figures(with_notebooks, tmp_path):
    notebook, by_model = "notebooks/09_nevir_architectures.ipynb", "notebooks/sub/tiny.ipynb"
    execute(tmp_path / "runs/toy" / by_model, "abc123")
    execute(tmp_path / "runs/toy/notebooks/sub/failed.partial.ipynb", "def456")
    new = set(record.record("toy")["new"])
    assert {notebook, by_model, "predictions.tar.xz"} <= new
    assert "sub/fig.svg" not in new, "the executed copies of a notebook that runs for each model show its figures"
    execute(tmp_path / "runs/toy" / notebook, "abc123 ")
    assert record.record("toy")["changed"] == [notebook]
    assert record.record("toy") == {"new": [], "changed": [], "gone": [], "texts": []}


@pytest.mark.parametrize("state", ["abc123+changes", "aaa111", "def456", "unknown"])
def test_notebooks_of_uncommitted_code_or_of_two_commits_are_refused(with_notebooks, tmp_path, state):
    execute(tmp_path / "runs/toy/notebooks/07_encoder_benchmarks/tiny.ipynb", state)
    before = tree(tmp_path / "figures")
    with pytest.raises(StudyError, match=r"1 notebooks, first notebooks/07_encoder_benchmarks/tiny\.ipynb"):
        record.record("toy")
    assert tree(tmp_path / "figures") == before


def test_an_unfinished_run_or_unknown_scale_is_refused(project, tmp_path):
    with pytest.raises(StudyError, match=r"No finished run in .*runs/nowhere"):
        record.record("nowhere")


def test_the_notebooks_of_record_show_figures_to_everybody_and_have_no_dead_link():
    found = (paths.FIGURES / "official" / "notebooks").rglob("*.ipynb")
    for name, text in {file.name: file.read_text(encoding="utf-8") for file in found}.items():
        assert text.count('"image/png"') == text.count('"image/svg+xml"'), f"{name}: GitHub shows no SVG"
        assert re.findall(r"\]\([^):]*\.(?:ipynb|md)\b", text) == [], name


@pytest.fixture(scope="module")
def shown():
    """What each executed notebook of record shows as its runs of eight words, without what the papers print: Cao's example (an
    STSB pair) and the solutions in Truong's Table 5, which repeat words of their problems."""
    examples = ["Polar bear study may boost fight against obesity", *gsm8k.paper_types().example]
    printed = {run for example in examples for run in ngrams(contamination.words(example), 8)}
    folder = paths.FIGURES / "official" / "notebooks"
    found = sorted(folder.rglob("*.ipynb"))
    assert len(found) > 10
    texts = {str(file.relative_to(folder)): text_of(nbformat.read(file, 4)) for file in found}
    return {name: ngrams(contamination.words(text), 8) - printed for name, text in texts.items()}


def text_of(notebook):
    """The text of a notebook's outputs, without marks."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = [output.get("text", "") for output in outputs]
    texts += ["".join(text) for output in outputs for kind, text in output.get("data", {}).items() if "text" in kind]
    return unescape(re.sub("<[^>]+>", " ", " | ".join(texts)))


@pytest.mark.official
@pytest.mark.parametrize("benchmark", [name for name, entry in corpora.entries().items() if entry.official])
def test_the_notebooks_of_record_quote_no_official_text(shown, benchmark):
    texts, runs_shown = contamination.fields(benchmark).text.map(contamination.words), set().union(*shown.values())
    quoted = {run for text in texts for run in ngrams(text, 8) & runs_shown}
    quoted = {run for run in quoted if re.search("[a-z]", str(run))}  # numbers alone are nobody's
    assert {name: runs & quoted for name, runs in shown.items() if runs & quoted} == {}
