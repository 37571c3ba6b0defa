"""Run the whole study of a scale, or what is missing or out of date in it, with its progress on one screen.

The report in runs/SCALE/report grows as notebooks finish. Jobs write to runs/SCALE/study.log.

examples:
  nblib study quick
  nblib study official --cores 8 --gpus 1

For a cluster or a dry run, call Snakemake itself: see docs/running.md.
"""

import argparse
import os
import sys

HELP = "run the study of a scale with a progress view"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser.add_argument("scale", help="quick, official or paper")
    parser.add_argument("--cores", type=int, default=available, help="CPU cores to use (default: all, %(default)s)")
    parser.add_argument("--gpus", type=int, default=1, help="GPUs that jobs may share (default: %(default)s)")


def run(arguments: argparse.Namespace) -> None:
    """Run it and say where to look.

    Raises:
        StudyRunError: no such scale, a job failed, or the run was interrupted.
    """
    from nblib.workflow import study

    index = study.run(arguments.scale, arguments.cores, arguments.gpus)
    folder = f"runs/{arguments.scale}"
    sys.stdout.write(
        f"Figures and tables: {folder}/figures   Adapters: {folder}/adapters   Results: {folder}/results\nOpen {index}\n"
    )
