"""SemAntoNeg (Vahtola et al.): choose the paraphrase of a sentence among three candidates with negations and antonyms."""

import string
from collections.abc import Mapping

import numpy as np
import pandas as pd

from nblib import corpora, embeddings, published
from nblib.models import Encoder

# The three candidates in their order; what Figure 2 calls labels 0, 1 and 2
OPTIONS = ("only the antonym", "only the negation", "both: the paraphrase")
FAMILIES = {"Table 3": "general purpose", "Table 4": "paraphrase", "Table 5": "NLI", "Table 6": "STSB"}
_ARTICLES = {"a", "an", "the"}


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


# --- analyses over per-item predictions of the task (id, nearest_negative, correct), section 6 ----------------------------


def choices(predictions: pd.DataFrame) -> pd.DataFrame:
    """Figure 2: how often each option is the nearest: option, n, share (percent); a tie goes to the wrong one."""
    chosen = predictions.nearest_negative.where(~predictions.correct, len(OPTIONS) - 1).astype(int)
    counts = chosen.value_counts().reindex(range(len(OPTIONS)), fill_value=0)
    return pd.DataFrame(
        {"option": OPTIONS, "n": counts.to_numpy(), "share": 100 * counts.to_numpy() / len(predictions)}
    )


def antonym_pairs(table: pd.DataFrame) -> pd.Series:
    """The two antonyms of each item, as "good – bad" in alphabetical order, by id: the words (articles aside) that are in the
    input or in the candidate with the antonym alone, and not in both.

    Args:
        table: from `load`.
    """
    pairs = []
    for row in table.itertuples():
        input_words, other_words = _words(row.input), _words(row.negatives[0])
        own = [
            " ".join(word for word in here if word not in {*there, *_ARTICLES})
            for here, there in [(input_words, other_words), (other_words, input_words)]
        ]
        pairs.append(" – ".join(sorted(own)))
    return pd.Series(pairs, index=table.idx.astype(str))


def _words(text: str) -> list[str]:
    return [word.strip(string.punctuation) for word in text.lower().split()]


def errors_by_antonyms(predictions: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Which antonyms a system fails on: antonyms, n (items), errors, share (percent of the items), most errors first."""
    failed = ~predictions.set_index("id").correct
    by_pair = failed.groupby(antonym_pairs(table).reindex(failed.index))
    found = by_pair.agg(n="size", errors="sum").rename_axis("antonyms").reset_index()
    found["share"] = 100 * found.errors / found.n
    return found.sort_values(["errors", "antonyms"], ascending=[False, True], ignore_index=True)


def shared_errors(systems: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The items that all systems get wrong (section 6), beside what chance would share if their errors were independent.

    Args:
        systems: name → its predictions on the same items.

    Returns:
        id, a row per shared error; `attrs["expected"]` is the number expected of independent systems.

    Raises:
        ValueError: the systems were asked about different items.
    """
    correct = pd.DataFrame({name: table.set_index("id").correct for name, table in systems.items()})
    if correct.isna().any(axis=None):
        raise ValueError(f"Predictions of {', '.join(systems)} are not about the same items.")
    shared = correct.index[~correct.astype(bool).any(axis=1)]
    found = pd.DataFrame({"id": shared})
    found.attrs["expected"] = float(len(correct) * (~correct.astype(bool)).mean().prod())
    return found


def families(measured: Mapping[str, float] | None = None) -> pd.DataFrame:
    """Figure 1: the models of Tables 3 to 6: family, system, published, ours (NaN where not measured; percent).

    Args:
        measured: our scores on the official SemAntoNeg, by the name the paper uses.
    """
    printed = published.load("vahtola")
    models = printed.system[
        (printed.exhibit == "Table 8") & (printed.metric == "accuracy")
    ]  # the others have a row for chance
    rows = printed[printed.exhibit.isin(FAMILIES) & printed.system.isin(models)]
    return pd.DataFrame({
        "family": rows.exhibit.map(FAMILIES), "system": rows.system, "published": rows.value,
        "ours": rows.system.map(dict(measured or {})).astype(float),
    }).reset_index(drop=True)  # fmt: skip
