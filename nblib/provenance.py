"""The provenance of a result: for its sidecar, never for the file itself, so that files of record stay comparable."""

import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version

from nblib import paths

PACKAGES = (
    "torch", "sentence-transformers", "transformers", "mteb", "lm_eval", "peft", "numpy", "pandas", "scikit-learn",
    "negate",
)  # fmt: skip


def collect(**about: object) -> dict:
    """Commit, versions, machine and time, plus what the caller adds (seed, parameters, encoder fingerprint, …)."""
    return {
        **about, "commit": _commit(), "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in PACKAGES}, "device": _device(), "platform": platform.platform(),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip


def line(**about: object) -> str:
    """One line that identifies a run, for a notebook's head."""
    described = ", ".join(f"{key} {value}" for key, value in about.items())
    return " · ".join(filter(None, [described, f"commit {_commit()}", f"torch {_version('torch')} on {_device()}"]))


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
