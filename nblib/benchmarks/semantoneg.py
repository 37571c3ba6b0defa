"""SemAntoNeg (Vahtola et al.): choose the paraphrase among three candidates with negations and antonyms."""

import pandas as pd

from nblib import corpora
from nblib.benchmarks.base import Choice, DevSet


class SemAntoNeg(Choice):
    """Cosine for every model (§4)."""

    key, label, metric = "semantoneg", "SemAntoNeg", "accuracy"
    similarity = "cosine"
    chance = 100 / 3  # the one of three
    dev_sets = (DevSet("test", ("official",), form="mini"),)
    llm = ("choice",)

    def rows(self, split: str = "test") -> pd.DataFrame:
        """A row an item."""
        table = load(self.corpus).rename(columns={"idx": "id", "sentence_set": "cluster", "input": "query"})
        return table.assign(id=table.id.astype(str), question="input")


def load(corpus: str = "semantoneg") -> pd.DataFrame:
    """A SemAntoNeg corpus: idx, input, positive, negatives (list of two), sentence_set (the same for rows that ask about the same
    four sentences: the official 3,152 rows come from 770 sets)."""
    return items(corpora.load(corpus))


def items(table: pd.DataFrame) -> pd.DataFrame:
    """The same from any table with idx, label, input and sentences, such as `semantoneg_construction` makes."""
    rows = list(table[["input", "sentences", "label"]].itertuples(index=False))
    positives = [sentences[label] for _, sentences, label in rows]
    negatives = [[text for k, text in enumerate(sentences) if k != label] for _, sentences, label in rows]
    sets = pd.factorize(pd.Series([frozenset([text, *sentences]) for text, sentences, _ in rows]))[0]
    return table[["idx", "input"]].assign(positive=positives, negatives=negatives, sentence_set=sets)
