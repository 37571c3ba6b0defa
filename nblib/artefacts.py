"""Artefacts, the files and folders that the study keeps: written whole, with a SHA-256, and checked when they are read.

Beside an artefact `x` stands its sidecar `x.json`: the SHA-256 of the artefact (of a folder: of each file in it), its
provenance, and a checksum of the sidecar itself. A JSON file that is an artefact has its checksum within.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nblib import paths, provenance
from nblib.errors import StudyError

if TYPE_CHECKING:
    import pandas as pd

CHECKSUM, SHA256 = "checksum", "sha256"  # keys of a sidecar: of itself, and of its artefact
CARD = "README.md"  # of a model folder: people may edit it
BESIDE = "more in the `.json` beside the folder"  # on the card of each folder that this study makes
# Folder of a run → the command that makes what lies in it.
MADE_BY = {
    "synthesis": "nblib run 02 out.ipynb -p run_dir {run}",
    "triples": "nblib run 03 out.ipynb -p run_dir {run}",
    "encoders": "nblib run 04 out.ipynb -p name {name} -p run_dir {run} (or nblib train {name} …)",
    "llms": "nblib run 05 out.ipynb -p name {name} -p run_dir {run}",
    "trainings": "nblib run 04 out.ipynb -p name {name} -p run_dir {run} (LoRA of a language model: 05; or nblib train)",
    "adapters": "nblib run 06 out.ipynb -p encoder {name} -p run_dir {run}",
    "scores": "nblib score {name} --run-dir {run} (of a language model: nblib run 11 out.ipynb -p run_dir {run})",
    "results": "nblib run {number} out.ipynb -p run_dir {run}",
    "figures": "nblib run {number} out.ipynb -p run_dir {run}",
    "checkpoints": "remove {run}/checkpoints/{name}, and train again from the start",
}


class DamageError(StudyError):
    """An artefact that is not as it was written, or without the checksum that would show it."""


def sidecar(path: str | Path) -> Path:
    """The sidecar of an artefact."""
    return paths.resolve(f"{paths.resolve(path)}.json")


@contextmanager
def write(path: str | Path, about: Mapping[str, Any] | None = None) -> Iterator[Path]:
    """Yield a draft, to be made a file or a folder; it takes the artefact's place when the block ends well.

    Args:
        about: what is known of it, for the sidecar; commit, versions and machine are added.

    Raises:
        DamageError: in its place is a folder that this study hasn't made, or the disk is full.
    """
    target = paths.resolve(path)
    check_replaceable(target)
    with paths.write_atomically(target) as draft:
        yield draft
        # The sidecar first: after a kill in between, the old artefact counts as damaged and the new one is made again
        write_json(sidecar(target), {**(provenance.collect(**about) if about else {}), SHA256: sha256(draft)})


def check_replaceable(path: str | Path) -> None:
    """Check that there is no folder at a path, or an empty one, or one that this study has made.

    Raises:
        DamageError: it is another's.
    """
    target = paths.resolve(path)
    if target.is_dir() and any(target.iterdir()) and not is_ours(target):
        raise DamageError(f"{target} isn't this study's, so it is not replaced. Remove it, or choose another name.")


def is_ours(folder: Path) -> bool:
    """Whether this study has made a folder: it has a sidecar, or its card says so."""
    card = folder / CARD
    return sidecar(folder).is_file() or (card.is_file() and BESIDE in card.read_text("utf-8", errors="replace"))


def check(path: str | Path) -> Path:
    """The path of an artefact that is as it was written.

    Raises:
        DamageError: it isn't, or it has no checksum; names the file and the command that makes it anew.
    """
    target = paths.resolve(path)
    if target.suffix == ".json":
        read_json(target)
        return target
    expected = about(target).get(SHA256)
    if not expected:
        raise _unsealed(target)
    parts = expected if isinstance(expected, dict) else {"": expected}
    for name, digest in parts.items():
        file = target / name
        if not file.is_file() or sha256(file) != digest:
            fault = f"is absent, though {sidecar(target).name} describes it"
            if file.is_file():
                fault = "is damaged: its SHA-256 is not the recorded one"
            raise DamageError(f"{file} {fault}. {_remedy(target)}")
    return target


def is_whole(path: str | Path) -> bool:
    """Whether an artefact is as it was written."""
    try:
        return check(path).exists()
    except DamageError:
        return False


def about(path: str | Path) -> dict[str, Any]:
    """What the sidecar says of an artefact; empty where there is none.

    Raises:
        DamageError: the sidecar is damaged.
    """
    return read_json(sidecar(path)) if sidecar(path).is_file() else {}


def seal(path: str | Path) -> None:
    """Vouch for an artefact that has no checksum: record the one that it has now.

    Raises:
        DamageError: it has a checksum, and isn't as it was written; or it doesn't exist.
    """
    target = paths.resolve(path)
    if not target.exists():
        raise DamageError(f"There is no {target}.")
    own = target.suffix == ".json"
    file = target if own else sidecar(target)
    try:
        known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        sealed = (CHECKSUM if own else SHA256) in known
    except (ValueError, TypeError) as error:
        raise DamageError(f"{file} is no JSON object ({error}). {_remedy(target)}") from error
    if sealed:
        check(target)
    else:
        known.pop(CHECKSUM, None)
        write_json(file, known if own else {**known, SHA256: sha256(target)})


def sha256(path: Path) -> str | dict[str, str]:
    """The SHA-256 of a file; of a folder that of each file in it by its name there, the model card aside."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != CARD)
        return {file.relative_to(path).as_posix(): sha256(file) for file in files}
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_table(
    table: "pd.DataFrame", path: str | Path, about: Mapping[str, Any] | None = None, **options: Any
) -> Path:
    """Write a table as Parquet or, by its name, CSV, which has the same line ends on every system.

    Args:
        about: see `write`.
        options: of `DataFrame.to_csv`.
    """
    with write(path, about) as draft:
        if Path(path).suffix == ".parquet":
            table.to_parquet(draft, index=False)
        else:
            table.to_csv(draft, index=False, lineterminator="\n", **options)
    return paths.resolve(path)


