"""Where a result comes from, in a sidecar beside it: never inside, so that files of record stay comparable."""

import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from nblib import paths

PACKAGES = (
    "torch",
    "sentence-transformers",
    "transformers",
    "mteb",
    "lm_eval",
    "peft",
    "numpy",
    "pandas",
    "scikit-learn",
    "negate",
)


def collect(**about: object) -> dict:
    """Commit, versions, machine and time, plus what the caller says (seed, parameters, encoder fingerprint, …)."""
    return {
        **about,
        "commit": _commit(),
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in PACKAGES},
        "device": _device(),
        "platform": platform.platform(),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def write_sidecar(artefact: str | Path, **about: object) -> Path:
    """Write `<artefact>.json` (the artefact's own name plus `.json`) and return its path."""
    sidecar = paths.resolve(f"{artefact}.json")
    with paths.write_atomically(sidecar) as draft:
        draft.write_text(json.dumps(collect(**about), indent=2, sort_keys=True, default=str) + "\n", encoding="utf-8")
    return sidecar


def line(**about: object) -> str:
    """One line for a notebook's head: what this run is."""
    said = ", ".join(f"{key} {value}" for key, value in about.items())
    return " · ".join(filter(None, [said, f"commit {_commit()}", f"torch {_version('torch')} on {_device()}"]))


def _commit() -> str:
    try:
        run = ["git", "-C", str(paths.PROJECT_ROOT)]
        sha = subprocess.run(
            [*run, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        ).stdout
        changed = subprocess.run([*run, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return sha.strip() + ("+changes" if changed.strip() else "")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _device() -> str:
    torch = sys.modules.get("torch")  # no need to import it for a notebook that computes nothing with it
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return "CPU"
