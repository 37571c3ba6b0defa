"""Dates of files, by which Snakemake judges what is up to date; a clock that was set back, or old dates, would mislead it."""

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from nblib import artefacts, paths
from nblib.errors import StudyError

SLACK = 60  # seconds that the clocks of two machines may differ
SOURCES = "sources.json"  # in a run's folder: what its jobs read of the project, each file with its SHA-256


class DateError(StudyError):
    """Files that are dated in the future."""


def check(run: Path) -> None:
    """Check that no result and no source is dated in the future.

    Raises:
        DateError: the clock was probably set back; names the first file.
    """
    latest = time.time() + SLACK
    files = [*_sources(), *(file for file in run.rglob("*") if file.is_file())]
    if ahead := [file for file in files if file.stat().st_mtime > latest]:
        raise DateError(
            f"{len(ahead)} files are dated in the future, the first is {ahead[0]}: the clock was set back, and what is up to "
            f"date can't be told. Correct the clock; or, if it is right now, remove what was made while it was wrong."
        )


def renew(run: Path) -> None:
    """Date each source that has changed since the run's last start as of now, though its own date may be an old one."""
    file = run / SOURCES
    known = artefacts.read_json(file) if file.is_file() else {}
    found = {str(source.relative_to(paths.PROJECT_ROOT)): source for source in _sources()}
    sums = {name: hashlib.sha256(source.read_bytes()).hexdigest() for name, source in found.items()}
    for name, digest in sums.items():
        if known.get(name, digest) != digest:
            os.utime(found[name])
    artefacts.write_json(file, sums)


def _sources() -> Iterator[Path]:
    for folder, pattern in (("nblib", "*.py"), ("notebooks", "*.ipynb"), ("data", "*")):
        yield from sorted(file for file in (paths.PROJECT_ROOT / folder).rglob(pattern) if file.is_file())
