"""Score any system on the benchmarks, put n and an interval on every score, keep per-item predictions, compare.

Under `<run_dir>/scores/<system>/` a system leaves `<task>_<split>.parquet` (per-item predictions) and `system.json` (what was
scored); an encoder also `mteb/` (mteb's result files, by model name and fingerprint), a late-interaction model `alignment.csv`
(which tokens make its score of one pair).
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr

from nblib import artefacts, corpora, paths, results, stats
from nblib.benchmarks import catalogue, efficiency, mteb_catalogue
from nblib.errors import StudyError
from nblib.models import systems
from nblib.models.rankers import LateInteraction
from nblib.models.systems import BiEncoder, StoredSystem, System

if TYPE_CHECKING:
    from nblib.benchmarks.base import LocalTask
    from nblib.benchmarks.mteb_encoder import MtebEncoder
    from nblib.benchmarks.pairwise import PairwiseTask
    from nblib.benchmarks.similarity import SimilarityTask

METRICS = {
    "accuracy": "accuracy", "right_rank": "right rank", "spearman": "Spearman ρ × 100", "pearson": "Pearson r × 100",
    "v_measure": "V-measure of clusterings", "ndcg_at_10": "nDCG@10", "max_ap": "average precision",
}  # fmt: skip
CORRELATIONS = {"spearman": spearmanr, "pearson": pearsonr}
CHANGES = ["task", "baseline", "encoder", "before", "after", "difference", "low", "high", "n"]
TRAINING_TEXTS = {
    "both": "authored negations and hedges", "only negation": "authored negations", "only hedging": "authored hedges",
    "NevIR": "NevIR's training pairs", "both + exclusions": "authored negations, hedges and exclusions",
    "mixture": "authored negations, hedges, contrast passages and exclusions",
}  # fmt: skip
SIDES = ("before", "after")
ALIGNED = "nevir_mini"  # its first pair


class ScoreError(StudyError):
    """Scores that are absent, or not finite, or belong to another system or other items."""


@dataclass(frozen=True)
class Scores:
    """What `score` gives.

    Attributes:
        summary: task, view, benchmark, metric (a key of `METRICS`), value, ci_low, ci_high (percent), n, clusters, official,
            data, seconds; of a system without embeddings also pairs (how many it scored, in those seconds). A correlation has
            a row for each of `CORRELATIONS`.
        predictions: per-item predictions by (task, split).
        seen: what an encoder encoded, task → role → distinct texts; empty for any other system.
    """

    summary: pd.DataFrame
    predictions: dict[tuple[str, str], pd.DataFrame]
    seen: Mapping[str, Mapping[str, set[str]]]


def folder_of(run_dir: str | Path, system: str) -> Path:
    """Where a system's scores are kept."""
    return paths.inside(run_dir, "scores", system.replace("/", "__"))


def scorable(system: System, names: Sequence[str]) -> list[str]:
    """Those tasks that a system can do: without embeddings, the choices among texts."""
    if system.kind == BiEncoder.kind:
        return list(names)
    return [name for name in names if catalogue.get(name).protocol == "choice"]


