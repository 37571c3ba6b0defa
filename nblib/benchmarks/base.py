"""What the benchmarks share: data from the registry, metadata, mini set and sample, per-item predictions."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd
from datasets import Dataset
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.types import PromptType
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nblib import artefacts, corpora
from nblib.results import answers
from nblib.results.answers import Answer

AUTHORED = {
    "date": ("2026-01-01", "2026-12-31"), "annotations_creators": "LM-generated", "sample_creation": "created",
    "license": "cc-by-4.0", "bibtex_citation": "",
}  # fmt: skip


def metadata(name: str, corpus: str, *, splits: Sequence[str] = ("test",), **fields: Any) -> TaskMetadata:
    """Complete mteb metadata of a task on a registered corpus.

    The data set's revision is a hash of the splits' content hashes, so results on other data are never taken for ours.
    """
    described = corpora.describe(corpus)
    hashes = "".join(described.splits[split].sha256 for split in described.splits)
    revision = hashlib.sha256(hashes.encode()).hexdigest()
    common = {
        "modalities": ["text"], "category": "t2t", "eval_langs": ["eng-Latn"], "dialect": [], "domains": ["Written"],
        "task_subtypes": [], "eval_splits": list(splits), "description": described.title,
        "reference": "https://creativecommons.org/licenses/by/4.0/", **({} if described.official else AUTHORED),
    }  # fmt: skip
    return TaskMetadata(name=name, dataset={"path": f"nblib/{corpus}", "revision": revision}, **{**common, **fields})


@dataclass(frozen=True)
class DevSet:
    """Items of a benchmark that trainings are measured on, so that no test set is touched before the end.

    Attributes:
        task: the form of the benchmark (a task's name) and its split.
        data: the dev data it belongs to: mini, official, or nevir (for fine-tuning on NevIR).
        most: at most so many rows, sampled by seed: a dev score has to be cheap.
    """

    task: str
    split: str
    data: tuple[Literal["mini", "official", "nevir"], ...]
    most: int | None = None


class LocalTask:
    """A benchmark: an mteb task whose data are a registered corpus, and all that other modules need to know of it.

    Attributes:
        label: what people call it.
        corpus: its name in the registry.
        metric: its main metric (a key of `scoring.METRICS`).
        sampled: which part of the test set this is; "" for all of it.
        chance: the score of guessing (percent); NaN where there is none.
        averaged: whether it counts in Truong's average of the negation benchmarks.
        dev_sets: what trainings are measured on.
        protocol: what of it is predicted: a choice among texts, a similarity of two, or what mteb's own task does.
        llm: how a language model is asked; None: it isn't.
        predictions: after an evaluation, one row per item, per split; outlives mteb's unloading of the data. Always with
            `id` and `cluster` (items that share a text are in one cluster and are not independent).
    """

    label: ClassVar[str]
    corpus: ClassVar[str]
    metric: ClassVar[str]
    sampled: ClassVar[str] = ""
    chance: ClassVar[float] = math.nan
    averaged: ClassVar[bool] = False
    dev_sets: ClassVar[tuple[DevSet, ...]] = ()
    protocol: ClassVar[Literal["choice", "similarity", "mteb"]] = "mteb"
    llm: ClassVar[Literal["ranking", "similarity", "choice"] | None] = None
    predictions: dict[str, pd.DataFrame]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.predictions = {}

    @property
    def official(self) -> bool:
        """Whether the data are the official benchmark's (not a mini set)."""
        return corpora.describe(self.corpus).official

    @property
    def benchmark(self) -> str:
        """Its label in tables and figures; a mini set is called mini."""
        return self.label if self.official else f"{self.label} (mini)"

    @classmethod
    def printed(cls) -> tuple[Answer, ...]:
        """Where the papers print scores of this benchmark, and how ours differs (`results.answers`)."""
        return answers.of_benchmark(cls.label, f"{cls.corpus.removesuffix('_mini')} test")

    @classmethod
    def headline(cls) -> str:
        """The metric that stands beside the printed numbers; the task's own where none is printed."""
        return next((answer.measured for answer in cls.printed()), cls.metric)

    def load_data(self, **_: Any) -> None:
        """Load and validate the corpus; `self.dataset` is split → table of `rows`.

        Raises:
            CorpusError: see `corpora.load`.
        """
        if not self.data_loaded:
            splits = {split: self.rows(split) for split in self._splits()}
            self.dataset = {split: Dataset.from_pandas(rows, preserve_index=False) for split, rows in splits.items()}
            self.data_loaded = True

    def _splits(self) -> list[str]:
        return list(self.eval_splits)

    def rows(self, split: str) -> pd.DataFrame:
        """The items of a split as the task wants them."""
        raise NotImplementedError

    def keep(self, split: str, predictions: pd.DataFrame, folder: Path | None) -> None:
        """Remember per-item predictions and write them to `<folder>/<task>_<split>.parquet`.

        Raises:
            ValueError: an id is missing or repeated.
        """
        if predictions.id.isna().any() or predictions.id.duplicated().any():
            raise ValueError(f"{self.metadata.name} ({split}): an item has no id, or one that another has too.")
        self.predictions[split] = predictions
        if folder is not None:
            artefacts.write_table(predictions, Path(folder) / f"{self.metadata.name}_{split}.parquet")

    def _calculate_descriptive_statistics_from_split(self, split: str, **_: Any) -> dict:
        return {"num_samples": len(self.dataset[split])}

    def _push_dataset_to_hub(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("The study's data are not published on a hub.")


def mini(task: type[LocalTask]) -> type[LocalTask]:
    """The authored mini set of a benchmark: the same task on the corpus `<corpus>_mini`, never to be compared with it."""
    name, corpus = f"{task.metadata.name}_mini", f"{task.corpus}_mini"
    about = metadata(name, corpus, type=task.metadata.type, main_score=task.metadata.main_score)
    return type(f"{task.__name__}Mini", (task,), {"corpus": corpus, "metadata": about, "__doc__": task.__doc__})


def sample(task: type[LocalTask], most: int, unit: str) -> type[LocalTask]:
    """A sample of a benchmark's test split, the first ids of a fixed draw: what many encoders can afford on a CPU.

    Args:
        most: how many ids.
        unit: what an id stands for: pairs, or rows.
    """

    def rows(self: LocalTask, split: str) -> pd.DataFrame:
        table = task.rows(self, split)
        ids = pd.Series(table.id.unique()).sample(frac=1, random_state=0).head(most)
        return table[table.id.isin(ids)].reset_index(drop=True)

    about = task.metadata.model_copy(update={"name": f"{task.metadata.name}_sample", "eval_splits": ["test"]})
    sampled = f"a sample of {most} {unit}"
    fields = {"rows": rows, "metadata": about, "sampled": sampled, "__doc__": f"{task.label}, {sampled}."}
    return type(f"{task.__name__}Sample", (task,), fields)


def shared_text_clusters(*columns: Sequence[str]) -> list[int]:
    """Cluster rows that share a text, directly or through other rows.

    Args:
        columns: texts, each of shape [n].

    Returns:
        The cluster's number per row, shape [n].
    """
    n = len(columns[0])
    codes = pd.factorize(pd.Series([text for column in columns for text in column]))[0]
    rows = list(range(n)) * len(columns)
    graph = coo_array(([1] * len(rows), (rows, codes + n)), shape=(n + codes.max() + 1,) * 2)
    return connected_components(graph, directed=False)[1][:n].tolist()


def encode(task: Any, model: Any, texts: Sequence[str], split: str, role: PromptType | None, options: dict) -> Any:
    """Embeddings of texts through mteb's protocol, each distinct text sent once, in the order of `texts`."""
    from torch.utils.data import DataLoader

    codes, distinct = pd.factorize(pd.Series(list(texts)))
    loader = DataLoader(Dataset.from_dict({"text": list(distinct)}), batch_size=options.get("batch_size", 32))
    vectors = model.encode(
        loader, task_metadata=task.metadata, hf_split=split, hf_subset="default", prompt_type=role, **options
    )
    return vectors[codes]
