"""Training in several processes, one for each GPU (or on the CPU), by accelerate's launcher."""

import re
import subprocess
import sys
from pathlib import Path

import torch

from nblib import paths
from nblib.models.folders import FinetuningError


def launch(module: str, folder: Path, processes: int) -> None:
    """Run a module in several processes, as `accelerate launch --multi_gpu -m MODULE FOLDER` does; where there is no GPU the
    trainer takes the CPU.

    Args:
        folder: its only argument: what the training needs, and where it leaves what it made.

    Raises:
        FinetuningError: a process fails; with its message.
    """
    launcher = ["accelerate.commands.launch", "--multi_gpu", "--num_machines", "1", "--num_processes", str(processes)]
    trainers = ["--mixed_precision", "no", "--dynamo_backend", "no"]  # is the trainer's business
    done = subprocess.run(
        [sys.executable, "-m", *launcher, *trainers, "-m", module, str(folder)],
        cwd=paths.PROJECT_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise FinetuningError(f"The training in {processes} processes failed: {_cause(done.stderr, done.returncode)}")


def _cause(stderr: str, status: int) -> str:
    """The line that says why: the study's own error, another one, or the last."""
    lines = [re.sub(r"^\[rank\d+\]: ", "", line) for line in stderr.strip().splitlines()]
    errors = [line for line in lines if re.match(r"[\w.]+Error: ", line)]
    own = [line for line in errors if line.startswith("nblib.")]
    return (own or errors or lines[-1:] or [f"exit status {status}, without a word"])[0]


def backend(processes: int) -> str | None:
    """How the processes exchange gradients: None is the trainer's choice."""
    return "gloo" if processes > 1 and not torch.cuda.is_available() else None
