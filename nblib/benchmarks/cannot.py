"""CANNOT-WMT (Anschütz et al.): scores of negated, paraphrased and machine-translated sentences."""

import numpy as np
import pandas as pd

from nblib import corpora
from nblib.benchmarks.base import Correlation, DevSet, shared_text_clusters


class CannotWMT(Correlation):
    """Truong names Spearman's ρ; the printed number of all-mpnet-base-v2 fits Pearson's r."""

    key, label, metric, main_metric = "cannot_wmt", "CANNOT-WMT", "spearman", "pearson"
    splits = ("test", "eval")
    averaged = True
    dev_sets = (DevSet("eval", ("official",), most=500),)
    llm = ("similarity",)

    def rows(self, split: str = "test") -> pd.DataFrame:
        """A row a pair; the official files have no ids: an item's is its index."""
        table = corpora.load(self.corpus, split)
        ids, part = table.get("id"), "CANNOT"
        if self.official:
            ids, part = [f"{split}-{k}" for k in range(len(table))], np.where(table.source == "cannot", "CANNOT", "WMT")
        table = table.assign(id=ids, part=part, cluster=shared_text_clusters(table.reference, table.candidate))
        return table.rename(columns={"reference": "sentence1", "candidate": "sentence2"})
