"""Where things are. Every path is absolute or relative to the project's root, never to the working directory."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

PROJECT_ROOT = Path(__file__).resolve().parents[1]
DATA = PROJECT_ROOT / "data"
NOTEBOOKS = PROJECT_ROOT / "notebooks"
CONFIG = PROJECT_ROOT / "config"
FIGURES = PROJECT_ROOT / "figures"


def resolve(path: str | Path) -> Path:
    """The absolute form of a path; a relative one is taken from the project's root."""
    return (PROJECT_ROOT / Path(path).expanduser()).resolve()


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


def cache() -> Path:
    """The folder for what can be computed or downloaded again (embeddings, unpacked weights, fetched corpora).

    `runs/cache` in the project, or the folder that the environment variable `NBLIB_CACHE` names.
    """
    return writable_folder(os.environ.get("NBLIB_CACHE") or "runs/cache")


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
    """Yield a temporary path in the same folder; it is renamed to `path` only when the block ends well.

    A block that raises, or a process that is killed, leaves the old file at `path`.
    """
    target = resolve(path)
    writable_folder(target.parent)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield draft
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def write_csv(table: "pd.DataFrame", path: str | Path, **options: object) -> None:
    """Write a table as CSV, atomically, with the same line ends on every system; options as for `DataFrame.to_csv`."""
    with write_atomically(path) as draft:
        table.to_csv(draft, index=False, lineterminator="\n", **options)
