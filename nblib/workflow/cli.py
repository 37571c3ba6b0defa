"""The command `nblib`: run notebooks, score and train systems, make reports, and keep the reference figures.

A subcommand is a module of `nblib.workflow.commands`. An error that the user can correct ends with one line and exit status 2;
so does a full disk. Any other is a fault of the package and shows its traceback before that line.
"""

import argparse
import errno
import importlib
import os
import pkgutil
import signal
import sys
import traceback
from collections.abc import Sequence

from nblib.errors import StudyError
from nblib.workflow import commands

FULL = "Free some space and run the same command again: what is finished is kept, nothing is left half-written."
REMEDIES = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.ENOENT: "Check the path.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EACCES: "Change its permissions, or choose another place.",
    errno.EROFS: "Choose another place: with run_dir, or with NBLIB_CACHE for the cache.",
}


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
        signal.signal(
            signal.SIGTERM, signal.default_int_handler
        )  # as Ctrl-C: drafts are removed, and it says how to go on
        given.run(given)
    except BrokenPipeError:  # `nblib … | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        _end("interrupted. Run the same command to go on: what is finished is kept.", 130)
    except StudyError as error:
        _end(str(error))
    except OSError as error:
        _end(_of_the_system(error))
    except Exception as error:
        traceback.print_exc()
        _end(f"a fault in nblib ({type(error).__name__}: {error}). Please report it with the lines above.", 1)


def _of_the_system(error: OSError) -> str:
    """An error of the operating system in a sentence; ours have one, and no number."""
    if error.errno is None:
        return str(error)
    where = error.filename2 or error.filename
    remedy = REMEDIES.get(error.errno, "Mend that and run the same command again.")
    return f"{error.strerror}{f': {where}' if where else ''}. {remedy}"


def _end(message: str, status: int = 2) -> None:
    sys.stderr.write(f"error: {message}\n")
    raise SystemExit(status) from None


if __name__ == "__main__":
    main()
