"""Rank by any architecture: the pairwise negation benchmarks for what is no encoder, scored and kept as encoders' are.

Under `<run_dir>/scores/<ranker>/` a ranker leaves `<task>_test.parquet` (per-item predictions, in the encoders' layout, so
that `scores.load_predictions` and `scores.compare` take both) and `ranker.json` (which ranker that was).

    python -m nblib.ranking TF-IDF --scale official --suite official --run-dir runs/official
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import corpora, model_registry, paths, provenance, rankers, results, scores, tasks, workload
from nblib.rankers import LateInteraction, Ranker, RankerError
from nblib.tasks.pairwise import PairwiseTask


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
    about = {"name": ranker.name, "kind": ranker.kind, "source": ranker.source}
    with paths.write_atomically(folder / "ranker.json") as draft:
        draft.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
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


def align(ranker: LateInteraction, pair: int = 0, name: str = "nevir_mini") -> pd.DataFrame:
    """Figures 9 and 10: which document tokens a query's tokens find, for the first question of a pair and both documents.

    Returns:
        document (negated or edited), query_token, document_token and their places, similarity (`LateInteraction.alignment`).
    """
    row = corpora.load(name).iloc[pair]
    tables = {"negated": row.doc1, "edited": row.doc2}
    return pd.concat(
        [ranker.alignment(row.q1, document).assign(document=kind) for kind, document in tables.items()],
        ignore_index=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line: rank the pairwise tasks of a suite, leave predictions and results."""
    parser = argparse.ArgumentParser(prog="python -m nblib.ranking", description=__doc__.splitlines()[0])
    parser.add_argument("ranker", help="a name of data/registries/rankers.yaml, a folder, or maxsim:<encoder>")
    parser.add_argument("--scale", default="lab", help="the name of the run, as in the results")
    parser.add_argument("--suite", default="mini", choices=list(tasks.SUITES))
    parser.add_argument("--run-dir", default="runs/lab")
    given = parser.parse_args(arguments)
    try:
        ranker = rankers.load(given.ranker)
        ranking = rank(ranker, pairwise(tasks.SUITES[given.suite]), given.run_dir)
        if isinstance(ranker, LateInteraction):
            with paths.write_atomically(scores.folder_of(given.run_dir, ranker.name) / "alignment.csv") as draft:
                align(ranker).to_csv(draft, index=False, lineterminator="\n", float_format="%.4f")
        file = paths.resolve(given.run_dir) / "results" / f"07_{ranker.name}.csv"
        results.save(result_rows(ranking, ranker.name, given.scale), file)
        took = ranking.summary.groupby("task")[["seconds", "pairs"]].first().sum()
        about = {"ranker": ranker.name, "source": ranker.source, "suite": given.suite, **took.to_dict()}
        provenance.write_sidecar(file, **about, parameters=workload.parameters(getattr(ranker, "model", None)))
    except (RankerError, model_registry.ModelError, corpora.CorpusError, FileNotFoundError, PermissionError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
