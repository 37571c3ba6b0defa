"""SemAntoNeg's items: a sentence, its paraphrase, and two that only look like one."""

import pandas as pd

from nblib import corpora


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
