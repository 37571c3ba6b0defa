"""Where things are. Every path is absolute or relative to the project's root, never to the working directory."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nblib.errors import StudyError

PROJECT_ROOT = Path(__file__).resolve().parents[1]
DATA = PROJECT_ROOT / "data"
NOTEBOOKS = PROJECT_ROOT / "notebooks"
FIGURES = PROJECT_ROOT / "figures"
NAME = re.compile(r"[^\s./\\][^/\\]{0,99}")  # of a run, system, annotator or file: one part of a path


def resolve(path: str | Path) -> Path:
    """The absolute form of a path, a relative one from the project's root; a StudyError where it is empty, or not printable."""
    if not str(path).strip() or not str(path).isprintable():
        raise StudyError(f"{str(path)[:60]!r} can't be a path: it is empty, or has control characters.")
    return (PROJECT_ROOT / Path(path).expanduser()).resolve()


def inside(folder: str | Path, *names: str) -> Path:
    """The path below a folder, each part of it a name; a StudyError says what a name must be."""
    for name in names:
        if not NAME.fullmatch(name) or not name.isprintable():
            rule = "it must have 1 to 100 characters, not begin with a dot, and have no slash or control character"
            raise StudyError(f"{name[:40]!r} can't be a name: {rule}. Choose another name.")
    return resolve(folder).joinpath(*names)


def official_data() -> Path | None:
    """The folder with the official benchmark files, which the environment variable `NBLIB_DATA` names; None where unset, a
    FileNotFoundError where it is no folder."""
    value = os.environ.get("NBLIB_DATA", "").strip()
    if value and not resolve(value).is_dir():
        remedy = "Set it to the folder of the official benchmark files, or unset it to have them downloaded."
        raise FileNotFoundError(f"NBLIB_DATA names {value}, which isn't a folder. {remedy}")
    return resolve(value) if value else None


def cache(part: str = "") -> Path:
    """The folder for what can be computed or downloaded again, or a part of it: in the project, or where `NBLIB_CACHE` says."""
    return writable_folder(Path(os.environ.get("NBLIB_CACHE") or "runs/cache") / part)


def writable_folder(path: str | Path) -> Path:
    """The folder, created if it doesn't exist; a PermissionError where it can't be."""
    folder = resolve(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "Choose another, with run_dir in the notebook's parameters, or with NBLIB_CACHE for the cache."
        raise PermissionError(f"The folder {folder} can't be made ({error.strerror}). {remedy}") from error
    return folder


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Yield a draft, for a file or a folder; it is renamed to `path` only when the block ends well.

    A block that raises, or a process killed in it, leaves at `path` what was there. Only a draft folder replaces a folder.
    """
    target = resolve(path)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=writable_folder(target.parent)) as folder:
        draft = Path(folder, "draft")  # on the same file system: a rename to another one isn't atomic
        yield draft
        if draft.is_dir() and target.is_dir():
            os.replace(target, Path(folder, "replaced"))  # goes with the temporary folder: removing it takes longer
        os.replace(draft, target)
