"""Search in two stages: the first encoder chooses the documents, the fused cosines order them."""

from dataclasses import replace

import numpy as np
import pytest
from support.close import assert_close

from nblib.errors import StudyError
from nblib.models import embeddings, fusion

QUERIES = ["the dog is red", "a cat"]
DOCUMENTS = ["the dog is not red", "it is", "A man", "the dog is red"]


def cosines(encoder, queries=QUERIES, documents=DOCUMENTS):
    query, document = (embeddings.encode(encoder, texts) for texts in (queries, documents))
    return np.array([embeddings.similarity(np.tile(one, (len(document), 1)), document) for one in query])


@pytest.fixture
def second(tiny_encoder):
    """The tiny encoder with every other dimension alone."""
    return replace(
        tiny_encoder,
        name="half",
        base=tiny_encoder,
        transform=lambda vectors: vectors * (np.arange(vectors.shape[1]) % 2),
    )


@pytest.mark.parametrize("weight", [0, 0.3, 1])
def test_documents_are_ordered_by_the_fused_cosine(tiny_encoder, second, weight):
    found = fusion.search(QUERIES, DOCUMENTS, tiny_encoder, second, weight=weight)
    fused = (1 - weight) * cosines(tiny_encoder) + weight * cosines(second)
    for query, rows in found.groupby("query"):
        assert rows.document.tolist() == np.argsort(-fused[query]).tolist()
        assert_close(rows.score.to_numpy(), np.sort(fused[query])[::-1])


def test_the_second_encoder_sees_what_the_first_retrieves_alone(tiny_encoder, second):
    found = fusion.search(QUERIES, DOCUMENTS, tiny_encoder, second, weight=1, depth=2)
    best = np.argsort(-cosines(tiny_encoder), axis=1)[:, :2]
    assert [set(rows.document) for _, rows in found.groupby("query")] == [set(row) for row in best]


@pytest.mark.parametrize("given", [{"weight": 1.2}, {"weight": 0.5, "depth": 0}])
def test_nonsense_is_refused(tiny_encoder, second, given):
    with pytest.raises(StudyError, match="weight from 0 to 1"):
        fusion.search(QUERIES, DOCUMENTS, tiny_encoder, second, **given)
