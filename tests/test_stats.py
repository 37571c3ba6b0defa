"""Uncertainty: intervals that widen where items hang together, and tests that agree with scipy's."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from scipy.stats import pearsonr, spearmanr

from nblib import stats


def normal(n, seed=0):
    return np.random.default_rng(seed).normal(3, 1, n)


def test_an_interval_over_independent_items_is_scipys_bootstrap():
    values = normal(200)
    ours = stats.cluster_bootstrap(values, resamples=20000)
    theirs = scipy_stats.bootstrap((values,), np.mean, method="percentile", n_resamples=5000, rng=1).confidence_interval
    np.testing.assert_allclose(ours, theirs, atol=0.012)
    assert ours[0] < values.mean() < ours[1]


def test_singleton_clusters_are_no_clusters():
    values = normal(50)
    assert stats.cluster_bootstrap(values, list(range(50))) == stats.cluster_bootstrap(values)


def test_clusters_of_copies_count_once():
    values = normal(40)
    plain, copied = stats.cluster_bootstrap(values), np.repeat(values, 9)
    clustered = stats.cluster_bootstrap(copied, np.repeat([f"set {n}" for n in range(40)], 9))
    naive = stats.cluster_bootstrap(copied)
    np.testing.assert_allclose(clustered, plain, rtol=1e-12)
    assert naive[1] - naive[0] < 0.5 * (clustered[1] - clustered[0])


def test_clusters_of_unequal_size_weigh_by_their_items():
    low, high = stats.cluster_bootstrap([0] * 99 + [1], ["a"] * 99 + ["b"])
    assert (low, high) == (0, 1)
    assert stats.cluster_bootstrap([2.0, 2.0, 2.0], ["a", "a", "b"]) == (2, 2)


def test_an_interval_is_the_same_for_the_same_seed_and_wider_for_more_confidence():
    values = normal(60)
    assert stats.cluster_bootstrap(values, seed=4) == stats.cluster_bootstrap(values, seed=4)
    assert stats.cluster_bootstrap(values, seed=4) != stats.cluster_bootstrap(values, seed=5)
    (low, high), (lower, higher) = (stats.cluster_bootstrap(values, confidence=c) for c in (0.8, 0.99))
    assert lower < low < high < higher


@pytest.mark.parametrize(
    ("values", "message"), [([], "the group is empty"), ([1, np.nan, np.inf], "2 of 3 values are NaN or infinite")]
)
def test_values_no_interval_can_be_made_of_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        stats.cluster_bootstrap(values)


def test_clusters_that_do_not_fit_the_values_are_refused():
    with pytest.raises(ValueError, match="length"):
        stats.cluster_bootstrap([1.0, 2.0, 3.0], ["a", "b"])


def test_a_paired_interval_is_that_of_the_differences():
    before, after = normal(80), normal(80) + 0.1 + normal(80, seed=1) / 100
    change, low, high = stats.paired_bootstrap(before, after)
    assert change == pytest.approx((after - before).mean())
    assert (low, high) == stats.cluster_bootstrap(after - before)
    assert high - low < 0.01, "what both share does not blur the comparison"
    groups = np.repeat(range(8), 10)
    assert stats.paired_bootstrap(before, after, groups)[1:] == stats.cluster_bootstrap(after - before, groups)


def test_a_comparison_of_other_items_is_refused():
    with pytest.raises(ValueError, match="same items under both: got 1 and 3"):
        stats.paired_bootstrap([1.0], [1.0, 2.0, 3.0])


def holm(p):
    """Holm's step-down correction, by hand."""
    corrected, running = np.empty(len(p)), 0.0
    for rank, place in enumerate(np.argsort(p)):
        running = max(running, (len(p) - rank) * p[place])
        corrected[place] = min(1.0, running)
    return corrected


