"""Tasks of MTEB by its own classes and protocol; only their rows come from the registered corpora.

`get(name)` makes a task of `mteb_catalogue.TASKS`. Evaluators, sampling, seeds, prompts and main scores are mteb's. After an
evaluation `predictions["test"]` has what makes its main score, item by item (see each class), for paired comparisons.
"""

from abc import abstractmethod
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pandas as pd
from datasets import Dataset
from mteb.abstasks import AbsTask, AbsTaskClassification, AbsTaskPairClassification, AbsTaskRetrieval, AbsTaskSTS
from mteb.abstasks.text.summarization import AbsTaskSummarization
from sklearn.metrics import average_precision_score

from nblib import corpora
from nblib.benchmarks.base import LocalTask, metadata, shared_text_clusters
from nblib.benchmarks.mteb_catalogue import TASKS, Category, GeneralError
from nblib.models.registry import Role


class LocalRows(LocalTask):
    """A task of mteb whose rows are a registered corpus, and whose only split is the test.

    Attributes:
        items: id and cluster of each test item, and its gold score or label, in the rows' order; there once data are loaded.
    """

    items: pd.DataFrame

    def check_if_dataset_is_superseded(self) -> None:
        """Nothing to warn of: MTEB(eng, v1), which the papers report, has these versions of the tasks."""

    def load_data(self, **_: Any) -> None:
        """Load and validate the corpus, in the form that mteb's class of the task expects.

        Raises:
            CorpusError: see `corpora.load`.
        """
        if not self.data_loaded:
            data = self.read()
            (subset,) = self.hf_subsets
            self.dataset = data if subset == "default" and "default" not in data else {subset: data.get(subset, data)}
            self.data_loaded = True

    @abstractmethod
    def read(self) -> dict[str, Any]:
        """The data as mteb's class wants them: split → rows. Sets `items`."""

    @abstractmethod
    def texts(self) -> Mapping[Role, list[str]]:
        """What an evaluation encodes, by role; loads the data."""


class LocalSTS(LocalRows, AbsTaskSTS):
    """Spearman's ρ of the cosine with people's scores. Predictions: id, cluster, score, similarity.

    STS12 to STS16 are read in the tokenised, lower-cased form that MTEB's copy has.
    """

    metric = "spearman"

    def read(self) -> dict[str, Dataset]:
        table = corpora.load(self.corpus, "test").rename(columns=lambda column: column.removesuffix("_tok"))
        ids = table[corpora.describe(self.corpus).key].astype(str).agg("/".join, axis=1)
        clusters = shared_text_clusters(table.sentence1, table.sentence2)
        self.items = pd.DataFrame({"id": ids, "cluster": clusters, "score": table.score})
        return {"test": _dataset(table[["sentence1", "sentence2", "score"]])}

    def texts(self) -> dict[Role, list[str]]:
        return {"symmetric": _columns(self, "sentence1", "sentence2")}

    def _save_task_predictions(
        self, predictions: Mapping, model: Any, folder: Path, hf_split: str, hf_subset: str
    ) -> None:
        self.keep(hf_split, self.items.assign(similarity=np.asarray(predictions["cosine_scores"])), folder)


class _ListedLabels:
    """A train split whose labels are a list: mteb looks each up in the table, ten times all of them, which takes minutes."""

    def __init__(self, dataset: Dataset, column: str) -> None:
        self.dataset = dataset
        self.labels = {column: dataset.select_columns([column])[:][column]}

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, column: str) -> list:
        return self.labels[column]

    def select(self, rows: list[int]) -> Dataset:
        return self.dataset.select(rows)


