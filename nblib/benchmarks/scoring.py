"""Score any system on the benchmarks, put n and an interval on every score, keep per-item predictions, compare.

`<run_dir>/scores/<system>/` has `<task>_<split>.parquet` (the task is the name of a benchmark's form) and `system.json`.
"""

import math
import shutil
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr

from nblib import artefacts, corpora, paths, stats
from nblib.benchmarks import catalogue
from nblib.benchmarks.base import Benchmark, Choice, ScoreError
from nblib.benchmarks.nevir import NevIR
from nblib.models import registry
from nblib.models.rankers import MAXSIM, LateInteraction
from nblib.models.systems import BiEncoder, System
from nblib.results import measurements

CODE_VERSION = 1  # raise it when a benchmark's or a system's code changes predictions: all is then predicted anew
CORRELATIONS = {"spearman": spearmanr, "pearson": pearsonr}
UNUSABLE = 80  # percent of a task's prompts with one answer, above which a language model's score says nothing
METRICS = {"accuracy": "accuracy", "right_rank": "pairwise accuracy"}
METRICS |= {"spearman": "Spearman ρ × 100", "pearson": "Pearson r × 100"}


class Scores(NamedTuple):
    """What `score` gives: `summarise`'s rows, with seconds, and per-item predictions by (task, split)."""

    summary: pd.DataFrame
    predictions: dict[tuple[str, str], pd.DataFrame]


def scorable(system: System, names: Sequence[str]) -> list[str]:
    """The benchmarks that a system can do: of a ranker, the choices among texts; of two towers without a default route,
    those of queries and documents."""
    known = {name: catalogue.get(name) for name in names}
    if not isinstance(system, BiEncoder):
        return [name for name, benchmark in known.items() if isinstance(benchmark, Choice)]
    return [name for name, one in known.items() if "symmetric" not in one.roles or system.encoder.symmetric]


def score(system: System, names: Sequence[str], run_dir: str | Path, *, dev_splits: bool = True) -> Scores:
    """Score a system on benchmarks of the catalogue (with `dev_splits` also on CANNOT-WMT's eval); leave its predictions. What
    the same weights predicted of the same data before is read.

    Raises:
        StudyError: unknown benchmark, or no data.
        ScoreError: a benchmark that the system can't do, or a score that isn't finite.
    """
    if others := sorted(set(names) - set(scorable(system, names))):
        why = "a ranker can only choose among texts"
        if isinstance(system, BiEncoder):
            why = "its two towers have no default route, so it encodes queries and documents alone"
        raise ScoreError(f"{system.name} ({system.architecture}) can't do {', '.join(others)}: {why}.")
    make_room(system, run_dir)
    rows, predictions = [], {}
    for benchmark in map(catalogue.get, names):
        started = time.perf_counter()
        splits = benchmark.splits if dev_splits else ("test",)
        predicted = {split: _predict(system, benchmark, split, run_dir) for split in splits}
        seconds = time.perf_counter() - started
        predictions |= {(benchmark.name, split): table for split, table in predicted.items()}
        rows += [{**row, "seconds": seconds} for row in summarise(benchmark, predicted)]
    describe(system, run_dir)
    return Scores(pd.DataFrame(rows), predictions)


def _predict(system: System, benchmark: Benchmark, split: str, run_dir: str | Path) -> pd.DataFrame:
    made_from = _made_from(system.fingerprint, benchmark)
    where = run_dir, system.name, benchmark.name, split
    file = predictions_file(*where)
    if not file.is_file() or artefacts.about(file).get("made_from") != made_from:
        save_predictions(benchmark.predict(system, benchmark.rows(split)), *where, made_from=made_from)
    return artefacts.read_table(file)


def _made_from(fingerprint: str, benchmark: Benchmark) -> dict[str, Any]:
    data = [part.sha256 for part in corpora.describe(benchmark.corpus).splits.values()]
    return {"model": fingerprint, "data": data, "code_version": CODE_VERSION}


def outdated(run_dir: str | Path, system: str, names: Sequence[str]) -> list[str]:
    """Those of the benchmarks on which a scored system has no test predictions, or some that say to be of other data or code
    than today's."""
    known, old = about(run_dir, system)["fingerprint"], []
    for name in names:
        file = predictions_file(run_dir, system, name)
        made_from = artefacts.about(file).get("made_from")  # predictions of older versions don't say
        if not file.is_file() or made_from not in (None, _made_from(known, catalogue.get(name))):
            old.append(name)
    return old


