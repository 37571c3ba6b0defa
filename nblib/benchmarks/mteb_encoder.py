"""Our encoders as mteb sees them: cached on disk, each text with the prompt of its role, and never anonymous."""

from collections import defaultdict
from typing import Any

import numpy as np
from mteb.models import ModelMeta
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ScoringFunction
from mteb.types import PromptType
from torch.utils.data import DataLoader

from nblib.errors import StudyError
from nblib.models import embeddings
from nblib.models.encoders import Encoder
from nblib.models.registry import Role

ROLES: dict[PromptType | None, Role] = {None: "symmetric", PromptType.query: "query", PromptType.document: "document"}


class MtebEncoder(AbsEncoder):
    """An encoder for `mteb.evaluate`.

    mteb files scores under the model's name and revision, and puts every model without them under one and the same entry,
    from which it later serves the scores of the first. Here the revision is the fingerprint of everything that
    shapes an embedding, so weights trained anew under an old name are another model.

    Attributes:
        seen: what was encoded, task → role → distinct texts (for the report on truncation).
    """

    def __init__(self, encoder: Encoder, *, batch_size: int = 64) -> None:
        self.encoder = encoder
        if batch_size < 1:
            raise StudyError(f"batch_size must be at least 1, not {batch_size}.")
        self.batch_size = batch_size
        self.seen: dict[str, dict[Role, set[str]]] = defaultdict(lambda: defaultdict(set))
        spec = encoder.spec
        self.mteb_model_meta = ModelMeta.create_empty({
            "name": f"nblib/{encoder.name}",
            "revision": encoder.fingerprint,
            "similarity_fn_name": ScoringFunction(spec.similarity),
            "use_instructions": bool(spec.query_prompt or spec.document_prompt or spec.symmetric_prompt),
            "max_tokens": spec.max_length,
        })  # fmt: skip

    def encode(
        self, inputs: DataLoader, *, task_metadata: Any, prompt_type: PromptType | None = None, **_: Any
    ) -> np.ndarray:
        """Embeddings, float32 [number of texts, dimension]; symmetric tasks give no prompt type.

        Raises:
            EmbeddingError: see `embeddings.encode`.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        role = ROLES[prompt_type]
        # Some corpora on the hub have empty documents (ours are refused when loaded); mteb's models read them as they are.
        texts = [text if text.strip() else "-" for text in texts]
        self.seen[task_metadata.name][role].update(texts)
        return embeddings.encode(self.encoder, texts, role=role, batch_size=self.batch_size)
