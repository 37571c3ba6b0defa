"""Artefacts, the files and folders that the study keeps: each takes its place whole, with its provenance beside it.

Beside an artefact `x` stands its sidecar `x.json`: parameters, commit, versions, machine, time, and the SHA-256 of the artefact
(of a folder: of each file in it). Provenance is never in the artefact itself, so that the same results are the same files.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nblib import paths
from nblib.errors import StudyError, readable

if TYPE_CHECKING:
    import pandas as pd

SHA256 = "sha256"  # a sidecar's key
CARD = "README.md"  # of a model folder: people may edit it
REMEDY = "Make it anew, or restore it: what the study ships is in git."
PACKAGES = "torch sentence-transformers transformers mteb lm_eval peft numpy pandas scikit-learn negate".split()


def sidecar(path: str | Path) -> Path:
    """The sidecar of an artefact."""
    return paths.resolve(f"{paths.resolve(path)}.json")


@contextmanager
def write(path: str | Path, about: Mapping[str, Any] | None = None) -> Iterator[Path]:
    """Yield a draft, to be made a file or a folder; it takes the artefact's place when the block ends well.

    `about` is what is known of it, for the sidecar; without it there is none. For errors see `check_replaceable`.
    """
    check_replaceable(path)
    with paths.write_atomically(path) as draft:
        yield draft
        described = None if about is None else {**provenance(**about), SHA256: sha256(draft)}
        if described is None:
            sidecar(path).unlink(missing_ok=True)
        else:  # after a kill an empty one is better than that of the old artefact, and leaves a folder replaceable
            write_json(sidecar(path), {})
    if described:
        write_json(sidecar(path), described)


def check_replaceable(path: str | Path) -> None:
    """Raise a StudyError where there is a folder at a path that isn't empty and that this study hasn't made."""
    target = paths.resolve(path)
    if target.is_dir() and any(target.iterdir()) and not sidecar(target).is_file():
        raise StudyError(f"{target} isn't this study's, so it is not replaced. Remove it, or choose another name.")


def about(path: str | Path) -> dict[str, Any]:
    """What the sidecar says of an artefact; empty where there is none."""
    return read_json(sidecar(path)) if sidecar(path).is_file() else {}


def check(path: str | Path) -> Path:
    """The path of an artefact; a StudyError where a file of it has another SHA-256 than its sidecar says."""
    target = paths.resolve(path)
    expected = about(target).get(SHA256, {})
    for name, digest in (expected if isinstance(expected, dict) else {"": expected}).items():
        if not (target / name).is_file() or sha256(target / name) != digest:
            raise StudyError(f"{target / name} is damaged: its SHA-256 isn't that in {sidecar(target).name}. {REMEDY}")
    return target


def unpack(archive: str | Path, folder: str | Path) -> None:
    """Unpack a tar archive below a folder; a StudyError where it is damaged, or holds anything but files for below the folder."""
    root = paths.resolve(folder)
    with tarfile.open(check(archive)) as tar:
        # By hand: tarfile's filters are not in Python 3.11.3 and older
        files = {(root / member.name).resolve(): member for member in tar}
        for target, member in files.items():
            if not (member.isfile() and target.is_relative_to(root)):
                raise StudyError(f"{archive} holds {member.name}, which is no file below a folder of its own. {REMEDY}")
        for target, member in files.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())


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
    """Write a table as Parquet or, by its name, CSV (with `options` of pandas), the same on every system; see `write`."""
    with write(path, about) as draft:
        if Path(path).suffix == ".parquet":
            table.to_parquet(draft, engine="pyarrow", index=False, write_page_checksum=True)
        else:
            table.to_csv(draft, index=False, lineterminator="\n", **options)
    return paths.resolve(path)


def read_table(path: str | Path, **options: Any) -> "pd.DataFrame":
    """A table that `write_table` has left (a CSV with `options` of pandas); a StudyError where it is damaged."""
    import pandas as pd  # takes a second, which those who write JSON alone don't need

    file = paths.resolve(path)
    with readable(file, REMEDY):
        if file.suffix == ".parquet":
            return pd.read_parquet(file, engine="pyarrow", page_checksum_verification=True)
        return pd.read_csv(file, **options)


def write_json(path: str | Path, content: Mapping[str, Any]) -> Path:
    """Write a JSON object; what JSON doesn't know becomes text."""
    with paths.write_atomically(path) as draft:
        draft.write_text(json.dumps(as_json(content), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return paths.resolve(path)


def as_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """An object as `read_json` gives it after `write_json`."""
    return json.loads(json.dumps(content, default=str))


def read_json(path: str | Path) -> dict[str, Any]:
    """What `write_json` has left; a StudyError where it is damaged."""
    file = paths.resolve(path)
    with readable(file, REMEDY):
        return json.loads(file.read_text(encoding="utf-8"))


def provenance(**about: object) -> dict[str, Any]:
    """Commit, versions, machine and time, plus what the caller adds (seed, parameters, encoder fingerprint, …)."""
    return {
        **about,
        "commit": commit(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": _device(),
        "platform": platform.platform(),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
    }


def provenance_line(**about: object) -> str:
    """One line that identifies a run, for a notebook's head."""
    described = ", ".join(f"{key} {value}" for key, value in about.items() if value != "")
    return " · ".join(filter(None, [described, f"commit {commit()}", f"torch {version('torch')} on {_device()}"]))


def commit() -> str:
    """The last commit of the code: that changed more than the record, `figures/`; "+changes" where files differ from it."""
    git, code = ["git", "-C", str(paths.PROJECT_ROOT)], ["--", ":/", ":(top,exclude)figures"]
    try:
        last, changes = (
            subprocess.check_output([*git, *command.split(), *code], stderr=subprocess.DEVNULL, text=True).strip()
            for command in ("log -1 --format=%h --abbrev=12", "status --porcelain --untracked-files=no")
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{last}{'+changes' * bool(changes)}"


def _device() -> str:
    torch = sys.modules.get("torch")  # no need to import it for a notebook that computes nothing with it
    return torch.cuda.get_device_name() if torch is not None and torch.cuda.is_available() else "CPU"