def summarise(benchmark: Benchmark, predictions: Mapping[str, pd.DataFrame]) -> list[dict]:
    """The scores of a benchmark's predictions by split, a row for each of its `parts` and metrics: task, benchmark, corpus,
    split, part, metric (a key of `METRICS`), and what `measure` gives."""
    about = {"task": benchmark.name, "benchmark": benchmark.key, "corpus": benchmark.corpus}
    return [
        {**about, "split": split, "part": part, "metric": metric, **measure(table, metric)}
        for (split, part), table in parts(predictions).items()
        for metric in benchmark.metrics
    ]


def parts(predictions: Mapping[str, pd.DataFrame]) -> dict[tuple[str, str], pd.DataFrame]:
    """The predictions by (split, part): each split; of two also both; parts of the test that have scores of their own."""
    test = predictions["test"]
    chosen = {(split, ""): table for split, table in predictions.items()}
    if len(predictions) > 1:
        # Clusters are numbered within a split
        both = [table.assign(cluster=table.cluster.astype(str) + split) for split, table in predictions.items()]
        chosen["+".join(predictions), ""] = pd.concat(both, ignore_index=True)
    if "part" in test:
        scored = {("test", part): table for part, table in test.groupby("part") if table.score.nunique() > 1}
        chosen |= scored if len(scored) > 1 else {}
    return chosen


def folder_of(run_dir: str | Path, system: str) -> Path:
    return paths.inside(run_dir, "scores", system.replace("/", "__"))


def predictions_file(run_dir: str | Path, system: str, task: str, split: str = "test") -> Path:
    return folder_of(run_dir, system) / f"{task}_{split}.parquet"


def save_predictions(
    table: pd.DataFrame, run_dir: str | Path, system: str, task: str, split: str = "test", **about: Any
) -> None:
    """Keep per-item predictions (see `measure`), with what is known `about` them; a ScoreError where an id is missing or
    repeated."""
    if table.id.isna().any() or table.id.duplicated().any():
        raise ScoreError(f"{task} ({split}): an item has no id, or one that another has too.")
    artefacts.write_table(table, predictions_file(run_dir, system, task, split), about or None)


def load_predictions(run_dir: str | Path, system: str, task: str) -> pd.DataFrame:
    """Per-item test predictions that `score` left; a ScoreError where there are none."""
    file = predictions_file(run_dir, system, task)
    if not file.is_file():
        raise ScoreError(
            f"No predictions at {file}. Score {system} on {task}: `nblib score {system} --run-dir {run_dir}`."
        )
    return artefacts.read_table(file)


def load_predictions_for(run_dir: str | Path, names: Sequence[str], task: str) -> dict[str, pd.DataFrame]:
    """Name → test predictions of the systems that were scored on a benchmark; a ScoreError where none was."""
    if not names:
        raise ScoreError(f"No system is named to compare on {task}.")
    scored = [name for name in names if predictions_file(run_dir, name, task).is_file()]
    return {name: load_predictions(run_dir, name, task) for name in scored or names[:1]}


def make_room(system: System, run_dir: str | Path) -> None:
    """Remove the predictions of a model that had the same place and other weights or settings. ScoreError: the run has
    predictions of another model of that name."""
    known = about(run_dir, system.name)
    if known and known["fingerprint"] != system.fingerprint:
        if known["source"] != system.source:
            raise ScoreError(
                f"{run_dir} has scores of another {system.name}, from {known['source']}; this one is from {system.source}. "
                "Rename its folder, or choose another run_dir."
            )
        shutil.rmtree(folder_of(run_dir, system.name))


def describe(system: System, run_dir: str | Path) -> None:
    """Write what was scored to `system.json`, for `about`; of late interaction also the `alignment` of the first authored
    question with both documents (Weller's Figures 9 and 10)."""
    known = {name: getattr(system, name) for name in ("name", "architecture", "fingerprint", "source")}
    known |= {"parameters": parameters(system), **training(system.source.removeprefix(MAXSIM))}
    known |= {"base": system.base, "adapter": system.adapter} if system.base else {}
    known["commit"] = artefacts.commit()
    folder = folder_of(run_dir, system.name)
    artefacts.write_json(folder / "system.json", known)
    if isinstance(system, LateInteraction) and system.by_token:
        row = NevIR("mini").rows().iloc[0]
        documents = {"negated": row.positive, "edited": row.negatives[0]}
        tables = [system.alignment(row["query"], text).assign(document=which) for which, text in documents.items()]
        artefacts.write_table(pd.concat(tables, ignore_index=True), folder / "alignment.csv", float_format="%.4f")


