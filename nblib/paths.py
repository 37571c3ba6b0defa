"""Where things are. Every path is absolute or relative to the project's root, never to the working directory."""

import errno
import glob
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nblib.errors import StudyError

PROJECT_ROOT = Path(__file__).resolve().parents[1]
DATA = PROJECT_ROOT / "data"
NOTEBOOKS = PROJECT_ROOT / "notebooks"
CONFIG = PROJECT_ROOT / "config"
FIGURES = PROJECT_ROOT / "figures"
LONGEST_PART = 255  # bytes, of any file system here
LONGEST_NAME = 100  # bytes; file names have prefixes and endings, too
LEAST_FREE = 2**16  # bytes; with less, a disk is full


class PathError(StudyError):
    """A name that can't be part of a path, or a file that can't be written."""


def resolve(path: str | Path) -> Path:
    """The absolute form of a path; a relative one is taken from the project's root.

    Raises:
        PathError: it is empty, has a character that isn't printed, or a part that no file system takes.
    """
    if not str(path).strip():
        raise PathError("A name or path is empty. Give one.")
    if not str(path).isprintable() or any(len(part.encode()) > LONGEST_PART for part in Path(path).parts):
        raise PathError(f"{str(path)[:60]!r} can't be a path: it is too long, or has control characters.")
    return (PROJECT_ROOT / Path(path).expanduser()).resolve()


def checked_name(name: str) -> str:
    """The name of a run, system, annotator or file, if it can be one part of a path.

    Raises:
        PathError: it is empty, begins with a dot, has a separator or a character that isn't printed, or is too long.
    """
    if (
        not isinstance(name, str)
        or not name.strip()
        or name.startswith(".")
        or len(name.encode(errors="replace")) > LONGEST_NAME
    ):
        fault = f"it must have 1 to {LONGEST_NAME} characters and not begin with a dot"
    elif not name.isprintable() or {"/", "\\"} & set(name):
        fault = "it must have no slash, backslash or control character"
    else:
        return name
    shown = repr(name if len(str(name)) <= LONGEST_NAME else f"{name[:40]}…")
    raise PathError(f"{shown} can't be a name: {fault}. Choose another name.")


def inside(folder: str | Path, *names: str) -> Path:
    """The path below a folder, each part of it a name.

    Raises:
        PathError: see `checked_name`.
    """
    return resolve(folder).joinpath(*map(checked_name, names))


def official_data() -> Path | None:
    """The folder with the official benchmark files, from the environment variable `NBLIB_DATA`; None where unset.

    Raises:
        FileNotFoundError: the variable names no folder.
    """
    value = os.environ.get("NBLIB_DATA", "").strip()
    if not value:
        return None
    folder = resolve(value)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"NBLIB_DATA names {folder}, which isn't a folder. Set it to the folder of the official benchmark files, "
            "or unset it to have them downloaded from their official sources."
        )
    return folder


def cache(part: str = "") -> Path:
    """The folder for what can be computed or downloaded again (embeddings, unpacked weights, fetched corpora), or a part of it.

    `runs/cache` in the project, or the folder that the environment variable `NBLIB_CACHE` names.
    """
    return writable_folder(Path(os.environ.get("NBLIB_CACHE") or "runs/cache") / part)


def writable_folder(path: str | Path) -> Path:
    """The folder, created if it doesn't exist.

    Raises:
        PermissionError: it can't be created or written to; names the folder and the remedy.
    """
    folder = resolve(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PermissionError(
            f"The folder {folder} can't be written to ({error.strerror or error}). Choose another one: with run_dir in the "
            "notebook's parameters, or with NBLIB_CACHE for the cache."
        ) from error
    return folder


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder, for a file or a folder; it is renamed to `path` only when the block ends well.

    A block that raises, or a process that is killed, leaves at `path` what was there. Only a draft folder replaces a folder.
    What a killed process left in draft is removed by the next that writes to `path`.

    Raises:
        PathError: the disk is full.
    """
    target = resolve(path)
    writable_folder(target.parent)
    draft = target.with_name(f".{target.name}.{platform.node()}.{os.getpid()}.tmp")
    for left in target.parent.glob(f".{glob.escape(target.name)}.{platform.node()}.*.tmp"):
        if not _is_running(int(left.name.split(".")[-2])):
            _remove(left)
    try:
        with naming_full_disk(target):
            yield draft
            if draft.is_dir() and target.is_dir():
                shutil.rmtree(target)
            os.replace(draft, target)
    finally:
        _remove(draft)


@contextmanager
def naming_full_disk(target: Path) -> Iterator[None]:
    """Turn whatever a library raises in the block because the disk is full into one sentence.

    Raises:
        PathError: the disk is full; names what was to be written.
    """
    try:
        yield
    except StudyError:
        raise
    except Exception as error:
        told = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or os.strerror(errno.ENOSPC) in str(error)
        if told or shutil.disk_usage(target.parent).free < LEAST_FREE:  # torch only says that a write failed
            raise PathError(
                f"{target} can't be written: the disk is full. Free space, and run the same again."
            ) from error
        raise


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno != errno.ESRCH
    return True
