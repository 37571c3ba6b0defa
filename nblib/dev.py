"""Dev scores: what recipes and hyperparameters are chosen on, so that no test set is touched before the end.

On the official scale: samples of STSB dev and of CANNOT-WMT's eval split, the 50 training pairs of NevIR at hand, the authored
miniatures and the dev anchors; for fine-tuning on NevIR (twenty epochs, each looked at) a part of these. In quick, where the
miniatures are the test sets: STS mini's dev split and the dev anchors.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from nblib import embeddings, negation_profile, scores, tasks
from nblib.models import Encoder
from nblib.tasks.encoding import ROLES
from nblib.tasks.pairwise import NevIR, PairwiseTask
from nblib.tasks.similarity import SimilarityTask

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# name → task, split, at most so many rows (drawn by seed: a dev score has to be cheap)
SETS = {
    "mini": {"STSB mini dev": ("STSBMini", "dev", None)},
    "official": {
        "STSB dev": ("STSB", "dev", 750),
        "CANNOT-WMT eval": ("CannotWMT", "eval", 500),
        "NevIR train sample": ("NevIR", "train_sample", None),
        "NevIR mini": ("NevIRMini", "test", None),
        "ExcluIR mini": ("ExcluIRMini", "test", None),
        "SemAntoNeg mini": ("SemAntoNegMini", "test", None),
    },
    "nevir": {
        "STSB dev": ("STSB", "dev", 750),
        "NevIR train sample": ("NevIR", "train_sample", None),
        "NevIR mini": ("NevIRMini", "test", None),
    },
}
ANCHORS = "dev anchors"
Items = dict[str, tuple[PairwiseTask | SimilarityTask, pd.DataFrame]]


def items(data: str, seen: Collection[str]) -> Items:
    """The dev items by set: the task, and those rows of it that are measured; the same every time.

    Args:
        data: which of `SETS`.
        seen: ids that were trained on and are left out.
    """
    chosen = {}
    for name, (task_name, split, most) in SETS[data].items():
        task = tasks.get(task_name)
        rows = task.rows(split)
        rows = rows[~rows.id.isin(seen)].reset_index(drop=True)
        if most and len(rows) > most:
            rows = rows.sample(most, random_state=0).reset_index(drop=True)
        chosen[name] = task, rows
    return chosen


class Watch:
    """Measures an encoder on its way through training; called after every epoch, it remembers.

    Args:
        base: the encoder that is trained, for its prompts and similarity.
        anchors: the dev anchors with their variants (`triples.split`).
        train_set: the triples; a dev item with an id of theirs is left out.
        data: which of `SETS`.
    """

    def __init__(self, base: Encoder, anchors: pd.DataFrame, train_set: pd.DataFrame, data: str) -> None:
        if data not in SETS:
            raise ValueError(f"Unknown dev data {data!r}; known: {', '.join(SETS)}.")
        self.base, self.anchors, self.data, self.seen = base, anchors, data, set(train_set.id)
        self.measured: list[pd.DataFrame] = []

    def __call__(self, model: "SentenceTransformer", epoch: int) -> pd.DataFrame:
        self.measured.append(self.measure(model).assign(epoch=epoch))
        return self.measured[-1].drop(columns="epoch")

    def measure(self, model: "SentenceTransformer") -> pd.DataFrame:
        """The dev scores of a model: set, kind ("general", "negation", or "diagnostic": how similar NevIR's two documents
        are), value (percent: Spearman's ρ × 100, pairwise accuracy, cosine × 100, or, for the anchors, how often a hedge is
        nearer than a negation), n."""
        own = model is self.base.model  # whose embeddings are worth keeping
        encoder = self.base if own else replace(self.base, model=model, fingerprint="", passing=True)
        rows = []
        for name, (task, chosen) in items(self.data, self.seen).items():
            judge = _pairwise if isinstance(task, PairwiseTask) else _correlation
            rows += [(name + what, kind, 100 * value, n) for what, kind, value, n in judge(encoder, task, chosen)]
        judged = negation_profile.predictions(self.anchors, encoder)
        rows.append((ANCHORS, "negation", 100 * judged.correct.mean(), len(judged)))
        return pd.DataFrame(rows, columns=["set", "kind", "value", "n"])

    def table(self) -> pd.DataFrame:
        """What was measured so far, with the epoch."""
        return pd.concat(self.measured, ignore_index=True)


def choose_alpha(curve: pd.DataFrame, budget: float) -> float:
    """The largest α whose general dev score is within `budget` points of the base's (α = 0), or the smallest above 0 where
    none is.

    Args:
        curve: what `Watch.measure` gives, with a column `alpha`.
    """
    general = curve[curve.kind == "general"].groupby("alpha").value.mean()
    tried = general.drop(0.0)
    within = tried[tried >= general[0.0] - budget]
    return float(within.index.max() if len(within) else tried.index.min())


def _pairwise(encoder: Encoder, task: PairwiseTask, items: pd.DataFrame) -> list[tuple[str, str, float, int]]:
    asked, answered = [ROLES[role] for role in task.roles]
    ask = embeddings.encode(encoder, items["query"].tolist(), role=asked)
    answers = embeddings.encode(encoder, [*items.positive, *items.negatives.explode()], role=answered)
    kind = encoder.spec.similarity if task.similarity == "model" else task.similarity
    judged = task.judge(items, ask, answers, kind)
    found = [("", "negation", float(judged.correct.mean()), len(judged))]
    if isinstance(task, NevIR):
        documents = embeddings.similarity(answers[: len(items)], answers[len(items) :])
        found.append((": document cosine", "diagnostic", float(documents.mean()), len(judged)))
    return found


def _correlation(encoder: Encoder, task: SimilarityTask, items: pd.DataFrame) -> list[tuple[str, str, float, int]]:
    first, second = (embeddings.encode(encoder, items[column].tolist()) for column in ("sentence1", "sentence2"))
    rho = scores.spearman(embeddings.similarity(first, second, encoder.spec.similarity), items.score)
    return [("", "general" if task.benchmark.startswith("STSB") else "negation", rho, len(items))]
