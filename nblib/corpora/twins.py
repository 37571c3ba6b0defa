"""Authored items of two contrasting queries and two passages, each the answer to one query alone: twins.

Contrast passages differ in the polarity of one fact, like NevIR's documents; exclusions name what the query leaves out, as
ExcluIR's do. Those of the split "test" are mini sets, those of "dev" choose hyperparameters.
"""

import re

import pandas as pd

from nblib import corpora
from nblib.corpora import negator

COLUMNS = ["id", "anchor", "twin", "positive", "negative"]
RULE_BASED = "rule-based"

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"“A-Z(])")


def contrast(split: str) -> pd.DataFrame:
    """Contrast passages: `COLUMNS` (a query, its twin, the passage that answers the query, the one that answers the twin) and
    negation (the kind of the negation that one passage has).

    Raises:
        CorpusError: no such split.
    """
    table = corpora.load("contrast_mini", split)
    names = {"q1": "anchor", "q2": "twin", "doc1": "positive", "doc2": "negative"}
    return table.rename(columns=names)[[*COLUMNS, "negation"]]


def rule_based_contrast() -> pd.DataFrame:
    """Training contrast passages negated by rule instead of by an author: what does the authoring bring?

    Of each authored item this takes the query and the passage without the negation. The first sentence in which the two authored
    passages differ, and the query, are negated by the rule-based tool (`negator`). An item that it can't negate, or doesn't
    negate plainly, is left out.

    Returns:
        `COLUMNS` and negation, which is `RULE_BASED`.
    """
    table = corpora.load("contrast_mini", "train")
    first = table.negated == 1  # which of the two passages has the negation
    query = table.q2.where(first, table.q1)
    passage, other = table.doc2.where(first, table.doc1), table.doc1.where(first, table.doc2)
    sentence = pd.Series(map(_first_different, passage, other), index=table.index)
    found = negator.negate_sentences([*sentence, *query]).set_index("sentence")
    plain = (found.reason[sentence] == "").to_numpy() & found.reason[query].isin(["", "question"]).to_numpy()
    negated = [text.replace(one, found.negated[one], 1) for text, one in zip(passage, sentence, strict=True)]
    columns = [table.id, query, query.map(found.negated), passage, pd.Series(negated, index=table.index)]
    return pd.concat(columns, axis=1, keys=COLUMNS).assign(negation=RULE_BASED)[plain].reset_index(drop=True)


def _first_different(passage: str, other: str) -> str:
    others = set(_SENTENCE_END.split(other))
    return next(sentence for sentence in _SENTENCE_END.split(passage) if sentence not in others)


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
