"""Vouch for artefacts that have no checksum: files made by hand, or by an earlier version of the study.

The study refuses a table, model or adapter that isn't as it was written. Its checksum stands in the .json beside it; this
command records it. In a file of generations (.jsonl), each line has its own. What has a checksum is only checked.

examples:
  nblib seal my/variants.parquet
  nblib seal runs/mine/encoders/hedge-mpnet runs/mine/scores/*/*.parquet
"""

import argparse
import sys

HELP = "record the checksum of files made by hand or by an earlier version"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a table, an adapter, a JSON file, generations, or a model's folder"
    )


def run(arguments: argparse.Namespace) -> None:
    """Seal each."""
    from nblib import artefacts
    from nblib.synthesis import generations

    for path in arguments.paths:
        (generations.seal if path.endswith(".jsonl") else artefacts.seal)(path)
    sys.stdout.write(f"{len(arguments.paths)} sealed.\n")
