"""Unpack the predictions of the reference run, so that notebooks 08 to 10 and 13 need no model.

examples:
  nblib unpack official                     below runs/official; files that are there stay
  nblib unpack official --run-dir runs/mine
"""

import argparse
import sys

HELP = "unpack the predictions of the reference run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("scale", help="the scale of the reference run; predictions are kept of official alone")
    parser.add_argument("--run-dir", metavar="DIR", help="the run folder to unpack into (default: runs/SCALE)")


def run(arguments: argparse.Namespace) -> None:
    """Unpack them and say how to go on."""
    from nblib import paths
    from nblib.workflow import archive

    run_dir = arguments.run_dir or f"runs/{arguments.scale}"
    unpacked, kept = archive.unpack(arguments.scale, run_dir)
    given = {number: f'-y "$(cat {run_dir}/{name})"' for number, name in archive.PARAMETERS.items()}
    given["13"] = f"-p scale {arguments.scale} -p run_dir {run_dir}"
    names = {number: next(paths.NOTEBOOKS.glob(f"{number}_*.ipynb")).name for number in given}
    commands = [f"  nblib run {number} {run_dir}/notebooks/{names[number]} {given[number]}" for number in given]
    commands += [f"  nblib report {arguments.scale}"] * (arguments.run_dir is None)
    summary = f"{run_dir}: {unpacked} files unpacked, {kept} were there and are kept. No model is needed for"
    sys.stdout.write("\n".join([summary, *commands]) + "\n")
