"""Benchmarks that are correlations: similarity must follow the items' scores."""

from pathlib import Path
from typing import Any

from datasets import Dataset
from mteb.abstasks.sts import AbsTaskSTS
from mteb.models import EncoderProtocol

from nblib.benchmarks.base import LocalTask


class SimilarityTask(LocalTask, AbsTaskSTS):
    """Spearman's correlation of the model's similarity with a score, by mteb's own evaluator.

    Predictions: id, cluster, part (of the benchmark), score, similarity.
    """

    metric = "spearman"
    protocol = "similarity"
    chance = 0.0

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
