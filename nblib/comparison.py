"""Many encoders on one axis: what the trainings of a sweep gained on negation and lost elsewhere (Truong §5.1).

Everything here comes from the per-item predictions and sidecars that notebooks 04 and 07 leave; no model is run.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from nblib import paths, published, results, scores, tasks

# Truong's "Average" of the negation benchmarks, without M3-Counterfactual (rebuilt here, and kept out of averages)
AVERAGED = ("NevIR", "ExcluIR", "CANNOT")
# two triples an anchor; "only hedging" takes the verbal negation alone, and so is that type's training, too
AT_EQUAL_SIZE = ("rule-based", "only-hedging", "absolute", "affixal", "lexical", "mixed")
SETTINGS = ("base", "recipe", "size", "anchors_used", "method", "loss", "pooling", "epochs", "seed", "alpha")


def changes(run_dir: str | Path, base: str, sweep_dir: str | Path, names: Sequence[str], suite: str) -> pd.DataFrame:
    """Every encoder of the sweep beside the base on the same items: task, encoder, and `scores.compare`'s columns."""
    rows = [
        {"task": task, "encoder": name, **scores.compare(
            scores.load_predictions(run_dir, base, task), scores.load_predictions(sweep_dir, name, task)
        )}
        for name in names
        for task in tasks.SUITES[suite]
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=scores.CHANGES)


def settings(run_dir: str | Path, name: str) -> dict:
    """How an encoder of notebook 04 was trained (its sidecar's `SETTINGS`); for another encoder, only what it was made from as
    `base`: itself, or what an adapter was put on.

    Returns:
        `SETTINGS`, and `variant`: the name without the seed.
    """
    sidecar = paths.resolve(run_dir) / "encoders" / f"{name}.json"
    if not sidecar.is_file():
        return {"base": scores.made_from(run_dir, name) or name, "variant": name}
    about = json.loads(sidecar.read_text(encoding="utf-8"))
    variant = name.replace(f"-s{about['seed']}", "")
    return {**{key: about.get(key) for key in SETTINGS}, "variant": variant}


def collect(run_dir: str | Path, names: Sequence[str], suite: str) -> pd.DataFrame:
    """Every encoder's test scores: encoder, variant, `SETTINGS`, task, benchmark, value, ci_low, ci_high (percent), n; for each
    encoder also the "negation average" over `AVERAGED`.

    Raises:
        ScoreError: an encoder that notebook 07 has not scored on this suite.
    """
    rows = []
    for name in names:
        about, values = {"encoder": name, **settings(run_dir, name)}, {}
        for task in tasks.SUITES[suite]:
            measured = scores.measure(scores.load_predictions(run_dir, name, task))
            benchmark = tasks.get(task).benchmark.removesuffix(" (mini)")
            values[benchmark] = measured["value"]
            rows.append({**about, "task": task, "benchmark": benchmark, **measured})
        average = sum(values[benchmark] for benchmark in AVERAGED) / len(AVERAGED)
        rows.append({**about, "task": "", "benchmark": "negation average", "value": average})
    return pd.DataFrame(rows)


def over_seeds(collected: pd.DataFrame) -> pd.DataFrame:
    """Variants over their seeds: variant, benchmark, value (the mean), low, high (the extremes; of one seed alone its 95 %
    interval), n (items), seeds."""
    grouped = collected.groupby(["variant", "benchmark"], sort=False)
    averaged = grouped.agg(
        value=("value", "mean"), low=("value", "min"), high=("value", "max"), ci_low=("ci_low", "first"),
        ci_high=("ci_high", "first"), n=("n", "first"), seeds=("value", "size"),
    ).reset_index()  # fmt: skip
    alone = averaged.seeds == 1
    averaged["low"] = averaged.ci_low.where(alone, averaged.low)
    averaged["high"] = averaged.ci_high.where(alone, averaged.high)
    return averaged.drop(columns=["ci_low", "ci_high"])


def relative(averaged: pd.DataFrame, base: str) -> pd.DataFrame:
    """The difference of every variant from the base, relative (percent of the base's score; Figure 3): `over_seeds`' columns
    and `relative`."""
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


