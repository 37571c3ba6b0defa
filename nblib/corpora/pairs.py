"""The training pairs of Vahtola's families (§5), from available parts of the sources: inference, similarity, paraphrases."""

import pandas as pd

from nblib import corpora
from nblib.corpora import anchors
from nblib.errors import StudyError

ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2  # SNLI's labels
PARAPHRASED = ("COCO", "sentence-compression", "Simple Wikipedia")  # of `anchors.SOURCES`
SHORT = 16  # words at most


class PairError(StudyError):
    """Pairs that are not available."""


def snli() -> pd.DataFrame:
    """SNLI's dev and test pairs: premise, hypothesis, label (see above), each pair once.

    Raises:
        AnchorError, CorpusError: see `anchors.read`.
    """
    table = pd.DataFrame([row for rows in anchors.read("SNLI").values() for row in rows])
    return table.drop_duplicates(["premise", "hypothesis"], ignore_index=True)


def contrasted() -> pd.DataFrame:
    """Premises of SNLI with a sentence that each entails and one that contradicts it: anchor, positive_1, negative_1, source."""
    found = snli()
    found = found[found.premise != found.hypothesis].drop_duplicates(["premise", "label"])
    table = found.pivot(index="premise", columns="label", values="hypothesis").dropna(
        subset=[ENTAILMENT, CONTRADICTION]
    )
    return pd.DataFrame({
        "anchor": table.index, "positive_1": table[ENTAILMENT].to_numpy(), "negative_1": table[CONTRADICTION].to_numpy(),
        "source": "SNLI",
    })  # fmt: skip


def graded() -> pd.DataFrame:
    """STSB's training pairs: anchor, other, score (0 to 1), source."""
    table = corpora.load("stsb", "train")
    return pd.DataFrame({
        "anchor": table.sentence1, "other": table.sentence2, "score": table.score / 5, "source": "STSB",
    })  # fmt: skip


def paraphrases() -> pd.DataFrame:
    """Short sentences (as in SNLI and STSB) with a paraphrase: another caption of the same picture, a compression, a rewrite, as
    in the training data of the models called "paraphrase-…".

    Returns:
        anchor, positive_1, source.

    Raises:
        AnchorError: see `anchors.proxies`.
    """
    pool = anchors.proxies()
    pool = pool[pool.source.isin(PARAPHRASED) & (pool.words <= SHORT)]
    return pool.rename(columns={"entailment": "positive_1"})[["anchor", "positive_1", "source"]]


def sample(table: pd.DataFrame, size: int, seed: int, by: str = "source") -> pd.DataFrame:
    """So many rows in random order, equally many of each value of a column (a remainder is left out).

    Raises:
        PairError: a value has fewer rows than needed.
    """
    counts = table[by].value_counts()
    share = size // len(counts)
    if not 0 < share <= counts.min():
        raise PairError(
            f"A sample of {size} pairs takes {share} of each {by}, and there are {counts.min()} of {counts.idxmin()!r}. "
            f"Ask for {len(counts)} to {counts.min() * len(counts)} pairs."
        )
    return table.groupby(by).sample(share, random_state=seed).sample(frac=1, random_state=seed).reset_index(drop=True)
