"""The progress view: it follows Snakemake's events, names what runs, and estimates the end."""

import io
import logging
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from rich.console import Console
from snakemake_interface_logger_plugins.common import LogEvent

from nblib.workflow import progress
from nblib.workflow.progress import Progress, minutes

FOUND = "- **MiniLM** finds `x` &amp; says [red]. In 3 of 4\n- second"


class Expected:
    """Times that are written down."""

    def __init__(self, **seconds):
        self.seconds, self.kept = seconds, {}

    def expected(self, rule, name=None):
        return self.seconds.get(rule)

    def took(self, rule, name, seconds):
        self.kept[rule, name] = seconds


def record(event=None, level=logging.INFO, message="", **about):
    made = logging.LogRecord("snakemake", level, "", 0, message, None, None)
    for key, value in {"event": event, **about}.items():
        setattr(made, key, value)
    return made


def planned(**rules):
    return record(LogEvent.RUN_INFO, stats={**rules, "all": 1, "total": sum(rules.values()) + 1})


def begun(number, rule, log=(), **wildcards):
    return record(LogEvent.JOB_INFO, jobid=number, rule_name=rule, log=list(log), wildcards=wildcards)


def finished(number):
    return record(LogEvent.JOB_FINISHED, job_id=number)


def failed(number, rule, log=()):
    return record(
        LogEvent.JOB_ERROR, logging.ERROR, jobid=number, rule_name=rule, log=list(log), shellcmd="nblib score X"
    )


def notebook(folder, output, name="07_encoder_benchmarks/minilm.ipynb"):
    file = folder / "notebooks" / name
    file.parent.mkdir(parents=True)
    cells = [new_markdown_cell("# 07"), new_code_cell("1", outputs=[output], execution_count=5)]
    nbformat.write(new_notebook(cells=cells), file)
    return str(file)


def said(view):
    return view.console.file.getvalue()


def shown(view):
    console = Console(file=io.StringIO(), width=120)
    console.print(view.view())
    return console.file.getvalue()


@pytest.fixture
def clock():
    return SimpleNamespace(now=0.0)


@pytest.fixture
def plain(clock):
    """A view where the output is no terminal."""
    return Progress(Console(file=io.StringIO()), Expected(score=10, triples=30), cores=2, clock=lambda: clock.now)


def test_a_finished_notebook_is_one_line_with_its_time_and_its_first_finding(plain, clock, tmp_path):
    log = notebook(tmp_path, new_output("display_data", data={"text/markdown": FOUND}))
    done = []
    plain.on_finished = done.append
    plain.receive(planned(encoder_benchmarks=1))
    plain.receive(begun(1, "encoder_benchmarks", [log], encoder="minilm"))
    clock.now = 72.0
    plain.receive(finished(1))
    *_, line = said(plain).splitlines()
    assert line == "1 of 1  1:12 min  07 encoder benchmarks: minilm – MiniLM finds x & says [red]. In 3 of 4"
    assert plain.times.kept == {("encoder_benchmarks", "minilm"): 72.0}
    assert [job.rule for job in done] == ["encoder_benchmarks"]


def test_a_job_is_named_by_its_notebook_or_its_rule(clock):
    name = "runs/quick/sweep/notebooks/04_encoder_training/both-s0.ipynb"
    trained = begun(1, "encoder_training", [name], folder="runs/quick/sweep", training="both-s0")
    assert progress.job_of(trained).title == "04 encoder training: sweep both-s0"
    assert progress.job_of(begun(2, "diagnosis", ["runs/quick/notebooks/01_diagnosis.ipynb"])).title == "01 diagnosis"
    assert progress.job_of(begun(3, "score", system="TF-IDF")).title == "score: TF-IDF"


def test_the_end_is_estimated_from_what_runs_and_what_is_to_come(plain, clock):
    plain.receive(planned(score=3, triples=1))
    assert plain.remaining() == (3 * 10 + 30) / 2
    plain.receive(begun(1, "triples"))
    plain.receive(begun(2, "score", system="TF-IDF"))
    clock.now = 4.0
    assert plain.remaining() == (2 * 10 + (10 - 4) + (30 - 4)) / 2
    plain.receive(finished(2))
    clock.now = 29.0
    assert plain.remaining() == (2 * 10 + 1) / 2
    clock.now = 99.0
    assert plain.remaining() == 10, "a job that takes longer than expected is expected to end now"


