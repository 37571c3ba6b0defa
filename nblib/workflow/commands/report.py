"""Make the report of a run: its executed notebooks and scoreboard as one folder to open or send.

examples:
  nblib report quick        makes runs/quick/report/index.html
"""

import argparse
import sys

HELP = "make the report of a run, a static site"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("scale", help="the run below runs/: quick, official, paper, lab")


def run(arguments: argparse.Namespace) -> None:
    """Make it and say where it is."""
    from nblib.results import report

    sys.stdout.write(f"Open {report.build(arguments.scale)}\n")
