"""The negation-type profile: which *not* does an encoder miss?

A sentence, a hedged variant and a negated one: the hedge leaves the claim standing, the negation denies it, so the hedged
variant should be the nearer. No benchmark of the papers tests that (Truong's own limits section: hedging is trained for but
not measured). For each type of negation (verbal, absolute, affixal, lexical; §3.1.1) and each kind of hedge (a single word, a
phrase), on 300 authored anchors that are held out of all training.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nblib import corpora, embeddings, paths, stats
from nblib.models import Encoder

NEGATIONS = ("verbal", "absolute", "affixal", "lexical")
HEDGES = ("word", "phrase")
VARIANTS = (*NEGATIONS, *HEDGES)
HELD_OUT = paths.DATA / "heldout_anchors.txt"


def choose_held_out(ids: Sequence[str], n: int = 300, seed: int = 0) -> list[str]:
    """The anchors to hold out: n of the ids, drawn without replacement, sorted."""
    return sorted(np.random.default_rng(seed).choice(list(ids), n, replace=False).tolist())


def held_out() -> list[str]:
    """The ids of the held-out anchors: never train on these."""
    return HELD_OUT.read_text(encoding="utf-8").split()


def load() -> pd.DataFrame:
    """The held-out anchors with their variants: id, register, anchor, the `NEGATIONS`, the `HEDGES`.

    Raises:
        CorpusError: an id of the committed list is not among the anchors.
    """
    table = corpora.load("hedgetriple")
    unknown = set(held_out()) - set(table.id)
    if unknown:
        raise corpora.CorpusError(f"{HELD_OUT} names {len(unknown)} anchors that don't exist, first: {min(unknown)}.")
    columns = ["id", "register", "anchor", *NEGATIONS, *HEDGES]
    return table.loc[table.id.isin(held_out()), columns].reset_index(drop=True)


def predictions(anchors: pd.DataFrame, encoder: Encoder) -> pd.DataFrame:
    """Each anchor's hedged variant against each of its negated ones, by the model's own similarity.

    Args:
        anchors: from `load`.

    Returns:
        id, cluster (the anchor's id), negation, hedge, to_hedged, to_negated (similarities with the anchor), margin (their
        difference), correct (the hedged variant is strictly nearer); eight rows an anchor.
    """
    columns = ("anchor", *VARIANTS)
    stacked = embeddings.encode(encoder, [text for column in columns for text in anchors[column]])
    vectors = dict(zip(columns, np.split(stacked, len(columns)), strict=True))
    nearness = [
        embeddings.similarity(vectors["anchor"], vectors[column], encoder.spec.similarity) for column in VARIANTS
    ]
    return settle(anchors, np.concatenate(nearness))


def settle(anchors: pd.DataFrame, nearness: np.ndarray) -> pd.DataFrame:
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


def profile(judged: pd.DataFrame) -> pd.DataFrame:
    """The profile: per negation and hedge, and over all (negation "all", resampled by anchor).

    Args:
        judged: from `predictions`.

    Returns:
        negation, hedge, n, correct, correct_low, correct_high (percent), margin, margin_low, margin_high.
    """
    rows = []
    for negation in (*NEGATIONS, "all"):
        for hedge in HEDGES if negation != "all" else ("all",):
            part = judged if negation == "all" else judged[(judged.negation == negation) & (judged.hedge == hedge)]
            share = [100 * bound for bound in stats.share_interval(part.correct, part.cluster)]
            margin = stats.cluster_bootstrap(part.margin, part.cluster)
            rows.append((negation, hedge, len(part), 100 * part.correct.mean(), *share, part.margin.mean(), *margin))
    columns = [
        "negation",
        "hedge",
        "n",
        "correct",
        "correct_low",
        "correct_high",
        "margin",
        "margin_low",
        "margin_high",
    ]
    return pd.DataFrame(rows, columns=columns)


def weakest(profiled: pd.DataFrame) -> str:
    """The type of negation the encoder misses most, on average over the hedges."""
    return str(profiled[profiled.negation != "all"].groupby("negation", sort=False).correct.mean().idxmin())
