"""Dev scores choose training data and hyperparameters, so that no test set is touched before the end: of each benchmark its
`dev_sets`, and of the dev anchors."""

import copy
from collections.abc import Collection
from dataclasses import replace
from typing import Literal, get_args

import pandas as pd
from torch import nn

from nblib.benchmarks import catalogue, scoring
from nblib.benchmarks.base import Benchmark, Choice, Correlation, DevSet
from nblib.benchmarks.negation_profile import NegationProfile
from nblib.benchmarks.nevir import NevIR
from nblib.errors import one_of
from nblib.models.systems import BiEncoder, System

PREDICTED = ["set", "id", "cluster", "correct", "similarity", "score"]
DevData = Literal["mini", "official", "nevir"]


def sets(data: DevData) -> dict[str, tuple[Benchmark, DevSet]]:
    """The dev sets of the benchmarks, by name: general ability first, then correlations, then choices, Truong's first."""
    one_of(data, get_args(DevData), "dev data")
    classes = sorted(
        catalogue.BENCHMARKS.values(),
        key=lambda one: (one.ability != "general", not issubclass(one, Correlation), not one.averaged),
    )
    chosen = [(one(dev.form), dev) for one in classes for dev in one.dev_sets if data in dev.used_for]
    return {_label(benchmark, dev): (benchmark, dev) for benchmark, dev in chosen}


def _label(benchmark: Benchmark, dev: DevSet) -> str:
    split = "" if dev.split == "test" else dev.split.replace("_", " ")
    return " ".join(filter(None, [benchmark.label, "" if benchmark.official else "mini", split]))


class DevEvaluator:
    """Measures a system while it is trained.

    Args:
        base: the system that is trained; of an encoder its prompts and similarity are used.
        anchors: the dev anchors with their variants (`triples.split`).
        seen: ids that are trained on; a dev item of that id is left out.
        graded: whether the score is a degree of similarity, so that correlations can be measured.
    """

    def __init__(
        self, base: System, anchors: pd.DataFrame, seen: Collection[str], data: DevData, graded: bool = True
    ) -> None:
        sets(data)  # refuses what doesn't exist
        self.base, self.anchors, self.data, self.seen, self.graded = base, anchors, data, set(seen), graded
        self.predicted = pd.DataFrame(columns=PREDICTED)  # per item, by the model that was measured last

    def measure(self, model: nn.Module) -> pd.DataFrame:
        """The dev scores of a model in the base's place (its predictions are then in `predicted`).

        Returns:
            set, kind ("general", "negation", "diagnostic": an encoder's cosine of NevIR's two documents), value (percent,
            ρ × 100, cosine × 100), n.
        """
        system, rows, predictions = self._with(model), [], []
        for name, (benchmark, items) in self._items().items():
            predicted = benchmark.predict(system, items)
            predictions.append(predicted.reindex(columns=PREDICTED).assign(set=name))
            rows.append((name, benchmark.ability, scoring.point(predicted), len(predicted)))
            if isinstance(benchmark, NevIR) and isinstance(system, BiEncoder):
                roles = ("document", "document")
                both = system.score(items.positive, items.negatives.str[0], roles=roles, similarity="cosine")
                rows.append((f"{name}: document cosine", "diagnostic", float(both.mean()), len(predicted)))
        self.predicted = pd.concat(predictions)
        table = pd.DataFrame(rows, columns=["set", "kind", "value", "n"])
        return table.assign(value=100 * table.value)

    def _items(self) -> dict[str, tuple[Benchmark, pd.DataFrame]]:
        """What is measured: set → the benchmark and rows of it."""
        chosen = {}
        for name, (benchmark, dev) in sets(self.data).items():
            if self.graded or isinstance(benchmark, Choice):
                rows = benchmark.rows(dev.split)
                rows = rows[~rows.id.isin(self.seen)].reset_index(drop=True)
                if dev.most and len(rows) > dev.most:
                    rows = rows.sample(dev.most, random_state=0).reset_index(drop=True)
                chosen[name] = benchmark, rows
        return {**chosen, "dev anchors": (NegationProfile(), NegationProfile.of_anchors(self.anchors))}

    def _with(self, model: nn.Module) -> System:
        if isinstance(self.base, BiEncoder):
            if model is self.base.model:  # whose embeddings are worth keeping
                return self.base
            return BiEncoder(replace(self.base.encoder, model=model, fingerprint="", cacheable=False))
        system = copy.copy(self.base)
        system.model = model
        return system


def choose_alpha(curve: pd.DataFrame, budget: float) -> float:
    """The largest α whose general dev score (of `DevEvaluator.measure`, with a column alpha) is within `budget` points of the
    base's (α = 0), or the smallest above 0 where none is."""
    general = curve[curve.kind == "general"].groupby("alpha").value.mean()
    tried = general.drop(0.0)
    within = tried[tried >= general[0.0] - budget]
    return float(within.index.max() if len(within) else tried.index.min())
