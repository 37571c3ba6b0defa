"""Trainings on several kinds of batches compared on dev data: what does each ingredient bring, and what does it cost?

The input is the training records that notebook 04 left; no model is run.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import paths, stats
from nblib.benchmarks import scoring
from nblib.results import tables
from nblib.training import dev_scores, records
from nblib.training.tuning import Tuned

NEGATION = "mean of negation"
GENERAL = "STSB dev"
CHANGE = f"change of {NEGATION}"
BUDGET = 1.0  # points of STSB dev that the chosen training may lose
SHOWN = (NEGATION, GENERAL, dev_scores.KEPT, dev_scores.KEPT_RETRIEVAL)


def load(sweep_dir: str | Path, names: Sequence[str]) -> dict[str, Tuned]:
    """The trainings of a sweep by name.

    Raises:
        ScoreError: one was not trained in this run.
    """
    found = {}
    for name in names:
        record = records.load(paths.inside(sweep_dir, "trainings", name))
        if record is None:
            raise scoring.ScoreError(
                f"No training {name} in {sweep_dir}. Run: snakemake mixtures --configfile config/official.yaml"
            )
        found[name] = Tuned(paths.inside(sweep_dir, "encoders", name), record, found=True)
    return found


def scores(trainings: dict[str, Tuned], base: str) -> pd.DataFrame:
    """The dev scores of trainings, and of the base as the first: training, set, kind, value (percent, ρ × 100), n.

    Each has a row `NEGATION`, the mean over its sets on negation; its n is the number of sets.
    """
    curves = {base: (next(iter(trainings.values())).alphas, 0.0)}
    curves |= {name: (tuned.alphas, tuned.alpha) for name, tuned in trainings.items()}
    tables = []
    for name, (curve, alpha) in curves.items():
        measured = curve[(curve.alpha == alpha) & ~curve.set.str.endswith("document cosine")]
        negation = measured[measured.kind == "negation"].value
        mean = pd.DataFrame(
            [(NEGATION, "negation", negation.mean(), len(negation))], columns=["set", "kind", "value", "n"]
        )
        tables.append(pd.concat([measured, mean])[["set", "kind", "value", "n"]].assign(training=name))
    return pd.concat(tables, ignore_index=True)


def changes(trainings: dict[str, Tuned], reference: str, measured: pd.DataFrame) -> pd.DataFrame:
    """Every training against a reference on the same dev items, by paired bootstrap over clusters.

    Args:
        measured: from `scores`.

    Returns:
        training, set, before, after, difference, low, high (points, 95 % interval), n; the sets are `GENERAL` and those on
        negation, and `NEGATION`, whose replicates are the means of the sets'.
    """
    start, rows = _by_set(trainings[reference]), []
    values = measured.set_index(["training", "set"])
    for name in (name for name in trainings if name != reference):
        own = _by_set(trainings[name])
        drawn = {one: 100 * scoring.change_replicates(before, own[one]) for one, before in start.items()}
        drawn[NEGATION] = np.mean([drawn[one] for one in start if one != GENERAL], axis=0)
        for one, replicates in drawn.items():
            before, after = values.value[reference, one], values.value[name, one]
            low, high = stats.percentile_interval(replicates)
            found = {"before": before, "after": after, "difference": after - before, "low": low, "high": high}
            rows.append({"training": name, "set": one, **found, "n": values.n[reference, one]})
    return pd.DataFrame(rows)


def chosen(measured: pd.DataFrame, base: str) -> str:
    """The training with the highest `NEGATION` among those that lose at most `BUDGET` points of `GENERAL`.

    Args:
        measured: from `scores`.
    """
    table = wide(measured).drop(index=base)
    enough = table[table[GENERAL] >= wide(measured)[GENERAL][base] - BUDGET]
    return str((table if enough.empty else enough)[NEGATION].idxmax())


def sentence(moved: pd.DataFrame) -> str:
    """Without which ingredient negation loses most, in a few words; of the trainings that leave one out.

    Args:
        moved: from `changes`.
    """
    without = moved[(moved.set == NEGATION) & moved.training.str.contains("-no-")]
    if without.empty:
        return "No ingredient was left out in this run"
    worst = without.loc[without.difference.idxmin()]
    left_out = worst.training.partition("-no-")[2].rpartition("-s")[0]
    return f"Without {left_out} the mean of negation changes most: {worst.difference:+.1f} points"


def findings(measured: pd.DataFrame, moved: pd.DataFrame, base: str) -> list[str]:
    """What the mixtures show on the dev data, in sentences.

    Args:
        measured: from `scores`.
        moved: from `changes`.
    """
    table, name = wide(measured), chosen(measured, base)
    sets = int(measured[measured.set == NEGATION].n.iloc[0])
    axes = "; ".join(f"{axis} {table[axis][base]:.1f} → {table[axis][name]:.1f}" for axis in SHOWN if axis in table)
    apart = moved[(moved.set == NEGATION) & ((moved.low > 0) | (moved.high < 0))]
    listed = ", ".join(
        f"{row.training} {row.difference:+.1f} [{row.low:.1f}, {row.high:.1f}]" for row in apart.itertuples()
    )
    return [
        f"Of {len(table) - 1} trainings on several kinds of data {name} is chosen by the rule, on dev data alone ({sets} sets on "
        f"negation): {axes}.",
        f"Intervals of the mean of negation that exclude 0: {listed or 'none'}.",
    ]


def wide(measured: pd.DataFrame) -> pd.DataFrame:
    """A row a training, a column a dev set, the means first."""
    table = measured.pivot(index="training", columns="set", values="value").loc[measured.training.unique()]
    first = [name for name in SHOWN if name in table]  # older records lack the last
    return table[[*first, *(name for name in table if name not in first)]]


def larger(trainings: dict[str, Tuned]) -> pd.DataFrame:
    """The dev scores of trainings on one base, and of the base as the first: a row a training, a column a set.

    The column `CHANGE` has the change of `NEGATION` from the last training as text, with its interval (see `changes`).
    """
    base, last = next(iter(trainings.values())).record.about["base"], list(trainings)[-1]
    measured = scores(trainings, base)
    moved = changes(trainings, last, measured)
    moved = moved[moved.set == NEGATION].set_index("training")
    texts = (
        moved.difference.map("{:+.1f}".format).str.cat(tables.interval_text(moved.low, moved.high, 1), sep=" (") + ")"
    )
    table = wide(measured)
    table.insert(1, CHANGE, texts.reindex(table.index).fillna("–"))
    return table.reset_index()


def _by_set(tuned: Tuned) -> dict[str, pd.DataFrame]:
    """The predictions for the dev items by set, with those columns that the set has."""
    parts = tuned.predictions.groupby("set", sort=False)
    return {str(name): part.drop(columns="set").dropna(axis=1, how="all") for name, part in parts}
