"""Export the reference figures as PNG, the reference tables as HTML and LaTeX.

examples:
  nblib export official                     into runs/official/export
  nblib export quick --to ~/paper/figures
"""

import argparse
import sys
from pathlib import Path

HELP = "export the reference figures and tables as PNG, HTML and LaTeX"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("scale", help="whose reference figures: quick or official")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, help="the folder to write them to (default: runs/SCALE/export)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Export them and say how many."""
    from nblib import paths
    from nblib.workflow import export

    own = arguments.to and arguments.to.expanduser().resolve()
    target = own or paths.resolve(f"runs/{arguments.scale}/export")
    figures, tables = export.export(arguments.scale, target)
    sys.stdout.write(f"{target}: {figures} figures as PNG, {tables} tables as HTML and LaTeX\n")
