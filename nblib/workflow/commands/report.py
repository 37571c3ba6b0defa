"""Make the report of a run: its executed notebooks and scoreboard, in one folder that you can open or send.

While a study runs, the report has the notebooks that have finished and names those to come.

examples:
  nblib report quick        makes runs/quick/report/index.html
"""

import argparse
import sys

HELP = "make the report of a run as a static site"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("scale", help="the run to report: a folder below runs/ (quick, official, paper, lab)")


def run(arguments: argparse.Namespace) -> None:
    """Make it and say where it is."""
    from nblib.results import report

    sys.stdout.write(f"Open {report.build(arguments.scale)}\n")
