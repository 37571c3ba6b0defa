"""Execute a notebook headlessly, by papermill with stricter checks of the parameters."""

import ast
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from nblib import paths
from nblib.errors import StudyError, check_address, readable

# jsonschema, which nbformat imports, spends 2.5 seconds on grammars of web addresses, which no notebook's schema has
sys.modules.setdefault("rfc3987_syntax", None)
NAVIGATION = re.compile(r"^.*\[all notebooks\]\(README\.md\).*\n+", re.MULTILINE)  # a source's links to its neighbours
KERNEL_SECONDS = 300  # for a kernel to start; papermill's 60 are short on a machine that is busy


class _Reader(yaml.SafeLoader):
    """YAML as 1.2 has it, and JSON: 2e-05 is a number. PyYAML follows 1.1, to which it is text."""


EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
_Reader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+0123456789"))


def find_notebook(name: str) -> Path:
    """A notebook by number ("06"), name or path.

    Raises:
        StudyError: there is none, or the number fits several.
    """
    if Path(name).is_file():
        return Path(name).resolve()
    known = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    found = [path for path in known if name and path.stem.startswith(name.removesuffix(".ipynb"))]
    if len(found) != 1:
        raise StudyError(f"{name!r} names {len(found)} notebooks. There are: {', '.join(path.stem for path in known)}.")
    return found[0]


def check_parameters(notebook: Path, given: Mapping[str, object]) -> dict[str, object]:
    """All parameters of a notebook, those given in place of its defaults.

    Raises:
        StudyError: an unknown parameter, a value of another type than its default (or of a list's item), or in a notebook of
            the study a negative number: there, every number is a size, a share or a seed.
    """
    defaults = _defaults(notebook)
    for name, value in given.items():
        if name not in defaults:
            raise StudyError(f"{notebook.stem} has no parameter {name!r}. It has: {', '.join(defaults)}.")
        default, items = defaults[name], value if isinstance(value, list) else [value]
        negative = any(isinstance(item, int | float) and item < 0 for item in items)
        if not _fits(value, default) or (negative and notebook.is_relative_to(paths.NOTEBOOKS)):
            kind = (
                f"list of {type(default[0]).__name__}"
                if isinstance(default, list) and default
                else type(default).__name__
            )
            what = f"must be a {kind}{', not negative,' * negative} and is {value!r}"
            raise StudyError(f"{notebook.stem}: {name} {what}. Write it as here: -y '{json.dumps({name: default})}'")
    return {**defaults, **given}


def _defaults(notebook: Path) -> dict[str, object]:
    from papermill import inspect_notebook

    with readable(notebook, "Its parameters cell must assign plain values."):
        declared = inspect_notebook(str(notebook))
        return {name: ast.literal_eval(about["default"]) for name, about in declared.items()}


def _fits(value: object, default: object) -> bool:
    """Whether a value has a default's type, and the items of a list that of the default's items."""
    if isinstance(value, list) and isinstance(default, list) and default:
        return all(_fits(item, default[0]) for item in value)
    if type(default) is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max  # neither NaN nor 10**400
    return default is None or type(value) is type(default)


def read_parameters(notebook: Path, mappings: Sequence[str], pairs: Sequence[Sequence[str]]) -> dict[str, object]:
    """The parameters of a command line: YAML mappings, where a later one wins, overridden by pairs.

    A pair is [NAME, VALUE] or [NAME=VALUE]. Its value is YAML, too, but where the notebook's default is a text, it is the text
    as typed (or in quotes): 007, no, 1e5.

    Raises:
        StudyError: that is not YAML, no mapping, or no pair.
    """
    texts = {name for name, default in _defaults(notebook).items() if isinstance(default, str)}
    split = [pair[0].split("=", 1) if len(pair) == 1 else pair for pair in pairs]
    try:
        given = {}
        for mapping in mappings:
            given |= {**(yaml.load(mapping, _Reader) or {})}
        for name, value in split:
            as_typed = name in texts and value[:1] not in ("'", '"')
            given[name] = value if as_typed else yaml.load(value, _Reader)
        return given
    except Exception as error:  # PyYAML raises whatever its constructors meet, as for 2001-99-99 or !!int
        cause = " ".join(str(error).split()) or type(error).__name__
        raise StudyError(f"Not YAML, no mapping (-y '{{seed: 1}}'), or no pair (-p NAME VALUE): {cause}") from error


def execute(notebook: str, output: str | Path, parameters: Mapping[str, object]) -> Path:
    """Run a notebook; write the executed copy, without the source's navigation, to `output` (relative to the working directory).

    While it runs, and when a cell fails, the copy is `partial_copy(output)`.

    Raises:
        StudyError: see `find_notebook`, `check_parameters` and `check_address`; a source would be overwritten; the kernel died.
        papermill.PapermillExecutionError: a cell failed.
    """
    import nbformat
    import papermill
    from nbclient.exceptions import DeadKernelError

    source, target = find_notebook(notebook), Path(output).expanduser().resolve()
    if target == source or target.is_relative_to(paths.NOTEBOOKS):
        raise StudyError(f"{target} would overwrite a source. Choose another place, such as runs/{target.name}.")
    check_parameters(source, parameters)
    for name, value in parameters.items():
        check_address(str(value), name)
    paths.writable_folder(target.parent)
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, not one registered by the user
    partial = partial_copy(target)
    options = {"kernel_name": "python3", "start_timeout": KERNEL_SECONDS, "progress_bar": {"desc": source.stem}}
    options["extra_arguments"] = ["--log-level=ERROR"]  # it warns of its loopback connection
    try:
        executed = papermill.execute_notebook(
            str(source), str(partial), parameters=dict(parameters), cwd=str(paths.PROJECT_ROOT), **options
        )
    except DeadKernelError as error:
        remedy = f"Ask for less at once (batch_size, size, --cores). The executed copy up to there: {partial}"
        raise StudyError(f"{source.stem}: its process died, probably for want of memory. {remedy}") from error
    for cell in executed.cells:
        cell.source = NAVIGATION.sub("", cell.source)
    nbformat.write(executed, partial)
    partial.replace(target)
    return target


def partial_copy(output: str | Path) -> Path:
    """The executed copy of a notebook that hasn't come to its end."""
    return Path(output).with_suffix(".partial.ipynb")
