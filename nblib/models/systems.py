"""Systems: models of every architecture that score how near two texts are, under one protocol and by one name.

`load(name)` takes the name of an encoder (`nblib.models.encoders`), of an encoder with an adapter (`<encoder>+<file>`, the file
from notebook 06), or of a ranker (`nblib.models.rankers`: Random, TF-IDF, `maxsim:<encoder>`, the folder of a cross-encoder).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from nblib import paths
from nblib.models import embeddings, encoders, negation_adapter, rankers
from nblib.models.encoders import Encoder
from nblib.models.negation_adapter import NegationAdapter
from nblib.models.registry import ModelError, Role

if TYPE_CHECKING:
    from torch import nn

ADAPTER = ".safetensors"


class System(Protocol):
    """What can be scored on the benchmarks.

    Attributes:
        name: what its scores are filed under.
        kind: its architecture: bi-encoder, or as `data/registries/rankers.yaml` has it.
        fingerprint: of everything that shapes a score.
        source: a hub's id and revision, a folder, or a description.
        model: its network; None where it has none.
    """

    name: str
    kind: str
    fingerprint: str
    source: str
    model: "nn.Module | None"

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """How close `documents[i]` is to `queries[i]`, shape [n]; higher is closer."""


@dataclass(frozen=True)
class BiEncoder:
    """An encoder as a system: the similarity of two embeddings."""

    encoder: Encoder
    kind: str = "bi-encoder"
    _kept: dict = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def fingerprint(self) -> str:
        return self.encoder.fingerprint

    @property
    def model(self) -> object:
        return self.encoder.model

    @property
    def base(self) -> str | None:
        """The encoder under the adapter, if it has one."""
        return self.encoder.base.name if self.encoder.base else None

    @property
    def source(self) -> str:
        """The hub's name and revision, or the name of a folder or adapter."""
        spec = self.encoder.spec
        return f"{spec.hub}@{spec.revision}" if spec.hub and spec.revision else spec.hub or self.name

    def score(
        self, queries: Sequence[str], documents: Sequence[str], *, roles: tuple[Role, Role] = ("query", "document"),
        similarity: str | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The similarity of each pair, shape [n].

        Args:
            roles: whose prompts to put before the two sides.
            similarity: "cosine" or "dot"; None: what the encoder was trained for.

        Raises:
            EmbeddingError: see `embeddings.encode`.
        """
        ask, answer = (self._encode(texts, role) for texts, role in zip((queries, documents), roles, strict=True))
        return embeddings.similarity(ask, answer, similarity or self.encoder.spec.similarity)

    def _encode(self, texts: Sequence[str], role: Role) -> np.ndarray:
        if self.encoder.cacheable:
            return embeddings.encode(self.encoder, texts, role=role)
        distinct = frozenset(texts)  # a model in training keeps its embeddings in memory only
        if (role, distinct) not in self._kept:
            ordered = sorted(distinct)
            vectors = embeddings.encode(self.encoder, ordered, role=role)
            self._kept[role, distinct] = dict(zip(ordered, vectors, strict=True))
        return np.stack([self._kept[role, distinct][text] for text in texts])


@dataclass(frozen=True)
class StoredSystem:
    """A system whose weights aren't here, by what `system.json` says of it: its scores can be read, and nothing else asked.

    Attributes:
        run_dir: the run that has its scores.
        base: the encoder under its adapter, if it has one.
        parameters: in millions.
    """

    name: str
    kind: str
    fingerprint: str
    source: str
    run_dir: Path
    base: str | None = None
    parameters: float | None = None
    model: None = None

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """Refuse: see the class.

        Raises:
            ModelError: always.
        """
        raise ModelError(f"The weights of {self.name} aren't here: only its scores in {self.run_dir} can be shown.")


def load(name: str, *, allow_remote_code: bool = False, device: str | None = None) -> System:
    """Load any system, its weights in float32.

    Args:
        name: see the module's docstring.
        allow_remote_code: let a model that needs it run code from the hub.
        device: None takes a GPU where there is one.

    Raises:
        ModelError, RankerError: nothing of that name can be loaded.
        AdapterError: no such adapter, or one of another encoder.
    """
    options = {"allow_remote_code": allow_remote_code, "device": device}
    saved = rankers.saved_in(paths.resolve(name))
    if name in rankers.entries() or name.startswith(rankers.MAXSIM) or saved in rankers.CLASSES:
        return rankers.load(name, **options)
    encoder, plus, file = name.rpartition("+")
    if plus and file.endswith(ADAPTER):
        return BiEncoder(negation_adapter.adapt(encoders.load(encoder, **options), NegationAdapter.load(file)))
    return BiEncoder(encoders.load(name, **options))
