"""The YAML files that ship with the project and that people edit: registries and declarations, checked when read."""

import json
from pathlib import Path
from typing import Any, TypeVar

from nblib import paths
from nblib.errors import readable

Spec = TypeVar("Spec")
REMEDY = "Correct it, or restore it: it is in git."


def read_yaml(file: Path) -> Any:
    """A YAML file; a StudyError where it is none."""
    import yaml

    with readable(file, REMEDY):
        return yaml.safe_load(file.read_text(encoding="utf-8"))


def read_declared(file: Path, form: Any, spec: type, content: Any = None) -> Any:
    """The declarations of a YAML file, or of its `content` that was read already, as a form such as `list[Spec]`; a StudyError
    where one has a field that the dataclass `spec` lacks, lacks one, or has a value of another type."""
    from pydantic import ConfigDict, TypeAdapter, with_config

    with_config(ConfigDict(extra="forbid"))(spec)
    with readable(file, REMEDY):
        text = json.dumps(content or read_yaml(file), default=str)  # in JSON, a list may be a tuple
        return TypeAdapter(form).validate_json(text, strict=True)


def read_registry(name: str, spec: type[Spec]) -> dict[str, Spec]:
    """The entries of a file of `data/registries` by name: dataclasses with a field `name`; see `read_declared`."""
    file = paths.DATA / "registries" / name
    with readable(file, REMEDY):
        entries = {entry: {**fields, "name": entry} for entry, fields in read_yaml(file).items()}
    return read_declared(file, dict[str, spec], spec, entries)
