"""Recording: whatever is recorded is equal to the run, and what differs is said."""

import re
from html import unescape

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from nblib import artefacts, corpora, paths, results
from nblib.analysis import contamination
from nblib.analysis.gsm8k import errors
from nblib.workflow import archive, cli, record
from nblib.workflow.record import RecordError


def result(value, system="all-mpnet-base-v2"):
    return results.row(system, "SemAntoNeg", "accuracy", value, n=9, scale="toy", data="semantoneg test")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a finished run, and a function that sets the run's score."""
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    made, kept = tmp_path / "runs/toy/figures", tmp_path / "figures/toy"
    for folder, files in {
        made: {"scoreboard.csv": "s", "same.csv": "1", "changed.csv": "new", "sub/fig.svg": "<svg/>"},
        kept: {"same.csv": "1", "changed.csv": "old", "gone.csv": "x"},
    }.items():
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def finish(value):
        table = results.save([result(value)], "runs/toy/results/06.csv")
        results.save(table.to_dict("records"), made / "measurements.csv")
        results.scoreboard(table, "runs/toy", "toy").to_csv(made / "scoreboard.csv", index=False)

    return finish


def tree(folder):
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


FOUND = {"new": ["scoreboard.csv", "sub/fig.svg"], "changed": ["changed.csv"], "gone": ["gone.csv"]}


def test_differences_are_new_changed_and_gone(project, tmp_path):
    made = record.files(tmp_path / "runs/toy/figures")
    assert record.differences(made, record.files(tmp_path / "figures/toy")) == FOUND
    assert record.differences(made, record.files(tmp_path / "absent"))["new"] == sorted(made)


def test_files_of_the_same_size_and_time_are_compared_by_content(tmp_path):
    import os

    for name, text in {"a": "1", "b": "2"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").write_text(text)
        os.utime(tmp_path / name / "x.csv", (1, 1))
    assert record.differences(record.files(tmp_path / "a"), record.files(tmp_path / "b"))["changed"] == ["x.csv"]


def test_a_recorded_run_is_equal_to_the_figures_of_record(project, tmp_path):
    project(31.92)
    (tmp_path / "runs/toy/figures/fig.png").touch()  # of an older version: git keeps CSV and SVG alone
    assert record.record("toy") == FOUND | {"new": ["measurements.csv", *FOUND["new"]], "scores": []}
    (tmp_path / "runs/toy/figures/fig.png").unlink()
    made = tree(tmp_path / "runs/toy/figures")
    assert tree(tmp_path / "figures/toy") == {name: made[name] for name in made if not name.endswith(".json")}
    assert record.record("toy") == {"new": [], "changed": [], "gone": [], "scores": []}


def execute(file, state):
    """An executed notebook that names a code state at its head."""
    said = new_output("stream", name="stdout", text=f"scale toy · commit {state} · torch 2.13 on CPU\n")
    about = {"papermill": {"parameters": {}, "end_time": "2026"}}
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=[new_code_cell("x", outputs=[said])], metadata=about), file)


@pytest.fixture
def reported(project, tmp_path, monkeypatch):
    """A scale whose report is recorded, and a function that sets what the report says."""
    monkeypatch.setattr(record, "WITH_REPORT", {"toy"})
    monkeypatch.setattr(record.documents, "Record", lambda folder: folder)
    monkeypatch.setattr(record.documents, "update", lambda made_from: [])
    project(31.9)
    for name in archive.COMPARING:
        execute(tmp_path / f"runs/toy/notebooks/{name}.ipynb", "abc123")

    def report_says(text):
        index = tmp_path / "runs/toy/report/index.html"

        def build(scale):
            index.parent.mkdir(exist_ok=True)
            index.write_text(text)
            return index

        monkeypatch.setattr(record.report, "build", build)

    return report_says


def test_the_report_is_made_anew_and_recorded_below_the_figures(reported, tmp_path):
    reported("one")
    assert {"report/index.html", "predictions.tar.xz"} <= set(record.record("toy")["new"])
    assert (tmp_path / "figures/toy/report/index.html").read_text() == "one"
    reported("two")
    assert record.record("toy")["changed"] == ["report/index.html"]
    assert record.record("toy") == {"new": [], "changed": [], "gone": [], "scores": [], "texts": []}