class LocalClassification(LocalRows, AbsTaskClassification):
    """Ten logistic regressions on a few texts a label. Predictions: id, cluster, correct (the share of the ten right).

    An interval made of them is over test items; which training texts were drawn is fixed by the seed.
    """

    metric = "accuracy"

    def read(self) -> dict[str, Dataset]:
        tables = {split: corpora.load(self.corpus, split) for split in (self.train_split, "test")}
        test = tables["test"]
        self.items = pd.DataFrame({
            "id": test.idx.astype(str), "cluster": pd.factorize(test.text)[0], "label": test.label,
        })  # fmt: skip
        return {split: _dataset(table[["text", "label"]]) for split, table in tables.items()}

    def _undersample_data(self, dataset: Dataset, *args: Any, **options: Any) -> tuple:
        return super()._undersample_data(_ListedLabels(dataset, self.label_column_name), *args, **options)

    def texts(self) -> dict[Role, list[str]]:
        train = _split(self, self.train_split)
        chosen, order = set(), None
        for experiment in range(self.n_experiments):  # as mteb draws them
            _, order, drawn = self._undersample_data(train, experiment, order)
            chosen.update(drawn)
        return {"symmetric": [*_split(self, "test")["text"], *train.select(sorted(chosen))["text"]]}

    def _save_task_predictions(
        self, predictions: list, model: Any, folder: Path, hf_split: str, hf_subset: str
    ) -> None:
        correct = (np.asarray(predictions) == self.items.label.to_numpy()).mean(axis=0)
        self.keep(hf_split, self.items[["id", "cluster"]].assign(correct=correct), folder)


class LocalPairClassification(LocalRows, AbsTaskPairClassification):
    """Average precision of a similarity at finding the pairs that are paraphrases, the best over mteb's similarities.

    Predictions: id, cluster, label (1: paraphrases), similarity (by the one that gives the best average precision).
    """

    metric = "max_ap"

    def read(self) -> dict[str, Dataset]:
        table = corpora.load(self.corpus, "test")
        sides = {side: table[side].str.lower() for side in ("sentence1", "sentence2")}  # most come lower-cased
        clusters = shared_text_clusters(*sides.values())
        self.items = pd.DataFrame({"id": table.idx.astype(str), "cluster": clusters, "label": table.label})
        return {"test": _dataset(pd.DataFrame({**sides, "labels": table.label}))}

    def texts(self) -> dict[Role, list[str]]:
        return {"symmetric": _columns(self, "sentence1", "sentence2")}

    def _save_task_predictions(
        self, predictions: Mapping, model: Any, folder: Path, hf_split: str, hf_subset: str
    ) -> None:
        signs = {name: -1 if name.endswith("_distances") else 1 for name in predictions}
        found = {name: sign * np.asarray(predictions[name]) for name, sign in signs.items()}
        best = max(found.values(), key=lambda similarity: average_precision_score(self.items.label, similarity))
        self.keep(hf_split, self.items.assign(similarity=best), folder)


class LocalSummarization(LocalRows, AbsTaskSummarization):
    """How well the nearest human summary's cosine ranks the machines' summaries of an article.

    Predictions: id, cluster, value (the article's term of mteb's mean). mteb's evaluator for this version of the task has a known
    fault, kept for comparability: a term is the mean of Spearman's ρ and its p value (mteb's issue 1156).
    """

    metric = "spearman"

    def read(self) -> dict[str, Dataset]:
        table = corpora.load(self.corpus, "test").drop(columns="split")
        self.items = pd.DataFrame({"id": table.id, "cluster": range(len(table)), "relevance": table.relevance})
        return {"test": _dataset(table)}

    def texts(self) -> dict[Role, list[str]]:
        lists = _columns(self, "human_summaries", "machine_summaries")
        return {"symmetric": [summary for summaries in lists for summary in summaries]}

    def _save_task_predictions(
        self, predictions: Mapping, model: Any, folder: Path, hf_split: str, hf_subset: str
    ) -> None:
        left, rows = {name: list(values) for name, values in predictions.items()}, []
        for item in self.items.itertuples():
            gold = (np.asarray(item.relevance) - self.min_score) / (self.max_score - self.min_score)
            if not left["human_scores"] or left["human_scores"][0] != gold.tolist():
                continue  # mteb leaves out an article whose summaries all have one score
            one = {name: [values.pop(0)] for name, values in left.items()}
            value = self.evaluator._calculate_metrics(None, one)["cosine_spearman"]
            rows.append({"id": item.id, "cluster": item.cluster, "value": value})
        self.keep(hf_split, pd.DataFrame(rows), folder)


