"""Authored items of two contrasting queries and two passages, each the answer to one query alone: twins.

Contrast passages differ in the polarity of one fact, like NevIR's documents; exclusions name what the query leaves out, as
ExcluIR's do. Those of the split "test" are mini sets, those of "dev" choose hyperparameters.
"""

import pandas as pd

from nblib import corpora

COLUMNS = ["id", "anchor", "twin", "positive", "negative"]


def contrast(split: str) -> pd.DataFrame:
    """Contrast passages: `COLUMNS` (a query, its twin, the passage that answers the query, the one that answers the twin) and
    negation (the kind of the negation that one passage has).

    Raises:
        CorpusError: no such split.
    """
    table = corpora.load("contrast_mini", split)
    names = {"q1": "anchor", "q2": "twin", "doc1": "positive", "doc2": "negative"}
    return table.rename(columns=names)[[*COLUMNS, "negation"]]


def exclusions(split: str) -> pd.DataFrame:
    """Exclusions: `COLUMNS`, as above. "train" has the 200 items of the first collection, too.

    Raises:
        CorpusError: no such split.
    """
    tables = [corpora.load("exclusions_mini", split)]
    if split == "train":
        tables.insert(0, corpora.load("exclusions"))
    return pd.concat(tables, ignore_index=True).rename(columns={"query": "anchor"})[COLUMNS]


def questions(twins: pd.DataFrame) -> pd.DataFrame:
    """Each query with the passage that answers it and its twin's: id, question ("q1", or "q2" for the twins, which come after),
    anchor, positive, negative; two rows an item.

    Args:
        twins: `COLUMNS`.
    """
    sides = {"q1": ["anchor", "positive", "negative"], "q2": ["twin", "negative", "positive"]}
    tables = [
        twins[["id", *side]].set_axis(["id", "anchor", "positive", "negative"], axis=1).assign(question=question)
        for question, side in sides.items()
    ]
    return pd.concat(tables, ignore_index=True)
