"""Execute a notebook headlessly: `python -m nblib.execution 06 out.ipynb -p encoder all-mpnet-base-v2`.

Papermill with the strictness a batch run needs: a parameter the notebook doesn't have, or of another type, is an error;
the kernel is that of this environment; the executed copy never lands on a source.
"""

import argparse
import ast
import os
import re
import sys
from pathlib import Path

import yaml

from nblib import paths

# glibc hands each large tensor's memory back to the system and asks for it anew in the next step; keeping it makes training on
# a CPU 1.4 times as fast (all-mpnet-base-v2, 96 texts a step). Other C libraries ignore these.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": 2**32, "MALLOC_TRIM_THRESHOLD_": 2**34, "MALLOC_TOP_PAD_": 2**28}


class ExecutionError(ValueError):
    """A notebook, parameter or output that can't be used."""


class _Reader(yaml.SafeLoader):
    """YAML as 1.2 has it, and JSON: 2e-05 is a number. PyYAML follows 1.1, to which it is text."""


_Reader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def find_notebook(name: str) -> Path:
    """A notebook by number ("06"), name or path.

    Raises:
        ExecutionError: there is none, or the number fits several.
    """
    if Path(name).is_file():
        return Path(name).resolve()
    if Path(name).name != name:
        raise ExecutionError(f"No notebook at {Path(name).resolve()}.")
    found = sorted(paths.NOTEBOOKS.glob(f"{Path(name).stem}*.ipynb"))
    if len(found) != 1:
        known = ", ".join(path.stem for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")))
        raise ExecutionError(f"{name!r} names {len(found)} notebooks. There are: {known}.")
    return found[0]


def check_parameters(notebook: Path, given: dict[str, object]) -> None:
    """Raises:
    ExecutionError: a parameter the notebook lacks, or a value of another type than its default.
    """
    from papermill import inspect_notebook

    declared = inspect_notebook(str(notebook))
    for name, value in given.items():
        if name not in declared:
            raise ExecutionError(f"{notebook.stem} has no parameter {name!r}. It has: {', '.join(declared)}.")
        default = ast.literal_eval(declared[name]["default"])
        fits = type(value) is type(default) or default is None or (type(default) is float and type(value) is int)
        if not fits:
            raise ExecutionError(
                f"{notebook.stem}: parameter {name} is a {type(default).__name__} (default {declared[name]['default']}), "
                f"not {value!r}."
            )


def read_parameters(mapping: str, pairs: list[list[str]]) -> dict[str, object]:
    """The parameters of a command line: a YAML mapping, overridden by pairs of a name and a YAML value.

    Raises:
        ExecutionError: that is not YAML, or no mapping.
    """
    try:
        parameters = yaml.load(mapping, _Reader) or {}
        own = {name: yaml.load(value, _Reader) for name, value in pairs}
    except yaml.YAMLError as error:
        raise ExecutionError(f"A parameter is not YAML: {error}") from error
    if not isinstance(parameters, dict):
        raise ExecutionError(f"-y needs a mapping such as '{{seed: 1}}', not {mapping!r}.")
    return {**parameters, **own}


def execute(notebook: str, output: str | Path, parameters: dict[str, object]) -> Path:
    """Run a notebook and write the executed copy to `output` (relative to the working directory, as the shell user means
    it), complete up to the failing cell if one fails.

    Raises:
        ExecutionError: see above; or the output would overwrite a source.
        papermill.PapermillExecutionError: a cell failed.
    """
    import papermill

    source, target = find_notebook(notebook), Path(output).expanduser().resolve()
    if target == source or target.is_relative_to(paths.NOTEBOOKS):
        raise ExecutionError(
            f"{target} would overwrite a source. Executed copies go elsewhere, e.g. runs/{target.name}."
        )
    check_parameters(source, parameters)
    paths.writable_folder(target.parent)
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, not one registered by the user
    for name, size in KEEP_MEMORY.items():
        os.environ.setdefault(name, str(size))
    papermill.execute_notebook(
        str(source),
        str(target),
        parameters=parameters,
        kernel_name="python3",
        cwd=str(paths.PROJECT_ROOT),
        progress_bar={"desc": f"{source.stem} {parameters.get('encoder', '')}".strip()},
        extra_arguments=["--log-level=ERROR"],  # the kernel warns of its loopback connection at every start
    )
    return target


def main(arguments: list[str] | None = None) -> None:
    """The command line: messages instead of tracebacks for whatever the caller can mend."""
    parser = argparse.ArgumentParser(prog="python -m nblib.execution", description="Execute a notebook headlessly.")
    parser.add_argument("notebook", help="number (06), name or path")
    parser.add_argument("output", help="where the executed copy goes")
    parser.add_argument(
        "-p", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="a parameter; YAML value"
    )
    parser.add_argument("-y", metavar="YAML", default="{}", help="several parameters as a YAML or JSON mapping")
    options = parser.parse_args(arguments)
    from papermill.exceptions import PapermillExecutionError

    try:
        parameters = read_parameters(options.y, options.p)
        execute(options.notebook, options.output, parameters)
    except (ExecutionError, PermissionError) as error:
        sys.exit(f"error: {error}")
    except PapermillExecutionError as error:
        traceback = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
        sys.exit(
            f"{traceback}\n\nerror: {find_notebook(options.notebook).stem}, cell [{error.exec_count}]: {error.ename}: "
            f"{error.evalue}\nThe executed copy up to there: {options.output}"
        )


if __name__ == "__main__":
    main()
