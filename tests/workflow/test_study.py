"""`nblib study`: a whole run of a toy project through Snakemake, with its lines, its log, its failure and its report."""

import subprocess
import sys
import time

import pytest

from nblib import paths
from nblib.errors import StudyError
from nblib.workflow import cli, study

SNAKEFILE = """
import sys
rule all:
    input: "runs/toy/results/13.csv"
rule diagnosis:
    output: "runs/toy/results/01.csv"
    log: "runs/toy/notebooks/01_diagnosis.ipynb"
    shell: "{sys.executable} make.py {log} {output}"
rule score:
    output: "runs/toy/scores/{system}.csv"
    shell: "echo scoring; test ! -e broken && touch {output}"
rule results:
    input: "runs/toy/results/01.csv", "runs/toy/scores/TF-IDF.csv"
    output: "runs/toy/results/13.csv"
    log: "runs/toy/notebooks/13_results.ipynb"
    shell: "{sys.executable} make.py {log} {output}"
"""
MAKE = """
import sys, pathlib, nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
log, out = map(pathlib.Path, sys.argv[1:])
print("\\rbar: 50%|#", file=sys.stderr)
log.parent.mkdir(parents=True, exist_ok=True)
found = new_output("display_data", data={"text/markdown": f"- {log.stem} finds something"})
nbformat.write(new_notebook(cells=[new_markdown_cell("# " + log.stem), new_code_cell("1", outputs=[found])]), log)
out.write_text("x")
"""
RUN = """
import pathlib
from nblib import paths
paths.PROJECT_ROOT = pathlib.Path.cwd()
paths.CONFIG = pathlib.Path("config").resolve()
from nblib.workflow import cli
cli.main(["study", "toy", "--cores", "1"])
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    (root / "config").mkdir()
    (root / "config" / "toy.yaml").write_text("scale: toy\n")
    (root / "Snakefile").write_text(SNAKEFILE)
    (root / "make.py").write_text(MAKE)
    return root


def go(project):
    return subprocess.run([sys.executable, "-c", RUN], cwd=project, capture_output=True, text=True, timeout=300)


def test_a_run_shows_a_line_a_job_and_keeps_what_jobs_write_in_its_log(project):
    (project / "broken").touch()
    stopped = go(project)
    assert stopped.returncode == 2
    assert "failed  score: TF-IDF  To see why, run it alone: echo scoring" in stopped.stdout
    assert "Correct the error above (log: runs/toy/study.log) and run the same command" in stopped.stderr
    (project / "broken").unlink()
    done = go(project)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert any(line.endswith("13 results – 13_results finds something") for line in lines)
    assert "bar:" not in done.stdout + done.stderr and "Rule" not in done.stdout
    assert "bar: 50%" in (project / "runs" / "toy" / "study.log").read_text()
    assert lines[-1] == f"Open {project}/runs/toy/report/index.html"
    assert "There is nothing to do" in go(project).stdout


def test_an_unknown_scale_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["study", "huge"])
    assert "There is no scale 'huge'. Scales: quick, official, paper." in capsys.readouterr().err


def test_the_report_is_made_when_a_notebook_has_finished_and_not_after_the_last(monkeypatch):
    built, told = [], []

    def build(scale, provisional):
        if not built:
            built.append("unreadable")
            raise StudyError("a notebook is being written")
        built.append((scale, provisional))
        return paths.PROJECT_ROOT / "runs" / scale / "report" / "index.html"

    monkeypatch.setattr(study.report, "build", build)
    monkeypatch.setattr(study, "LEAST_PAUSE", 0.0)
    growing = study.GrowingReport("toy")
    growing.start(told.append)
    for job in [
        study.Job("score", "TF-IDF", None), study.Job("diagnosis", "", paths.NOTEBOOKS / "a.ipynb"),
        study.Job("triples", "", paths.NOTEBOOKS / "b.ipynb"), study.Job("synthesis", "", paths.NOTEBOOKS / "c.ipynb"),
    ]:  # fmt: skip
        growing.update(job)
        time.sleep(0.3)
    growing.update(study.Job("results", "", paths.NOTEBOOKS / "13.ipynb"))
    growing.stop()
    assert built == ["unreadable", ("toy", True), ("toy", True)]
    assert len(told) == 1 and "index.html" in told[0]