def loaded_by(run_dir: str | Path, system: str) -> str:
    """The name by which a system that was scored is loaded again: its own where it is registered, else its source."""
    return system if registry.find(system) else about(run_dir, system).get("source", system)


def outlive_weights(run_dir: str | Path, folder: Path) -> bool:
    """Whether the folder of a model that a run trained isn't there any more, but its scores are, newer than the training."""
    if folder.is_dir() or folder.parent not in (paths.inside(run_dir, "encoders"), paths.inside(run_dir, "llms")):
        return False
    scored = [file.stat().st_mtime for file in folder_of(run_dir, folder.name).glob("*_test.parquet")]
    finished = artefacts.about(_training(folder)).get("finished")
    return bool(scored and finished) and min(scored) >= datetime.fromisoformat(finished).timestamp()


def _training(folder: Path) -> Path:
    """Where a run keeps the record of the training that left a model's folder, without the .json."""
    return folder.parent.parent / "trainings" / folder.name / "training"


def parameters(system: System) -> float | None:
    """The size of a system's model in millions of weights; None for a rule."""
    from torch import nn  # who reads scores only doesn't need it

    model = system.model
    return sum(weights.numel() for weights in model.parameters()) / 1e6 if isinstance(model, nn.Module) else None


def about(run_dir: str | Path, system: str) -> dict[str, Any]:
    """A scored system's `system.json`: name, architecture, fingerprint, source, parameters (in millions), what `training` gives,
    and of an adapter's system base and adapter; empty where none was left."""
    file = folder_of(run_dir, system) / "system.json"
    return artefacts.read_json(file) if file.is_file() else {}


def measured_system(run_dir: str | Path, system: str) -> dict[str, Any]:
    """What a scored system's measurements say of it, as constants for `results.record`."""
    known = about(run_dir, system)
    return {"system": system} | {key: known[key] for key in measurements.COLUMNS if known.get(key) is not None}


def training(source: str | Path) -> dict[str, Any]:
    """What this study trained a model on, by the sidecar of the folder that it is from, or where that is gone the record of the
    training: trained_on (a key; "" for a model that isn't ours), training_items, and of one of a sweep base, variant, seed."""
    record = artefacts.about(source) or artefacts.about(_training(paths.resolve(source)))
    known = {"trained_on": record.get("training_data", ""), "training_items": record.get("training_items")}
    if record.get("variant"):
        known |= {key: record[key] for key in ("base", "variant", "seed")}
    return known


def measure(table: pd.DataFrame, metric: str = "spearman") -> dict[str, float]:
    """One score of per-item predictions, the mean of `correct` (0 to 1) or a correlation of similarity and score: value, ci_low,
    ci_high (percent; 95 %, resampled by cluster), n, clusters."""
    if "similarity" in table:
        drawn = stats.correlation_replicates(metric, table.similarity, truth=table.score, clusters=table.cluster)
        low, high = stats.percentile_interval(drawn[0])
    else:
        low, high = stats.share_interval(table.correct, table.cluster)
    interval = {"ci_low": 100 * low, "ci_high": 100 * high}
    return {"value": 100 * point(table, metric), **interval, "n": len(table), "clusters": table.cluster.nunique()}


def point(table: pd.DataFrame, metric: str = "spearman") -> float:
    """The score of `measure` alone, as a fraction; NaN of a correlation where one side is constant."""
    if "similarity" not in table:
        return float(table.correct.mean())
    varied = np.ptp(table.similarity) > 0 and np.ptp(table.score) > 0
    return float(CORRELATIONS[metric](table.similarity, table.score).statistic) if varied else math.nan


def main_metric(task: str) -> str:
    """The metric of a benchmark's form, or of what a language model is asked of it; "spearman" of MTEB's STS."""
    form = catalogue.every_form().get(task.removeprefix("llm_").removesuffix("_pointwise"))
    return form.main_metric if form else "spearman"