def score(
    system: System, names: Sequence[str], run_dir: str | Path, *, batch_size: int = 64, dev_splits: bool = True
) -> Scores:
    """Evaluate a system on tasks of `nblib.benchmarks.catalogue`; an encoder through mteb, any other pair by pair.

    Tasks are always evaluated anew (embeddings come from the cache, so that takes an encoder seconds): a score and its per-item
    predictions then always belong together.

    Args:
        batch_size: texts an encoder encodes at once.
        dev_splits: also on the splits that aren't a task's test (CANNOT-WMT's eval: as large as the test).

    Raises:
        BenchmarkError: unknown task.
        ScoreError: a task that the system can't do, or a score that isn't finite.
        ValueError: an item without an id of its own.
        CorpusError, EmbeddingError: see `corpora.load` and `embeddings.encode`.
    """
    able = scorable(system, names)
    if others := [name for name in names if name not in able]:
        raise ScoreError(
            f"{system.name} ({system.kind}) can't do {', '.join(others)}: without embeddings it can only choose among texts "
            f"(here: {', '.join(able) or 'in none'})."
        )
    if isinstance(system, StoredSystem):
        return _stored_scores(system, names, dev_splits)
    from nblib.benchmarks.mteb_encoder import MtebEncoder  # mteb takes seconds, which those who read scores don't need

    folder = paths.writable_folder(folder_of(run_dir, system.name))
    wrapped = MtebEncoder(system.encoder, batch_size=batch_size) if isinstance(system, BiEncoder) else None
    rows, predictions = [], {}
    for name in names:
        task, started, counted = catalogue.get(name), time.perf_counter(), {}
        if wrapped:
            evaluate(wrapped, task.filter_eval_splits(None if dev_splits else ["test"]), folder)
        else:
            items = task.rows("test")
            task.keep("test", predict(system, task, items), folder)
            counted = {"pairs": len(items) + int(items.negatives.map(len).sum())}
        seconds = time.perf_counter() - started
        predictions.update({(name, split): table for split, table in task.predictions.items()})
        rows += [{**row, "seconds": seconds, **counted} for row in summarise(task)]
    describe(system, run_dir)
    if isinstance(system, LateInteraction):
        artefacts.write_table(align(system), folder / "alignment.csv", float_format="%.4f")
    return Scores(pd.DataFrame(rows), predictions, wrapped.seen if wrapped else {})


def _stored_scores(system: StoredSystem, names: Sequence[str], dev_splits: bool) -> Scores:
    """What `score` found when the system's weights were there."""
    rows, predictions = [], {}
    for name in names:
        task = catalogue.get(name)
        others = [split for split in task.metadata.eval_splits if split != "test"] if dev_splits else []
        scored = [split for split in others if predictions_file(system.run_dir, system.name, name, split).is_file()]
        for split in ["test", *scored]:
            table = load_predictions(system.run_dir, system.name, name, split)
            if set(table.id) != set(task.rows(split).id):
                raise ScoreError(
                    f"The predictions of {system.name} on {name} are on other items than today's. Score it anew."
                )
            task.predictions[split] = predictions[name, split] = table
        rows += [{**row, "seconds": math.nan} for row in summarise(task)]
    return Scores(pd.DataFrame(rows), predictions, {})


def find_system(name: str, run_dir: str | Path, **options: Any) -> System:
    """Load a system; a model trained in this run whose weights are gone is given by what its scores say of it.

    Args:
        options: of `systems.load`.

    Raises:
        ModelError, RankerError, AdapterError: see `systems.load`.
    """
    folder = paths.resolve(name)
    trained_here = folder.parent == paths.resolve(run_dir) / "encoders"
    if trained_here and not folder.is_dir() and about(run_dir, folder.name):
        return stored_system(run_dir, folder.name)
    return systems.load(name, **options)


def stored_system(run_dir: str | Path, name: str) -> StoredSystem:
    """A system without its weights, by its name.

    Raises:
        ScoreError: it wasn't scored in this run, or its scores don't say what fingerprint it had.
    """
    known = about(run_dir, name)
    if not known.get("fingerprint"):
        raise ScoreError(
            f"{run_dir} has neither the weights of {name} nor scores that name their fingerprint. Train it."
        )
    fields = ("name", "kind", "fingerprint", "source", "base", "parameters")
    return StoredSystem(run_dir=paths.resolve(run_dir), **{key: known[key] for key in fields if key in known})


def describe(system: System, run_dir: str | Path) -> None:
    """Write what was scored to `system.json`, for `about`."""
    found = {key: getattr(system, key, None) for key in ("name", "kind", "fingerprint", "source", "base")}
    found["parameters"] = efficiency.parameters(system)
    found["trained_on"] = trained_on(run_dir, system.name)
    artefacts.write_json(folder_of(run_dir, system.name) / "system.json", found)


def evaluate(encoder: "MtebEncoder", task: "LocalTask", folder: Path) -> None:
    """Let mteb evaluate a task anew; its result file and the per-item predictions land in a system's folder."""
    import mteb

    mteb.evaluate(
        encoder, task, cache=mteb.ResultCache(folder / "mteb"), overwrite_strategy="always", prediction_folder=folder,
        co2_tracker=False, show_progress_bar=False,
        encode_kwargs={"batch_size": encoder.batch_size, "show_progress_bar": False},
    )  # fmt: skip


