"""What a query costs by architecture: one encoder's transformer as a bi-encoder, for MaxSim, and as a cross-encoder.

`make bench` measures them alternately, ranking the same candidates. The passages of a bi-encoder and of MaxSim are encoded
before; a cross-encoder reads them with every query. What a model was trained on doesn't change its cost.
"""

from collections.abc import Iterator

import numpy as np
from measure import STOCK, Case

from nblib.corpora import twins
from nblib.models import embeddings, encoders, rankers

CANDIDATES = 100
FLOAT = 4  # bytes


def cases(sample: int | None) -> Iterator[Case]:
    """One case: seconds to rank the candidates of some queries; the remark has milliseconds a query and bytes a passage."""
    from sentence_transformers import CrossEncoder

    encoder = encoders.load("all-MiniLM-L6-v2")
    table = twins.questions(twins.contrast("train"))
    passages = list(dict.fromkeys(table.positive))[: sample or CANDIDATES]
    queries = table.anchor.head(4 if sample else 20).tolist()
    stored = embeddings.encode(encoder, passages)
    late = rankers.token_maxsim(encoder)
    tokens = late.model.encode_document(passages)
    cross = CrossEncoder(encoder.model[0].auto_model.name_or_path, num_labels=1)

    def one_vector() -> None:
        for query in queries:
            np.argsort(stored @ encoder.model.encode(query))

    def vector_a_token() -> None:
        for query in queries:
            asked = late.model.encode_query(query)
            late.model.similarity_pairwise([asked] * len(passages), list(tokens)).argsort()

    def together() -> None:
        for query in queries:
            cross.predict([(query, passage) for passage in passages]).argsort()

    bytes_kept = {
        STOCK: stored[0].nbytes,
        "MaxSim": np.mean([len(vectors) for vectors in tokens]) * tokens[0].shape[1] * FLOAT,
        "cross-encoder": 0,
    }
    ways = {STOCK: one_vector, "MaxSim": vector_a_token, "cross-encoder": together}
    yield Case(
        f"ranking {len(passages)} passages, all-MiniLM-L6-v2; stock: one vector a text", f"{len(queries)} queries", ways,
        allowed=None,
        remark=lambda way, took: f"{1000 * took / len(queries):.1f} ms a query, {bytes_kept[way]:,.0f} bytes a passage",
    )  # fmt: skip