def read_table(path: str | Path, **options: Any) -> "pd.DataFrame":
    """A table that `write_table` has left.

    Args:
        options: of `pandas.read_csv`.

    Raises:
        DamageError: see `check`.
    """
    import pandas as pd  # takes a second, which those who only check don't need

    file = check(path)
    return pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file, **options)


def write_json(path: str | Path, content: Mapping[str, Any]) -> Path:
    """Write a JSON object with its checksum; what JSON doesn't know becomes text."""
    content = as_json(content)
    whole = {**content, CHECKSUM: _checksum(content)}
    with paths.write_atomically(path) as draft:
        draft.write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return paths.resolve(path)


def as_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """An object as `read_json` gives it after `write_json`: what JSON doesn't know is text."""
    return json.loads(json.dumps(content, default=str))


def read_json(path: str | Path) -> dict[str, Any]:
    """What `write_json` has left.

    Raises:
        DamageError: it is absent or damaged, or has no checksum.
    """
    file = paths.resolve(path)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        found = content.pop(CHECKSUM)
    except KeyError:
        raise _unsealed(file) from None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DamageError(f"{file} is damaged or absent ({type(error).__name__}). {_remedy(file)}") from error
    if found != _checksum(content):
        raise DamageError(f"{file} is damaged: its content doesn't have the checksum in it. {_remedy(file)}")
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _unsealed(target: Path) -> DamageError:
    return DamageError(
        f"{target} has no checksum, in it or beside it. If you know that it is right (made by hand, or by an earlier version), "
        f"run: nblib seal {target}. Otherwise: {_remedy(target)}"
    )


def _remedy(target: Path) -> str:
    """The command that makes an artefact anew, by where it lies."""
    if target.is_relative_to(paths.DATA) or target.is_relative_to(paths.FIGURES):
        return f"Restore it: git checkout {target}"
    kind = next((part for part in reversed(target.parts[:-1]) if part in MADE_BY), None)
    if kind is None:
        return "Make it anew, or restore it from a copy."
    place = len(target.parts) - 1 - target.parts[::-1].index(kind)
    run, inside = Path(*target.parts[:place]), target.parts[place + 1]
    name = inside.removesuffix(".json").removesuffix(".csv").removesuffix(".safetensors")
    return f"Make it anew: {MADE_BY[kind].format(run=run, name=name, number=inside[:2])}"
