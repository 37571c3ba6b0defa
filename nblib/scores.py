"""Score an encoder: run tasks through mteb, put n and an interval on every score, keep per-item predictions, compare.

Under `<run_dir>/scores/<encoder>/` an encoder leaves `<task>_<split>.parquet` (per-item predictions), `mteb/` (mteb's result
files, by model name and fingerprint) and `encoder.json` (which encoder that was).
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mteb
import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from nblib import paths, published, results, stats, tasks
from nblib.models import Encoder
from nblib.tasks.encoding import MtebEncoder
from nblib.tasks.local import LocalTask
from nblib.tasks.pairwise import PairwiseTask

METRICS = {
    "accuracy": "accuracy", "right_rank": "right rank", "spearman": "Spearman ρ × 100", "v_measure": "V-measure of clusterings",
    "ndcg_at_10": "nDCG@10",
}  # fmt: skip


CHANGES = ["task", "encoder", "before", "after", "difference", "low", "high", "n"]


class ScoreError(ValueError):
    """Scores that are absent, or belong to another encoder or other items."""


@dataclass(frozen=True)
class Scores:
    """What `score` gives.

    Attributes:
        summary: task, view, benchmark, metric, value, ci_low, ci_high (percent), n, clusters, official, data, seconds.
        predictions: per-item predictions by (task, split).
        encoder: the encoder as mteb saw it; its `seen` says what was encoded.
    """

    summary: pd.DataFrame
    predictions: dict[tuple[str, str], pd.DataFrame]
    encoder: MtebEncoder


def folder_of(run_dir: str | Path, encoder: str) -> Path:
    """Where an encoder's scores are kept."""
    return paths.resolve(run_dir) / "scores" / encoder.replace("/", "__")


def score(
    encoder: Encoder, names: Sequence[str], run_dir: str | Path, *, batch_size: int = 64, dev_splits: bool = True
) -> Scores:
    """Evaluate an encoder on tasks of `nblib.tasks`.

    Args:
        dev_splits: also on the splits that aren't a task's test (CANNOT-WMT's eval: as large as the test).

    Tasks are always evaluated anew (the embeddings come from the cache, so that takes seconds): a score and its per-item
    predictions then always belong together.

    Raises:
        ValueError: unknown task, or an item without an id of its own.
        CorpusError, EmbeddingError: see `corpora.load` and `embeddings.encode`.
    """
    folder = paths.writable_folder(folder_of(run_dir, encoder.name))
    wrapped, rows, predictions = MtebEncoder(encoder, batch_size=batch_size), [], {}
    for name in names:
        task, started = tasks.get(name).filter_eval_splits(None if dev_splits else ["test"]), time.perf_counter()
        mteb.evaluate(
            wrapped, task, cache=mteb.ResultCache(folder / "mteb"), overwrite_strategy="always", prediction_folder=folder,
            co2_tracker=False, show_progress_bar=False, encode_kwargs={"batch_size": batch_size, "show_progress_bar": False},
        )  # fmt: skip
        seconds = time.perf_counter() - started
        predictions.update({(name, split): table for split, table in task.predictions.items()})
        rows += [{**row, "seconds": seconds} for row in summarise(task)]
    about = {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "base": encoder.base.name if encoder.base else None,
    }
    with paths.write_atomically(folder / "encoder.json") as draft:
        draft.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return Scores(pd.DataFrame(rows), predictions, wrapped)


def made_from(run_dir: str | Path, encoder: str) -> str | None:
    """The name of the encoder that a scored one is a frozen copy of, with an adapter; None for any other."""
    about = folder_of(run_dir, encoder) / "encoder.json"
    return json.loads(about.read_text(encoding="utf-8"))["base"] if about.is_file() else None


def score_hub(encoder: Encoder, benchmark: str, run_dir: str | Path, *, batch_size: int = 64) -> pd.DataFrame:
    """Evaluate on MTEB-lite (16 tasks) or MTEB(eng, v1) (56) from the hub; results that are there are not run again.

    Returns:
        task, type, value (percent, the task's main score).
    """
    from nblib.tasks.general import hub_tasks

    cache = mteb.ResultCache(paths.writable_folder(folder_of(run_dir, encoder.name)) / "mteb")
    wanted = hub_tasks(benchmark)
    done = mteb.evaluate(MtebEncoder(encoder, batch_size=batch_size), wanted, cache=cache, co2_tracker=False)
    kinds = {task.metadata.name: task.metadata.type for task in wanted}
    return pd.DataFrame(
        [(r.task_name, kinds[r.task_name], 100 * r.get_score()) for r in done.task_results],
        columns=["task", "type", "value"],
    )


