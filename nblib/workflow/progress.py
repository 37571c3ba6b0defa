"""The progress of a study on one screen: what runs now, what is done of all, and when it will probably end.

`Progress` follows a run through the log events of Snakemake. On a terminal it draws a view that stays at the bottom, with a line
for each finished job above it; elsewhere it writes those lines alone.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from snakemake_interface_logger_plugins.common import LogEvent

from nblib import paths
from nblib.results import report
from nblib.workflow.times import Times

TARGET = "all"  # the Snakefile's rule without a command
FAILED_JOB = "RuleException"  # what Snakemake says of a failed job beside its JOB_ERROR


@dataclass(frozen=True)
class Job:
    """A job of Snakemake.

    Attributes:
        name: what the rule is run for, such as an encoder; "" where it runs once.
        notebook: the executed copy that it writes; None where the job is no notebook.
    """

    rule: str
    name: str
    notebook: Path | None

    @property
    def title(self) -> str:
        """What people call it: "07 encoder benchmarks: all-MiniLM-L6-v2"."""
        words = self.rule
        if self.notebook:
            words = self.notebook.parent.name if self.name else self.notebook.stem
        title = words.replace("_", " ")
        return f"{title}: {self.name}" if self.name else title


def job_of(record: logging.LogRecord) -> Job:
    """The job that a log record is about."""
    logs = [Path(log) for log in record.log or [] if Path(log).suffix == ".ipynb"]
    wildcards = dict(getattr(record, "wildcards", None) or {})
    sweep = "sweep " if str(wildcards.pop("folder", "")).endswith("/sweep") else ""
    return Job(record.rule_name, sweep + " ".join(map(str, wildcards.values())), logs[0] if logs else None)


class Progress:
    """Follows one run.

    Args:
        console: where to write.
        times: what jobs took before; it learns what they take now.
        cores: how many jobs run at once, at most.
        on_finished: called with each job that has finished.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        console: Console,
        times: Times,
        cores: int,
        on_finished: Callable[[Job], None] = lambda job: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console, self.times, self.cores = console, times, cores
        self.on_finished, self.clock = on_finished, clock
        self.started = clock()
        self.planned: Counter[str] = Counter()  # jobs by rule
        self.begun: Counter[str] = Counter()
        self.running: dict[int, tuple[Job, float]] = {}  # a job's number → the job, and when it started
        self.done, self.failed = 0, 0
        self.interrupted = False
        self.live = Live(
            get_renderable=self.view, console=console, auto_refresh=True, refresh_per_second=2, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip

    def __enter__(self) -> "Progress":
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    # --- what happens -------------------------------------------------------------------------------------------------

    def receive(self, record: logging.LogRecord) -> None:
        """Take in a log record of Snakemake."""
        event = getattr(record, "event", None)
        if event == LogEvent.RUN_INFO and not self.planned:
            self._plan(record.stats)
        elif event == LogEvent.JOB_INFO and record.rule_name != TARGET:
            job = job_of(record)
            self.begun[job.rule] += 1
            self.running[record.jobid] = (job, self.clock())
        elif event == LogEvent.JOB_FINISHED and record.job_id in self.running:
            self._finish(*self.running.pop(record.job_id))
        elif event == LogEvent.JOB_ERROR:
            job, _ = self.running.pop(record.jobid, (job_of(record), 0.0))
            self._fail(job, record.shellcmd)
        elif self.failed or self.interrupted or getattr(record, "exception", "") == FAILED_JOB:
            return  # the reason has been told
        elif record.levelno >= logging.ERROR:
            self._write(Text(record.getMessage().strip(), style="red"), whole=True)

    def note(self, text: str) -> None:
        """Write a line of text."""
        self._write(Text(text), whole=True)

    def _plan(self, stats: dict[str, int]) -> None:
        self.planned = Counter({rule: count for rule, count in stats.items() if rule not in (TARGET, "total")})
        left = self.remaining()
        expected = f", about {minutes(left)}" if left is not None else ""
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        self._write(Text(f"{self.total} jobs on {cores}{expected}"))

    def _finish(self, job: Job, started: float) -> None:
        seconds = self.clock() - started
        self.done += 1
        self.times.took(job.rule, job.name, seconds)
        found = report.headline(paths.resolve(job.notebook)) if job.notebook else ""
        line = f"{self._counter()}  {minutes(seconds):>8}  [bold]{escape(job.title)}[/]"
        self._write(Text.from_markup(f"{line} – {escape(found)}" if found else line))
        self.on_finished(job)

    def _fail(self, job: Job, command: str | None) -> None:
        self.failed += 1
        if self.interrupted:  # every running job fails then
            return
        why = report.failure(paths.resolve(job.notebook)) if job.notebook else ""
        why = why or f"To see why, run it alone: {command}"
        self._write(Text.from_markup(f"[red]failed[/]  [bold]{escape(job.title)}[/]  {escape(why)}"), whole=True)

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """How many jobs the run has."""
        return self.planned.total()

    def remaining(self) -> float | None:
        """The seconds that the run will probably go on; None where a job's time is unknown.

        All cores are taken to be busy to the end, and no job to be shared between cores.
        """
        now, ahead = self.clock(), []
        for rule, count in (self.planned - self.begun).items():
            ahead += [self.times.expected(rule)] * count
        for job, started in self.running.values():
            expected = self.times.expected(job.rule, job.name)
            ahead.append(None if expected is None else max(0.0, expected - (now - started)))
        if None in ahead:
            return None
        return max(sum(ahead) / self.cores, max(ahead, default=0.0))

    def view(self) -> Group:
        """What runs now, and a line for the whole."""
        if not self.planned:
            return Group(Text("  finding out what must run"))
        now, jobs = self.clock(), Table.grid(padding=(0, 2))
        for job, started in self.running.values():
            expected = self.times.expected(job.rule, job.name)
            of = f"of about {minutes(expected)}" if expected is not None else ""
            jobs.add_row("  running", Text(job.title, style="bold"), minutes(now - started), of)
        left = self.remaining()
        end = "the end isn't known yet"
        if left is not None:
            end = f"ends about {time.strftime('%H:%M', time.localtime(time.time() + left))}, in {minutes(left)}"
        whole = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=self.total, completed=self.done, width=30)
        whole.add_row(bar, f"{self.done} of {self.total}", f"{minutes(now - self.started)} elapsed", end)
        return Group(jobs, whole)

    def _counter(self) -> str:
        return f"{self.done:>{len(str(self.total))}} of {self.total}"

    def _write(self, line: Text, whole: bool = False) -> None:
        """Write a line; on a terminal one that is too long is cut, unless it is wanted `whole`."""
        if self.console.is_terminal and not whole:
            self.console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        else:
            self.console.print(line, soft_wrap=True)


def minutes(seconds: float) -> str:
    """A duration for people: 45 s, 3 min, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" if whole >= 600 else f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
