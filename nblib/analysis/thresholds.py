"""A cosine above which two sentences count as one meaning: how well does the best one tell paraphrases from negations, and what
does the base's cost a tuned encoder? On the pairs of CANNOT, which are either."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import GroupKFold

from nblib import stats
from nblib.benchmarks import scoring

FOLDS = 10
BINS = 10  # of cosines from 0 to 1, for the calibration error


def compare(run_dir: str | Path, bases: Mapping[str, str], task: str) -> pd.DataFrame:
    """The thresholds of encoders, by their stored predictions on CANNOT-WMT (`task`) or its mini set.

    Args:
        bases: encoder → the encoder that it was trained from (itself, where it is a base).

    Returns:
        system, n (pairs), auc with low and high, calibration_error (percent), threshold (of the cosine, on all pairs), accuracy
        with accuracy_low and accuracy_high (percent; each tenth of the pairs by the threshold of the others, which share no
        sentence with it), and accuracy_by_base: by the base's threshold.
    """
    tables, rows = {name: _pairs(run_dir, name, task) for name in {*bases, *bases.values()}}, []
    best = {name: best_threshold(table) for name, table in tables.items()}
    for name, base in bases.items():
        table = tables[name]
        drawn = stats.cluster_replicates(roc_auc_score, table.same, table.similarity, clusters=table.cluster)
        low, high = stats.percentile_interval(100 * drawn)
        right = _held_out(table)
        bounds = stats.share_interval(right, table.cluster)
        auc = 100 * roc_auc_score(table.same, table.similarity)
        row = {"system": name, "n": len(table), "auc": auc, "low": low, "high": high}
        row |= {"calibration_error": calibration_error(table), "threshold": best[name]}
        row |= {"accuracy": 100 * right.mean(), "accuracy_low": 100 * bounds[0], "accuracy_high": 100 * bounds[1]}
        above = table.similarity >= best[base]
        rows.append({**row, "accuracy_by_base": 100 * (above == table.same).mean()})
    return pd.DataFrame(rows)


def best_threshold(pairs: pd.DataFrame) -> float:
    """The cosine with the greatest difference of paraphrases and negations above it, in shares (Youden's J)."""
    negations, paraphrases, cosines = roc_curve(pairs.same, pairs.similarity)
    return float(cosines[1:][np.argmax((paraphrases - negations)[1:])])  # the first is infinite, with nothing above it


def calibration_error(pairs: pd.DataFrame) -> float:
    """The expected calibration error of the cosine, cut to 0 to 1, as the probability of a paraphrase: the mean distance of both
    over `BINS`, in percent."""
    cosine = pairs.similarity.clip(0, 1)
    by_bin = pairs.assign(cosine=cosine).groupby((cosine * BINS).astype(int).clip(upper=BINS - 1))
    means = by_bin[["cosine", "same"]].mean()
    return float(100 * np.average((means.cosine - means.same).abs(), weights=by_bin.size()))


def _pairs(run_dir: str | Path, system: str, task: str) -> pd.DataFrame:
    """similarity, same (whether the second sentence is a paraphrase) and cluster of CANNOT's pairs."""
    table = scoring.load_predictions(run_dir, system, task)
    table = table[table.part == "CANNOT"].reset_index(drop=True)
    return table.assign(same=table.score == 1)


def _held_out(pairs: pd.DataFrame) -> np.ndarray:
    """Whether each pair is told right by a threshold of pairs that share no sentence with it, bool [n]."""
    right = np.zeros(len(pairs), dtype=bool)
    for train, test in GroupKFold(FOLDS).split(pairs, groups=pairs.cluster):
        threshold, held_out = best_threshold(pairs.iloc[train]), pairs.iloc[test]
        right[test] = (held_out.similarity >= threshold) == held_out.same
    return right