def test_one_long_job_sets_the_end_however_many_cores_there_are(plain):
    plain.cores = 16
    plain.receive(planned(score=1, triples=1))
    assert plain.remaining() == 30


def test_without_times_the_end_is_unknown(plain):
    plain.receive(planned(diagnosis=1, score=1))
    assert plain.remaining() is None
    assert "the end isn't known yet" in shown(plain)
    assert said(plain) == "2 jobs on 2 cores\n"


def test_the_view_shows_what_runs_what_is_done_and_when_it_ends(plain, clock):
    plain.receive(planned(score=2, triples=1))
    plain.receive(begun(1, "triples"))
    plain.receive(begun(2, "score", system="[TF]"))
    clock.now = 5.0
    plain.receive(finished(2))
    lines = shown(plain).splitlines()
    assert "running  triples  5 s  of about 30 s" in lines[0]
    assert "1 of 3  5 s elapsed  ends about " in lines[1]
    assert lines[1].rstrip().endswith(", in 25 s")


def test_before_the_plan_is_known_the_view_says_so(plain):
    assert shown(plain).strip() == "finding out what must run"


def test_the_rule_without_a_command_is_no_job(plain):
    plain.receive(planned(score=1))
    plain.receive(begun(9, "all"))
    plain.receive(finished(9))
    assert (plain.total, plain.done, plain.running) == (1, 0, {})


def test_a_failed_notebook_says_where_it_stopped(plain, tmp_path):
    error = new_output("error", ename="ValueError", evalue="no such [bold]thing", traceback=["a", "b"])
    log = notebook(tmp_path, error)
    plain.receive(planned(encoder_benchmarks=1))
    plain.receive(begun(1, "encoder_benchmarks", [log], encoder="minilm"))
    plain.receive(record(LogEvent.ERROR, logging.ERROR, "RuleException: long", exception="RuleException"))
    plain.receive(failed(1, "encoder_benchmarks", [log]))
    plain.receive(record(None, logging.ERROR, "Exiting because a job failed"))
    *_, line = said(plain).splitlines()
    assert line == "failed  07 encoder benchmarks: minilm  cell [5]: ValueError: no such [bold]thing"
    assert plain.failed == 1 and not plain.running


def test_a_failed_command_is_given_to_be_run_alone(plain):
    plain.receive(planned(score=1))
    plain.receive(failed(1, "score"))
    assert said(plain).splitlines()[-1] == "failed  score  To see why, run it alone: nblib score X"


def test_an_error_that_is_no_jobs_is_shown_in_full(plain):
    plain.receive(record(LogEvent.ERROR, logging.ERROR, "MissingInputException:\nno file x", exception="Missing"))
    assert said(plain) == "MissingInputException:\nno file x\n"


def test_after_an_interrupt_the_jobs_are_not_said_to_have_failed(plain):
    plain.interrupted = True
    plain.receive(failed(1, "score"))
    assert said(plain) == ""


def test_on_a_terminal_a_line_never_wraps(clock, tmp_path):
    log = notebook(tmp_path, new_output("display_data", data={"text/markdown": "- " + "long " * 60}))
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    with Progress(console, Expected(), cores=1, clock=lambda: clock.now) as view:
        view.receive(planned(encoder_benchmarks=1))
        view.receive(begun(1, "encoder_benchmarks", [log], encoder="minilm"))
        view.receive(finished(1))
    (line,) = [line for line in said(view).splitlines() if "1 of 1" in line and "–" in line]
    assert "…" in line and len(line.split("1 of 1")[1]) <= 80


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (72, "1:12 min"), (599, "9:59 min"), (1140, "19 min"), (7500, "2 h 05 min")],
)
def test_durations_are_for_people(seconds, text):
    assert minutes(seconds) == text
