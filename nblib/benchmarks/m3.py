"""M3-derived: Truong's M3-Counterfactual, rebuilt (`nblib.corpora.m3` has the rule)."""

import pandas as pd

from nblib.benchmarks.base import Correlation
from nblib.corpora import m3


class M3Derived(Correlation):
    """A negated statement has −1, one without evidence 0, a hedged one 1."""

    key, label, metric = "m3", "M3-derived", "spearman"
    llm = ("similarity",)

    def rows(self, split: str = "test") -> pd.DataFrame:
        """A row a statement and its variant."""
        pairs = m3.load(self.corpus)
        pairs = pairs.assign(id=pairs.id + "/" + pairs.kind, cluster=pd.factorize(pairs.claim)[0])
        return pairs.rename(columns={"kind": "part", "claim": "sentence1", "variant": "sentence2"})
