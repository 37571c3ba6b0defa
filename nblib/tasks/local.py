"""What the tasks on our own corpora share: data from the registry, metadata, per-item predictions."""

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from datasets import Dataset
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.types import PromptType
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nblib import corpora, paths

logger = logging.getLogger(__name__)

AUTHORED = {
    "date": ("2026-01-01", "2026-12-31"), "annotations_creators": "LM-generated", "sample_creation": "created",
    "license": "cc-by-4.0", "bibtex_citation": "",
}  # fmt: skip


def metadata(name: str, corpus: str, *, splits: Sequence[str] = ("test",), **fields: Any) -> TaskMetadata:
    """Complete mteb metadata of a task on a registered corpus.

    The data set's revision is made of the splits' content hashes, so a result file of other data is never taken for ours.
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


class LocalTask:
    """Mixin for mteb tasks whose data are a registered corpus.

    Attributes:
        corpus: its name in the registry.
        paper_metric: the metric's name in results tables.
        printed: where the papers print such scores: paper, exhibit, benchmark, metric, the first being its home.
        reservation: why a score on the official files is not the published quantity itself; "" where it is.
        own_set: whether the items themselves are others than the paper's, so that no published score lies near ours.
        predictions: after an evaluation, one row per item, per split; outlives mteb's unloading of the data. Always with
            `id` and `cluster` (items that share a text are in one cluster and are not independent).
    """

    corpus: ClassVar[str]
    paper_metric: ClassVar[str]
    printed: ClassVar[tuple[tuple[str, str, str, str], ...]]
    reservation: ClassVar[str] = ""
    own_set: ClassVar[bool] = False
    predictions: dict[str, pd.DataFrame]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.predictions = {}

    @property
    def official(self) -> bool:
        """Whether the data are the official benchmark's (not a miniature)."""
        return corpora.describe(self.corpus).official

    @property
    def benchmark(self) -> str:
        """What to call it beside a number; a mini set is called mini."""
        return corpora.describe(self.corpus).label

    def load_data(self, **_: Any) -> None:
        """Load and validate the corpus; `self.dataset` is split → table of `rows`.

        Raises:
            CorpusError: see `corpora.load`.
        """
        if not self.data_loaded:
            self.dataset = {
                split: Dataset.from_pandas(self.rows(split), preserve_index=False) for split in self._splits()
            }
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
            with paths.write_atomically(Path(folder) / f"{self.metadata.name}_{split}.parquet") as draft:
                predictions.to_parquet(draft, index=False)

    def _calculate_descriptive_statistics_from_split(self, split: str, **_: Any) -> dict:
        return {"num_samples": len(self.dataset[split])}

    def _push_dataset_to_hub(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("The study's data are not published on a hub.")


def sampled(task: type[LocalTask]) -> TaskMetadata:
    """The metadata of a task's sample."""
    return task.metadata.model_copy(update={"name": f"{task.metadata.name}Sample", "eval_splits": ["test"]})


def sample(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """The rows of the first ids in a fixed order."""
    drawn = pd.Series(rows.id.unique()).sample(frac=1, random_state=0).head(most)
    return rows[rows.id.isin(drawn)].reset_index(drop=True)


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
