"""Rank by any architecture: the pairwise negation benchmarks for what is no encoder, scored and kept as encoders' are.

Under `<run_dir>/scores/<ranker>/` a ranker leaves `<task>_test.parquet` (per-item predictions, in the encoders' layout, so
that `scores.load_predictions` and `scores.compare` take both) and `ranker.json` (which ranker that was).
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import paths, scores, tasks
from nblib.rankers import Ranker, RankerError
from nblib.tasks.negation import PairwiseTask


@dataclass(frozen=True)
class Ranking:
    """What `rank` gives.

    Attributes:
        summary: as `scores.Scores.summary`, and `pairs` (how many queries with a document were scored, in those `seconds`).
        predictions: per-item predictions by task (on its test split).
    """

    summary: pd.DataFrame
    predictions: dict[str, pd.DataFrame]


def pairwise(names: Sequence[str]) -> list[str]:
    """Those tasks that can be decided by ranking: whose items are questions with candidates."""
    return [name for name in names if isinstance(tasks.get(name), PairwiseTask)]


def rank(ranker: Ranker, names: Sequence[str], run_dir: str | Path) -> Ranking:
    """Evaluate a ranker on the test splits of pairwise tasks: strict inequality, ties are wrong.

    Raises:
        RankerError: a task isn't pairwise, or a score is missing or not finite.
        CorpusError: see `corpora.load`.
    """
    if others := [name for name in names if name not in pairwise(names)]:
        raise RankerError(f"Nothing to rank in {', '.join(others)}: only tasks that choose among texts can be ranked.")
    folder = paths.writable_folder(scores.folder_of(run_dir, ranker.name))
    rows, predictions = [], {}
    for name in names:
        task, started = tasks.get(name), time.perf_counter()
        questions = task.rows("test")
        judged = judge(ranker, questions)
        seconds = time.perf_counter() - started
        task.keep("test", judged, folder)
        predictions[name] = judged
        pairs = len(questions) + int(questions.negatives.map(len).sum())
        rows += [{**row, "seconds": seconds, "pairs": pairs} for row in scores.summarise(task)]
    with paths.write_atomically(folder / "ranker.json") as draft:
        draft.write_text(json.dumps({"name": ranker.name, "source": ranker.source}, indent=2) + "\n", encoding="utf-8")
    return Ranking(pd.DataFrame(rows), predictions)


def judge(ranker: Ranker, questions: pd.DataFrame) -> pd.DataFrame:
    """A ranker's predictions (`PairwiseTask.settle`) for questions with their candidates.

    Raises:
        RankerError: a score is missing or not finite.
    """
    long = questions.explode("negatives")
    queries, documents = [*questions["query"], *long["query"]], [*questions.positive, *long.negatives]
    found = np.asarray(ranker.score(queries, documents), dtype=np.float64)
    if found.shape != (len(queries),) or not np.isfinite(found).all():
        raise RankerError(
            f"{ranker.name} gave {np.isfinite(found).sum()} finite scores in shape {found.shape}; expected [{len(queries)}]."
        )
    return PairwiseTask.settle(questions, found[: len(questions)], found[len(questions) :])


def result_rows(ranking: Ranking, ranker: str, scale: str) -> list[dict]:
    """The scores as rows of the results schema; a system that no paper ran stands in Weller's Table 2 where it ranks NevIR."""
    return scores.result_rows(ranking.summary, ranker, scale, home="weller")
