"""The command `nblib`: run notebooks, score systems, make reports, and keep the reference figures.

An error that the user can correct ends with one line and exit status 2; so does a full disk. Any other is a fault of the package
and shows its traceback before that line.
"""

import argparse
import errno
import os
import signal
import sys
import traceback
from collections.abc import Sequence

from nblib.errors import StudyError
from nblib.workflow import commands

FULL = "Free some space and run the same command again: what is finished is kept, nothing is left half-written."
REMEDIES = {errno.ENOSPC: FULL, errno.EDQUOT: FULL, errno.ENOENT: "Check the path."}


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    description = "Run notebooks, score systems, make reports, and keep the reference figures."
    epilog = "nblib COMMAND --help explains a command and shows examples."
    whole = argparse.ArgumentParser(prog="nblib", description=description, epilog=epilog)
    commands.add_parsers(whole.add_subparsers(title="commands", required=True, metavar="COMMAND"))
    return whole


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; an error that the user can correct is a message without a traceback."""
    try:
        given = parser().parse_args(arguments)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: drafts are removed
        given.run(given)
    except BrokenPipeError:  # `nblib … | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        _end("interrupted. Run the same command to go on: what is finished is kept.", 130)
    except OSError as error:
        if not error.errno:  # one of ours, a sentence
            _end(str(error))
        file = error.filename2 or error.filename
        remedy = REMEDIES.get(error.errno, "Mend that and run the same command again.")
        _end(f"{error.strerror}{f': {file}' if file else ''}. {remedy}")
    except StudyError as error:
        _end(str(error))
    except Exception as error:
        traceback.print_exc()
        _end(f"a fault in nblib ({type(error).__name__}: {error}). Please report it with the lines above.", 1)


def _end(message: str, status: int = 2) -> None:
    sys.stderr.write(f"error: {message}\n")
    raise SystemExit(status) from None


if __name__ == "__main__":
    main()
