"""Dev scores: they choose training data and hyperparameters, so that no test set is touched before the end.

Official: samples of STSB dev and of CANNOT-WMT's eval split, the 50 training pairs of NevIR at hand, the authored
mini sets and the dev anchors; for fine-tuning on NevIR (twenty epochs, each measured) a part of these. Mini, where the
mini sets are the test sets: STS mini's dev split and the dev anchors.
"""

import copy
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nblib import corpora
from nblib.benchmarks import catalogue, negation_profile, scoring
from nblib.benchmarks.base import DevSet, LocalTask
from nblib.benchmarks.nevir import NevIR
from nblib.benchmarks.pairwise import PairwiseTask
from nblib.benchmarks.similarity import SimilarityTask
from nblib.errors import StudyError
from nblib.models import embeddings
from nblib.models.systems import BiEncoder, System

if TYPE_CHECKING:
    from torch import nn

ANCHORS = "dev anchors"
KEPT = "kept similarities"
KEPT_RETRIEVAL = "kept query–passage similarities"
COLUMNS = ["set", "kind", "metric", "value", "n"]
PREDICTED = ["set", "id", "cluster", "correct", "similarity", "score"]
DATA = ("mini", "official", "nevir")
Items = dict[str, tuple[PairwiseTask | SimilarityTask, pd.DataFrame]]


class DevDataError(StudyError):
    """Dev data that don't exist."""


def sets(data: str) -> dict[str, tuple[LocalTask, DevSet]]:
    """The dev sets of the benchmarks, by name: general ability first, then correlations, then choices, Truong's first.

    Raises:
        DevDataError: no such dev data.
    """
    if data not in DATA:
        raise DevDataError(f"Unknown dev data {data!r}; known: {', '.join(DATA)}.")

    def place(key: str) -> tuple[bool, bool, bool]:
        task, kind = main[key], catalogue.BENCHMARKS[key].kind
        return (
            kind != "general",
            not issubclass(task, SimilarityTask),
            all(one.paper != "truong" for one in task.printed()),
        )

    main = catalogue.main_tasks()
    chosen = [dev for key in sorted(main, key=place) for dev in main[key].dev_sets if data in dev.data]
    named = {}
    for dev in chosen:
        task = catalogue.get(dev.task)
        split = "" if dev.split == "test" else dev.split.replace("_", " ")
        words = [task.label, "" if task.official else "mini", split]
        named[" ".join(filter(None, words))] = task, dev
    return named


def items(data: str, seen: Collection[str]) -> Items:
    """The dev items by set: the task, and those rows of it that are measured; the same every time.

    Args:
        data: as `sets` takes it.
        seen: ids that were trained on and are left out.
    """
    chosen = {}
    for name, (task, dev) in sets(data).items():
        rows = task.rows(dev.split)
        rows = rows[~rows.id.isin(seen)].reset_index(drop=True)
        if dev.most and len(rows) > dev.most:
            rows = rows.sample(dev.most, random_state=0).reset_index(drop=True)
        chosen[name] = task, rows
    return chosen


