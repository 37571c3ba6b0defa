"""The trainings of a sweep compared with their base: gains on negation and losses elsewhere (Truong §5.1).

The input is the per-item predictions and sidecars of notebooks 04 and 07; no model is run.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import artefacts, paths, results, stats
from nblib.benchmarks import catalogue, scoring

# Two triples an anchor; "only hedging" uses the verbal negation alone, so it is that type's training, too.
AT_EQUAL_SIZE = ("rule-based", "only-hedging", "absolute", "affixal", "lexical", "mixed")
SETTINGS = ("base", "training_data", "size", "anchors_used", "method", "loss", "pooling", "epochs", "seed", "alpha")


def changes(
    run_dir: str | Path, base: str, sweep_dir: str | Path, names: Sequence[str], data: str, benchmarks: Sequence[str] = ()
) -> pd.DataFrame:  # fmt: skip
    """Every encoder of the sweep against the base on the same items: task, encoder, and `scoring.compare`'s columns.

    Args:
        benchmarks: keys of the catalogue; none: all of these data.
    """
    tasks = catalogue.names(data, keys=benchmarks or None)
    return scoring.compare(run_dir, base, names, tasks, others_dir=sweep_dir, complete=True)


def in_average() -> dict[str, str]:
    """The benchmarks of Truong's "Average" without M3-Counterfactual (rebuilt here): label → the paper's name."""
    return {
        task.label: answer.benchmark
        for task in catalogue.main_tasks().values()
        for answer in task.printed()
        if task.averaged and answer.paper == "truong"
    }


def settings(run_dir: str | Path, name: str) -> dict:
    """The `SETTINGS` of an encoder of notebook 04, and `variant`: its name without the seed. Another encoder has only `base`:
    itself, or the encoder under its adapter.
    """
    about = artefacts.about(paths.inside(run_dir, "encoders", name))
    if not about:
        return {"base": scoring.about(run_dir, name).get("base") or name, "variant": name}
    variant = name.replace(f"-s{about['seed']}", "") if "seed" in about else name  # a merged encoder has no seed
    return {**{key: about.get(key) for key in SETTINGS}, "variant": variant}


def main_training(run_dir: str | Path, scores: pd.DataFrame) -> tuple[str, str] | None:
    """The base and the encoder trained from it on authored texts that was measured on most items; None where there is none.

    Args:
        scores: from `results.matrix.matrix`.
    """
    pairs = [
        (settings(run_dir, name)["base"], name) for name in scores.system[scores.trained_on.str.startswith("authored")]
    ]
    known = set(scores.system)
    derived = [name for base, name in pairs if base in known and base != name]
    if not derived:
        return None
    items = scores[scores.system.isin(derived)].groupby("system", sort=False).n.sum()
    name = str(items.idxmax())
    return settings(run_dir, name)["base"], name


def collect(
    run_dir: str | Path, names: Sequence[str], data: str, benchmarks: Sequence[str] = ()
) -> pd.DataFrame:  # fmt: skip
    """The test scores of encoders by the metric that stands beside the printed numbers: encoder, variant, `SETTINGS`, task,
    benchmark, metric, value, ci_low, ci_high (percent), n; with a row "negation average" over the n
    benchmarks of `in_average`.

    Args:
        benchmarks: keys of the catalogue, with those of the average; none: all of these data.

    Raises:
        ScoreError: an encoder was not scored on these data, none is named, or a benchmark of the average isn't.
    """
    if not names:
        raise scoring.ScoreError(f"No encoder is named to compare on the {data} data. Name at least one.")
    rows, counted = [], in_average()
    for name in names:
        about, values = {"encoder": name, **settings(run_dir, name)}, {}
        for task in catalogue.names(data, keys=benchmarks or None):
            benchmark, metric = catalogue.get(task).label, catalogue.get(task).headline()
            measured = scoring.measure(scoring.load_predictions(run_dir, name, task), metric)
            values[benchmark] = measured["value"]
            rows.append({**about, "task": task, "benchmark": benchmark, "metric": metric, **measured})
        if absent := set(counted) - set(values):
            raise scoring.ScoreError(
                f"The negation average also needs {', '.join(sorted(absent))}. Add them to the benchmarks."
            )
        average = sum(values[benchmark] for benchmark in counted) / len(counted)
        rows.append({**about, "task": "", "benchmark": "negation average", "value": average, "n": len(counted)})
    return pd.DataFrame(rows)


def over_seeds(collected: pd.DataFrame) -> pd.DataFrame:
    """Variants over their seeds: variant, benchmark, metric, value (the mean), low, high (the extremes; for one seed its 95 %
    interval), n (items), seeds."""
    grouped = collected.fillna({"metric": "mean"}).groupby(["variant", "benchmark", "metric"], sort=False)
    averaged = grouped.agg(
        value=("value", "mean"), low=("value", "min"), high=("value", "max"), ci_low=("ci_low", "first"),
        ci_high=("ci_high", "first"), n=("n", "first"), seeds=("value", "size"),
    ).reset_index()  # fmt: skip
    alone = averaged.seeds == 1
    averaged["low"] = averaged.ci_low.where(alone, averaged.low)
    averaged["high"] = averaged.ci_high.where(alone, averaged.high)
    return averaged.drop(columns=["ci_low", "ci_high"])


def change_over_seeds(
    before: Sequence[pd.DataFrame], after: Sequence[pd.DataFrame], metric: str = "spearman"
) -> dict[str, float]:
    """The change of a score between two trainings, each averaged over its seeds, by paired bootstrap over clusters of items.

    Args:
        before, after: per-item predictions on one task, a table a seed.
        metric: which correlation, where the predictions are similarities.

    Returns:
        before, after, difference, low, high (percentage points), n.
    """
    tables = [table.set_index("id") for table in (*before, *after)]
    items, split = tables[0], len(before)
    kind = "similarity" if "similarity" in items else "correct"
    columns = [table[kind].reindex(items.index).astype(float).to_numpy() for table in tables]
    truth = items.score.to_numpy(dtype=float) if kind == "similarity" else np.zeros(len(items))

    def one(column: np.ndarray, score: np.ndarray) -> float:
        return scoring.correlation(metric, column, score) if kind == "similarity" else float(column.mean())

    if kind == "similarity":
        replicates = stats.correlation_replicates(metric, *columns, truth=truth, clusters=items.cluster)
    else:
        means = [stats.cluster_replicates(np.mean, column, clusters=items.cluster) for column in columns]
        replicates = np.array(means)
    low, high = stats.percentile_interval(replicates[split:].mean(axis=0) - replicates[:split].mean(axis=0))
    each = [100 * one(column, truth) for column in columns]
    old, new = float(np.mean(each[:split])), float(np.mean(each[split:]))
    return {"before": old, "after": new, "difference": new - old, "low": 100 * low, "high": 100 * high, "n": len(items)}


def relative(averaged: pd.DataFrame, base: str) -> pd.DataFrame:
    """The difference of every variant from the base (Figure 3): `over_seeds`' columns, relative (percent of the base's score),
    difference (points)."""
    reference = averaged[averaged.variant == base].set_index("benchmark").value
    others = averaged[averaged.variant != base]
    start = others.benchmark.map(reference)
    return others.assign(relative=100 * (others.value - start) / start, difference=others.value - start)


def wide(averaged: pd.DataFrame) -> pd.DataFrame:
    """A row per variant, a column per benchmark, "mean (lowest – highest)" where there are several seeds."""

    def cell(row: pd.Series) -> str:
        return f"{row.value:.1f}" + (f" ({row.low:.1f} – {row.high:.1f})" if row.seeds > 1 else "")

    shown = averaged.assign(cell=averaged.apply(cell, axis=1))
    return shown.pivot(index="variant", columns="benchmark", values="cell").loc[shown.variant.unique()].reset_index()


QUESTIONS = {
    "size": "how much?", "both": "which part?", "only": "which part?", "alpha": "how far? (α)",
    **dict.fromkeys(AT_EQUAL_SIZE, "one type or four?"), "only-hedging": "which part?",
}  # fmt: skip


def frontier(collected: pd.DataFrame, base: str) -> pd.DataFrame:
    """Every variant's means over its seeds: variant, alpha, negation average, STSB, and the question that it answers."""
    axes = collected[collected.benchmark.isin(["negation average", "STSB"])].fillna({"alpha": 0.0})
    plane = axes.pivot_table("value", ["variant", "alpha"], "benchmark").reset_index()
    questions = {**QUESTIONS, base: "the base"}
    plane["question"] = [
        questions.get(name, questions.get(name.split("-")[0], "which loss, which method?")) for name in plane.variant
    ]
    return plane


