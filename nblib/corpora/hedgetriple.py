"""HedgeTriple's anchors (Truong §3.1): four types of negation, two kinds of hedge, and the anchors held out of training."""

import pandas as pd

from nblib import corpora, paths

NEGATIONS = ("verbal", "absolute", "affixal", "lexical")
HEDGES = ("word", "phrase")
VARIANTS = (*NEGATIONS, *HEDGES)
HELD_OUT = paths.DATA / "training" / "heldout_anchors.txt"


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
