"""The encoders by name: what each is, where its weights come from, and how it wants to be used (data/registries/)."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Literal

from nblib import paths, shipped
from nblib.errors import StudyError

Role = Literal["symmetric", "query", "document"]
REGISTRIES = ("models.yaml", "sentence_transformers.yaml")
RANKERS = "rankers.yaml"


class ModelError(StudyError):
    """A model that is unknown, absent, or not the one the registry describes."""


@dataclass(frozen=True)
class ModelSpec:
    """What a model is and how it wants to be used; the fields are described in `data/registries/models.yaml`."""

    name: str
    hub: str | None = None
    revision: str | None = None
    sha256: str | None = None
    package: dict | None = None
    similarity: Literal["cosine", "dot", "euclidean", "manhattan"] | None = None
    max_length: int | None = None
    query_prompt: str = ""
    document_prompt: str = ""
    symmetric_prompt: str = ""
    remote_code: bool = False
    query_encoder: str | None = None


@cache
def entries() -> dict[str, ModelSpec]:
    """All registered encoders by name."""
    return {name: spec for file in REGISTRIES for name, spec in shipped.read_registry(file, ModelSpec).items()}


@cache
def names() -> frozenset[str]:
    """All registered names, those of rankers too."""
    return frozenset([*entries(), *shipped.read_yaml(paths.DATA / "registries" / RANKERS)])


def find(name: str) -> ModelSpec | None:
    """The registered encoder of a name, or of an id on the hub."""
    by_hub = {spec.hub: spec for spec in entries().values() if spec.hub and not spec.query_encoder}
    return entries().get(name) or by_hub.get(name)


def did_you_mean(name: str, known: Collection[str]) -> str:
    """A question with the names that look like an unknown one, if any."""
    similar = [] if name in known else difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    return f"Did you mean {' or '.join(similar)}? " if similar else ""