def interpolation_path(plane: pd.DataFrame, base: str) -> pd.DataFrame:
    """The rows of `frontier` from the base to one training, with the interpolations between them, by rising α."""
    end = "alpha" if plane.variant.eq("alpha").any() else "both"
    on_path = plane.variant.isin([base, end]) | plane.variant.str.startswith(f"{end}-a")
    return plane[on_path].sort_values("alpha")


def price(plane: pd.DataFrame, base: str) -> str:
    """What the training highest on negation gains there and what it does to STSB, in a sentence.

    Args:
        plane: encoder, negation average, STSB, and perhaps the base of each; else that is `base`.
    """
    best = plane.loc[plane["negation average"].idxmax()]
    before = plane.set_index("encoder").reindex([best.get("base", base)]).iloc[0]
    axes = [f"{name} {before[name]:.0f} → {best[name]:.0f}" for name in ("negation average", "STSB")]
    return f"Highest on negation is {best.encoder}: {axes[0]} %, {axes[1]}"


def extremes(averaged: pd.DataFrame) -> str:
    """The trainings highest on negation and on STSB, in a sentence; another where there is none.

    Args:
        averaged: variant, benchmark, value.
    """
    if averaged.empty:
        return "No training of this size in this run"
    table = averaged.pivot(index="variant", columns="benchmark", values="value")
    found = [f"{table[name].idxmax()} on {name} ({table[name].max():.0f})" for name in ("negation average", "STSB")]
    return f"At equal size, highest is {' and '.join(found)}"


