"""The command `nblib`: run notebooks, score and train systems, make reports, and keep the reference figures.

A subcommand is a module of `nblib.workflow.commands`. An error that the user can correct ends with one line and exit status 2.
"""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from nblib.errors import StudyError
from nblib.workflow import commands


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    description = __doc__.splitlines()[0].removeprefix("The command `nblib`: ").capitalize()
    epilog = "nblib COMMAND --help explains a command and shows examples."
    whole = argparse.ArgumentParser(prog="nblib", description=description, epilog=epilog)
    subparsers = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for found in pkgutil.iter_modules(commands.__path__):
        command = importlib.import_module(f"{commands.__name__}.{found.name}")
        text, _, examples = command.__doc__.partition("\n\n")
        options = {"help": command.HELP, "description": text, "epilog": examples}
        own = subparsers.add_parser(found.name, formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        command.add_arguments(own)
        own.set_defaults(run=command.run)
    return whole


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; an error that the user can correct is a message without a traceback."""
    given = parser().parse_args(arguments)
    try:
        given.run(given)
    except (StudyError, FileNotFoundError, PermissionError) as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