def predict(system: System, task: "PairwiseTask | SimilarityTask", items: pd.DataFrame) -> pd.DataFrame:
    """A system's predictions for items of a task (see the task's class), by its scores of pairs of texts.

    Args:
        items: from the task's `rows`, all or some.

    Raises:
        ScoreError: a score is missing or not finite.
        EmbeddingError: see `embeddings.encode`.
    """
    from nblib.benchmarks.mteb_encoder import ROLES

    if task.protocol == "choice":
        long = items.explode("negatives")
        queries, documents = [*items["query"], *long["query"]], [*items.positive, *long.negatives]
        options = {"roles": tuple(ROLES[role] for role in task.roles)}
        options |= {} if task.similarity == "model" else {"similarity": task.similarity}
    else:
        queries, documents = items.sentence1.tolist(), items.sentence2.tolist()
        options = {"roles": ("symmetric", "symmetric")}
    options = options if isinstance(system, BiEncoder) else {}
    found = np.asarray(system.score(queries, documents, **options), dtype=np.float64)
    if found.shape != (len(queries),) or not np.isfinite(found).all():
        raise ScoreError(
            f"{system.name} gave {np.isfinite(found).sum()} finite scores in shape {found.shape}; expected [{len(queries)}]."
        )
    if task.protocol == "choice":
        return task.score_items(items, found[: len(items)], found[len(items) :])
    return items[["id", "cluster", "part", "score"]].assign(similarity=found)


def align(system: LateInteraction) -> pd.DataFrame:
    """Weller's Figures 9 and 10: which document tokens a query's tokens find, for the first question of the first
    authored pair of NevIR and both documents.

    Returns:
        document (negated or edited), and `LateInteraction.alignment`'s columns.
    """
    row = corpora.load(ALIGNED).iloc[0]
    documents = {"negated": row.doc1, "edited": row.doc2}
    tables = [system.alignment(row.q1, document).assign(document=kind) for kind, document in documents.items()]
    return pd.concat(tables, ignore_index=True)


def about(run_dir: str | Path, system: str) -> dict[str, Any]:
    """The content of a scored system's `system.json`: name, kind, fingerprint, source, base (the encoder under its adapter),
    parameters (in millions), trained_on; empty where none was left."""
    file = folder_of(run_dir, system) / "system.json"
    return artefacts.read_json(file) if file.is_file() else {}


def score_hub(system: BiEncoder, benchmark: str, run_dir: str | Path, *, batch_size: int = 64) -> pd.DataFrame:
    """Evaluate on MTEB-lite (16 tasks) or MTEB(eng, v1) (56) from the hub; results that are there are not run again.

    Returns:
        task, type, value (percent, the task's main score).
    """
    import mteb

    from nblib.benchmarks.general import hub_tasks
    from nblib.benchmarks.mteb_encoder import MtebEncoder

    cache = mteb.ResultCache(paths.writable_folder(folder_of(run_dir, system.name)) / "mteb")
    wanted = hub_tasks(benchmark)
    done = mteb.evaluate(MtebEncoder(system.encoder, batch_size=batch_size), wanted, cache=cache, co2_tracker=False)
    kinds = {task.metadata.name: task.metadata.type for task in wanted}
    rows = [(one.task_name, kinds[one.task_name], 100 * one.get_score()) for one in done.task_results]
    return pd.DataFrame(rows, columns=["task", "type", "value"])


def summarise(task: "LocalTask") -> list[dict]:
    """The scores of an evaluated task: a row per view (a split, both, a part) and metric."""
    sampled = f", {task.sampled}" if task.sampled else ""
    return [
        {
            "task": task.metadata.name, "view": view, "benchmark": task.benchmark, "metric": metric, **measure(table, metric),
            "official": task.official, "data": f"{task.corpus} {view}{sampled}" if task.official else task.corpus,
        }
        for view, table in views(task.predictions).items()
        for metric in metrics_of(task)
    ]  # fmt: skip


def metrics_of(task: "LocalTask") -> tuple[str, ...]:
    """The metrics of a task, its own first: of a correlation, Spearman's and Pearson's."""
    return tuple(CORRELATIONS) if task.protocol == "similarity" else (task.metric,)


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


