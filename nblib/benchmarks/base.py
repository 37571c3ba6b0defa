"""What a benchmark is: a small class, `Choice` or `Correlation`, with its data in `read`.

`pairs` says which texts a system scores, `judge` makes per-item predictions of the scores.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nblib import corpora
from nblib.errors import StudyError, one_of

if TYPE_CHECKING:
    from nblib.models.registry import Role
    from nblib.models.systems import System

Form = Literal["mini", "official"]
FORMS: tuple[Form, ...] = get_args(Form)


class ScoreError(StudyError):
    """Scores that are absent, or not finite, or belong to another system or other items."""


@dataclass(frozen=True)
class DevSet:
    """Items of a benchmark that trainings are measured on, so that no test set is touched before the end."""

    split: str
    used_for: tuple[str, ...]  # the trainings: on mini data, on official data, on NevIR ("nevir")
    form: Form = "official"
    most: int | None = None  # rows, sampled by seed: a dev score has to be cheap


class Benchmark:
    """One form of a benchmark (see `catalogue`); a StudyError where it has no such form."""

    key: str  # its name in code and files
    label: str  # its name for people
    metric: str  # its own metric, a key of `scoring.METRICS`
    ability: Literal["negation", "general"] = "negation"
    forms: tuple[Form, ...] = FORMS
    splits: tuple[str, ...] = ("test",)  # of the official form; what isn't "test" is scored, too
    chance = math.nan  # the score of guessing, percent
    averaged = False  # whether it counts in Truong's average of the negation benchmarks
    dev_sets: tuple[DevSet, ...] = ()
    llm: tuple[
        Literal["ranking", "pointwise", "similarity", "choice"], ...
    ] = ()  # how a language model is asked, if it is
    roles: tuple["Role", "Role"] = ("symmetric", "symmetric")  # whose prompts an encoder puts before a pair
    similarity: Literal["cosine"] | None = None  # None: an encoder's own

    def __init__(self, form: Form = "official") -> None:
        self.form = one_of(form, self.forms, f"form of {self.label}")
        self.splits = type(self).splits if form == "official" else ("test",)

    @property
    def name(self) -> str:
        """What its files are named after: nevir, nevir_mini."""
        return f"{self.key}_mini" if self.form == "mini" else self.key

    @property
    def corpus(self) -> str:
        """The registered corpus that it reads."""
        return self.name

    @property
    def official(self) -> bool:
        return corpora.describe(self.corpus).official

    @property
    def main_metric(self) -> str:
        """The metric that the papers print."""
        return self.metric

    @property
    def metrics(self) -> tuple[str, ...]:
        """All that is measured, its own metric first."""
        return ("spearman", "pearson") if self.metric == "spearman" else (self.metric,)

    def rows(self, split: str = "test") -> pd.DataFrame:
        """The items of a split; see the subclasses for the columns."""
        raise NotImplementedError

    def predict(self, system: "System", rows: pd.DataFrame) -> pd.DataFrame:
        """A system's predictions for items; a ScoreError where its library can't read them, or a score isn't finite."""
        first, second = self.pairs(rows)
        options = {"similarity": self.similarity} if self.similarity else {}
        try:
            scores = np.asarray(system.score(first, second, roles=self.roles, **options), dtype=np.float64)
        except StudyError:
            raise
        except Exception as error:  # of a model whose settings don't fit, such as a token without a vector
            why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise ScoreError(f"{system.name} can't be scored on {self.label} ({why}).") from error
        if scores.shape != (len(first),) or not np.isfinite(scores).all():
            raise ScoreError(f"{system.name} gave scores of shape {scores.shape}, or NaN; expected [{len(first)}].")
        return self.judge(rows, scores)


class Choice(Benchmark):
    """Items of one or more questions, all of which must be right: a query strictly closer to its positive than to each negative.

    Rows: id, cluster (of items that share a text), question, query, positive, negatives (a list). Predictions: id, cluster,
    margin (similarity of the positive minus that of the nearest negative; the smallest over the questions), of several
    questions `margin_<question>`, of several negatives `nearest_negative` (its index), correct (a tie is not, Weller §3.4).
    """

    metric = "accuracy"

    def pairs(self, rows: pd.DataFrame) -> tuple[list[str], list[str]]:
        """Each query with its positive, then each with each of its negatives."""
        long = rows.explode("negatives")
        return [*rows["query"], *long["query"]], [*rows.positive, *long.negatives]

    def judge(self, rows: pd.DataFrame, scores: np.ndarray) -> pd.DataFrame:
        return self.score_items(rows, scores[: len(rows)], scores[len(rows) :])

    @staticmethod
    def score_items(questions: pd.DataFrame, to_positive: np.ndarray, to_negatives: np.ndarray) -> pd.DataFrame:
        """Predictions from the scores of n queries with their positives, [n], and with all their negatives in order."""
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


class Correlation(Benchmark):
    """Pairs of sentences whose similarity must follow a score.

    Rows: id, cluster, part (of the benchmark), score, sentence1, sentence2. Predictions: id, cluster, part, score, similarity.
    """

    metric = "spearman"
    chance = 0.0

    def pairs(self, rows: pd.DataFrame) -> tuple[list[str], list[str]]:
        """The two sentences of each row."""
        return rows.sentence1.tolist(), rows.sentence2.tolist()

    def judge(self, rows: pd.DataFrame, scores: np.ndarray) -> pd.DataFrame:
        return rows[["id", "cluster", "part", "score"]].assign(similarity=scores)


def shared_text_clusters(*columns: Sequence[str]) -> list[int]:
    """The cluster of each row of columns of texts, [n]: rows that share a text, directly or through other rows."""
    n = len(columns[0])
    codes = pd.factorize(pd.Series([text for column in columns for text in column]))[0]
    rows = list(range(n)) * len(columns)
    graph = coo_array(([1] * len(rows), (rows, codes + n)), shape=(n + codes.max() + 1,) * 2)
    return connected_components(graph, directed=False)[1][:n].tolist()
