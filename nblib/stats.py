"""Uncertainty and comparison: bootstrap over clusters, McNemar's and Wilcoxon's tests, Holm's correction.

Rows that share sentences are not independent, so whole clusters of rows are drawn. Equally many clusters with the same seed
always get the same resamples.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import binomtest
from scipy.stats import t as student_t

Values = Sequence[float]
Clusters = Sequence | None  # of each row its cluster; None makes every row its own


@lru_cache(maxsize=8)  # systems are compared on the same items, benchmark by benchmark
def _draws(clusters: int, resamples: int, seed: int) -> np.ndarray:
    """How often each cluster is in each resample, [resamples, clusters]."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples).astype(np.float32)


def _codes(n: int, clusters: Clusters) -> np.ndarray:
    """The number of each row's cluster."""
    if not n:
        raise ValueError("No values to resample: the group is empty.")
    return np.arange(n) if clusters is None else pd.factorize(pd.Series(clusters))[0]


def cluster_bootstrap(values: Values, clusters: Clusters = None) -> tuple[float, float]:
    """95 % percentile interval of a mean of values [n] whose items come in clusters [n], in their unit: low, high; a ValueError
    where there are no values, or one is no number."""
    values = np.asarray(values, dtype=float)
    codes = _codes(len(values), clusters)
    if not np.isfinite(values).all():
        raise ValueError(f"{(~np.isfinite(values)).sum()} of {len(values)} values are NaN or infinite.")
    sums, sizes = np.bincount(codes, weights=values), np.bincount(codes)
    draws = _draws(len(sums), 2000, seed=0)
    return percentile_interval((draws @ sums) / (draws @ sizes))


def share_interval(correct: Sequence[bool], clusters: Clusters = None) -> tuple[float, float]:
    """95 % interval of a share: `cluster_bootstrap`'s; where all items are right, or all wrong, and a bootstrap has no width,
    Wilson's, with the number of clusters for n; NaN where one cluster is all there is."""
    low, high = cluster_bootstrap(correct, clusters)
    if low == high and low not in (0, 1):
        return math.nan, math.nan
    if low == high:
        n = len(correct) if clusters is None else pd.Series(clusters).nunique()
        low, high = (bound / 100 for bound in wilson(100 * low, n))
    return low, high


def wilson(percent: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n independent items, in percent: also where none or all are right."""
    low, high = binomtest(round(percent * n / 100), n).proportion_ci(method="wilson")
    return 100 * low, 100 * high


def _weights(n: int, clusters: Clusters, seed: int) -> Iterator[np.ndarray]:
    """How often each of n rows is in each resample, [n]."""
    codes = _codes(n, clusters)
    for draw in _draws(codes.max() + 1, 1000, seed):
        yield draw[codes].astype(float)


def cluster_replicates(
    statistic: Callable[..., float], *columns: Values, clusters: Clusters = None, seed: int = 0
) -> np.ndarray:
    """A statistic of columns (each [n]) on 1,000 bootstrap resamples of the clusters, [1000]."""
    arrays = [np.asarray(column, dtype=float) for column in columns]
    weights = _weights(len(arrays[0]), clusters, seed)
    rows = (np.repeat(np.arange(len(arrays[0])), times.astype(int)) for times in weights)
    return np.array([statistic(*(array[resample] for array in arrays)) for resample in rows], dtype=float)


def correlation_replicates(
    metric: Literal["spearman", "pearson"], *columns: Values, truth: Values, clusters: Clusters = None, seed: int = 0
) -> np.ndarray:
    """The correlations of columns with a truth (each [n]) on 1,000 bootstrap resamples of the clusters, [columns, 1000];
    NaN where one side of a resample is constant.

    The same numbers as `cluster_replicates` with scipy's correlation, many times as fast, because nothing is sorted again.
    """
    sides = [np.asarray(side, dtype=float) for side in (*columns, truth)]
    levels = [np.unique(side, return_inverse=True)[1] for side in sides]
    replicates = []
    for times in _weights(len(truth), clusters, seed):
        counts = [np.bincount(level, times) for level in levels]
        if metric == "spearman":  # the mean rank of equal values, but for a constant
            sides = [(np.cumsum(count) - count / 2)[level] for count, level in zip(counts, levels, strict=True)]
        centred = [side - side @ times / times.sum() for side in sides]
        varies = [np.count_nonzero(count) > 1 for count in counts]
        spread = [np.sqrt(times @ side**2) if v else np.nan for side, v in zip(centred, varies, strict=True)]
        products = [(times * centred[-1]) @ side for side in centred[:-1]]
        replicates.append(np.array(products) / (np.array(spread[:-1]) * spread[-1]))
    return np.array(replicates).T


def percentile_interval(replicates: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of bootstrap replicates that have a value (a constant has no correlation); NaN where none has."""
    if np.isnan(replicates).all():
        return np.nan, np.nan
    low, high = np.nanquantile(replicates, [0.025, 0.975])
    return float(low), float(high)


def corrected_resampled_t(differences: Values, n_train: float, n_test: float) -> tuple[float, float]:
    """95 % interval of the mean difference of two methods over random splits into a part to train on, of `n_train` items, and one
    to test on, which overlap between splits (Nadeau and Bengio 2003). Who learns from less than the whole training part gives
    the part's size: how much the splits overlap doesn't depend on it."""
    spread = np.std(differences, ddof=1) * np.sqrt(1 / len(differences) + n_test / n_train)
    mean, half = np.mean(differences), student_t.ppf(0.975, len(differences) - 1) * spread
    return float(mean - half), float(mean + half)


def wilcoxon_holm(scores: pd.DataFrame) -> pd.DataFrame:
    """Pairwise Wilcoxon signed-rank tests between systems, of scores by repetition and system, p values corrected by Holm's
    method: systems by systems."""
    import scikit_posthocs  # its import of statsmodels takes a second that only this function needs

    long = scores.reset_index(drop=True).melt(var_name="system", value_name="score")
    how = {"val_col": "score", "group_col": "system", "p_adjust": "holm", "zero_method": "pratt"}
    return scikit_posthocs.posthoc_wilcoxon(long, **how).loc[scores.columns, scores.columns]


def mcnemar(first: pd.Series, second: pd.Series) -> dict[str, float]:
    """The exact McNemar test of two systems by whether an item is right, by id: difference (points, second minus first),
    only_first, only_second (items that one alone gets right), p."""
    one, other = (column.astype(bool) for column in (first, second.loc[first.index]))
    alone = {"only_first": int((one & ~other).sum()), "only_second": int((other & ~one).sum())}
    p = binomtest(alone["only_first"], sum(alone.values())).pvalue if any(alone.values()) else 1.0
    return {"difference": 100 * (other.mean() - one.mean()), **alone, "p": float(p)}


def fisher(correlation: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a Pearson correlation × 100 of n independent pairs, by Fisher's transformation, × 100."""
    center, spread = np.arctanh(correlation / 100), 1.96 / np.sqrt(n - 3)
    return float(100 * np.tanh(center - spread)), float(100 * np.tanh(center + spread))


def holm(p: Values) -> np.ndarray:
    """p values corrected for their number by Holm's method."""
    from statsmodels.stats.multitest import multipletests  # a second to import

    return multipletests(p, method="holm")[1] if len(p) else np.asarray(p)
