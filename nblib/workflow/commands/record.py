"""Compare a finished run with the reference figures, show what differs, and copy.

The reference figures are in figures/SCALE. Of the official run the report and the predictions are recorded as well.

examples:
  nblib record official
"""

import argparse
import sys

HELP = "make a finished run's figures the reference figures"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("scale", help="the run below runs/: quick, official, paper")


def run(arguments: argparse.Namespace) -> None:
    """Record the run and list the differences."""
    from nblib.workflow import record

    found = record.record(arguments.scale)
    lines = [f"{what}: {name}" for what, names in found.items() for name in names]
    lines.append(f"figures/{arguments.scale} is now equal to runs/{arguments.scale}/figures.")
    sys.stdout.write("\n".join(lines) + "\n")
