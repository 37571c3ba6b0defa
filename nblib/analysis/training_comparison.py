"""Trainings compared with their base: gains on negation and losses elsewhere (Truong §5.1), and what each part of a mixture
brings on dev data. No model is run."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import artefacts, paths, stats
from nblib.benchmarks import catalogue, scoring
from nblib.errors import StudyError
from nblib.training import records

# Of Truong's "Average", without M3-Counterfactual
AVERAGED = tuple(key for key, benchmark in catalogue.BENCHMARKS.items() if benchmark.averaged)
AVERAGE = "negation average"
SETTINGS = ("base", "variant", "seed", "alpha", "training_data", "training_items", "method", "loss", "pooling")
AUTHORED = ("both", "negation", "hedging", "mixture")  # training data
NEGATION = "mean of negation"
GENERAL = "STSB dev"


def settings(run_dir: str | Path, name: str) -> dict:
    """The `SETTINGS` of an encoder that was trained in this run, or ships; its variant is its name outside a sweep. Another has
    only a base (itself, or the one under its adapter)."""
    file, scored = paths.inside(run_dir, "trainings", name) / "training.json", scoring.about(run_dir, name)
    shipped = {} if scored.get("adapter") else artefacts.about(paths.resolve(scored.get("source", name)))
    known = artefacts.read_json(file) if file.is_file() else shipped or {"base": scored.get("base", name)}
    return {**{key: known.get(key) for key in SETTINGS}, "variant": known.get("variant") or name}


def main_training(run_dir: str | Path, scores: pd.DataFrame) -> tuple[str, str] | None:
    """Of scores (system, trained_on, n) the base and the encoder trained from it on authored texts that was measured on most
    items, if any."""
    trained = scores[scores.trained_on.isin(AUTHORED)]
    bases = {name: settings(run_dir, name)["base"] for name in trained.system.unique()}
    items = trained[trained.system.map(bases).isin(scores.system)].groupby("system", sort=False).n.sum()
    return (bases[items.idxmax()], str(items.idxmax())) if len(items) else None


def collect(run_dir: str | Path, names: Sequence[str], form: str, benchmarks: Sequence[str] = ()) -> pd.DataFrame:
    """The test scores of encoders on benchmarks (by key; none: all of this form), by the metric that is printed.

    Returns:
        encoder, `SETTINGS`, training (the variant), benchmark, corpus, label, metric, value, ci_low, ci_high (percent), n; with
        a row "negation average" over the n benchmarks `AVERAGED`.

    Raises:
        ScoreError: an encoder was not scored, or the average lacks a benchmark.
    """
    tasks = [catalogue.get(name) for name in catalogue.names(form, keys=benchmarks or None)]
    if absent := set(AVERAGED) - {task.key for task in tasks}:
        raise scoring.ScoreError(f"The {AVERAGE} also needs {', '.join(sorted(absent))}.")
    rows = []
    for name in names:
        about, values = {"encoder": name, **settings(run_dir, name)}, {}
        about["training"] = about["variant"]
        for task in tasks:
            items = {"benchmark": task.key, "corpus": task.name, "label": task.label}
            measured = scoring.measure(scoring.load_predictions(run_dir, name, task.name), task.main_metric)
            values[task.key] = measured["value"]
            rows.append({**about, **items, "metric": task.main_metric, **measured})
        mean = {"value": float(np.mean([values[key] for key in AVERAGED])), "n": len(AVERAGED), "metric": "mean"}
        rows.append({**about, "benchmark": "negation_average", "label": AVERAGE, **mean})
    return pd.DataFrame(rows)


def over_seeds(collected: pd.DataFrame) -> pd.DataFrame:
    """`collect` over seeds: value (the mean), low, high (the extremes; for one seed its 95 % interval), seeds ("0+1+2"), runs
    (their number), and the columns that all seeds share."""
    shown = collected.assign(seeds=collected.seed.map("{:.0f}".format, na_action="ignore"), runs=1)
    grouped = shown.groupby(["training", "label"], sort=False)
    averaged = grouped.first()
    averaged["runs"], averaged["value"] = grouped.size(), grouped.value.mean()
    averaged["seeds"] = grouped.seeds.agg(lambda seeds: "+".join(seeds.dropna()))
    alone = averaged.runs == 1
    averaged["low"] = averaged.ci_low.where(alone, grouped.value.min())
    averaged["high"] = averaged.ci_high.where(alone, grouped.value.max())
    return averaged.drop(columns=["encoder", "seed", "ci_low", "ci_high"]).reset_index()


def wide(averaged: pd.DataFrame) -> pd.DataFrame:
    """A row per training, a column per benchmark, "mean (lowest – highest)" of several seeds."""
    extremes = averaged.low.map(" ({:.1f} – ".format) + averaged.high.map("{:.1f})".format)
    shown = averaged.assign(cell=averaged.value.map("{:.1f}".format) + extremes.where(averaged.runs > 1, ""))
    cells = shown.pivot(index="training", columns="label", values="cell").loc[shown.training.unique()]
    return cells.reset_index(names="variant")


def describe_highest(plane: pd.DataFrame) -> str:
    """What the training highest on negation changes, from training, base, negation average, STSB."""
    best = plane.loc[plane[AVERAGE].idxmax()]
    before = plane.set_index("training").loc[best.base]
    changes = [f"{name} {before[name]:.1f} → {best[name]:.1f}" for name in (AVERAGE, "STSB")]
    return f"{best.training}: {changes[0]}, {changes[1]}"


def choose_recipe(means: pd.DataFrame) -> str:
    """The recipe that the rule of notebook 08 (section 9) chooses, of dev scores by recipe (rows, the base first) and set: the
    highest mean on negation of those whose STSB dev is at most a point below the base's; within half a point the first. A
    StudyError where there is none."""
    able = means[1:][means[GENERAL].iloc[1:] >= means[GENERAL].iloc[0] - 1]
    if able.empty:
        raise StudyError(f"Every recipe loses more than a point of {GENERAL}, so the rule chooses none.")
    return able.index[able[NEGATION] >= able[NEGATION].max() - 0.5][0]


def change_over_seeds(
    before: Sequence[pd.DataFrame], after: Sequence[pd.DataFrame], metric: str = "spearman"
) -> dict[str, float]:
    """The change of a score between two trainings, each averaged over its seeds (of each its predictions), by paired bootstrap
    over clusters of items: before, after, difference, low, high (percentage points), n."""
    old, new = (100 * float(np.mean([scoring.point(table, metric) for table in side])) for side in (before, after))
    drawn = [scoring.change_replicates(*pair, metric=metric) for pair in product(before, after)]
    low, high = stats.percentile_interval(100 * np.mean(drawn, axis=0))
    return {"before": old, "after": new, "difference": new - old, "low": low, "high": high, "n": len(before[0])}


def dev_scores(run_dir: str | Path, names: Sequence[str]) -> pd.DataFrame:
    """The dev scores of trainings, and of their base as the first: training, set (also `NEGATION`, the mean over n sets on
    negation), kind, value (percent, ρ × 100), n."""
    tables = []
    for name in names:
        about, curve = settings(run_dir, name), records.load(run_dir, name).table("alphas")
        sides = [(about["base"], 0.0)] * (not tables) + [(name, about["alpha"])]
        tables += [curve[curve.alpha == alpha].assign(training=training) for training, alpha in sides]
    scores = pd.concat(tables, ignore_index=True)
    scores = scores.loc[scores.kind != "diagnostic", ["training", "set", "kind", "value", "n"]]
    means = scores[scores.kind == "negation"].groupby("training", sort=False).value.agg(value="mean", n="size")
    return pd.concat([means.reset_index().assign(set=NEGATION, kind="negation"), scores], ignore_index=True)


def dev_changes(run_dir: str | Path, names: Sequence[str]) -> pd.DataFrame:
    """The other trainings against the first, by paired bootstrap over clusters of dev items: training, set (the general one,
    those on negation, `NEGATION`: their mean), difference, low, high (points, 95 % interval), n."""
    scores, rows = dev_scores(run_dir, names).set_index(["training", "set"]), []
    first, *others = (
        {str(key): part.dropna(axis=1, how="all") for key, part in table.groupby("set", sort=False)}
        for table in (records.load(run_dir, name).table("predictions") for name in names)
    )
    for name, own in zip(names[1:], others, strict=True):
        drawn = {one: 100 * scoring.change_replicates(before, own[one]) for one, before in first.items()}
        drawn[NEGATION] = np.mean([drawn[one] for one in first if scores.kind[name, one] == "negation"], axis=0)
        for one, replicates in drawn.items():
            difference = scores.value[name, one] - scores.value[names[0], one]
            rows.append((name, one, difference, *stats.percentile_interval(replicates), scores.n[name, one]))
    return pd.DataFrame(rows, columns=["training", "set", "difference", "low", "high", "n"])
