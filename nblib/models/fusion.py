"""Search in two stages: a first encoder retrieves documents, and the cosines of a second one, fused with its own, order them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nblib.errors import StudyError
from nblib.models import embeddings
from nblib.models.encoders import Encoder
from nblib.models.registry import Role


def search(
    queries: Sequence[str],
    documents: Sequence[str],
    first: Encoder,
    second: Encoder,
    *,
    weight: float,
    depth: int = 100,
) -> pd.DataFrame:
    """The documents that `first` retrieves for each query, ordered by fused cosines, (1 − weight) · first + weight · second. A
    StudyError: a weight that is no share, no text, or texts that can't be encoded.

    Args:
        weight: of the second encoder's cosine, 0 (the first encoder alone) to 1 (the second orders what the first retrieves).
        depth: how many documents are retrieved for a query.

    Returns:
        query and document (their places, from 0), first and second (cosines) and score, best first for each query.
    """
    if not 0 <= weight <= 1 or depth < 1 or not len(queries) or not len(documents):
        raise StudyError("Two stages need queries, documents, a weight from 0 to 1 and a depth of 1 or more.")
    encoders, parts = (first, second), []
    of_queries = [_unit(encoder, queries, "query") for encoder in encoders]
    of_documents = [_unit(encoder, documents, "document") for encoder in encoders]
    for query, (one, other) in enumerate(zip(*of_queries, strict=True)):
        cosines = of_documents[0] @ one
        found = np.argsort(-cosines, kind="stable")[:depth]
        again = of_documents[1][found] @ other
        parts.append(pd.DataFrame({"query": query, "document": found, "first": cosines[found], "second": again}))
    table = pd.concat(parts)
    table["score"] = (1 - weight) * table["first"] + weight * table.second
    return table.sort_values(["query", "score"], ascending=[True, False], kind="stable", ignore_index=True)


def _unit(encoder: Encoder, texts: Sequence[str], role: Role) -> np.ndarray:
    """Embeddings of length 1, float32 [len(texts), dimension]."""
    vectors = embeddings.encode(encoder, texts, role=role)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