def summarise(task: LocalTask) -> list[dict]:
    """The scores of an evaluated task: one row per view (a split, both, a part)."""
    return [
        {
            "task": task.metadata.name, "view": view, "benchmark": task.benchmark, "metric": METRICS[task.paper_metric],
            **measure(table), "official": task.official, "data": f"{task.corpus} {view}" if task.official else task.corpus,
        }
        for view, table in views(task.predictions).items()
    ]  # fmt: skip


def views(predictions: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The ways to look at a task's predictions: its test split; where it has another, that and both; where the test split
    has parts with scores of their own, these."""
    found = {"test": predictions["test"]}
    for split in [split for split in predictions if split != "test"]:
        found[split] = predictions[split]
        # Clusters are numbered within a split
        both = [table.assign(cluster=table.cluster.astype(str) + name) for name, table in predictions.items()]
        found[f"test + {split}"] = pd.concat(both, ignore_index=True)
    test = predictions["test"]
    if "part" in test:
        parts = {part: table for part, table in test.groupby("part", sort=True) if table.score.nunique() > 1}
        found.update({f"{part} part of test": table for part, table in parts.items()} if len(parts) > 1 else {})
    return found


def measure(table: pd.DataFrame) -> dict[str, float]:
    """One score of per-item predictions: value, ci_low, ci_high (percent; 95 %, resampled by cluster), n, clusters."""
    if "similarity" in table:
        columns = (table.similarity, table.score)
        value = spearman(*columns)
        low, high = stats.cluster_interval(spearman, *columns, clusters=table.cluster)
    else:
        value = float(table.correct.mean())
        low, high = stats.share_interval(table.correct, table.cluster)
    return {
        "value": 100 * value, "ci_low": 100 * low, "ci_high": 100 * high, "n": len(table),
        "clusters": table.cluster.nunique(),
    }  # fmt: skip


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's ρ; NaN where one side is the same number throughout, which correlates with nothing."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan
    return float(spearmanr(first, second).statistic)


def save_predictions(table: pd.DataFrame, run_dir: str | Path, encoder: str, name: str, split: str = "test") -> Path:
    """Keep per-item predictions (with id, cluster, correct) of something that is no task, where `compare_all` finds them."""
    file = folder_of(run_dir, encoder) / f"{name}_{split}.parquet"
    with paths.write_atomically(file) as draft:
        table.to_parquet(draft, index=False)
    return file


def load_predictions(run_dir: str | Path, encoder: str, task: str, split: str = "test") -> pd.DataFrame:
    """Per-item predictions that `score` left; those of a sample also out of those of the whole task.

    Raises:
        ScoreError: there are none.
    """
    folder = folder_of(run_dir, encoder)
    file, whole = (folder / f"{name}_{split}.parquet" for name in (task, task.removesuffix("Sample")))
    if whole.is_file() and not file.is_file():
        table = pd.read_parquet(whole)
        return table[table.id.isin(tasks.get(task).rows(split).id)].reset_index(drop=True)
    if not file.is_file():
        raise ScoreError(
            f"No predictions at {file}. Make them: python -m nblib.execution 07 out.ipynb -p encoder {encoder} "
            f"-p run_dir {run_dir}"
        )
    return pd.read_parquet(file)


def compare(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, float]:
    """The change of a score between two encoders on the same items, by paired bootstrap over clusters.

    Args:
        before, after: per-item predictions of one task and split.

    Returns:
        before, after, difference, low, high (percentage points), n.

    Raises:
        ScoreError: they are not about the same items.
    """
    if sorted(before.id) != sorted(after.id):
        raise ScoreError(f"Predictions on different items ({len(before)} and {len(after)}) can't be compared.")
    both = before.merge(after, on="id", suffixes=("_before", "_after"), validate="1:1")
    if "similarity" in before:
        columns = (both.similarity_before, both.similarity_after, both.score_before)

        def gain(old: Sequence[float], new: Sequence[float], truth: Sequence[float]) -> float:
            return spearman(new, truth) - spearman(old, truth)

        old, new = spearman(columns[0], columns[2]), spearman(columns[1], columns[2])
        change = (new - old, *stats.cluster_interval(gain, *columns, clusters=both.cluster_before))
    else:
        old, new = both.correct_before.mean(), both.correct_after.mean()
        change = stats.paired_bootstrap(both.correct_before, both.correct_after, both.cluster_before)
    difference, low, high = (100 * x for x in change)
    return {"before": 100 * old, "after": 100 * new, "difference": difference, "low": low, "high": high, "n": len(both)}


def compare_all(run_dir: str | Path, before: str, after: str, names: Sequence[str]) -> pd.DataFrame:
    """`compare` for every task that the second encoder has left predictions of too: task, encoder (the second), and its
    columns.

    Raises:
        ScoreError: it has left none.
    """
    shared = [name for name in names if (folder_of(run_dir, after) / f"{name}_test.parquet").is_file()]
    for name in shared or names[:1]:  # none: the first one's absence is the error to show
        load_predictions(run_dir, after, name)
    pairs = {name: [load_predictions(run_dir, encoder, name) for encoder in (before, after)] for name in shared}
    return pd.DataFrame(
        [{"task": name, "encoder": after, **compare(*pair)} for name, pair in pairs.items()], columns=CHANGES
    )


def errors(name: str, predictions: pd.DataFrame, count: int = 5) -> pd.DataFrame:
    """The test items an encoder gets most wrong, with their texts, to be read.

    Returns:
        For pairwise tasks: id, query, positive, negative, margin (of the item's worst question). For correlations: id,
        sentence1, sentence2, score, similarity, rank_gap (places, over n, between similarity's rank and the score's).
    """
    task = tasks.get(name)
    texts = task.rows("test")
    if isinstance(task, PairwiseTask):
        worst = predictions.nsmallest(count, "margin")
        long = worst.melt("id", [c for c in worst if c.startswith("margin_")] or ["margin"], "question", "by_question")
        long["question"] = long.question.str.removeprefix("margin_").replace("margin", texts.question.iloc[0])
        long = (
            long.loc[long.groupby("id").by_question.idxmin()]
            .merge(texts, on=["id", "question"])
            .sort_values("by_question")
        )
        shown = long.assign(negative=long.negatives.map(" / ".join), margin=long.by_question)
        return shown[["id", "query", "positive", "negative", "margin"]].reset_index(drop=True)
    gap = (predictions.similarity.rank() - predictions.score.rank()) / len(predictions)
    worst = predictions.assign(rank_gap=gap).loc[gap.abs().nlargest(count).index]
    columns = ["id", "sentence1", "sentence2", "score", "similarity", "rank_gap"]
    return worst.merge(texts[["id", "sentence1", "sentence2"]], on="id")[columns]


def result_rows(
    scored: pd.DataFrame, encoder: str, scale: str, stands_for: str | None = None, home: str | None = None
) -> list[dict]:
    """The scores as rows of the results schema: one for every table that prints this encoder's number, else one in the
    table where it would stand; views other than the test split have their own metric name.

    Args:
        stands_for: the papers' system in whose place the encoder was run (another training set, say).
        home: the paper where a score that no table prints is to stand; None: the first that prints the benchmark.
    """
    rows = []
    for item in scored.itertuples():
        task = tasks.get(item.task)
        reservation = task.reservation if item.official else ""
        official = item.official and not reservation
        data = f"{item.data}, {reservation}" if reservation else item.data
        options = {
            "n": item.n,
            "scale": scale,
            "data": data,
            "official": official,
            "interval": (item.ci_low, item.ci_high),
            "model": encoder if stands_for else None,
            "stand_in": bool(stands_for),
        }
        for paper, exhibit, benchmark, metric in _places(task, item.view, stands_for or encoder, home):
            name = published.system_name(paper, stands_for or encoder)
            rows.append(results.row(paper, exhibit, name, benchmark, metric, item.value, **options))
    return rows


def _places(task: LocalTask, view: str, encoder: str, home: str | None) -> list[tuple[str, str, str, str]]:
    """paper, exhibit, benchmark, metric of every place a score belongs to."""
    paper, exhibit, benchmark, metric = task.printed[0]
    if view != "test":
        return [(paper, exhibit, benchmark, f"{metric} ({view})")]
    places = []
    for paper, _, benchmark, metric in task.printed:
        table = published.load(paper)
        fits = (table.system == published.system_name(paper, encoder)) & (table.benchmark == benchmark)
        fits &= (table.metric == metric) & table.exhibit.str.startswith("Table")
        places += [(paper, exhibit, benchmark, metric) for exhibit in table.exhibit[fits].unique()]
    return places or [next((place for place in task.printed if place[0] == home), task.printed[0])]
