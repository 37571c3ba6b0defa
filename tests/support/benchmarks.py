"""Benchmarks with rows written down, evaluated on an encoder; and systems whose scores are written down."""

import mteb
import numpy as np
import pandas as pd

from nblib.benchmarks.mteb_encoder import MtebEncoder
from nblib.models.ranker_architectures.base import Ranker


def run(task, encoder, folder=None, **options):
    """Evaluate a task on an encoder; its score and its predictions."""
    options = {"cache": None, "overwrite_strategy": "always", **options}
    done = mteb.evaluate(
        MtebEncoder(encoder), task, prediction_folder=folder, co2_tracker=False, show_progress_bar=False, **options
    )
    return done.task_results[0].scores["test"][0], task.predictions


def with_rows(task, rows):
    """The task with these rows."""
    task.rows = lambda split: pd.DataFrame(rows)
    return task


def doors(count, name="p"):
    """Pairs as NevIR's, short: the tiny encoders cut the miniature's passages off before they differ, and then rounding
    alone would say which is nearer."""
    return pd.DataFrame([
        {"id": f"{name}-{k}", "q1": f"is door {k} red", "q2": f"is door {k} green", "doc1": f"door {k} is red",
         "doc2": f"door {k} is green"} for k in range(count)
    ])  # fmt: skip


def question(item="1", ask="q1", query="q", positive="p", negatives=("n",)):
    """A row of a pairwise task."""
    texts = {"query": query, "positive": positive, "negatives": list(negatives)}
    return {"id": item, "cluster": 0, "question": ask, **texts}


class Written(Ranker):
    """A system whose scores are written down: (query, document) → score, 0 for any other."""

    kind = "written"

    def __init__(self, given=None, name="written"):
        super().__init__(None, name, "here")
        self.given = given or {}

    def score(self, queries, documents):
        return np.array([self.given.get(pair, 0.0) for pair in zip(queries, documents, strict=True)])
