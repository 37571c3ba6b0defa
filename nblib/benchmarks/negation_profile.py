"""The negation-type profile: which *not* does an encoder miss?

A sentence, a hedged variant and a negated one: the hedge leaves the claim standing, the negation denies it, so the hedged
variant should be the closer. No benchmark of the papers tests that (Truong's own limits section: hedging is trained for but
not measured). For each type of negation (verbal, absolute, affixal, lexical; §3.1.1) and each kind of hedge (a single word, a
phrase), on 300 authored anchors that are held out of all training.
"""

import numpy as np
import pandas as pd

from nblib import stats
from nblib.corpora import hedgetriple
from nblib.corpora.hedgetriple import HEDGES, NEGATIONS, VARIANTS
from nblib.models import embeddings
from nblib.models.systems import BiEncoder, System

TASK = "negation_profile"  # what its predictions are filed under


def predictions(anchors: pd.DataFrame, system: System) -> pd.DataFrame:
    """Each anchor's hedged variant against each of its negated ones, by the system's own scores.

    Args:
        anchors: from `hedgetriple.load`.

    Returns:
        id, cluster (the anchor's id), negation, hedge, to_hedged, to_negated (similarities with the anchor), margin (their
        difference), correct (the hedged variant is strictly closer); eight rows an anchor.
    """
    if not isinstance(system, BiEncoder):
        variants = [text for variant in VARIANTS for text in anchors[variant]]
        return score_items(anchors, system.score([*anchors.anchor] * len(VARIANTS), variants))
    columns = ("anchor", *VARIANTS)  # encoded at once: all these texts are batched together
    stacked = embeddings.encode(system.encoder, [text for column in columns for text in anchors[column]])
    anchor, *variants = np.split(stacked, len(columns))
    kind = system.encoder.spec.similarity
    return score_items(anchors, np.concatenate([embeddings.similarity(anchor, variant, kind) for variant in variants]))


def score_items(anchors: pd.DataFrame, nearness: np.ndarray) -> pd.DataFrame:
    """Predictions from similarities, or any other scores.

    Args:
        nearness: how near each variant is to its anchor, variant by variant in the order of `VARIANTS`, [6 n].
    """
    near = dict(zip(VARIANTS, np.split(nearness, len(VARIANTS)), strict=True))
    rows = [
        pd.DataFrame({
            "id": anchors.id + f"/{negation}/{hedge}", "cluster": anchors.id, "negation": negation, "hedge": hedge,
            "to_hedged": near[hedge], "to_negated": near[negation],
        })
        for negation in NEGATIONS
        for hedge in HEDGES
    ]  # fmt: skip
    table = pd.concat(rows, ignore_index=True)
    margin = table.to_hedged - table.to_negated
    return table.assign(margin=margin, correct=margin > 0)


def errors(predicted: pd.DataFrame, limit: int) -> pd.DataFrame:
    """The largest errors with their texts: negation, anchor, negated, hedged, margin; the worst first.

    Args:
        predicted: from `predictions` on `hedgetriple.load`.
    """
    anchors = hedgetriple.load().set_index("id")
    worst = predicted[~predicted.correct].nsmallest(limit, "margin")
    texts = [anchors.loc[row.cluster, ["anchor", row.negation, row.hedge]].tolist() for row in worst.itertuples()]
    shown = pd.DataFrame(texts, columns=["anchor", "negated", "hedged"])
    shown.insert(0, "negation", worst.negation.tolist())
    return shown.assign(margin=worst.margin.tolist())


def profile(predicted: pd.DataFrame) -> pd.DataFrame:
    """The profile: per negation and hedge, and over all (negation "all", resampled by anchor).

    Args:
        predicted: from `predictions`.

    Returns:
        negation, hedge, n, correct, correct_low, correct_high (percent), margin, margin_low, margin_high.
    """
    rows = []
    for negation in (*NEGATIONS, "all"):
        for hedge in HEDGES if negation != "all" else ("all",):
            of_cell = (predicted.negation == negation) & (predicted.hedge == hedge)
            part = predicted if negation == "all" else predicted[of_cell]
            share = [100 * bound for bound in stats.share_interval(part.correct, part.cluster)]
            margin = stats.cluster_bootstrap(part.margin, part.cluster)
            rows.append((negation, hedge, len(part), 100 * part.correct.mean(), *share, part.margin.mean(), *margin))
    columns = [
        "negation", "hedge", "n", "correct", "correct_low", "correct_high", "margin", "margin_low", "margin_high",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def weakest(profiled: pd.DataFrame) -> str:
    """The type of negation the encoder misses most, on average over the hedges."""
    return str(profiled[profiled.negation != "all"].groupby("negation", sort=False).correct.mean().idxmin())
