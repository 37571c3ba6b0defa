"""Benchmarks that are choices: the right text must be closer than the wrong ones."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from datasets import Dataset
from mteb.abstasks import AbsTask
from mteb.models import EncoderProtocol
from mteb.types import PromptType

from nblib.benchmarks.base import LocalTask, encode
from nblib.models import embeddings


class PairwiseTask(LocalTask, AbsTask):
    """Items of one or more questions: a text that must be strictly closer to its positive than to each of its negatives.

    An item counts only where all its questions are right, and a tie is wrong (Weller §3.4; NevIR's two documents are nearly
    identical). Predictions: id, cluster, margin (similarity of the positive minus that of the nearest negative; the smallest
    over the item's questions), `margin_<question>` where there are several, `nearest_negative` (its place, from 0) where there
    are several negatives, correct.

    Attributes:
        roles: prompts of the question and of the candidates; None for symmetric tasks.
        similarity: what to compare with: the model's own, or cosine whatever the model.
    """

    roles: ClassVar[tuple[PromptType | None, PromptType | None]]
    similarity: ClassVar[Literal["model", "cosine"]] = "model"
    metric = "accuracy"
    protocol = "choice"

    def _evaluate_subset(
        self, model: EncoderProtocol, data_split: Dataset, *, encode_kwargs: dict, hf_split: str,
        prediction_folder: Path | None = None, **_: Any,
    ) -> dict[str, float]:  # fmt: skip
        questions = data_split.to_pandas()
        ask = encode(self, model, questions["query"], hf_split, self.roles[0], encode_kwargs)
        candidates = [*questions.positive, *questions.negatives.explode()]
        answers = encode(self, model, candidates, hf_split, self.roles[1], encode_kwargs)
        own = getattr(model.mteb_model_meta.similarity_fn_name, "value", "cosine")
        kind = own if self.similarity == "model" else "cosine"
        predictions = self.score_embeddings(questions, np.asarray(ask), np.asarray(answers), kind)
        self.keep(hf_split, predictions, prediction_folder)
        scores = {"accuracy": float(predictions.correct.mean()), "n": len(predictions)}
        if own != kind:  # an adapter compares by dot product; say what that would give, too
            by_own = self.score_embeddings(questions, np.asarray(ask), np.asarray(answers), own)
            scores["accuracy_own_similarity"] = float(by_own.correct.mean())
        return scores

    @staticmethod
    def score_embeddings(questions: pd.DataFrame, ask: np.ndarray, answers: np.ndarray, kind: str) -> pd.DataFrame:
        """Predictions from embeddings.

        Args:
            questions: from `rows`, n of them.
            ask: the queries' embeddings, [n, dimension].
            answers: the positives', then all negatives', question by question.
            kind: the similarity, "cosine" or "dot".
        """
        n = len(questions)
        owner = np.repeat(np.arange(n), questions.negatives.map(len))
        to_positive = embeddings.similarity(ask, answers[:n], kind)
        return PairwiseTask.score_items(questions, to_positive, embeddings.similarity(ask[owner], answers[n:], kind))

    @staticmethod
    def score_items(questions: pd.DataFrame, to_positive: np.ndarray, to_negatives: np.ndarray) -> pd.DataFrame:
        """Predictions from similarities, or any other scores.

        Args:
            questions: from `rows`, n of them.
            to_positive: each query's score with its positive, [n].
            to_negatives: with each of its negatives, question by question.
        """
        counts = questions.negatives.map(len)
        by_question = pd.Series(to_negatives).groupby(np.repeat(np.arange(len(questions)), counts))
        table = questions[["id", "cluster", "question"]].assign(margin=to_positive - by_question.max().to_numpy())
        items = (
            table.groupby("id", sort=False).agg(cluster=("cluster", "first"), margin=("margin", "min")).reset_index()
        )
        if table.question.nunique() > 1:
            margins = table.pivot(index="id", columns="question", values="margin").add_prefix("margin_")
            items = items.merge(margins.reset_index(), on="id", validate="1:1")
        elif (counts > 1).any():
            firsts = np.concatenate([[0], counts.cumsum()[:-1]])
            items["nearest_negative"] = by_question.idxmax().to_numpy() - firsts
        return items.assign(correct=items.margin > 0)
