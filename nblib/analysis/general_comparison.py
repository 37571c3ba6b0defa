"""General ability: averages over MTEB's tasks (compared over the very same tasks only), what a training changed, and our scores
beside the published ones."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import stats
from nblib.benchmarks import mteb, scoring
from nblib.results import published
from nblib.results.measurements import DECIMALS

BY_TASK, BY_CATEGORY = "mean of tasks", "mean of categories"
STS = [name for name, task in mteb.TASKS.items() if task.category == "STS"]
SENTIMENT = ["EmotionClassification", "TweetSentimentExtractionClassification"]  # those at hand, of Truong's §5.1
SENTIMENT_GAP = "sentiment minus other classification"
TOLERANCE = {"STS": 0.1, "Retrieval": 0.2, "Classification": 0.5}  # points that versions and sampling may make
# Truong's printed columns, where their set of tasks is small enough to list: table → category → its number of tasks
TRUONG_TASKS = {
    "Table 1": {"Classification": 12, "PairClassification": 3, "Retrieval": 15, "STS": 10, "Summarization": 1},
    "Table 2": {"Classification": 3, "Retrieval": 3, "STS": 3, "Summarization": 1},
}


def averages(measured: pd.DataFrame, value: str = "value") -> pd.DataFrame:
    """The mean of each category, and of all tasks and all categories (Truong's "Average"), from task, category and a score in
    percent: average (a category, `BY_TASK`, `BY_CATEGORY`), tasks (how many), value."""
    categories = measured.groupby("category", sort=False)[value].agg(["size", "mean"])
    of_all = [(BY_TASK, measured[value].mean()), (BY_CATEGORY, categories["mean"].mean())]
    rows = [*categories.itertuples(name=None), *((name, len(measured), mean) for name, mean in of_all)]
    return pd.DataFrame(rows, columns=["average", "tasks", "value"])


def changes(run_dir: str | Path, baselines: Sequence[str], others: Sequence[str]) -> pd.DataFrame:
    """What general ability a training has gained or lost against a baseline, each averaged over its seeds: by category, on
    average, and on sentiment beyond other classification, with paired intervals.

    Each task's items are resampled by cluster, and the tasks' changes averaged resample by resample. Tasks of equally many
    clusters get the same resamples, so that two on the same texts stay paired.

    Returns:
        average, tasks (that both have predictions by item of), before, after, difference, low, high (percentage points).

    Raises:
        ScoreError: the predictions of one are gone.
    """
    first, second = (_mean_scores(run_dir, side) for side in (baselines, others))
    both = first.merge(second, on=["task", "category"], suffixes=("_before", "_after"))
    both = both[both.category.isin(mteb.BY_ITEM)]
    drawn = pd.DataFrame()  # resamples × tasks, and then averages
    for name in both.task:
        sides = ([scoring.load_predictions(run_dir, one, name) for one in side] for side in (baselines, others))
        pairs = [scoring.change_replicates(*pair, seed=pair[0].cluster.nunique()) for pair in product(*sides)]
        drawn[name] = 100 * np.mean(pairs, axis=0)
    categories = both.groupby("category", sort=False).task.agg(list)
    for category, members in categories.items():
        drawn[category] = drawn[members].mean(axis=1)
    drawn[BY_TASK], drawn[BY_CATEGORY] = drawn[both.task].mean(axis=1), drawn[categories.index].mean(axis=1)
    before, after = averages(both, "value_before"), averages(both, "value_after")
    table = before.rename(columns={"value": "before"}).assign(after=after.value)
    classified = both[both.category == "Classification"]
    of, rest = (classified[classified.task.isin(SENTIMENT) == wanted] for wanted in (True, False))
    if len(of) and len(rest):
        drawn[SENTIMENT_GAP] = drawn[of.task].mean(axis=1) - drawn[rest.task].mean(axis=1)
        gaps = [of[side].mean() - rest[side].mean() for side in ("value_before", "value_after")]
        table.loc[len(table)] = [SENTIMENT_GAP, len(classified), *gaps]
    table["difference"] = table.after - table.before
    table[["low", "high"]] = [stats.percentile_interval(drawn[name].to_numpy()) for name in table.average]
    return table


def _mean_scores(run_dir: str | Path, systems: Sequence[str]) -> pd.DataFrame:
    """task, category, value: the mean over systems, of the tasks that all were measured on."""
    scores = pd.concat([mteb.load(run_dir, name) for name in systems]).astype({"value": float})
    means = scores.groupby(["task", "category"], sort=False).value.agg(["mean", "size"]).reset_index()
    return means[means.pop("size") == len(systems)].rename(columns={"mean": "value"})


def beside_published(measured: pd.DataFrame, model: str) -> pd.DataFrame:
    """The measured scores (`mteb.load`) with those published of a model (its name, or the last part of it): category, task,
    metric, published (NaN where nothing is), ours, difference, ci_low, ci_high, n, outside (whether they differ by more than
    `TOLERANCE`), note (why they may)."""
    table = measured.rename(columns={"value": "ours"})
    table["published"] = table.task.map(published.mteb_scores(model)).astype(float)
    table["difference"] = (table.ours - table.published).round(DECIMALS) + 0.0  # no "-0.0"
    table["outside"] = table.difference.abs() > table.category.map(TOLERANCE).astype(float)
    table["note"] = [mteb.TASKS[name].caveat for name in table.task]
    columns = "category task metric published ours difference ci_low ci_high n outside note"
    return table[columns.split()].reset_index(drop=True)


def truong_columns(measured: pd.DataFrame, model: str, table: str, system: str) -> pd.DataFrame:
    """Truong's printed MTEB columns beside what can be measured of them.

    Args:
        measured: from `mteb.score` or `mteb.load`.
        model: the published model that stands behind the printed row `system`.
        table: "Table 1" (56 tasks) or "Table 2" (16).

    Returns:
        column, coverage ("9 of 10"), printed (over all its tasks), published (MTEB's own score of the model, over the measured
        tasks), ours (over the same); last their average.
    """
    lite = table == "Table 2"
    inside = measured[measured.task.isin(mteb.MTEB_LITE)] if lite else measured
    known, rows = published.mteb_scores(model), []
    for category, size in TRUONG_TASKS[table].items():
        if len(part := inside[inside.category == category]):
            column = f"MTEB-{category}" + "-lite" * (lite and category == "Classification")
            keys = {"system": system, "metric": "mteb_category_average", "benchmark": column}
            means = (known.reindex(part.task).mean(skipna=False), part["value"].mean())
            rows.append((column, f"{len(part)} of {size}", published.printed("truong", table, **keys), *means))
    numbers = ["printed", "published", "ours"]
    columns = pd.DataFrame(rows, columns=["column", "coverage", *numbers])
    of_all = f"{len(inside)} of {len(mteb.MTEB_LITE) if lite else 56}"
    columns.loc[len(rows)] = [f"mean of these {len(rows)} columns", of_all, *columns[numbers].mean(skipna=False)]
    return columns
