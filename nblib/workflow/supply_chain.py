"""The dependencies: locked with hashes, compared with what is installed, and listed with their licences.

`requirements.lock` has a line for each pin of `constraints.txt` and `weights.txt`, with the SHA-256 of the file that pip takes
for it (Linux, Python 3.11). torch has none: its builds for CPUs and for GPUs differ, and either may be installed.
"""

import base64
import hashlib
import json
import re
import subprocess
import tempfile
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions

import pandas as pd

from nblib import paths
from nblib.errors import StudyError, readable
from nblib.workflow import documents

PINS = ("constraints.txt", "weights.txt")
LOCK = "requirements.lock"
LICENCES = "docs/licences.md"
# Not locked: torch and what its GPU builds bring, the project itself, and pip with what makes packages
EXEMPT = re.compile(r"torch|triton|(nvidia|cuda)-.+|nblib|pip|setuptools|wheel")
HEAD = """\
# Made by `nblib audit --write` from constraints.txt and weights.txt: the SHA-256 of each file that pip takes on Linux with
# Python 3.11. Strict installation: pip install --no-deps --require-hashes -r requirements.lock && pip install torch==TORCH
"""
LICENCES_HEAD = """\
# Licences of the dependencies

Made by `nblib audit --write` from what is installed, as each package declares it.

"""


class SupplyChainError(StudyError):
    """The environment isn't the one that is locked, or a lock can't be made."""


def pins() -> dict[str, str]:
    """The pinned version of each package, by its canonical name."""
    lines = [line for name in PINS for line in (paths.PROJECT_ROOT / name).read_text(encoding="utf-8").splitlines()]
    found = [line.strip().split("==") for line in lines if line.strip() and not line.startswith("#")]
    return {_canonical(name): version for name, version in found}


def locked() -> dict[str, str]:
    """The locked version of each package, by its canonical name.

    Raises:
        SupplyChainError: the lock is absent or no lock.
    """
    file = paths.PROJECT_ROOT / LOCK
    with readable(file, f"It is in git: git checkout {LOCK}", SupplyChainError):
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        return dict(re.fullmatch(r"([\w.-]+)==(\S+) --hash=sha256:[0-9a-f]{64}", line).groups() for line in lines)


def faults() -> list[str]:
    """How the installed packages differ from the lock, a sentence each: absent, another version, not locked, altered files."""
    installed = {_canonical(found.name): found for found in distributions()}
    lock, found = locked(), []
    for name, version in lock.items():
        if name not in installed:
            found.append(f"{name} is not installed.")
        elif installed[name].version != version:
            found.append(f"{name} is installed as {installed[name].version}, and locked as {version}.")
    for name in sorted(installed.keys() - lock.keys()):
        if not EXEMPT.fullmatch(name):
            found.append(f"{name} is installed, and not locked.")
    altered = [
        f"{name}: {file} is not as it was installed." for name in installed for file in _altered(installed[name])
    ]
    return found + altered


def _altered(package: Distribution) -> Iterator[str]:
    """The files of a package whose bytes aren't those that its record names."""
    for file in package.files or []:
        if file.hash and file.hash.mode == "sha256":
            try:
                with open(file.locate(), "rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").digest()
            except OSError:
                digest = b""
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != file.hash.value:
                yield str(file)


def write() -> None:
    """Make the lock and the table of licences anew; pip looks the hashes up and installs nothing.

    Raises:
        SupplyChainError: pip can't find a package.
    """
    files = [word for name in PINS for word in ("-r", str(paths.PROJECT_ROOT / name))]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        _pip(folder, "--upgrade", "pip")  # an old one would download every file, a new one reads the index alone
        report = _pip(folder, "--dry-run", "--ignore-installed", "--no-deps", "--report", "-", *files)
    lines = []
    for item in json.loads(report)["install"]:
        name, about = _canonical(item["metadata"]["name"]), item["download_info"]["archive_info"]
        if not EXEMPT.fullmatch(name):
            lines.append(f"{name}=={item['metadata']['version']} --hash=sha256:{about['hashes']['sha256']}\n")
    with paths.write_atomically(paths.PROJECT_ROOT / LOCK) as draft:
        draft.write_text(HEAD.replace("TORCH", pins()["torch"]) + "".join(sorted(lines)), encoding="utf-8")
    with paths.write_atomically(paths.PROJECT_ROOT / LICENCES) as draft:
        draft.write_text(LICENCES_HEAD + documents.markdown(licences()), encoding="utf-8")


def _pip(environment: str, *options: str) -> str:
    command = [f"{environment}/bin/python", "-m", "pip", "install", "--quiet", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SupplyChainError(f"pip can't look the packages up. See that it reaches its index: {done.stderr[-500:]}")
    return done.stdout


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def licences() -> pd.DataFrame:
    """package, version, licence of everything installed that is pinned."""
    installed = {_canonical(found.name): found for found in distributions()}
    rows = [(name, version, _licence(installed[name])) for name, version in sorted(pins().items()) if name in installed]
    return pd.DataFrame(rows, columns=["package", "version", "licence"])


def _licence(package: Distribution) -> str:
    """What a package declares: the expression, else the classifiers, else the first line of the free text."""
    about = package.metadata
    if expression := about.get("License-Expression"):
        return expression
    classifiers = [line.split(" :: ")[-1] for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    names = [name for name in classifiers if name != "OSI Approved"]
    text = (about.get("License") or "").strip().splitlines()
    return ", ".join(names) or (text[0][:80] if text else "not declared")
