"""Run the study of a scale: Snakemake with a progress view, and a report that grows as notebooks finish."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import filelock
import psutil
from rich.console import Console
from snakemake import cli as snakemake
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry
from snakemake_interface_logger_plugins.registry.plugin import Plugin

from nblib import paths
from nblib.errors import StudyError
from nblib.results import report
from nblib.workflow import dates, forks
from nblib.workflow.progress import Job, Progress
from nblib.workflow.times import Times

LOGGER = "nblib"  # the name of our logger plugin
LAST = "results"  # the rule of the notebook that runs when all others have
LEAST_PAUSE = 30.0  # seconds between two reports of a run that goes on
PAUSE_SHARE = 20  # a report is made again after so many times the seconds that the last one took


class StudyRunError(StudyError):
    """A scale that doesn't exist, or a run in which a job failed."""


def scales() -> list[str]:
    """The scales that are configured, the quickest first."""
    order = ["quick", "official", "paper"]
    found = {file.stem for file in paths.CONFIG.glob("*.yaml")}
    return [*(scale for scale in order if scale in found), *sorted(found - set(order))]


def run(scale: str, cores: int, gpus: int) -> Path:
    """Execute what is missing or out of date in a scale's run; return the index of its report.

    Output of the jobs goes to `runs/<scale>/study.log`.

    Args:
        cores: how many CPU cores to use.
        gpus: how many GPUs to share among the jobs that need one.

    Raises:
        DateError: files are dated in the future.
        StudyRunError: no such scale, another run of it goes on, a job failed, or the run was interrupted.
    """
    if scale not in scales():
        raise StudyRunError(f"There is no scale '{scale}'. Scales: {', '.join(scales())}.")
    log = paths.writable_folder(f"runs/{scale}") / "study.log"
    shown = log.relative_to(paths.PROJECT_ROOT)
    with _alone(log.parent), _output_to(log) as terminal:
        dates.check(log.parent)
        dates.renew(log.parent)
        reports, console = GrowingReport(scale), Console(file=terminal, highlight=False)
        with Progress(console, Times(scale), cores, on_finished=reports.update) as progress:
            reports.start(progress.note)
            try:
                with _stoppable(progress), forks.serving():
                    finished = _snakemake(scale, cores, gpus, progress)
            finally:
                reports.stop()
        if progress.interrupted:
            raise StudyRunError(f"The run was interrupted. Run the same command to go on (log: {shown}).")
        if not finished:
            where = f"stopped after {progress.done} of {progress.total} jobs" if progress.total else "didn't start"
            raise StudyRunError(
                f"The run {where}. Correct the error above (log: {shown}) and run the same command: what is finished is kept."
            )
        if not progress.total:
            progress.note("There is nothing to do: every result is up to date.")
    return paths.resolve(f"runs/{scale}/report/index.html")


def _snakemake(scale: str, cores: int, gpus: int, progress: Progress) -> bool:
    """Run Snakemake in this process, with `progress` as its only logger; whether all jobs succeeded."""

    class Handler(LogHandlerBase):
        """Hands each record on."""

        writes_to_stream, writes_to_file, has_filter, has_formatter, needs_rulegraph = True, False, True, True, False

        def emit(self, record) -> None:
            try:
                progress.receive(record)
            except Exception:  # a view that fails must not end the study; `handleError` writes to the log
                self.handleError(record)

    # Snakemake finds plugins by the names of top-level packages; this one is a part of nblib, and is registered here
    LoggerPluginRegistry().plugins[LOGGER] = Plugin(_name=LOGGER, log_handler=Handler, _logger_settings_cls=None)
    arguments = ["--snakefile", str(paths.PROJECT_ROOT / "Snakefile"), "--directory", str(paths.PROJECT_ROOT)]
    arguments += [
        "--configfile",
        str(paths.CONFIG / f"{scale}.yaml"),
        "--cores",
        str(cores),
        "--resources",
        f"gpu={gpus}",
    ]
    arguments += ["--rerun-incomplete", "--nolock", "--logger", LOGGER]
    os.chdir(paths.PROJECT_ROOT)  # the Snakefile's paths start there
    try:
        snakemake.main(arguments)
    except SystemExit as end:
        return not end.code
    except KeyboardInterrupt:
        return False
    return True


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder. Snakemake's own outlives a killed run; this one goes with its process."""
    try:
        with filelock.FileLock(folder / ".study.lock", timeout=0):
            yield
    except filelock.Timeout:
        raise StudyRunError(
            f"Another run of this study is at work in {folder}. Wait for it to end, or stop it."
        ) from None


@contextlib.contextmanager
def _stoppable(progress: Progress) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop the jobs at once, whoever they reach; Snakemake alone would wait for the jobs to end."""

    def stop(number: int, frame: object) -> None:
        progress.interrupted = True
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        signal.default_int_handler(number, frame)

    of_snakemake = JobScheduler.exit_gracefully  # it makes this its handler of SIGTERM when it starts
    JobScheduler.exit_gracefully = lambda _, number, frame: stop(number, frame)
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        JobScheduler.exit_gracefully = of_snakemake
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _output_to(file: Path) -> Iterator[TextIO]:
    """Send what this process and its children write to a file; yield what was the standard output.

    Otherwise the bars and warnings of jobs that run side by side would cross the progress view.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    try:
        with file.open("w", encoding="utf-8") as log, os.fdopen(os.dup(saved[0]), "w", encoding="utf-8") as terminal:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            yield terminal
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in enumerate(saved, start=1):
            os.dup2(copy, number)
            os.close(copy)


class GrowingReport:
    """The report of a run that goes on: made again when notebooks have finished, in a thread, and not too often."""

    def __init__(self, scale: str) -> None:
        self.scale = scale
        self.wanted, self.ended = threading.Event(), threading.Event()

    def start(self, tell: Callable[[str], None]) -> None:
        """Begin; `tell` is called once, with where the first report is."""
        self.tell = tell
        self.thread = threading.Thread(target=self._work, name="report", daemon=True)
        self.thread.start()

    def update(self, job: Job) -> None:
        """Ask for a new report, if a notebook has finished; after the last one, the final report is Snakemake's."""
        if job.rule == LAST:
            self.ended.set()
        if job.notebook:
            self.wanted.set()

    def stop(self) -> None:
        """Wait for the report that is being made."""
        self.ended.set()
        self.wanted.set()
        self.thread.join()

    def _work(self) -> None:
        told = False
        while True:
            self.wanted.wait()
            if self.ended.is_set():
                return
            self.wanted.clear()
            started = time.monotonic()
            # A notebook that is being written can't be read for a moment: the next report will have it
            with contextlib.suppress(StudyError, OSError):
                index = report.build(self.scale, provisional=True)
                if not told:
                    self.tell(f"The report so far, which grows as notebooks finish: {index}")
                    told = True
            self.ended.wait(max(LEAST_PAUSE, PAUSE_SHARE * (time.monotonic() - started)))
