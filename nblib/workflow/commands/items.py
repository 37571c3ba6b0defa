"""Print the texts of a benchmark's items, of which the report shows ids and answers alone.

examples:
  nblib items nevir 1230-2
  nblib items semantoneg 0 17
"""

import argparse
import sys

HELP = "print the texts of a benchmark's items"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("task", help="the benchmark as the report's addresses name it: nevir, llm_m3, STS12, mmlu")
    parser.add_argument("ids", nargs="+", metavar="ID", help="the items")


def run(arguments: argparse.Namespace) -> None:
    """Print every column of the items.

    Raises:
        ItemError: no such benchmark, or no such item in it.
    """
    from nblib.benchmarks import item_texts

    found = item_texts.find(arguments.task, arguments.ids)
    for _, row in found.iterrows():
        sys.stdout.write("\n".join(f"{name}: {value}" for name, value in row.items()) + "\n\n")
