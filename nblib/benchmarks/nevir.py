"""NevIR (Weller et al.): rank two documents that differ by a negation, for two queries that differ so, too."""

import pandas as pd

from nblib import corpora
from nblib.benchmarks.base import Choice, DevSet, shared_text_clusters
from nblib.corpora import authored

# A pair's id ends in CondaQA's `PassageEditID`: how the second document came about
EDITS = {"2": "scope of the negation changed", "3": "negation undone"}


class NevIR(Choice):
    """Two queries, each with its document; both must be ranked right."""

    key, label, metric = "nevir", "NevIR", "right_rank"
    roles = ("query", "document")
    chance = 25.0  # both questions with two documents each
    averaged = True
    dev_sets = (DevSet("train_sample", ("official", "nevir")), DevSet("test", ("official", "nevir"), form="mini"))
    llm = ("ranking", "pointwise")

    def rows(self, split: str = "test") -> pd.DataFrame:
        """A row a query."""
        table = corpora.load(self.corpus, split)
        pair = pd.DataFrame({"id": table.id, "cluster": shared_text_clusters(table.doc1, table.doc2)})
        sides = [("q1", "doc1", "doc2"), ("q2", "doc2", "doc1")]
        questions = [
            pair.assign(question=q, query=table[q], positive=table[own], negatives=[[text] for text in table[other]])
            for q, own, other in sides
        ]
        return pd.concat(questions, ignore_index=True)


class ContrastPassages(Choice):
    """Our own like it, held out of a collection that is trained on: two passages that differ in one polarity and a query for
    each."""

    key, label, metric = "contrast", "Contrast passages", "right_rank"
    forms = ("mini",)
    roles = ("query", "document")
    chance = 25.0
    dev_sets = (DevSet("dev", ("official",), form="mini"),)
    load = staticmethod(authored.contrast_passages)

    def rows(self, split: str = "test") -> pd.DataFrame:
        """A row a query."""
        table = self.load(split)
        asked = authored.questions(table).rename(columns={"anchor": "query"})
        return asked.assign(cluster=[*range(len(table))] * 2, negatives=[[text] for text in asked.negative])
