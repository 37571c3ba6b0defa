"""Execute a notebook headlessly, with its parameters checked before.

examples:
  nblib run 07 runs/mine.ipynb -p system all-MiniLM-L6-v2
  nblib run 04 runs/04.ipynb -p name=mine -p base=path/to/encoder -p epochs=3
  nblib run 08 runs/08.ipynb -y '{scale: quick, run_dir: runs/quick}'

The parameters are those of the notebook's parameters cell. An unknown parameter, or a value of another type, is an error.
Relative paths in parameters start at the project's folder.
"""

import argparse
import logging
import re
import sys

HELP = "execute a notebook with parameters"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("notebook", help="the notebook: its number (07), name or path")
    parser.add_argument("output", help="the file for the executed copy")
    parser.add_argument(
        "-p", dest="pairs", nargs="+", action="append", default=[], metavar=("NAME", "VALUE"),
        help="a parameter: NAME VALUE or NAME=VALUE, the value in YAML; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "-y", dest="mapping", default="{}", metavar="YAML", help="several parameters as a YAML or JSON mapping"
    )


def run(arguments: argparse.Namespace) -> None:
    """Execute the notebook.

    Raises:
        ExecutionError: the arguments don't fit, or a cell failed.
    """
    from papermill.exceptions import PapermillExecutionError

    from nblib.workflow import run_notebook

    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # tells of sockets that an interrupt has closed
    parameters = run_notebook.read_parameters(arguments.mapping, arguments.pairs)
    try:
        run_notebook.execute(arguments.notebook, arguments.output, parameters)
    except PapermillExecutionError as error:
        traceback = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
        if traceback != f"{error.ename}: {error.evalue}":  # an error that the user can mend has no more
            sys.stderr.write(f"{traceback}\n\n")
        name = run_notebook.find_notebook(arguments.notebook).stem
        raise run_notebook.ExecutionError(
            f"{name}, cell [{error.exec_count}]: {error.ename}: {error.evalue} "
            f"(the executed copy up to there: {run_notebook.partial_copy(arguments.output)})"
        ) from error
