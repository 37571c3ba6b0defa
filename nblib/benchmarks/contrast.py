"""Two authored mini sets, held out of the training data of the same collections, whose voice and construction they share."""

import pandas as pd

from nblib.benchmarks.base import Choice, DevSet
from nblib.corpora import authored


class ContrastPassages(Choice):
    """Two passages that differ in one polarity and a query for each, as in NevIR."""

    key, label, metric = "contrast", "Contrast passages", "right_rank"
    forms = ("mini",)
    roles = ("query", "document")
    chance = 25.0  # both questions with two documents each
    dev_sets = (DevSet("dev", ("official",), form="mini"),)
    load = staticmethod(authored.contrast_passages)

    def read(self, split: str) -> pd.DataFrame:
        """A row a query."""
        table = self.load(split)
        asked = authored.questions(table).rename(columns={"anchor": "query"})
        return asked.assign(cluster=[*range(len(table))] * 2, negatives=[[text] for text in asked.negative])


class Exclusions(ContrastPassages):
    """A query that leaves something out and its twin that leaves out the other."""

    key, label = "exclusions", "Exclusions"
    load = staticmethod(authored.exclusions)