def result_rows(averaged: pd.DataFrame, base: str, data: str, scale: str) -> list[dict]:
    """The trainings over their seeds as measurements: benchmarks, negation average, STSB. A mean over several seeds has no
    interval: `data` has the lowest and the highest."""
    rows = []
    for item in averaged[averaged.variant != base].itertuples():
        several = item.seeds > 1
        of_seeds = f"mean of {item.seeds} seeds ({item.low:.1f} to {item.high:.1f})" if several else "one seed"
        interval = (math.nan, math.nan) if several else (item.low, item.high)
        mini = " (mini)" if data == "mini" else ""
        rows.append(
            results.row(
                f"{base} + {item.variant}", f"{item.benchmark}{mini}", item.metric, item.value, n=item.n, scale=scale,
                data=f"{data} test, {of_seeds}", interval=interval, trained_on=f"authored triples: {item.variant}",
            )
        )  # fmt: skip
    return rows


def findings(averaged: pd.DataFrame, base: str) -> list[str]:
    """What the trainings show, in sentences."""
    table = averaged.pivot(index="variant", columns="benchmark", values="value")
    others = table.drop(index=base)

    def listed(names: Sequence[str]) -> str:
        return "; ".join(f"{name} {table['negation average'][name]:.1f} / {table.STSB[name]:.1f}" for name in names)

    extremes = [base, others["negation average"].idxmax(), others.STSB.idxmax()]
    ends = "the base, the training highest on negation and the one highest on STSB"
    sizes = averaged.drop_duplicates("benchmark").set_index("benchmark").n
    counts = ", ".join(f"{name} n = {sizes[name]:,.0f}" for name in [*in_average(), "STSB"] if name in sizes)
    sentences = [f"Negation average / STSB (mean over seeds; {counts}) of {ends}: {listed(extremes)}."]
    parts = [name for name in ("both", "only-negation", "only-hedging") if name in others.index]
    if len(parts) > 1:
        sentences.append(f"Parts of the data: {listed(parts)}. Paired intervals stand with the claims (notebook 13).")
    kinds = [name for name in AT_EQUAL_SIZE if name in others.index]
    if len(kinds) > 1:
        sentences.append(f"One type of negation or four, at equal size (only hedging: verbal type): {listed(kinds)}.")
    return sentences