def accuracies(predictions: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """`measure` of a choice's predictions by system: system, value, low, high, n."""
    measured = [{"system": name, **measure(table)} for name, table in predictions.items()]
    table = pd.DataFrame(measured, columns=["system", "value", "ci_low", "ci_high", "n"])
    return table.rename(columns={"ci_low": "low", "ci_high": "high"})


def change(before: pd.DataFrame, after: pd.DataFrame, metric: str = "spearman") -> dict[str, float]:
    """The change of a score (see `measure`) between predictions on the same items, by paired bootstrap over clusters: before,
    after, difference, low, high (percentage points), n; a ScoreError where the items differ."""
    low, high = stats.percentile_interval(change_replicates(before, after, metric=metric))
    old, new = point(before, metric), point(after, metric)
    scores = {"before": old, "after": new, "difference": new - old, "low": low, "high": high}
    return {**{key: 100 * value for key, value in scores.items()}, "n": len(before)}


def commonest_share(table: pd.DataFrame) -> float:
    """The percentage of a task's prompts to which a language model gave its commonest answer: a position, an option or a number;
    NaN of other tasks."""
    if "chose_first" in table:
        return 100 * max(table.chose_first.mean(), 1 - table.chose_first.mean())
    answers = table.get("similarity", table.get("chosen"))
    return math.nan if answers is None else 100 * answers.value_counts(normalize=True).iloc[0]


def is_usable(table: pd.DataFrame) -> bool:
    """Whether answers differ enough for a score to say something: not one of them to over `UNUSABLE` percent of the prompts."""
    return not commonest_share(table) > UNUSABLE


def both_usable(run_dir: str | Path, compared: pd.DataFrame) -> list[bool]:
    """Whether the predictions of both systems are usable, for each row of `compare`."""
    return [
        all(is_usable(load_predictions(run_dir, system, row.task)) for system in (row.baseline, row.encoder))
        for row in compared.itertuples()
    ]


def change_replicates(before: pd.DataFrame, after: pd.DataFrame, seed: int = 0, metric: str = "spearman") -> np.ndarray:
    """`change`'s difference, as a fraction, on 1,000 bootstrap resamples of the clusters, [1000]."""
    both = _paired(before, after)
    options = {"clusters": both.cluster_before, "seed": seed}
    if "similarity" in before:
        sides = both.similarity_before, both.similarity_after
        old, new = stats.correlation_replicates(metric, *sides, truth=both.score_before, **options)
        return new - old
    return stats.cluster_replicates(np.mean, 1.0 * both.correct_after - 1.0 * both.correct_before, **options)


def _paired(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    if sorted(before.id) != sorted(after.id):
        raise ScoreError(f"Predictions on different items ({len(before)} and {len(after)}) can't be compared.")
    return before.merge(after, on="id", suffixes=("_before", "_after"), validate="1:1")


def compare(
    run_dir: str | Path,
    baseline: str,
    others: Sequence[str],
    names: Sequence[str],
    *,
    complete: bool = False,
) -> pd.DataFrame:
    """Compare systems with a baseline on the same items of each task, by their stored predictions and paired bootstrap.

    Args:
        complete: whether it is an error that one of the others was not scored on a task.

    Returns:
        task, baseline, encoder (the other one), and what `change` gives.

    Raises:
        ScoreError: predictions are missing, or on other items.
    """
    rows, read = [], cache(load_predictions)  # each table once
    for other in others:
        there = [name for name in names if predictions_file(run_dir, other, name).is_file()]
        for name in names if complete else there or names[:1]:  # none: the first one's absence is the error to show
            before, after = read(run_dir, baseline, name), read(run_dir, other, name)
            result = change(before, after, main_metric(name))
            rows.append({"task": name, "baseline": baseline, "encoder": other, **result})
    columns = "task baseline encoder before after difference low high n".split()
    return pd.DataFrame(rows, columns=columns)


def mcnemar_tests(predictions: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every two systems on the same items by McNemar's exact test, which takes items for independent: baseline, encoder (the
    other one), and what `stats.mcnemar` gives, p corrected for the number of comparisons by Holm's method."""
    rows = []
    for (first, before), (second, after) in combinations(predictions.items(), 2):
        both = _paired(before, after).set_index("id")
        tested = stats.mcnemar(both.correct_before, both.correct_after)
        rows.append({"baseline": first, "encoder": second, **tested})
    table = pd.DataFrame(rows, columns="baseline encoder difference only_first only_second p".split())
    return table.assign(p=stats.holm(table.p))
