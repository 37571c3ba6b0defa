"""ExcluIR (Zhang et al.): rank the wanted document before the one that the query excludes."""

import pandas as pd

from nblib import corpora
from nblib.benchmarks.base import Choice, DevSet, shared_text_clusters
from nblib.benchmarks.nevir import ContrastPassages
from nblib.corpora import authored


class ExcluIR(Choice):
    """Pairs only, as Truong's chance level of 50 % suggests; the benchmark's own right rank looks at the ten nearest of the
    whole corpus."""

    key, label, metric = "excluir", "ExcluIR", "right_rank"
    roles = ("query", "document")
    chance = 50.0  # one question with two documents
    averaged = True
    dev_sets = (DevSet("test", ("official",), form="mini"),)
    llm = ("ranking",)

    def rows(self, split: str = "test") -> pd.DataFrame:
        """A row a query."""
        table = corpora.load(self.corpus, split)
        ids = table[corpora.describe(self.corpus).key[0]].astype(str)
        clusters, negatives = shared_text_clusters(table.pos_doc, table.neg_doc), [[text] for text in table.neg_doc]
        return table.assign(id=ids, cluster=clusters, question="query", positive=table.pos_doc, negatives=negatives)


class Exclusions(ContrastPassages):
    """Our own like it: a query that leaves something out and its twin that leaves out the other."""

    key, label = "exclusions", "Exclusions"
    load = staticmethod(authored.exclusions)
