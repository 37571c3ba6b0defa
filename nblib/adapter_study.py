"""Cao's experiments with the negation adapter (§5): on STSB, from STSB to SemAntoNeg, and within SemAntoNeg."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from tqdm.auto import tqdm

from nblib import diagnosis, embeddings
from nblib.models import Encoder
from nblib.negation_adapter import (
    GRID,
    READINGS,
    NegationAdapter,
    NoNegationSensitiveDimension,
    choices,
    contributions,
    correlations,
    softmax_weights,
)

TEST_SHARE = 0.68  # §5.3: 32 % of the items to learn from, 68 % to test on
BY_ROW, BY_SET = "by row (the paper's)", "by sentence set"


@dataclass(frozen=True)
class Pairs:
    """Embedded STSB pairs: `first`, `second`, `negated` [n, d], human `score` [n], and which of them are paraphrases
    (group 5), the anchors of the paraphrase-or-negation items of §5.1."""

    first: np.ndarray
    second: np.ndarray
    negated: np.ndarray
    score: np.ndarray
    is_paraphrase: np.ndarray

    @property
    def triplets(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Anchors, positives [n, d] and negatives [n, 1, d]."""
        keep = self.is_paraphrase
        return self.first[keep], self.second[keep], self.negated[keep][:, None]

    @property
    def scored(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First and second sentences with their human similarity: what the correlation is computed on."""
        return self.first, self.second, self.score


def embed_pairs(pairs: pd.DataFrame, encoder: Encoder) -> Pairs:
    """Embed pairs from `diagnosis.with_negations`, rows without NegS1 dropped.

    Raises:
        ValueError: no pair of group 5 is among them.
    """
    is_paraphrase = (pairs.group == max(diagnosis.GROUPS)).to_numpy()
    if not is_paraphrase.any():
        raise ValueError("No pair of similarity group 5 has a usable negation: nothing to learn or test the adapter on.")
    first, second, negated = np.split(embeddings.encode(encoder, [*pairs.sentence1, *pairs.sentence2, *pairs.negated]), 3)
    return Pairs(first, second, negated, pairs.score.to_numpy(), is_paraphrase)


def on_stsb(train: Pairs, test: Pairs) -> pd.DataFrame:
    """Table 1 in every reading, with a chosen on the training part under both rules.

    Returns:
        reading, rule ("accuracy" alone, or "guarded": see `NegationAdapter`), adapter, a, train_accuracy, train_pearson,
        accuracy, pearson (percent, on test), n. The first row is the unweighted embedding (reading "none", no adapter).
    """
    plain = np.full((1, train.first.shape[1]), 1 / train.first.shape[1])
    rows = [("none", "", None, 0.0, *_measure(train, plain, "weighted cosine"), *_measure(test, plain, "weighted cosine"))]
    for reading in READINGS:
        for rule, scored in [("accuracy", None), ("guarded", train.scored)]:
            adapter = NegationAdapter(reading).fit(*train.triplets, scored=scored)
            weights = adapter.weights_[None, :]
            measured = (*_measure(train, weights, reading), *_measure(test, weights, reading))
            rows.append((reading, rule, adapter, adapter.a_, *measured))
    columns = ["reading", "rule", "adapter", "a", "train_accuracy", "train_pearson", "accuracy", "pearson"]
    return pd.DataFrame(rows, columns=columns).assign(n=int(test.is_paraphrase.sum()))


def _measure(pairs: Pairs, weights: np.ndarray, reading: str) -> tuple[float, float]:
    """Accuracy and Pearson (percent) under one row of weights."""
    accuracy = choices(*pairs.triplets, weights, reading).mean()
    return 100 * accuracy, 100 * correlations(*pairs.scored, weights, reading)[0]


def trade_off(train: Pairs, test: Pairs, grid: Sequence[float] = GRID) -> pd.DataFrame:
    """Accuracy against correlation over a, for each reading: a, accuracy and Pearson (percent) on train and on test."""
    mean = contributions(*train.triplets)
    weights = softmax_weights(mean, grid)
    rows = []
    for reading in READINGS:
        for name, pairs in [("train", train), ("test", test)]:
            right = choices(*pairs.triplets, weights, reading).mean(axis=0)
            pearson = correlations(*pairs.scored, weights, reading)
            rows += [(reading, name, a, 100 * right[k], 100 * pearson[k]) for k, a in enumerate(grid)]
    return pd.DataFrame(rows, columns=["reading", "part", "a", "accuracy", "pearson"])


def in_domain(
    vectors: tuple[np.ndarray, np.ndarray, np.ndarray],
    sentence_sets: Sequence[int],
    train_sizes: Sequence[int],
    *,
    repeats: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Learn and test within SemAntoNeg over random splits (§5.3), by row and by sentence set, in every reading.

    Args:
        vectors: inputs, positives, negatives from `semantoneg.encode`.
        train_sizes: K; the first K items of the shuffled training part (all of them, where it has fewer) are learnt from.

    Returns:
        split, repeat, reading, k (0: the unweighted embedding), a (NaN for k = 0 or no result), n_train, n_test, accuracy
        (percent; NaN where max(V̄) ≤ 0), and the error in that case.
    """
    options = {"n_splits": repeats, "test_size": TEST_SHARE, "random_state": seed}
    splits = {
        BY_ROW: ShuffleSplit(**options).split(vectors[0]),
        BY_SET: GroupShuffleSplit(**options).split(vectors[0], groups=np.asarray(sentence_sets)),
    }
    rows = []
    for split, parts in splits.items():
        for repeat, (train, test) in enumerate(tqdm(parts, total=repeats, desc=f"splits {split}")):
            # GroupShuffleSplit returns rows in file order, one set after the other: shuffle before taking the first K.
            train = np.random.default_rng([seed, repeat]).permutation(train)
            held_out = [part[test] for part in vectors]
            plain = np.full((1, vectors[0].shape[1]), 1 / vectors[0].shape[1])
            unweighted = 100 * choices(*held_out, plain, "weighted cosine").mean()
            for reading in READINGS:
                rows.append((split, repeat, reading, 0, np.nan, 0, len(test), unweighted, ""))
                for k in train_sizes:
                    learnt = train[:k]
                    try:
                        adapter = NegationAdapter(reading).fit(*(part[learnt] for part in vectors))
                    except NoNegationSensitiveDimension as error:
                        rows.append((split, repeat, reading, k, np.nan, len(learnt), len(test), np.nan, str(error)))
                        continue
                    right = choices(*held_out, adapter.weights_[None, :], reading)
                    rows.append((split, repeat, reading, k, adapter.a_, len(learnt), len(test), 100 * right.mean(), ""))
    columns = ["split", "repeat", "reading", "k", "a", "n_train", "n_test", "accuracy", "error"]
    return pd.DataFrame(rows, columns=columns)