def printed_averages() -> pd.DataFrame:
    """What Truong's Table 1 prints: system, negation (the mean of NevIR, ExcluIR and Cannot), sts (MTEB's STS tasks: not STSB
    alone)."""
    table = published.load("truong")
    table = table[table.exhibit == "Table 1"].pivot(index="system", columns="benchmark", values="value")
    negation = table[["NevIR", "ExcluIR", "Cannot"]].mean(axis=1)
    return pd.DataFrame({"negation": negation, "sts": table["MTEB-STS"]}).reset_index()


# a variant of the sweep → the paper's system and exhibit it stands for
_STANDS_FOR = {
    "both": ("HedgeMPNet", "Table 2"),
    "only-negation": ("Only negation", "Table 2"),
    "only-hedging": ("Only hedging", "Table 2"),
}
_EXHIBITS = {
    "both": ("Figure 2", "Figure 3"), "size": ("Figure 2",), "only": ("Figure 3",),
    **dict.fromkeys(["rule", "mixed", "absolute", "affixal", "lexical"], ("Figure 4",)),
}  # fmt: skip
_INTERPOLATED = re.compile(r"-a\d{3}$")  # a training at another α: in none of them


def result_rows(averaged: pd.DataFrame, base: str, suite: str, scale: str) -> list[dict]:
    """The variants as rows of the results schema, stand-ins all: Table 2's systems by benchmark, and the negation average
    and STSB of what Figures 2 to 4 show. Over several seeds the interval is from the lowest to the highest."""
    rows = []
    for item in averaged[averaged.variant != base].itertuples():
        of_seeds = "one seed" if item.seeds == 1 else f"mean and range of {item.seeds} seeds"
        options = {
            "n": item.n, "scale": scale, "data": f"{suite} suite", "official": False, "stand_in": True,
            "model": f"{base} + {item.variant}, {of_seeds}", "interval": (item.low, item.high),
        }  # fmt: skip
        if item.variant in _STANDS_FOR and item.benchmark in ("NevIR", "ExcluIR", "CANNOT"):
            system, exhibit = _STANDS_FOR[item.variant]
            benchmark = {"CANNOT": "Cannot"}.get(item.benchmark, item.benchmark)
            metric = "spearman" if benchmark == "Cannot" else "right_rank"
            rows.append(results.row("truong", exhibit, system, benchmark, metric, item.value, **options))
        if item.benchmark in ("negation average", "STSB") and not _INTERPOLATED.search(item.variant):
            rows += [
                results.row("truong", exhibit, "the exhibit", item.benchmark, item.variant, item.value, **options)
                for exhibit in _EXHIBITS.get(item.variant.split("-")[0], [])
            ]
    return rows


def findings(averaged: pd.DataFrame, base: str) -> list[str]:
    """What the trainings show, in sentences made from their numbers."""
    table = averaged.pivot(index="variant", columns="benchmark", values="value")
    others = table.drop(index=base)

    def spoken(names: Sequence[str]) -> str:
        told = [f"{name} {table['negation average'][name]:.1f} / {table.STSB[name]:.1f}" for name in names]
        return "; ".join(told)

    extremes = [base, others["negation average"].idxmax(), others.STSB.idxmax()]
    sentences = [
        "Negation average / STSB of the base, the training with most negation and the one that keeps most of STSB: "
        f"{spoken(extremes)}."
    ]
    parts = [name for name in ("both", "only-negation", "only-hedging") if name in others.index]
    if len(parts) > 1:
        averages = averaged[averaged.benchmark.eq("negation average") & averaged.variant.isin(parts)]
        best, second = averages.sort_values("value", ascending=False).head(2).itertuples()
        if best.seeds == 1:
            order = "which is best, one seed can't say"
        elif best.low <= second.high:
            order = f"{best.variant} and {second.variant} are not told apart (their seeds' ranges overlap)"
        else:
            order = f"{best.variant} does best"
        sentences.append(f"Parts of the data: {spoken(parts)}; {order}. In the paper's text both together do best.")
    kinds = [name for name in AT_EQUAL_SIZE if name in others.index]
    if len(kinds) > 1:
        sentences.append(
            f"One type of negation or four, at equal size (only hedging: the verbal type): {spoken(kinds)}."
        )
    return sentences
