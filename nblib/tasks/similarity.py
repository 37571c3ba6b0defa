"""The negation benchmarks that are correlations: CANNOT-WMT and M3-derived. Similarity must follow the items' scores."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from datasets import Dataset
from mteb.abstasks.sts import AbsTaskSTS
from mteb.models import EncoderProtocol

from nblib import corpora, m3
from nblib.tasks.local import LocalTask, metadata, sample, sampled, shared_text_clusters

SAMPLE_ROWS = 750


class SimilarityTask(LocalTask, AbsTaskSTS):
    """Spearman's correlation of the model's similarity with a score, by mteb's own evaluator.

    Predictions: id, cluster, part (of the benchmark), score, similarity.
    """

    paper_metric = "spearman"

    def _evaluate_subset(
        self,
        model: EncoderProtocol,
        data_split: Dataset,
        *,
        hf_split: str,
        prediction_folder: Path | None = None,
        **options: Any,
    ) -> dict[str, float]:
        scores = super()._evaluate_subset(model, data_split, hf_split=hf_split, **options)
        table = data_split.to_pandas()[["id", "cluster", "part", "score"]].assign(similarity=self._similarities)
        self.keep(hf_split, table, prediction_folder)
        return {**scores, "n": len(table)}

    def _calculate_scores(self, scores: dict, normalized_scores: list[float]) -> dict[str, float]:
        self._similarities = scores["similarity_scores"]
        return super()._calculate_scores(scores, normalized_scores)


class CannotWMT(SimilarityTask):
    """Anschütz et al.: does similarity follow human judgements of negated and of machine-translated sentences?"""

    corpus = "cannot_wmt"
    printed = (("truong", "Table 1", "Cannot", "spearman"),)
    min_score, max_score = -2, 2
    metadata = metadata(
        "CannotWMT", corpus, type="STS", main_score="spearman", splits=("test", "eval"), license="mit",
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


class CannotMini(CannotWMT):
    corpus = "cannot_mini"
    metadata = metadata("CannotMini", corpus, type="STS", main_score="spearman")


class CannotWMTSample(CannotWMT):
    """As `NevIRSample`."""

    reservation = f"a sample of {SAMPLE_ROWS} rows"
    metadata = sampled(CannotWMT)

    def rows(self, split: str) -> pd.DataFrame:
        return sample(super().rows(split), SAMPLE_ROWS)


class M3Derived(SimilarityTask):
    """Truong's M3-Counterfactual, rebuilt (see `nblib.m3` for the rule): negated −1, no evidence 0, hedged 1."""

    corpus = "m3"
    printed = (("truong", "Table 1", "M3-Counterfactual", "spearman"),)
    reservation = "our own set, rebuilt by rule from levels 2 and 3 of M3; left out of averages"
    own_set = True
    min_score, max_score = -1, 1
    metadata = metadata(
        "M3Derived", corpus, type="STS", main_score="spearman", license="not specified",
        description="Biomedical statements beside their negation (-1), the lack of evidence for them (0) and a hedge (1).",
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


class M3Mini(M3Derived):
    corpus = "m3_mini"
    metadata = metadata("M3Mini", corpus, type="STS", main_score="spearman")


TASKS = (CannotWMT, CannotMini, CannotWMTSample, M3Derived, M3Mini)
