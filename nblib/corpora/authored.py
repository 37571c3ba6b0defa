"""Texts written for this study: HedgeTriple's anchors held out of training, and pairs of contrasting queries.

Two contrasting queries share two passages, each the answer to one of them alone. Contrast passages differ in the polarity of one
fact, like NevIR's documents; exclusions name what the query leaves out, like ExcluIR's.
"""

import pandas as pd

from nblib import corpora, paths

NEGATIONS = ("verbal", "absolute", "affixal", "lexical")
HEDGES = ("word", "phrase")
VARIANTS = (*NEGATIONS, *HEDGES)
HELD_OUT_IDS = paths.DATA / "training" / "heldout_anchors.txt"
PAIRED = ["id", "anchor", "twin", "positive", "negative"]  # a query, its twin, and the passage that answers each
NEVIR_NAMES = {"q1": "anchor", "q2": "twin", "doc1": "positive", "doc2": "negative"}


def held_out_ids() -> list[str]:
    """Of the held-out anchors: never train on these."""
    return HELD_OUT_IDS.read_text(encoding="utf-8").split()


def held_out_anchors() -> pd.DataFrame:
    """The held-out anchors: id, register, anchor, `VARIANTS`."""
    table = corpora.load("authored_triples")
    return table.loc[table.id.isin(held_out_ids()), ["id", "register", "anchor", *VARIANTS]].reset_index(drop=True)


def contrast_passages(split: str, collection: str = "contrast_mini") -> pd.DataFrame:
    """Contrast passages of "train", "dev" or "test": `PAIRED`. The second collection is "contrast_more"."""
    return corpora.load(collection, split).rename(columns=NEVIR_NAMES)[PAIRED]


def exclusions(split: str) -> pd.DataFrame:
    """Exclusions of "train" (with the 200 items of the first collection), "dev" or "test": `PAIRED`."""
    tables = [corpora.load("exclusions_mini", split)]
    if split == "train":
        tables.insert(0, corpora.load("exclusions"))
    return pd.concat(tables, ignore_index=True).rename(columns={"query": "anchor"})[PAIRED]


def questions(paired: pd.DataFrame) -> pd.DataFrame:
    """Each query of `PAIRED` with the passage that answers it and its twin's: id, anchor, positive, negative, question ("q1", or
    "q2" for the twins, which come after); two rows an item."""
    swapped = {"twin": "anchor", "negative": "positive", "positive": "negative"}
    tables = {"q1": paired.drop(columns="twin"), "q2": paired.drop(columns="anchor").rename(columns=swapped)}
    columns = ["id", "anchor", "positive", "negative"]
    return pd.concat([table[columns].assign(question=name) for name, table in tables.items()], ignore_index=True)