class LocalRetrieval(LocalRows, AbsTaskRetrieval):
    """Retrieval of documents (title and text) for queries. Predictions: id, cluster, correct (nDCG@10).

    Where mteb says so (ArguAna), the document with the query's own id is left out.
    """

    metric = "ndcg_at_10"

    def read(self) -> dict[str, dict[str, Any]]:
        documents, queries, judged = (
            corpora.load(f"{self.corpus.removesuffix('_corpus')}_{part}", "test")
            for part in ("corpus", "queries", "qrels")
        )
        by_query = judged.groupby("query_id", sort=False)
        self.items = pd.DataFrame({"id": queries.id, "cluster": pd.factorize(queries.text)[0]})
        return {"default": {"test": {
            "corpus": _dataset(documents[["id", "title", "text"]]),
            "queries": _dataset(queries[["id", "text"]]),
            "relevant_docs": {key: dict(zip(part.doc_id, part.relevance, strict=True)) for key, part in by_query},
            "top_ranked": None,
        }}}  # fmt: skip

    def texts(self) -> dict[Role, list[str]]:
        self.load_data()
        data = self.dataset["default"]["test"]
        documents = [f"{row['title']} {row['text']}".strip() for row in data["corpus"]]
        return {"query": list(data["queries"]["text"]), "document": documents}

    def _evaluate_subset(
        self, *args: Any, hf_split: str, prediction_folder: Path | None = None, **options: Any
    ) -> dict:
        scores = super()._evaluate_subset(*args, hf_split=hf_split, **options)
        correct = self.items.id.map({query: found["ndcg_cut_10"] for query, found in self._by_query.items()})
        self.keep(hf_split, self.items.assign(correct=correct).dropna(subset="correct"), prediction_folder)
        return scores

    def task_specific_scores(self, scores: dict, *args: Any, **options: Any) -> dict[str, float]:
        """Called by mteb with each query's scores; remembers them, adds none."""
        self._by_query = scores
        return super().task_specific_scores(scores, *args, **options)


CLASSES: Mapping[Category, type[LocalRows]] = {
    "STS": LocalSTS, "Classification": LocalClassification, "PairClassification": LocalPairClassification,
    "Summarization": LocalSummarization, "Retrieval": LocalRetrieval,
}  # fmt: skip


@cache
def _local(name: str) -> type[LocalRows]:
    entry, stock = TASKS[name], type(mteb.get_task(name))
    about = metadata(name, entry.corpora[0], type=stock.metadata.type, main_score=stock.metadata.main_score)
    # The data set's path and revision say whose rows these are; all else stays mteb's
    changed = {"dataset": about.dataset, "eval_splits": ["test"]}
    if entry.subset:
        changed["eval_langs"] = {entry.subset: stock.metadata.eval_langs[entry.subset]}
    fields = {
        "metadata": stock.metadata.model_copy(update=changed), "label": name, "corpus": entry.corpora[0],
        "caveat": entry.caveat, "__doc__": stock.__doc__,
    }  # fmt: skip
    return type(f"Local{stock.__name__}", (CLASSES[entry.category], stock), fields)


def get(name: str) -> LocalRows:
    """A fresh task, data not yet loaded.

    Raises:
        GeneralError: no such task here; lists the known ones.
    """
    if name not in TASKS:
        raise GeneralError(f"MTEB's task {name!r} is not among those whose data the study has: {', '.join(TASKS)}.")
    return _local(name)()


def _dataset(table: pd.DataFrame) -> Dataset:
    return Dataset.from_pandas(table, preserve_index=False)


def _split(task: AbsTask, split: str) -> Dataset:
    task.load_data()
    data = task.dataset if split in task.dataset else task.dataset[task.hf_subsets[0]]
    return data[split]


def _columns(task: AbsTask, *columns: str) -> list:
    return [value for column in columns for value in _split(task, "test")[column]]
