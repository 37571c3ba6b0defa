"""CANNOT-WMT (Anschütz et al.): scores of negated, paraphrased and machine-translated sentences."""

import numpy as np
import pandas as pd

from nblib import corpora
from nblib.benchmarks.base import DevSet, metadata, mini, sample, shared_text_clusters
from nblib.benchmarks.similarity import SimilarityTask


class CannotWMT(SimilarityTask):
    """Does similarity follow human judgements of negated and of machine-translated sentences?"""

    label = "CANNOT-WMT"
    corpus = "cannot_wmt"
    averaged = True
    dev_sets = (DevSet("cannot_wmt", "eval", ("official",), 500),)
    llm = "similarity"
    min_score, max_score = -2, 2
    metadata = metadata(
        "cannot_wmt", corpus, type="STS", main_score="spearman", splits=("test", "eval"), license="mit",
        description="Spearman correlation with scores of candidate and reference: 88 % negated or paraphrased, 12 % WMT.",
        reference="https://github.com/MiriUll/negation_aware_evaluation", date=("2015-01-01", "2023-07-01"),
        domains=["Encyclopaedic", "News"], task_subtypes=["Textual Entailment"], annotations_creators="derived",
        sample_creation="multiple",
        bibtex_citation="@inproceedings{anschutz-etal-2023-correct, title={This is not correct! Negation-aware Evaluation of "
        "Language Generation Systems}, author={Ansch{\\\"u}tz, Miriam and Lozano, Diego Miguel and Groh, Georg}, "
        "booktitle={INLG}, year={2023}}",
    )  # fmt: skip

    def rows(self, split: str) -> pd.DataFrame:
        table = corpora.load(self.corpus, split)
        named = "id" in table  # the official files have no ids; their order is fixed by the content hash's file
        return pd.DataFrame({
            "id": table.id if named else [f"{split}-{k}" for k in range(len(table))],
            "cluster": shared_text_clusters(table.reference, table.candidate),
            "part": "CANNOT" if named else np.where(table.source == "cannot", "CANNOT", "WMT"),
            "score": table.score, "sentence1": table.reference, "sentence2": table.candidate,
        })  # fmt: skip


FORMS = (CannotWMT, mini(CannotWMT), sample(CannotWMT, 750, "rows"))
