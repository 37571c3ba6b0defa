"""Systems: models of every architecture that score how near two texts are, under one protocol and by one name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from nblib.models import embeddings, encoders, loading, negation_adapter, rankers, registry
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
        self.encoder, self.model, self.name, self.fingerprint = (
            encoder,
            encoder.model,
            encoder.name,
            encoder.fingerprint,
        )
        self.base = encoder.base.name if encoder.base else None
        self.adapter, self.source = encoder.adapter, encoder.source

    def score(
        self, queries: Sequence[str], documents: Sequence[str], *, roles: Roles = SEARCH, similarity: str | None = None
    ) -> np.ndarray:
        sides = zip((queries, documents), roles, strict=True)
        vectors = [embeddings.encode(self.encoder, texts, role=role) for texts, role in sides]
        own = self.model.similarity_fn_name
        return embeddings.similarity(*vectors, own if self.adapter else similarity or own)  # an adapter's is part of it


def load(name: str, *, allow_remote_code: bool = False, device: str | None = None) -> System:
    """Load any system, its weights in float32; options as `encoders.load`.

    Args:
        name: a registered name, `maxsim:<encoder>`, `<encoder>+<file>` for an encoder with an adapter of notebook 06, a folder
            (both looked for as `loading.locate` does), or an id on the hub.

    Raises:
        ModelError, RankerError: nothing of that name can be loaded.
        AdapterError: an adapter of an encoder of another dimension.
    """
    options = {"allow_remote_code": allow_remote_code, "device": device}
    if name in rankers.entries() or name.startswith(rankers.MAXSIM):
        return rankers.load(name, **options)
    if "+" in name and name.endswith(ADAPTER) and not loading.local(name).is_dir():
        splits = [(name[:place], loading.local(name[place + 1 :])) for place, sign in enumerate(name) if sign == "+"]
        encoder, file = next((split for split in splits if split[1].is_file()), splits[-1])
        adapter = NegationAdapter.load(file)
        return BiEncoder(negation_adapter.adapt(encoders.load(encoder, **options), adapter))
    if registry.find(name) or loading.class_of(loading.locate(name)) == loading.ENCODER:
        return BiEncoder(encoders.load(name, **options))
    return rankers.load(name, **options)
