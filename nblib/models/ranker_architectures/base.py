"""What a ranker is."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nblib.errors import StudyError
from nblib.models import weights

if TYPE_CHECKING:
    from torch import nn


class RankerError(StudyError):
    """A ranker that is unknown, absent, or whose scores give no ranking."""


class Ranker:
    """A system (`nblib.models.systems`) that scores a query with a document without one vector for each.

    Attributes:
        name: what its scores are filed under.
        kind: its architecture, as the registry has it.
        source: a hub's id and revision, a folder, or a description.
        model: its network; None where it has none.
    """

    kind: ClassVar[str]

    def __init__(self, model: "nn.Module | None", name: str, source: str) -> None:
        self.model, self.name, self.source = model, name, source

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the architecture and the weights; of the source, where there are no weights."""
        if self.model is None:
            return hashlib.sha256(f"{self.kind}\n{self.source}".encode()).hexdigest()
        return weights.fingerprint(self.model, f"{self.kind}\n{self.model}")

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """How well `documents[i]` answers `queries[i]`, shape [n]; higher is better, and only comparable for one query."""
        raise NotImplementedError