def test_pairwise_tests_are_scipys_wilcoxon_with_holms_correction():
    rng = np.random.default_rng(3)
    scores = pd.DataFrame(
        rng.normal([0, 0.1, 0.9, 1.0], 0.5, (12, 4)), columns=["K 1000", "a", "K 200", "B"], index=[5] * 12
    )
    table = stats.wilcoxon_holm(scores)
    pairs = list(itertools.combinations(scores, 2))
    wanted = holm(np.array([scipy_stats.wilcoxon(scores[a], scores[b], zero_method="pratt").pvalue for a, b in pairs]))
    assert list(table.index) == list(table.columns) == list(scores.columns)
    np.testing.assert_allclose([table.loc[a, b] for a, b in pairs], wanted, rtol=1e-9)
    np.testing.assert_allclose(table, table.T)
    assert 0 < wanted.min() < 0.05 < wanted.max()


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_two_equal_systems_do_not_differ_and_do_not_disturb_the_others():
    scores = pd.DataFrame({"a": range(12), "same": range(12), "b": np.arange(12) + 1.5 + np.arange(12) / 10})
    table = stats.wilcoxon_holm(scores)
    assert table.loc["a", "same"] == 1
    assert table.loc["a", "b"] == table.loc["same", "b"] < 0.05


@pytest.mark.parametrize("shape", [(1, 3), (3, 1)])
def test_a_comparison_needs_two_systems_and_two_repetitions(shape):
    with pytest.raises(ValueError, match=f"got {shape[1]} and {shape[0]}"):
        stats.wilcoxon_holm(pd.DataFrame(np.zeros(shape)))


def test_all_right_or_all_wrong_still_has_an_interval():
    assert stats.share_interval([0] * 20) == pytest.approx((0, 0.161), abs=0.001)
    assert stats.share_interval([1] * 20) == pytest.approx((0.839, 1), abs=0.001)
    assert stats.share_interval([1] * 20, [0] * 10 + [1] * 10)[0] == pytest.approx(0.342, abs=0.001)  # two clusters
    assert stats.share_interval([0, 1], [0, 0]) == (0.5, 0.5)  # one cluster, neither all right nor all wrong
    values = [0, 1] * 30
    assert stats.share_interval(values) == stats.cluster_bootstrap(values)


def test_an_interval_of_any_statistic_heeds_clusters():
    rng = np.random.default_rng(0)
    values = rng.normal(size=100)

    def interval(values, clusters=None):
        return stats.percentile_interval(stats.cluster_replicates(np.mean, values, clusters=clusters))

    alone = interval(values)
    assert np.allclose(alone, stats.cluster_bootstrap(values), atol=0.05)
    again = interval(np.repeat(values, 4), np.repeat(range(100), 4))
    assert np.allclose(again, alone)  # four copies of a row are no more evidence than one
    careless = interval(np.repeat(values, 4))
    assert careless[1] - careless[0] < 0.7 * (again[1] - again[0])
    with pytest.raises(ValueError, match="No rows"):
        interval([])


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
def test_correlations_of_resamples_are_scipys(metric):
    rng = np.random.default_rng(0)
    gold, clusters = rng.integers(0, 6, 60) / 5, rng.integers(0, 20, 60)
    similarity = (gold + rng.normal(size=60)).round(1)  # with ties
    scipys = {"spearman": spearmanr, "pearson": pearsonr}[metric]
    expected = stats.cluster_replicates(
        lambda a, b: scipys(a, b).statistic, similarity, gold, clusters=clusters, resamples=200
    )
    reversed_too = (similarity, -similarity)
    found, negative = stats.correlation_replicates(metric, *reversed_too, truth=gold, clusters=clusters, resamples=200)
    np.testing.assert_allclose(negative, -expected, atol=1e-12)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_resample_of_one_value_has_no_correlation():
    (found,) = stats.correlation_replicates("spearman", [0.1, 0.2], truth=[1.0, 2.0], resamples=50)
    assert np.isnan(found).any() and set(found[~np.isnan(found)].round(9)) == {1.0}