def test_a_report_too_large_to_commit_is_refused_and_nothing_is_copied(reported, tmp_path, monkeypatch):
    monkeypatch.setattr(record, "MOST_BYTES", 3)
    reported("four")
    before = tree(tmp_path / "figures")
    with pytest.raises(RecordError, match="4 bytes, more than the 3"):
        record.record("toy")
    assert tree(tmp_path / "figures") == before


@pytest.mark.parametrize("state", ["abc123+changes", "def456", "unknown"])
def test_pages_of_uncommitted_code_or_of_two_commits_are_refused(reported, tmp_path, state):
    reported("one")
    execute(tmp_path / "runs/toy/notebooks/07_encoder_benchmarks/tiny.ipynb", state)
    with pytest.raises(RecordError, match=r"1 pages, first 07_encoder_benchmarks_tiny\.html"):
        record.record("toy")
    assert not (tmp_path / "figures/toy/report").exists()


def test_head_and_foot_of_a_page_must_name_the_same_commit(reported, tmp_path):
    reported("one")
    artefacts.write_json(tmp_path / "runs/toy/results/08_hedge_trainings.csv.json", {"commit": "def456"})
    with pytest.raises(RecordError, match=r"names abc123, def456: 1 pages, first 08_hedge_trainings"):
        record.record("toy")


def test_of_other_scales_no_report_is_recorded(project, tmp_path):
    project(31.9)
    record.record("toy")
    assert not (tmp_path / "figures/toy/report").exists()


def test_a_score_that_moved_is_shown(project):
    project(31.92)
    assert record.record("toy")["scores"] == [], "a record without measurements has none that moved"
    project(31.94)
    found = record.record("toy")
    assert found["changed"] == ["measurements.csv", "scoreboard.csv"]
    assert found["scores"] == ["all-mpnet-base-v2 / SemAntoNeg / accuracy / semantoneg test / toy: 31.92 → 31.94"]
    assert record.record("toy")["scores"] == []


def test_a_score_that_is_new_or_gone_did_not_move(tmp_path):
    for folder, rows in {"old": [result(1.0), result(2.0, "gone")], "new": [result(1.0), result(3.0, "new")]}.items():
        results.save(rows, tmp_path / folder / "measurements.csv")
    assert record.changed_scores(tmp_path / "new", tmp_path / "old") == []


def test_an_unfinished_run_or_unknown_scale_is_refused(project, tmp_path):
    with pytest.raises(RecordError, match=r"No finished run in .*runs/nowhere"):
        record.record("nowhere")


def test_the_command_lists_what_changed(project, capsys):
    project(31.92)
    cli.main(["record", "toy"])
    lines = capsys.readouterr().out.splitlines()
    assert {"new: scoreboard.csv", "changed: changed.csv", "gone: gone.csv"} <= set(lines)
    assert lines[-1] == "figures/toy is now equal to runs/toy/figures."


@pytest.fixture(scope="module")
def pages():
    """Every page of the report of record as its runs of eight words, without what the papers print: Cao's example (an STSB pair)
    and the solutions in Truong's Table 5, which repeat words of their problems."""
    examples = ["Polar bear study may boost fight against obesity", *errors.paper_types().example]
    printed = {run for example in examples for run in contamination.ngrams(contamination.words(example), 8)}
    found = sorted((paths.FIGURES / "official" / "report").glob("*.html"))
    assert len(found) > 10
    texts = {page.name: unescape(re.sub("<[^>]+>", " ", page.read_text(encoding="utf-8"))) for page in found}
    return {name: contamination.ngrams(contamination.words(text), 8) - printed for name, text in texts.items()}


@pytest.mark.official
@pytest.mark.parametrize("benchmark", [name for name, entry in corpora.entries().items() if entry.official])
def test_the_report_of_record_quotes_no_official_text(pages, benchmark):
    texts, shown = contamination.fields(benchmark).text.map(contamination.words), set().union(*pages.values())
    quoted = {run for text in texts for run in contamination.ngrams(text, 8) & shown}
    quoted = {run for run in quoted if re.search("[a-z]", str(run))}  # numbers alone are nobody's
    assert {name: runs & quoted for name, runs in pages.items() if runs & quoted} == {}


def test_scores_in_bfloat16_are_not_recorded(project, tmp_path):
    project(80.0)
    results.save([result(79.9, "all-mpnet-base-v2-bfloat16")], tmp_path / "runs/toy/figures/measurements.csv")
    before = tree(tmp_path / "figures/toy")
    with pytest.raises(RecordError, match="bfloat16"):
        record.record("toy")
    assert tree(tmp_path / "figures/toy") == before
