"""The STS Benchmark: the general ability that a training on negation must not cost."""

import pandas as pd

from nblib import corpora
from nblib.benchmarks.base import Correlation, DevSet, shared_text_clusters


class STSB(Correlation):
    """Spearman, as MTEB reports it."""

    key, label, metric = "stsb", "STSB", "spearman"
    ability = "general"
    dev_sets = (DevSet("dev", ("official", "nevir"), most=750), DevSet("dev", ("mini",), form="mini"))

    def rows(self, split: str = "test") -> pd.DataFrame:
        """A row a pair."""
        table = corpora.load(self.corpus, split)
        ids = table[corpora.describe(self.corpus).key].agg("/".join, axis=1)
        clusters = shared_text_clusters(table.sentence1, table.sentence2)
        return table.assign(id=ids, cluster=clusters, part="STSB")
