"""Uncertainty and comparison: bootstrap over clusters, paired bootstrap, McNemar and Wilcoxon, Holm's correction."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import binomtest


def cluster_bootstrap(
    values: Sequence[float],
    clusters: Sequence | None = None,
    *,
    resamples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval of a mean whose items come in clusters (rows that share sentences are not independent).

    Args:
        values: one number per item, shape [n].
        clusters: the cluster of each item, shape [n]; None makes every item its own.

    Returns:
        low, high, in the unit of the values.

    Raises:
        ValueError: there are no values.
    """
    values = np.asarray(values, dtype=float)
    if not len(values):
        raise ValueError("No values to resample: the group is empty.")
    if not np.isfinite(values).all():
        raise ValueError(f"{(~np.isfinite(values)).sum()} of {len(values)} values are NaN or infinite.")
    codes = np.arange(len(values)) if clusters is None else pd.factorize(pd.Series(clusters))[0]
    sums, sizes = np.bincount(codes, weights=values), np.bincount(codes)
    draws = _draws(len(sums), resamples, seed)
    means = (draws @ sums) / (draws @ sizes)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


@lru_cache(maxsize=8)  # systems are compared on the same items, benchmark by benchmark
def _draws(clusters: int, resamples: int, seed: int) -> np.ndarray:
    """How often each cluster is in each resample, [resamples, clusters]."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples).astype(np.float32)


def share_interval(correct: Sequence[bool], clusters: Sequence | None = None) -> tuple[float, float]:
    """95 % interval of a share: `cluster_bootstrap`'s; where all items are right, or all wrong, and a bootstrap has no width,
    Wilson's, with the number of clusters for n.

    Raises:
        ValueError: there are no items.
    """
    low, high = cluster_bootstrap(correct, clusters)
    if low == high and low in (0, 1):
        n = len(correct) if clusters is None else pd.Series(clusters).nunique()
        low, high = (bound / 100 for bound in wilson(100 * low, n))
    return float(low), float(high)


def wilson(percent: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n independent items, in percent: also where none or all are right."""
    low, high = binomtest(round(percent * n / 100), n).proportion_ci(method="wilson")
    return 100 * low, 100 * high


def paired_bootstrap(
    before: Sequence[float], after: Sequence[float], clusters: Sequence | None = None, **options
) -> tuple[float, float, float]:
    """The mean change of the same items under two systems with its interval: difference, low, high."""
    if len(before) != len(after):
        raise ValueError(f"A paired comparison needs the same items under both: got {len(before)} and {len(after)}.")
    difference = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    return float(difference.mean()), *cluster_bootstrap(difference, clusters, **options)


