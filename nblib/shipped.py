"""The data that ship with the project and that people edit: registries (YAML) and published numbers (CSV), checked when read."""

import dataclasses
import io
import json
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nblib import paths
from nblib.errors import StudyError

if TYPE_CHECKING:
    import pandas as pd

Spec = TypeVar("Spec")
NUMBER = r"[+-]?\d+(\.\d+)?(e-?\d+)?"


class ShippedError(StudyError):
    """A registry or a table of published numbers that is malformed; says where, and what is wrong there."""


def read_yaml(file: Path) -> Any:
    """A YAML file.

    Raises:
        ShippedError: it is absent, empty, or no YAML.
    """
    import yaml

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise _error(file, "the file", " ".join(str(error).split())) from error
    if not content:
        raise _error(file, "the file", "it is empty")
    return content


def read_registry(name: str, spec: Callable[..., Spec]) -> dict[str, Spec]:
    """The entries of a file of `data/registries`, by name.

    Args:
        spec: a dataclass with a field `name`; each entry has its other fields.

    Raises:
        ShippedError: an entry has an unknown field, lacks one, or has a value of another type.
    """
    from pydantic import TypeAdapter, ValidationError

    file = paths.DATA / "registries" / name
    declared, made, known = read_yaml(file), TypeAdapter(spec), {field.name for field in dataclasses.fields(spec)}
    if not isinstance(declared, dict):
        raise _error(file, "the file", "it is no list of names with their entries")
    found = {}
    for entry, fields in declared.items():
        wrong = partial(_error, file, f"the entry {entry!r}")
        if not isinstance(entry, str) or not isinstance(fields, dict):
            raise wrong("a name with a list of fields is wanted")
        if unknown := fields.keys() - known:
            raise wrong(f"the unknown field {sorted(map(str, unknown))[0]}")
        try:
            found[entry] = made.validate_json(json.dumps({**fields, "name": entry}, default=str), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            raise wrong(f"{'.'.join(map(str, first['loc']))}: {first['msg']}, not {first['input']!r}") from error
    return found


def read_table(
    name: str, columns: Collection[str], numbers: Collection[str] = (), words: Collection[str] = ()
) -> "pd.DataFrame":
    """A table of `data/published` as text, its `numbers` as numbers (NaN where a cell is empty or one of the `words`).

    Raises:
        ShippedError: a column is missing, or a cell is malformed; names its row and column.
    """
    import pandas as pd

    file = paths.DATA / "published" / name
    try:
        text = file.read_text(encoding="utf-8")
        if "\0" in text:  # would end a cell without a word
            raise ValueError("it has a NUL character")
        table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:  # also of pandas' parser, and of a text that isn't UTF-8
        raise _error(file, "the file", " ".join(str(error).split())) from error
    if list(table.columns) != list(columns):
        raise _error(file, "row 1", f"the columns are {', '.join(table.columns)}, not {', '.join(columns)}")
    for column in columns:
        cells = table[column]
        wanted = "one line of text"
        right = cells.map(lambda cell: isinstance(cell, str) and cell.isprintable()).astype(bool)
        if column in numbers:
            wanted, right = "a number", cells.str.fullmatch(NUMBER) | cells.isin({"", *words})
        if not right.all():
            row = right.idxmin()
            raise _error(file, f"row {row + 2}, column {column}", f"{cells[row]!r} is not {wanted}")
        if column in numbers:
            table[column] = pd.to_numeric(cells.where(cells.str.fullmatch(NUMBER), None))
    return table


def _error(file: Path, where: str, fault: str) -> ShippedError:
    return ShippedError(f"{file}, {where}: {fault}. Correct it, or restore the file: git checkout {file}")
