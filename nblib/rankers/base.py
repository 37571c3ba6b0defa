"""What a ranker is."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class RankerError(ValueError):
    """A ranker that is unknown, absent, or gives scores no ranking can be made of."""


class Ranker(Protocol):
    """What ranks.

    Attributes:
        name: what its scores are filed under.
        kind: its architecture, as the registry has it.
        source: where it comes from: a hub's id and revision, a folder, or a sentence about it.
    """

    name: str
    kind: str
    source: str

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """How well `documents[i]` answers `queries[i]`, shape [n]; higher is better, and only comparable for one query."""