def cluster_replicates(
    statistic: Callable[..., float],
    *columns: Sequence[float],
    clusters: Sequence | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> np.ndarray:
    """Any statistic of rows that come in clusters, on bootstrap resamples of the clusters: [resamples].

    Args:
        statistic: takes the columns of a resample, returns a number.
        columns: each of shape [n].
        clusters: the cluster of each row, shape [n]; None makes every row its own.

    Raises:
        ValueError: there are no rows.
    """
    arrays = [np.asarray(column, dtype=float) for column in columns]
    n = len(arrays[0])
    if not n:
        raise ValueError("No rows to resample: the group is empty.")
    values = []
    for times in _resampled(n, clusters, resamples, seed):
        resample = np.repeat(np.arange(n), times)
        values.append(statistic(*(array[resample] for array in arrays)))
    return np.array(values, dtype=float)


def correlation_replicates(
    metric: Literal["spearman", "pearson"], *columns: Sequence[float], truth: Sequence[float],
    clusters: Sequence | None = None, resamples: int = 1000, seed: int = 0,
) -> np.ndarray:  # fmt: skip
    """The correlations of columns with a truth on the same bootstrap resamples of the clusters, [columns, resamples]; NaN where
    one side of a resample is constant.

    The same numbers as `cluster_replicates` with scipy's correlation, many times as fast: a resample is how often each row is
    in it, so nothing is sorted again.

    Args:
        columns, truth: each of shape [n].
        clusters, resamples, seed: see `cluster_replicates`.
    """
    sides = [np.asarray(column, dtype=float) for column in (*columns, truth)]
    places = [np.unique(side, return_inverse=True)[1] for side in sides]
    found = []
    for times in _resampled(len(sides[0]), clusters, resamples, seed):
        counts, total = [np.bincount(place, times) for place in places], times.sum()
        if metric == "spearman":  # the mean rank of equal values; the mean of all ranks is (total + 1) / 2
            ranks = [np.cumsum(count) - (count + total) / 2 for count in counts]
            centred = [rank[place] for rank, place in zip(ranks, places, strict=True)]
        else:
            centred = [side - side @ times / total for side in sides]
        variances = [(times * side) @ side for side in centred]
        varies = [np.count_nonzero(count) > 1 for count in counts]
        weighted = times * centred[-1]
        found.append([
            weighted @ side / np.sqrt(variance * variances[-1]) if several and varies[-1] else np.nan
            for side, variance, several in zip(centred[:-1], variances[:-1], varies[:-1], strict=True)
        ])  # fmt: skip
    return np.array(found).T


def _resampled(n: int, clusters: Sequence | None, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each of n rows is in each resample of the clusters, [n]."""
    codes = np.arange(n) if clusters is None else pd.factorize(pd.Series(clusters))[0]
    rng, groups = np.random.default_rng(seed), codes.max() + 1
    for _ in range(resamples):
        yield np.bincount(rng.integers(groups, size=groups), minlength=groups)[codes]


def percentile_interval(replicates: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of bootstrap replicates; NaN where none has a value.

    A resample of one constant has no correlation; with few clusters that happens; the other resamples still count.
    """
    if np.isnan(replicates).all():
        return np.nan, np.nan
    low, high = np.nanquantile(replicates, [0.025, 0.975])
    return float(low), float(high)


def wilcoxon_holm(scores: pd.DataFrame) -> pd.DataFrame:
    """Pairwise Wilcoxon signed-rank tests between systems, p values corrected by Holm's method.

    Args:
        scores: one row per repetition (block), one column per system.

    Returns:
        A symmetric table of corrected p values, systems by systems.

    Raises:
        ValueError: fewer than two systems or repetitions.
    """
    if min(scores.shape) < 2:
        raise ValueError(
            f"A comparison needs two systems and two repetitions; got {scores.shape[1]} and {scores.shape[0]}."
        )
    import scikit_posthocs  # its import of statsmodels takes a second that only this function needs

    long = scores.reset_index(drop=True).melt(var_name="system", value_name="score")
    return scikit_posthocs.posthoc_wilcoxon(
        long, val_col="score", group_col="system", p_adjust="holm", zero_method="pratt"
    ).loc[scores.columns, scores.columns]  # fmt: skip


def mcnemar(first: pd.Series, second: pd.Series) -> dict[str, float]:
    """The exact McNemar test of two systems on the same items.

    Args:
        first, second: whether an item is right, by id.

    Returns:
        difference (points, second minus first), only_first, only_second (items that one alone gets right), p.
    """
    from statsmodels.stats.contingency_tables import mcnemar as exact  # a second to import

    one, other = (column.astype(bool) for column in (first, second.reindex(first.index)))
    only_first, only_second = int((one & ~other).sum()), int((other & ~one).sum())
    table = [[int((one & other).sum()), only_first], [only_second, int((~one & ~other).sum())]]
    p = float(exact(table, exact=True).pvalue)
    return {
        "difference": 100 * (other.mean() - one.mean()),
        "only_first": only_first,
        "only_second": only_second,
        "p": p,
    }


def holm(p: Sequence[float]) -> np.ndarray:
    """p values corrected for their number by Holm's method."""
    from statsmodels.stats.multitest import multipletests  # a second to import

    return multipletests(p, method="holm")[1] if len(p) else np.asarray(p)
