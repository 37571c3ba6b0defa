"""Execute a notebook headlessly: `nblib run 07 out.ipynb -p system all-mpnet-base-v2`.

Papermill with stricter checks: an unknown parameter, a value of another type, or an executed copy among the sources is an
error. The kernel is that of this environment.
"""

import ast
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from nblib import paths
from nblib.errors import StudyError, readable

# jsonschema, which nbformat imports, compiles the grammars of international web addresses wherever this package is there: 2.5
# of the 3 seconds that papermill takes to import. No notebook's schema has a field of that format.
sys.modules.setdefault("rfc3987_syntax", None)

LONGEST_NAME = 1000  # of a notebook; no system has longer paths in daily use
KERNEL_SECONDS = 300  # for a kernel to start; papermill's 60 are short on a machine that is busy


class ExecutionError(StudyError):
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
    if len(name) < LONGEST_NAME and Path(name).is_file():
        return Path(name).resolve()
    if Path(name).name != name:
        raise ExecutionError(f"No notebook at {name[:LONGEST_NAME]!r}.")
    known = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    found = [path for path in known if name and path.stem.startswith(name.removesuffix(".ipynb"))]
    if len(found) != 1:
        names = ", ".join(path.stem for path in known)
        raise ExecutionError(f"{name[:LONGEST_NAME]!r} names {len(found)} notebooks. There are: {names}.")
    return found[0]


def check_parameters(notebook: Path, given: Mapping[str, object]) -> dict[str, object]:
    """All parameters of a notebook, those given in place of its defaults.

    Raises:
        ExecutionError: a parameter the notebook lacks, a value of another type than its default (of a list, an item), or in a
            notebook of the study a negative number: there, every number is a size, a share or a seed.
    """
    from papermill import inspect_notebook

    with readable(notebook, "Its parameters cell must assign plain values.", ExecutionError):
        declared = inspect_notebook(str(notebook))
        defaults = {name: ast.literal_eval(about["default"]) for name, about in declared.items()}
    for name, value in given.items():
        if name not in declared:
            raise ExecutionError(f"{notebook.stem} has no parameter {name!r}. It has: {', '.join(declared)}.")
        default = defaults[name]
        if not _fits(value, default):
            raise ExecutionError(
                f"{notebook.stem}: parameter {name} is a {type(default).__name__} (default {declared[name]['default']}), "
                f"not {value!r}."
            )
        numbers = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, int | float)]
        if notebook.is_relative_to(paths.NOTEBOOKS) and any(number < 0 for number in numbers):
            raise ExecutionError(f"{notebook.stem}: parameter {name} can't be negative, and is {value!r}.")
    return {**defaults, **given}


def _fits(value: object, default: object) -> bool:
    """Whether a value has a default's type, and the items of a list that of the default's items."""
    if isinstance(value, list) and isinstance(default, list) and default:
        return all(_fits(item, default[0]) for item in value)
    if type(default) is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max  # neither NaN nor 10**400
    return default is None or type(value) is type(default)


def read_parameters(mapping: str, pairs: Sequence[Sequence[str]]) -> dict[str, object]:
    """The parameters of a command line: a YAML mapping, overridden by pairs of a name and a YAML value.

    Args:
        pairs: each as [NAME, VALUE] or [NAME=VALUE].

    Raises:
        ExecutionError: that is not YAML, no mapping, or no pair.
    """
    split = [pair[0].split("=", 1) if len(pair) == 1 else pair for pair in pairs]
    for pair in split:
        if len(pair) != 2:
            raise ExecutionError(f"-p takes a name and a value, as in -p seed 1 or -p seed=1, not {' '.join(pair)!r}.")
    try:
        parameters = yaml.load(mapping, _Reader) or {}
        own = {name: yaml.load(value, _Reader) for name, value in split}
    except Exception as error:  # PyYAML raises whatever its constructors meet, as for 2001-99-99 or !!int
        cause = " ".join(str(error).split()) or type(error).__name__
        raise ExecutionError(f"A parameter is not YAML: {cause}") from error
    if not isinstance(parameters, dict):
        raise ExecutionError(f"-y needs a mapping such as '{{seed: 1}}', not {mapping!r}.")
    return {**parameters, **own}


def execute(notebook: str, output: str | Path, parameters: Mapping[str, object]) -> Path:
    """Run a notebook; write the executed copy to `output` (relative to the working directory).

    While it runs, and when a cell fails, the copy is `<output's name>.partial.ipynb`.

    Raises:
        ExecutionError: see `find_notebook` and `check_parameters`; a source would be overwritten; or the kernel died.
        papermill.PapermillExecutionError: a cell failed.
    """
    import papermill
    from nbclient.exceptions import DeadKernelError

    source, target = find_notebook(notebook), Path(output).expanduser().resolve()
    if target == source or target.is_relative_to(paths.NOTEBOOKS):
        raise ExecutionError(f"{target} would overwrite a source. Choose another place, e.g. runs/{target.name}.")
    check_parameters(source, parameters)
    paths.writable_folder(target.parent)
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, not one registered by the user
    partial = partial_copy(target)
    try:
        papermill.execute_notebook(
            str(source), str(partial), parameters=dict(parameters), cwd=str(paths.PROJECT_ROOT),
            progress_bar={"desc": source.stem}, kernel_name="python3", start_timeout=KERNEL_SECONDS,
            extra_arguments=["--log-level=ERROR"],  # it warns of its loopback connection
        )  # fmt: skip
    except DeadKernelError as error:
        raise ExecutionError(
            f"{source.stem}: its process died, probably for want of memory. Free some, or ask for less at once (batch_size, "
            f"size, --cores). The executed copy up to there: {partial}"
        ) from error
    partial.replace(target)
    return target


def partial_copy(output: str | Path) -> Path:
    """The executed copy of a notebook that hasn't come to its end."""
    return Path(output).with_suffix(".partial.ipynb")
