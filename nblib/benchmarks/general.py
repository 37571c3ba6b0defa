"""General ability: the mini classification, clustering and retrieval tasks, and MTEB by name where a hub is."""

from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pandas as pd
from datasets import Dataset
from mteb.abstasks import AbsTask, AbsTaskClassification, AbsTaskClustering, AbsTaskRetrieval

from nblib import corpora
from nblib.benchmarks.base import LocalTask, metadata
from nblib.benchmarks.mteb_catalogue import MTEB_LITE
from nblib.errors import StudyError

HUB = ("MTEB-lite", "MTEB(eng, v1)")


def hub_tasks(benchmark: str) -> list[AbsTask]:
    """mteb's own tasks of a benchmark, data not yet loaded (a hub is needed for that): 16 of MTEB-lite, 56 of MTEB(eng, v1).

    Raises:
        StudyError: neither of these two.
    """
    if benchmark == "MTEB-lite":
        return list(mteb.get_tasks(tasks=list(MTEB_LITE), languages=["eng"], exclusive_language_filter=True))
    if benchmark == "MTEB(eng, v1)":
        return list(mteb.get_benchmark(benchmark).tasks)
    raise StudyError(f"No hub benchmark called {benchmark!r}. Known: {', '.join(HUB)}.")


class Intents(LocalTask, AbsTaskClassification):
    """Intents from few examples by mteb's protocol: ten logistic regressions on eight texts a label.

    Predictions: id, cluster, correct (the share of the ten classifiers that are right).
    """

    label = "Intents"
    corpus = "intents_mini"
    metric = "accuracy"
    metadata = metadata(
        "intents_mini", corpus, type="Classification", category="t2c", main_score="accuracy",
        task_subtypes=["Intent classification"], domains=["Constructed"],
    )  # fmt: skip

    def _splits(self) -> list[str]:
        return ["train", "test"]

    def rows(self, split: str) -> pd.DataFrame:
        return corpora.load(self.corpus, split)[["id", "text", "label"]]

    def _save_task_predictions(
        self, predictions: list, model: Any, folder: Path, hf_split: str, hf_subset: str
    ) -> None:
        truth = self.dataset[hf_split].to_pandas()
        share = (np.asarray(predictions) == truth.label.to_numpy()).mean(axis=0)
        self.keep(hf_split, truth[["id"]].assign(cluster=range(len(truth)), correct=share), folder)


class Topics(LocalTask, AbsTaskClustering):
    """Topics by mteb's protocol: V-measure of k-means on bootstrap samples. It has no per-item predictions; `predictions`
    has one row per sample instead: id (its number), cluster, correct (its V-measure)."""

    label = "Topics"
    corpus = "topics_mini"
    metric = "v_measure"
    max_fraction_of_documents_to_embed = None
    max_documents_per_cluster = 200
    metadata = metadata(
        "topics_mini", corpus, type="Clustering", category="t2c", main_score="v_measure",
        task_subtypes=["Thematic clustering"], domains=["Constructed"],
    )  # fmt: skip

    def rows(self, split: str) -> pd.DataFrame:
        table = corpora.load(self.corpus, split)
        return pd.DataFrame({"sentences": table.text, "labels": table.label})

    def _evaluate_subset(
        self, *args: Any, hf_split: str, prediction_folder: Path | None = None, **options: Any
    ) -> dict:
        scores = super()._evaluate_subset(*args, hf_split=hf_split, **options)
        measures = scores["v_measures"]["Level 0"]
        numbers = range(len(measures))
        table = pd.DataFrame({"id": [str(k) for k in numbers], "cluster": numbers, "correct": measures})
        self.keep(hf_split, table, prediction_folder)
        return scores


class Retrieval(LocalTask, AbsTaskRetrieval):
    """Retrieval among 100 passages by mteb's protocol. Predictions: id, cluster, rank of the passage, correct (nDCG@10)."""

    label = "Retrieval"
    corpus = "retrieval_mini"
    metric = "ndcg_at_10"
    k_values = (1, 3, 5, 10, 100)
    metadata = metadata(
        "retrieval_mini", corpus, type="Retrieval", main_score="ndcg_at_10", task_subtypes=["Question answering"],
        domains=["Constructed"],
    )  # fmt: skip

    def load_data(self, **_: Any) -> None:
        if self.data_loaded:
            return
        table = corpora.load(self.corpus)
        ids = table.id.tolist()
        self.dataset = {"default": {"test": {
            "corpus": Dataset.from_dict({"id": ids, "title": table.title.tolist(), "text": table.passage.tolist()}),
            "queries": Dataset.from_dict({"id": ids, "text": table["query"].tolist()}),
            "relevant_docs": {item: {item: 1} for item in ids},
            "top_ranked": None,
        }}}  # fmt: skip
        self.data_loaded = True

    def _save_task_predictions(
        self, predictions: dict, model: Any, folder: Path, hf_split: str, hf_subset: str
    ) -> None:
        rank = [
            1 + sum(score >= found[item] for k, score in found.items() if k != item)
            for item, found in predictions.items()
        ]
        table = pd.DataFrame({"id": list(predictions), "cluster": range(len(rank)), "rank": rank})
        table["correct"] = np.where(table["rank"] <= 10, 1 / np.log2(table["rank"] + 1), 0.0)
        self.keep(hf_split, table, folder)


FORMS = (Intents, Topics, Retrieval)