def measure(system: System, items: Items, anchors: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The dev scores of a system, and its predictions for the items.

    Args:
        items: from the function `items`.
        anchors: the dev anchors with their variants: how often is a hedge closer than a negation?

    Returns:
        set, kind ("general", "negation", or "diagnostic": how similar an encoder finds NevIR's two documents), metric, value
        (percent, ρ × 100, cosine × 100), n; and per item set, id, cluster, and correct or similarity and score.

    Raises:
        ScoreError: see `scoring.predict`.
    """
    general = {task for data in catalogue.DATA for task in catalogue.names(data, "general")}
    rows, predictions = [], {}
    for name, (task, chosen) in items.items():
        predicted = predictions[name] = scoring.predict(system, task, chosen)
        kind = "general" if task.metadata.name in general else "negation"
        if isinstance(task, PairwiseTask):
            rows.append((name, kind, "pairwise_accuracy", float(predicted.correct.mean()), len(predicted)))
        else:
            correlation = scoring.correlation("spearman", predicted.similarity, predicted.score)
            rows.append((name, kind, "spearman", correlation, len(chosen)))
        if isinstance(task, NevIR) and isinstance(system, BiEncoder):
            roles = ("document", "document")
            both = system.score(chosen.positive, chosen.negatives.str[0], roles=roles, similarity="cosine")
            rows.append((f"{name}: document cosine", "diagnostic", "cosine", float(both.mean()), len(predicted)))
    predicted = predictions[ANCHORS] = negation_profile.predictions(anchors, system)
    rows.append((ANCHORS, "negation", "accuracy", predicted.correct.mean(), len(predicted)))
    table = pd.DataFrame(rows, columns=COLUMNS)
    by_item = pd.concat([part.reindex(columns=PREDICTED).assign(set=name) for name, part in predictions.items()])
    return table.assign(value=100 * table.value), by_item


def kept_similarities(base: BiEncoder, tuned: BiEncoder) -> pd.DataFrame:
    """How well a tuned encoder keeps its base's similarities on text that no training sees: rows as of `measure`.

    The value is Spearman's ρ × 100 of the two encoders' cosines: `KEPT` over all pairs of MMLU's example questions (57
    subjects), `KEPT_RETRIEVAL` over every query of the retrieval mini set with every passage.
    """
    questions = corpora.load("mmlu", "dev").question.drop_duplicates().tolist()
    retrieval = corpora.load("retrieval_mini", "test")
    passages = (retrieval.title + " " + retrieval.passage).tolist()
    pairs = np.triu_indices(len(questions), 1)
    rows = []
    for name, queries, documents, shown in [
        (KEPT, questions, questions, pairs),
        (KEPT_RETRIEVAL, retrieval["query"].tolist(), passages, ...),
    ]:
        cosines = [_cosines(system, queries, documents)[shown].ravel() for system in (base, tuned)]
        rows.append((name, "diagnostic", "spearman", 100 * scoring.correlation("spearman", *cosines), len(queries)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _cosines(system: BiEncoder, queries: list[str], documents: list[str]) -> np.ndarray:
    """The cosine of every query with every document: (queries, documents)."""
    units = []
    for texts in (queries, documents):
        vectors = embeddings.encode(system.encoder, texts)
        units.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return units[0] @ units[1].T


class DevEvaluator:
    """Measures a system while it is trained; called after every epoch, it remembers.

    Args:
        base: the system that is trained; of an encoder its prompts and similarity are used.
        anchors: the dev anchors with their variants (`triples.split`).
        seen: ids that are trained on; a dev item of that id is left out.
        data: as `sets` takes it.
        graded: whether the system's score is a degree of similarity, so that correlations can be measured.
    """

    def __init__(
        self, base: System, anchors: pd.DataFrame, seen: Collection[str], data: str, graded: bool = True
    ) -> None:
        sets(data)  # refuses what doesn't exist
        self.base, self.anchors, self.data, self.seen, self.graded = base, anchors, data, set(seen), graded
        self.measured: dict[int, pd.DataFrame] = {}
        self.predicted = pd.DataFrame(columns=PREDICTED)  # per item, by the model that was measured last

    def __call__(self, model: "nn.Module", epoch: int) -> pd.DataFrame:
        table = self.measure(model)
        self.measured[epoch] = table.assign(epoch=epoch)
        return table

    def measure(self, model: "nn.Module") -> pd.DataFrame:
        """The dev scores of a model in the base's place, as the function `measure` has them; of an encoder with official dev
        data also how well it keeps the base's similarities."""
        chosen = items(self.data, self.seen)
        if not self.graded:
            chosen = {name: entry for name, entry in chosen.items() if isinstance(entry[0], PairwiseTask)}
        system = self._with(model)
        table, self.predicted = measure(system, chosen, self.anchors)
        if self.data == "official" and isinstance(self.base, BiEncoder):
            table = pd.concat([table, kept_similarities(self.base, system)], ignore_index=True)
        return table

    def _with(self, model: "nn.Module") -> System:
        if isinstance(self.base, BiEncoder):
            if model is self.base.model:  # whose embeddings are worth keeping
                return self.base
            return BiEncoder(replace(self.base.encoder, model=model, fingerprint="", cacheable=False))
        system = copy.copy(self.base)
        system.model = model
        return system

    def table(self) -> pd.DataFrame:
        """What was measured so far, with the epoch."""
        return pd.concat(self.measured.values(), ignore_index=True)

    def resume(self, table: pd.DataFrame) -> None:
        """Take over what was measured before a training was interrupted (from `table`)."""
        self.measured |= {int(epoch): part for epoch, part in table.groupby("epoch", sort=False)}


def choose_alpha(curve: pd.DataFrame, budget: float) -> float:
    """The largest α whose general dev score is within `budget` points of the base's (α = 0), or the smallest above 0 where
    none is.

    Args:
        curve: what `DevEvaluator.measure` gives, with a column `alpha`.
    """
    general = curve[curve.kind == "general"].groupby("alpha").value.mean()
    tried = general.drop(0.0)
    within = tried[tried >= general[0.0] - budget]
    return float(within.index.max() if len(within) else tried.index.min())
