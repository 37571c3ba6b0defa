"""Systems: models of every architecture that score how near two texts are, under one protocol and by one name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from nblib.models import embeddings, encoders, negation_adapter, rankers
from nblib.models.encoders import Encoder
from nblib.models.negation_adapter import NegationAdapter
from nblib.models.registry import Role

if TYPE_CHECKING:
    from torch import nn

ADAPTER = ".safetensors"
Roles = tuple[Role, Role]
SEARCH: Roles = ("query", "document")


class System(Protocol):
    """What can be scored on the benchmarks."""

    name: str  # what its scores are filed under
    architecture: str  # bi-encoder, or as `data/registries/rankers.yaml` has it
    fingerprint: str  # of everything that shapes a score
    source: str  # a hub's id and revision, a folder, or a description
    base: str | None  # the encoder under an adapter
    adapter: str  # key of the adapter's weighting
    model: "nn.Module | None"  # None where it has no network

    def score(
        self, queries: Sequence[str], documents: Sequence[str], *, roles: Roles = SEARCH, similarity: str | None = None
    ) -> np.ndarray:
        """How close `documents[i]` is to `queries[i]`, shape [n]; higher is closer.

        Args:
            roles: whose prompts an encoder puts before the two sides.
            similarity: an encoder's, "cosine" or "dot"; None: its own.
        """


class BiEncoder:
    """An encoder as a system: the similarity of two embeddings."""

    architecture = "bi-encoder"

    def __init__(self, encoder: Encoder) -> None:
        spec = encoder.spec
        self.encoder, self.model, self.name, self.fingerprint = encoder, encoder.model, spec.name, encoder.fingerprint
        self.base, self.adapter = encoder.base.name if encoder.base else None, encoder.adapter
        self.source = f"{spec.hub}@{spec.revision}" if spec.hub and spec.revision else spec.hub or spec.name

    def score(
        self, queries: Sequence[str], documents: Sequence[str], *, roles: Roles = SEARCH, similarity: str | None = None
    ) -> np.ndarray:
        sides = zip((queries, documents), roles, strict=True)
        vectors = [embeddings.encode(self.encoder, texts, role=role) for texts, role in sides]
        return embeddings.similarity(*vectors, similarity or self.encoder.spec.similarity)


def load(name: str, *, allow_remote_code: bool = False, device: str | None = None) -> System:
    """Load any system, its weights in float32; options as `encoders.load`.

    Args:
        name: an encoder's (see `encoders.load`), `<encoder>+<file>` for one with an adapter of notebook 06, or a ranker's.

    Raises:
        ModelError, RankerError: nothing of that name can be loaded.
        AdapterError: an adapter of another encoder.
    """
    options = {"allow_remote_code": allow_remote_code, "device": device}
    if rankers.is_ranker(name):
        return rankers.load(name, **options)
    encoder, plus, file = name.rpartition("+")
    if plus and file.endswith(ADAPTER):
        return BiEncoder(negation_adapter.adapt(encoders.load(encoder, **options), NegationAdapter.load(file)))
    return BiEncoder(encoders.load(name, **options))
