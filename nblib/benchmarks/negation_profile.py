"""The negation-type profile: which *not* does a system miss?

A hedge leaves a sentence's claim standing, a negation denies it, so the hedged variant should be the closer, for each type of
negation (§3.1.1) and kind of hedge. No benchmark of the papers tests that.
"""

import numpy as np
import pandas as pd

from nblib import stats
from nblib.benchmarks.base import Choice
from nblib.corpora import authored
from nblib.corpora.authored import HEDGES, NEGATIONS


class NegationProfile(Choice):
    """Eight comparisons for each of 300 authored anchors that are held out of all training; clustered by anchor. Its predictions
    also have negation and hedge."""

    key, label, metric = "negation_profile", "Negation profile", "accuracy"
    forms = ("official",)
    chance = 50.0
    corpus = "authored_triples"

    def rows(self, split: str = "test") -> pd.DataFrame:
        return self.of_anchors(authored.held_out_anchors())

    @staticmethod
    def of_anchors(anchors: pd.DataFrame) -> pd.DataFrame:
        """Rows (see `Choice`) with negation and hedge, of a table with the anchors and their variants."""
        long = anchors.melt(["id", "anchor", *NEGATIONS], [*HEDGES], "hedge", "positive")
        long = long.melt(["id", "anchor", "hedge", "positive"], [*NEGATIONS], "negation", "negative")
        ids, negatives = long.id + "/" + long.negation + "/" + long.hedge, [[text] for text in long.negative]
        return long.assign(id=ids, cluster=long.id, question="anchor", query=long.anchor, negatives=negatives)

    def pairs(self, rows: pd.DataFrame) -> tuple[list[str], list[str]]:
        """The distinct pairs: a variant is in several comparisons."""
        first, second = zip(*dict.fromkeys(zip(*super().pairs(rows), strict=True)), strict=True)
        return list(first), list(second)

    def judge(self, rows: pd.DataFrame, scores: np.ndarray) -> pd.DataFrame:
        by_pair = dict(zip(zip(*self.pairs(rows), strict=True), scores, strict=True))
        every = np.array([by_pair[pair] for pair in zip(*super().pairs(rows), strict=True)])
        return super().judge(rows, every).merge(rows[["id", "negation", "hedge"]], on="id", validate="1:1")


def profile(predicted: pd.DataFrame) -> pd.DataFrame:
    """Of `NegationProfile`'s predictions, per negation and hedge and over all (both "all"): share correct (percent) and margin,
    with intervals resampled by anchor."""
    rows = []
    for cell, part in [*predicted.groupby(["negation", "hedge"], sort=False), (("all", "all"), predicted)]:
        correct = part.correct.mean(), *stats.share_interval(part.correct, part.cluster)
        margin = part.margin.mean(), *stats.cluster_bootstrap(part.margin, part.cluster)
        rows.append((*cell, len(part), *(100 * share for share in correct), *margin))
    columns = "negation hedge n correct correct_low correct_high margin margin_low margin_high"
    return pd.DataFrame(rows, columns=columns.split())