def measure(table: pd.DataFrame, metric: str = "spearman") -> dict[str, float]:
    """One score of per-item predictions: value, ci_low, ci_high (percent; 95 %, resampled by cluster), n, clusters.

    Args:
        table: id, cluster, and one of: similarity with a gold score (a correlation) or with a label that is 0 or 1 (average
            precision); value (the mean, of any range); correct (the mean, of 0 to 1).
        metric: which correlation, where similarities are held against a score.
    """
    if truth := _truth(table):
        drawn = _replicates(table.similarity, truth=table[truth], clusters=table.cluster, metric=metric)
        low, high = stats.percentile_interval(drawn[0])
    elif "value" in table:
        low, high = stats.cluster_bootstrap(table["value"], table.cluster)
    else:
        low, high = stats.share_interval(table.correct, table.cluster)
    return {
        "value": 100 * point(table, metric), "ci_low": 100 * low, "ci_high": 100 * high, "n": len(table),
        "clusters": table.cluster.nunique(),
    }  # fmt: skip


def point(table: pd.DataFrame, metric: str = "spearman") -> float:
    """The score of per-item predictions, without an interval, as a fraction (see `measure`)."""
    if truth := _truth(table):
        return _statistic(truth, metric)(table.similarity, table[truth])
    return float(table["value" if "value" in table else "correct"].mean())


