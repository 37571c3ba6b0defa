"""The STS Benchmark: the general ability that a training on negation must not cost."""

import pandas as pd

from nblib import corpora
from nblib.benchmarks.base import DevSet, metadata, mini, shared_text_clusters
from nblib.benchmarks.similarity import SimilarityTask


class STSB(SimilarityTask):
    """The STS Benchmark's test split: Spearman, as MTEB reports it."""

    label = "STSB"
    corpus = "stsb"
    dev_sets = (DevSet("stsb", "dev", ("official", "nevir"), 750), DevSet("stsb_mini", "dev", ("mini",)))
    metadata = metadata(
        "stsb", corpus, type="STS", main_score="spearman", license="cc-by-sa-4.0",
        description="Spearman correlation with human similarity judgements.",
        reference="https://ixa2.si.ehu.eus/stswiki/index.php/STSbenchmark", date=("2012-01-01", "2017-12-31"),
        domains=["News", "Social"], task_subtypes=["Textual Entailment"], annotations_creators="human-annotated",
        sample_creation="found",
        bibtex_citation="@inproceedings{cer-etal-2017-semeval, title={{S}em{E}val-2017 Task 1}, author={Cer, Daniel and others}, "
        "booktitle={SemEval}, year={2017}}",
    )  # fmt: skip

    def rows(self, split: str) -> pd.DataFrame:
        table = corpora.load(self.corpus, split)
        key = corpora.describe(self.corpus).key
        return pd.DataFrame({
            "id": table[key].agg("/".join, axis=1), "cluster": shared_text_clusters(table.sentence1, table.sentence2),
            "part": "STSB", "score": table.score, "sentence1": table.sentence1, "sentence2": table.sentence2,
        })  # fmt: skip


FORMS = (STSB, mini(STSB))
