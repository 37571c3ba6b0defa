"""Compare the installed packages with requirements.lock: names, versions, and the bytes of every file.

Known advisories aren't looked up here: where its service can be reached, `pip-audit -r requirements.lock --no-deps` does.

examples:
  nblib audit
  nblib audit --write       makes requirements.lock and docs/licences.md anew, after a change of constraints.txt
"""

import argparse
import sys

HELP = "compare the installed packages with the locked ones"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--write", action="store_true", help="make the lock and the table of licences anew")


def run(arguments: argparse.Namespace) -> None:
    """Say what differs.

    Raises:
        SupplyChainError: something does.
    """
    from nblib.workflow import supply_chain

    if arguments.write:
        supply_chain.write()
    found = supply_chain.faults()
    sys.stdout.write("".join(f"{fault}\n" for fault in found))
    if found:
        raise supply_chain.SupplyChainError(
            f"The environment differs from requirements.lock in {len(found)} places. Remove .venv and run make study again, or, "
            "if the change is meant, run nblib audit --write."
        )
    sys.stdout.write(
        f"All {len(supply_chain.locked())} packages are the locked ones, and all their files are as installed.\n"
    )
