"""Execute a notebook headlessly: `nblib run 07 out.ipynb -p system all-mpnet-base-v2`.

Papermill with stricter checks: an unknown parameter, a value of another type, a missing declared output (`outputs`), or an
executed copy among the sources is an error. The kernel is that of this environment.
"""

import ast
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from nblib import paths
from nblib.errors import StudyError
from nblib.workflow import outputs

# glibc returns each large tensor's memory to the system; keeping it makes training on a CPU 1.4 times as fast
# (all-mpnet-base-v2, 96 texts a step). Other C libraries ignore these.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": 2**32, "MALLOC_TRIM_THRESHOLD_": 2**34, "MALLOC_TOP_PAD_": 2**28}

STILLBORN = "Kernel died before replying"  # what jupyter_client says of it
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
    if Path(name).is_file():
        return Path(name).resolve()
    if Path(name).name != name:
        raise ExecutionError(f"No notebook at {Path(name).resolve()}.")
    found = sorted(paths.NOTEBOOKS.glob(f"{Path(name).stem}*.ipynb"))
    if len(found) != 1:
        known = ", ".join(path.stem for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")))
        raise ExecutionError(f"{name!r} names {len(found)} notebooks. There are: {known}.")
    return found[0]


def check_parameters(notebook: Path, given: Mapping[str, object]) -> dict[str, object]:
    """All parameters of a notebook, those given in place of its defaults.

    Raises:
        ExecutionError: a parameter the notebook lacks, or a value of another type than its default.
    """
    from papermill import inspect_notebook

    declared = inspect_notebook(str(notebook))
    defaults = {name: ast.literal_eval(about["default"]) for name, about in declared.items()}
    for name, value in given.items():
        if name not in declared:
            raise ExecutionError(f"{notebook.stem} has no parameter {name!r}. It has: {', '.join(declared)}.")
        default = defaults[name]
        fits = type(value) is type(default) or default is None or (type(default) is float and type(value) is int)
        if not fits:
            raise ExecutionError(
                f"{notebook.stem}: parameter {name} is a {type(default).__name__} (default {declared[name]['default']}), "
                f"not {value!r}."
            )
    return {**defaults, **given}


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
    except yaml.YAMLError as error:
        raise ExecutionError(f"A parameter is not YAML: {error}") from error
    if not isinstance(parameters, dict):
        raise ExecutionError(f"-y needs a mapping such as '{{seed: 1}}', not {mapping!r}.")
    return {**parameters, **own}


def execute(notebook: str, output: str | Path, parameters: Mapping[str, object]) -> Path:
    """Run a notebook; write the executed copy to `output` (relative to the working directory), up to a failing cell.

    Raises:
        ExecutionError: see `find_notebook` and `check_parameters`; a source would be overwritten; or an output is missing.
        papermill.PapermillExecutionError: a cell failed.
    """
    import papermill

    source, target = find_notebook(notebook), Path(output).expanduser().resolve()
    if target == source or target.is_relative_to(paths.NOTEBOOKS):
        raise ExecutionError(f"{target} would overwrite a source. Choose another place, e.g. runs/{target.name}.")
    used = check_parameters(source, parameters)
    paths.writable_folder(target.parent)
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, not one registered by the user
    for name, size in KEEP_MEMORY.items():
        os.environ.setdefault(name, str(size))
    started = time.time()
    bar = {"desc": f"{source.stem} {parameters.get('system', parameters.get('encoder', ''))}".strip()}
    kernel = {"kernel_name": "python3", "start_timeout": KERNEL_SECONDS}
    kernel["extra_arguments"] = ["--log-level=ERROR"]  # it warns of its loopback connection
    where = {"cwd": str(paths.PROJECT_ROOT), "progress_bar": bar}
    try:
        papermill.execute_notebook(str(source), str(target), parameters=dict(parameters), **where, **kernel)
    except RuntimeError as error:
        if STILLBORN not in str(error):
            raise
        # two kernels that start at once can draw the same port: the later one dies before its first cell, and nothing is lost
        papermill.execute_notebook(str(source), str(target), parameters=dict(parameters), **where, **kernel)
    if absent := outputs.missing(source.stem, used, started):
        raise ExecutionError(
            f"{source.stem} ran to its end and left no {', '.join(absent)}. Change the notebook, or its entry in "
            f"nblib/workflow/outputs.py. The executed copy: {target}"
        )
    return target
