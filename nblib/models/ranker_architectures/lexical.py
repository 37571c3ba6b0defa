"""Rankers by words: chance, for which they mean nothing, TF-IDF, and sparse neural models, which weigh a vocabulary."""

import string
from collections.abc import Sequence

import numpy as np

from nblib.models.ranker_architectures.base import Ranker


class Chance(Ranker):
    """Weller's baseline: a random score, from a seed; a pair of questions is right in 25 % of all cases."""

    kind = "chance"

    def __init__(self, name: str = "Random", seed: int = 0) -> None:
        super().__init__(None, name, f"random numbers, seed {seed}")
        self.seed = seed

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        return np.random.default_rng(self.seed).random(len(queries))


class TfIdf(Ranker):
    """Cosine of TF-IDF vectors, fitted anew on each query with its document, as Weller's published code does it.

    Text in lower case without punctuation; scikit-learn's English stop words are left out, and *not*, *no*, *never*, *except*
    and *without* are among them. Fitted on two texts, scikit-learn's (smooth) inverse document frequency has but two values: 1
    for a word of both, 1 + ln 3/2 for a word of one. So all pairs are done at once, with the same result.
    """

    OWN = 1 + np.log(3 / 2)
    kind = "tf-idf"

    def __init__(self, name: str = "TF-IDF") -> None:
        super().__init__(None, name, "scikit-learn")

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        from sklearn.feature_extraction.text import CountVectorizer

        counter = CountVectorizer(tokenizer=_words, token_pattern=None, stop_words="english")
        try:
            counts = counter.fit_transform([*queries, *documents]).astype(float)
        except ValueError:  # nothing but stop words in all of them
            return np.zeros(len(queries))
        query, document = counts[: len(queries)], counts[len(queries) :]
        squares = []
        for here, there in [(query, document), (document, query)]:
            shared = _row_sums(here.power(2).multiply(there > 0))
            squares.append(shared + self.OWN**2 * (_row_sums(here.power(2)) - shared))
        lengths, products = np.sqrt(squares[0] * squares[1]), _row_sums(query.multiply(document))
        cosines = np.divide(products, lengths, out=np.zeros(len(queries)), where=lengths > 0)
        return cosines.round(12)  # what is equal by the formula is a tie, whatever the order of summation


def _words(text: str) -> list[str]:
    return text.lower().translate(str.maketrans("", "", string.punctuation)).split()


class Sparse(Ranker):
    """A sparse neural model (SPLADE): the dot product of weights over the vocabulary."""

    kind = "sparse"

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        asked, query_rows = np.unique(list(queries), return_inverse=True)
        answers, document_rows = np.unique(list(documents), return_inverse=True)
        ask = _csr(self.model.encode_query(asked.tolist(), show_progress_bar=False))
        answer = _csr(self.model.encode_document(answers.tolist(), show_progress_bar=True))
        return _row_sums(ask[query_rows].multiply(answer[document_rows]))


def _csr(weights):  # a sparse torch tensor can't be indexed by rows
    from scipy.sparse import csr_array

    weights = weights.coalesce().cpu()
    return csr_array((weights.values().double().numpy(), weights.indices().numpy()), shape=tuple(weights.shape))


def _row_sums(table) -> np.ndarray:
    return np.asarray(table.sum(axis=1)).ravel()
