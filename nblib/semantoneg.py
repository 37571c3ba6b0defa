"""SemAntoNeg (Vahtola et al.): choose the paraphrase of a sentence among three candidates with negations and antonyms."""

import numpy as np
import pandas as pd

from nblib import corpora, embeddings
from nblib.models import Encoder


def load(name: str = "semantoneg") -> pd.DataFrame:
    """A SemAntoNeg corpus: idx, input, positive, negatives (list of two), sentence_set.

    Rows that ask about the same four sentences share a `sentence_set` (the official 3,152 rows come from 770 sets); they
    are not independent, and a split that separates them shares sentences between its parts.
    """
    return items(corpora.load(name))


def items(table: pd.DataFrame) -> pd.DataFrame:
    """The same from any table with idx, label, input and sentences, such as `semantoneg_construction` makes."""
    sets = [frozenset([row.input, *row.sentences]) for row in table.itertuples()]
    return pd.DataFrame(
        {
            "idx": table.idx,
            "input": table.input,
            "positive": [row.sentences[row.label] for row in table.itertuples()],
            "negatives": [[s for k, s in enumerate(row.sentences) if k != row.label] for row in table.itertuples()],
            "sentence_set": pd.factorize(pd.Series(sets))[0],
        }
    )


def encode(table: pd.DataFrame, encoder: Encoder) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings of inputs [n, d], positives [n, d] and negatives [n, 2, d]."""
    vectors = embeddings.encode(
        encoder, [*table.input, *table.positive, *(s for pair in table.negatives for s in pair)]
    )
    n = len(table)
    return vectors[:n], vectors[n : 2 * n], vectors[2 * n :].reshape(n, 2, -1)


def predictions(table: pd.DataFrame, encoder: Encoder) -> pd.DataFrame:
    """Per item the cosine of the input with each candidate, and whether the positive is strictly the nearest (Vahtola §4
    uses cosine for every model; a tie is wrong).

    Returns:
        idx, sentence_set, positive, negative_1, negative_2 (cosines), correct.
    """
    inputs, positives, negatives = encode(table, encoder)
    scores = {
        "positive": embeddings.similarity(inputs, positives),
        "negative_1": embeddings.similarity(inputs, negatives[:, 0]),
        "negative_2": embeddings.similarity(inputs, negatives[:, 1]),
    }
    correct = (scores["positive"] > scores["negative_1"]) & (scores["positive"] > scores["negative_2"])
    return table[["idx", "sentence_set"]].assign(**scores, correct=correct)
