"""Search in two stages: a first encoder retrieves documents, and the cosines of a second one, fused with its own, order them."""

from collections.abc import Sequence

import pandas as pd

from nblib.errors import StudyError
from nblib.models import embeddings
from nblib.models.encoders import Encoder


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
    from sentence_transformers.util import semantic_search  # takes seconds to import

    of_queries, of_documents = (
        [embeddings.encode(encoder, texts, role=role) for encoder in (first, second)]
        for texts, role in ((queries, "query"), (documents, "document"))
    )
    hits = semantic_search(of_queries[0], of_documents[0], top_k=depth)
    found = [(query, hit["corpus_id"], hit["score"]) for query, best in enumerate(hits) for hit in best]
    table = pd.DataFrame(found, columns=["query", "document", "first"])
    table["second"] = embeddings.similarity(of_queries[1][table["query"]], of_documents[1][table.document])
    table["score"] = (1 - weight) * table["first"] + weight * table.second
    return table.sort_values(["query", "score"], ascending=[True, False], kind="stable", ignore_index=True)