def correlation(metric: str, first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's ρ or Pearson's r; NaN where one side is the same number throughout, which correlates with nothing."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan
    return float(CORRELATIONS[metric](first, second).statistic)


def average_precision(similarity: Sequence[float], label: Sequence[float]) -> float:
    """The average precision of a similarity at finding the items labelled 1; NaN where there are none."""
    from sklearn.metrics import average_precision_score  # a second to import

    return float(average_precision_score(label, similarity)) if np.any(label) else math.nan


def _statistic(truth: str, metric: str = "spearman") -> Callable[[Sequence[float], Sequence[float]], float]:
    """What a similarity is measured by, by the column that it is held against."""
    return average_precision if truth == "label" else partial(correlation, metric)


def _truth(table: pd.DataFrame) -> str | None:
    """The column that predictions hold their similarity against; None where each item has its own score."""
    return next((name for name in ("score", "label") if name in table), None) if "similarity" in table else None


def predictions_file(run_dir: str | Path, system: str, task: str, split: str = "test") -> Path:
    """Where a system's per-item predictions are kept."""
    return folder_of(run_dir, system) / f"{task}_{split}.parquet"


def save_predictions(
    table: pd.DataFrame, run_dir: str | Path, system: str, name: str, split: str = "test", **about: Any
) -> Path:
    """Keep per-item predictions (with id, cluster, correct) of something that is no task, where `compare` finds them.

    Args:
        about: for the sidecar.
    """
    return artefacts.write_table(table, predictions_file(run_dir, system, name, split), about)


def load_predictions(run_dir: str | Path, system: str, task: str, split: str = "test") -> pd.DataFrame:
    """Per-item predictions that `score` left; those of a sample also out of those of the whole task.

    Raises:
        ScoreError: there are none.
    """
    file, whole = (predictions_file(run_dir, system, name, split) for name in (task, task.removesuffix("_sample")))
    if whole.is_file() and not file.is_file():
        table = artefacts.read_table(whole)
        return table[table.id.isin(catalogue.get(task).rows(split).id)].reset_index(drop=True)
    if not file.is_file():
        data = next((data for data in catalogue.DATA if task in catalogue.names(data)), "mini")
        options = "--general all" if task in mteb_catalogue.TASKS else f"--data {data}"
        raise ScoreError(f"No predictions at {file}. Make them: nblib score {system} {options} --run-dir {run_dir}")
    return artefacts.read_table(file)


def change(before: pd.DataFrame, after: pd.DataFrame, metric: str = "spearman") -> dict[str, float]:
    """The change of a score between two systems on the same items, by paired bootstrap over clusters.

    Args:
        before, after: per-item predictions of one task and split.
        metric: which correlation, where similarities are held against a score.

    Returns:
        before, after, difference, low, high (percentage points), n.

    Raises:
        ScoreError: they are not about the same items.
    """
    both = _paired(before, after)
    if truth := _truth(before):
        old, new = (_statistic(truth, metric)(both[f"similarity_{side}"], both[f"{truth}_before"]) for side in SIDES)
        found = (new - old, *stats.percentile_interval(change_replicates(before, after, metric=metric)))
    else:
        own = "value" if "value" in before else "correct"
        old, new = (both[f"{own}_{side}"].mean() for side in SIDES)
        found = stats.paired_bootstrap(both[f"{own}_before"], both[f"{own}_after"], both.cluster_before)
    difference, low, high = (100 * x for x in found)
    return {"before": 100 * old, "after": 100 * new, "difference": difference, "low": low, "high": high, "n": len(both)}


def change_replicates(before: pd.DataFrame, after: pd.DataFrame, seed: int = 0, metric: str = "spearman") -> np.ndarray:
    """The change of a score (as a fraction) on 1,000 bootstrap resamples of the clusters, paired: [1000].

    Raises:
        ScoreError: the predictions are not about the same items.
    """
    both = _paired(before, after)
    truth = _truth(before)
    own = "similarity" if truth else "value" if "value" in before else "correct"
    old, new = (both[f"{own}_{side}"] for side in SIDES)
    if truth is None:
        return stats.cluster_replicates(np.mean, new - old, clusters=both.cluster_before, seed=seed)
    before, after = _replicates(
        old, new, truth=both[f"{truth}_before"], clusters=both.cluster_before, metric=metric, seed=seed
    )
    return after - before


def _replicates(
    *similarities: pd.Series, truth: pd.Series, clusters: pd.Series, metric: str, seed: int = 0
) -> np.ndarray:
    """What similarities are measured by, on the same bootstrap resamples of the clusters: [similarities, resamples]."""
    options = {"clusters": clusters, "seed": seed}
    if not truth.name.startswith("label"):
        return stats.correlation_replicates(metric, *similarities, truth=truth, **options)
    return np.array([stats.cluster_replicates(average_precision, one, truth, **options) for one in similarities])


def _paired(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    _check_same_items(before, after)
    return before.merge(after, on="id", suffixes=tuple(f"_{side}" for side in SIDES), validate="1:1")


def compare(
    run_dir: str | Path, baseline: str | None, others: Sequence[str], names: Sequence[str], *,
    test: Literal["bootstrap", "mcnemar"] = "bootstrap", correction: Literal["holm"] | None = None,
    others_dir: str | Path | None = None, complete: bool = False,
) -> pd.DataFrame:  # fmt: skip
    """Compare systems with a baseline, or every two of them, on the same items of each task, by their stored predictions.

    Args:
        baseline: None compares every two of the others.
        test: paired bootstrap over clusters, or McNemar's exact test, which takes items for independent (and needs right and
            wrong: no correlations).
        correction: of McNemar's p values, for the number of comparisons on a task.
        others_dir: the run of the others, where that isn't the baseline's.
        complete: whether a task that one of the others was not scored on is an error; else it is left out for that one.

    Returns:
        task, baseline, encoder (the other one); by bootstrap `change`'s columns, by McNemar those of `stats.mcnemar`.

    Raises:
        ScoreError: one has left no predictions, or on other items.
    """
    if correction and test != "mcnemar":
        raise ScoreError("A bootstrap gives intervals and no p values: there is nothing to correct.")
    where, rows = others_dir or run_dir, []
    read = cache(load_predictions)  # each table once
    for first, second in combinations(others, 2) if baseline is None else ((baseline, other) for other in others):
        there = [name for name in names if predictions_file(where, second, name).is_file()]
        wanted = names if complete else there or names[:1]  # none: the first one's absence is the error to show
        for name in wanted:
            before = read(run_dir if baseline else where, first, name)
            after = read(where, second, name)
            rows.append({"task": name, "baseline": first, "encoder": second, "before": before, "after": after})
    if test == "bootstrap":
        found = [{**row, **change(row["before"], row["after"], _headline(row["task"]))} for row in rows]
        return pd.DataFrame(found, columns=CHANGES)
    for row in rows:
        _check_same_items(row["before"], row["after"])
        row |= stats.mcnemar(*(row.pop(side).set_index("id").correct for side in ("before", "after")))
    columns = ["task", "baseline", "encoder", "difference", "only_first", "only_second", "p"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(p=table.groupby("task", sort=False).p.transform(stats.holm)) if correction and rows else table


def _headline(name: str) -> str:
    """The metric that stands beside the printed numbers of a task; Spearman's for what is no benchmark of the catalogue."""
    known = catalogue.tasks()
    return known[name].headline() if name in known else "spearman"


def _check_same_items(before: pd.DataFrame, after: pd.DataFrame) -> None:
    if sorted(before.id) != sorted(after.id):
        raise ScoreError(f"Predictions on different items ({len(before)} and {len(after)}) can't be compared.")


def errors(name: str, predictions: pd.DataFrame, count: int = 5) -> pd.DataFrame:
    """The test items an encoder gets most wrong, with their texts, to be read.

    Returns:
        For pairwise tasks: id, query, positive, negative, margin (of the item's worst question). For correlations: id,
        sentence1, sentence2, score, similarity, rank_gap (places, over n, between similarity's rank and the score's).
    """
    task = catalogue.get(name)
    texts = task.rows("test")
    if task.protocol == "choice":
        worst = predictions.nsmallest(count, "margin")
        long = worst.melt("id", [c for c in worst if c.startswith("margin_")] or ["margin"], "question", "by_question")
        long["question"] = long.question.str.removeprefix("margin_").replace("margin", texts.question.iloc[0])
        worst_question = long.loc[long.groupby("id").by_question.idxmin()]
        long = worst_question.merge(texts, on=["id", "question"]).sort_values("by_question")
        shown = long.assign(negative=long.negatives.map(" / ".join), margin=long.by_question)
        return shown[["id", "query", "positive", "negative", "margin"]].reset_index(drop=True)
    gap = (predictions.similarity.rank() - predictions.score.rank()) / len(predictions)
    worst = predictions.assign(rank_gap=gap).loc[gap.abs().nlargest(count).index]
    columns = ["id", "sentence1", "sentence2", "score", "similarity", "rank_gap"]
    return worst.merge(texts[["id", "sentence1", "sentence2"]], on="id")[columns]


def result_rows(
    scored: pd.DataFrame, system: str, scale: str, *, trained_on: str = "", fingerprint: str = ""
) -> list[dict]:
    """The scores as measurements (`results.row`).

    Args:
        scored: `Scores.summary`.
        trained_on: see `trained_on`.
    """
    about = {"scale": scale, "trained_on": trained_on, "fingerprint": fingerprint}
    return [
        results.row(
            system, item.benchmark, item.metric, item.value, data=item.data, n=item.n, interval=(item.ci_low, item.ci_high),
            **about,
        )
        for item in scored[scored.value.notna()].itertuples()  # a system with one answer to every pair has no ρ
    ]  # fmt: skip


def trained_on(run_dir: str | Path, system: str) -> str:
    """What this study trained a system on, by the sidecars of its run: the training texts and how many; "" for a published
    model as it is.

    Args:
        system: its name; of an adapter's system, the part before the "+" was trained.
    """
    name, _, adapter = system.partition("+")
    run = paths.resolve(run_dir)
    sidecars = [
        run / "encoders" / f"{name}.json",
        run / "llms" / f"{name}.json",
        run / "trainings" / name / "training.json",
    ]
    about = next((artefacts.read_json(file) for file in sidecars if file.is_file()), {})
    number, unit = about.get("anchors_used") or about.get("pairs"), "anchors" if "anchors_used" in about else "pairs"
    texts = about.get("training_data") or about.get("data") or ("NevIR" if about.get("pairs") else "")
    described = TRAINING_TEXTS.get(texts, texts)
    unit = "pairs" if texts == "NevIR" else unit
    parts = [f"{described} ({number:,} {unit})" if number else described]
    if merged := about.get("merged"):  # LoRAs, which may have learnt from the same
        learnt = [trained_on(run_dir, lora.removesuffix("-lora")) for lora in merged]
        parts = [" and ".join(dict.fromkeys(learnt))]
    folder, _, base = about.get("base", "").rpartition("/")
    if folder:  # a base trained in this run
        parts.insert(0, trained_on(run_dir, base))
    return ", then ".join(filter(None, [*parts, "an adapter fitted on STSB train" * bool(adapter)]))
