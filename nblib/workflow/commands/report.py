"""Make the site of a run: the claims, its executed notebooks, single items and the documentation, in one folder.

Without a run of that scale it is made from the record, which the official scale has. It needs no model and no network.

examples:
  nblib report official        makes runs/official/site/index.html
"""

import argparse
import sys

HELP = "make the site of a run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("scale", help="the run: a folder below runs/ (quick, official, paper, lab)")


def run(arguments: argparse.Namespace) -> None:
    """Make it and say where it is."""
    from nblib.results import report

    sys.stdout.write(f"Open {report.build(arguments.scale)}\n")
