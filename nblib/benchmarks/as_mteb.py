"""A benchmark of ours as a task of mteb, for those who evaluate by mteb."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from datasets import Dataset
from mteb.abstasks import AbsTask
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.similarity_functions import pairwise_cos_sim
from mteb.types import PromptType
from torch.utils.data import DataLoader

from nblib import corpora
from nblib.benchmarks.base import Benchmark
from nblib.benchmarks.scoring import point

PROMPTS = {"query": PromptType.query, "document": PromptType.document, "symmetric": None}


def as_mteb(benchmark: Benchmark) -> AbsTask:
    """The benchmark as a task for `mteb.evaluate`, with its own metric as the main score."""
    corpus = corpora.describe(benchmark.corpus)
    about = TaskMetadata(
        name=benchmark.name,
        description=corpus.title,
        dataset={"path": f"nblib/{corpus.name}", "revision": "-".join(s.sha256[:12] for s in corpus.splits.values())},
        type="STS" if benchmark.metric == "spearman" else "Reranking",
        category="t2t",
        eval_splits=list(benchmark.splits),
        eval_langs=["eng-Latn"],
        main_score=benchmark.metric,
    )

    class Task(AbsTask):
        metadata = about

        def load_data(self, **_: Any) -> None:
            self.dataset = {s: Dataset.from_pandas(benchmark.rows(s)) for s in self.eval_splits}
            self.data_loaded = True

        def _evaluate_subset(self, model: Any, data_split: Dataset, *, hf_split: str, hf_subset: str, **_: Any) -> dict:
            def encode(texts: list[str], role: str) -> np.ndarray:
                indices, distinct = pd.factorize(pd.Series(texts))
                loader = DataLoader(Dataset.from_dict({"text": list(distinct)}), batch_size=32)
                options = {"task_metadata": about, "hf_split": hf_split, "hf_subset": hf_subset}
                return np.asarray(model.encode(loader, prompt_type=PROMPTS[role], **options))[indices]

            def score(*sides: list[str], roles: tuple[str, str], similarity: str | None = None) -> np.ndarray:
                compare = pairwise_cos_sim if similarity == "cosine" else model.similarity_pairwise
                return np.asarray(compare(*map(encode, sides, roles)))

            system = SimpleNamespace(name="The model", score=score)
            predictions = benchmark.predict(system, data_split.to_pandas())
            return {metric: point(predictions, metric) for metric in benchmark.metrics}

        def _calculate_descriptive_statistics_from_split(self, split: str, **_: Any) -> dict:
            return {"num_samples": len(self.dataset[split])}

    return Task()
