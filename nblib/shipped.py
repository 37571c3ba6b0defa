"""The YAML files that ship with the project and that people edit: registries and declarations, checked when read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nblib import paths
from nblib.errors import readable

Spec = TypeVar("Spec")
REMEDY = "Correct it, or restore it: it is in git."


def read_yaml(file: Path) -> Any:
    """A YAML file.

    Raises:
        StudyError: it is no YAML.
    """
    import yaml

    with readable(file, REMEDY):
        return yaml.safe_load(file.read_text(encoding="utf-8"))


def read_registry(name: str, spec: Callable[..., Spec]) -> dict[str, Spec]:
    """The entries of a file of `data/registries`, by name.

    Args:
        spec: a dataclass with a field `name`; each entry has its other fields.

    Raises:
        StudyError: an entry has an unknown field, lacks one, or has a value of another type.
    """
    from pydantic import ConfigDict, TypeAdapter, with_config

    file = paths.DATA / "registries" / name
    entries = TypeAdapter(dict[str, with_config(ConfigDict(extra="forbid"))(spec)])
    with readable(file, REMEDY):
        declared = {entry: {**fields, "name": entry} for entry, fields in read_yaml(file).items()}
        return entries.validate_json(json.dumps(declared, default=str), strict=True)  # in JSON, a list may be a tuple
