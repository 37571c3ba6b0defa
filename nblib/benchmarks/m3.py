"""M3-derived: Truong's M3-Counterfactual, rebuilt (`nblib.corpora.m3` has the rule)."""

import pandas as pd

from nblib.benchmarks.base import metadata, mini
from nblib.benchmarks.similarity import SimilarityTask
from nblib.corpora import m3


class M3Derived(SimilarityTask):
    """A negated statement has −1, one that there is no evidence for 0, a hedged one 1."""

    label = "M3-derived"
    corpus = "m3"
    llm = "similarity"
    min_score, max_score = -1, 1
    metadata = metadata(
        "m3", corpus, type="STS", main_score="spearman", license="not specified",
        description="Biomedical statements with their negation (-1), the lack of evidence for them (0) and a hedge (1).",
        reference="https://github.com/julia-nixie/m3", date=("2020-01-01", "2022-07-01"), domains=["Medical", "Academic"],
        task_subtypes=["Claim verification"], annotations_creators="derived", sample_creation="created",
        bibtex_citation="@inproceedings{otmakhova-etal-2022-m3, title={{M}3: Multi-level dataset for Multi-document "
        "summarisation of Medical studies}, author={Otmakhova, Yulia and others}, booktitle={Findings of EMNLP}, year={2022}}",
    )  # fmt: skip

    def rows(self, split: str) -> pd.DataFrame:
        pairs = m3.load(self.corpus)
        return pd.DataFrame({
            "id": pairs.id + "/" + pairs.kind, "cluster": pd.factorize(pairs.claim)[0], "part": pairs.kind,
            "score": pairs.score, "sentence1": pairs.claim, "sentence2": pairs.variant,
        })  # fmt: skip


FORMS = (M3Derived, mini(M3Derived))
