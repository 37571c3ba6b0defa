"""`nblib study`: a whole run of a toy project through Snakemake, with its lines, its log, its failure and its report."""

import shutil
import time

import filelock
import psutil
import pytest
from support.toy_study import go, make, start

from nblib import paths
from nblib.errors import StudyError
from nblib.workflow import cli, study


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return make(tmp_path_factory.mktemp("project") / "toy")


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


def test_sigterm_stops_a_run_and_its_jobs_at_once_and_says_how_to_go_on(project):
    """As Ctrl-C does: one handler serves both."""
    (project / "slow").touch()
    shutil.rmtree(project / "runs", ignore_errors=True)
    log, running = project / "runs" / "toy" / "study.log", start(project)
    try:
        while not (log.is_file() and "scoring" in log.read_text()) and running.poll() is None:
            time.sleep(0.1)
        jobs = psutil.Process(running.pid).children(recursive=True)
        running.terminate()
        said = running.communicate(timeout=300)[1]
    finally:
        running.kill()
        (project / "slow").unlink()
    assert (running.returncode, said) == (
        2, "error: The run was interrupted. Run the same command to go on (log: runs/toy/study.log).\n"
    )  # fmt: skip
    alive = psutil.wait_procs(jobs, timeout=10)[1]  # an orphan is a zombie until process 1 takes note, which it needn't
    assert jobs and not [job for job in alive if job.is_running() and job.status() != psutil.STATUS_ZOMBIE]


def test_a_second_run_at_once_is_refused_and_leaves_the_log_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "PROJECT_ROOT", make(tmp_path / "toy"))
    monkeypatch.setattr(paths, "CONFIG", tmp_path / "toy" / "config")
    run = tmp_path / "toy" / "runs" / "toy"
    run.mkdir(parents=True)
    (run / "study.log").write_text("of the first")
    with filelock.FileLock(run / ".study.lock"), pytest.raises(SystemExit, match="2"):
        cli.main(["study", "toy"])
    said = f"error: Another run of this study is at work in {run}. Wait for it to end, or stop it.\n"
    assert capsys.readouterr().err == said
    assert (run / "study.log").read_text() == "of the first"


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
