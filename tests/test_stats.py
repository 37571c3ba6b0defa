"""Uncertainty: intervals that widen where items hang together, and tests that agree with scipy's."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from scipy.stats import pearsonr, spearmanr
from statsmodels.stats import contingency_tables

from nblib import stats


def normal(n, seed=0):
    return np.random.default_rng(seed).normal(3, 1, n)


def test_an_interval_over_independent_items_is_scipys_bootstrap():
    values = normal(200)
    ours = stats.cluster_bootstrap(values)
    theirs = scipy_stats.bootstrap((values,), np.mean, method="percentile", n_resamples=5000, rng=1).confidence_interval
    np.testing.assert_allclose(ours, theirs, atol=0.02)
    assert ours[0] < values.mean() < ours[1]
    assert stats.cluster_bootstrap(values, list(range(200))) == stats.cluster_bootstrap(values)


def test_clusters_of_copies_count_once_and_clusters_of_unequal_size_weigh_by_their_items():
    values = normal(40)
    plain, copied = stats.cluster_bootstrap(values), np.repeat(values, 9)
    clustered = stats.cluster_bootstrap(copied, np.repeat([f"set {n}" for n in range(40)], 9))
    naive = stats.cluster_bootstrap(copied)
    np.testing.assert_allclose(clustered, plain, rtol=1e-12)
    assert naive[1] - naive[0] < 0.5 * (clustered[1] - clustered[0])
    assert stats.cluster_bootstrap([0] * 99 + [1], ["a"] * 99 + ["b"]) == (0, 1)


def test_values_no_interval_can_be_made_of_are_refused():
    for values, message in [([], "the group is empty"), ([1, np.nan, np.inf], "2 of 3 values are NaN or infinite")]:
        with pytest.raises(ValueError, match=message):
            stats.cluster_bootstrap(values)


def test_pairwise_tests_are_scipys_wilcoxon_with_holms_correction():
    rng = np.random.default_rng(3)
    scores = pd.DataFrame(rng.normal([0, 0.1, 0.9, 1.0], 0.5, (12, 4)), columns=["K 1000", "a", "K 200", "B"])
    table = stats.wilcoxon_holm(scores.set_axis([5] * 12))
    pairs = list(itertools.combinations(scores, 2))
    p = np.array([scipy_stats.wilcoxon(scores[a], scores[b], zero_method="pratt").pvalue for a, b in pairs])
    by_hand, running = np.empty(len(p)), 0.0
    for rank, index in enumerate(np.argsort(p)):  # Holm's step-down correction
        running = max(running, (len(p) - rank) * p[index])
        by_hand[index] = min(1.0, running)
    assert list(table.index) == list(table.columns) == list(scores.columns)
    np.testing.assert_allclose([table.loc[a, b] for a, b in pairs], by_hand, rtol=1e-9)
    np.testing.assert_allclose(stats.holm(p), by_hand)
    np.testing.assert_allclose(table, table.T)
    assert 0 < by_hand.min() < 0.05 < by_hand.max()


def test_all_right_or_all_wrong_still_has_an_interval():
    assert stats.share_interval([0] * 20) == pytest.approx((0, 0.161), abs=0.001)
    assert stats.share_interval([1] * 20) == pytest.approx((0.839, 1), abs=0.001)
    assert stats.share_interval([1] * 20, [0] * 10 + [1] * 10)[0] == pytest.approx(0.342, abs=0.001)  # two clusters
    assert np.isnan(stats.share_interval([0, 1], [0, 0])).all()  # one cluster, neither all right nor all wrong
    assert stats.share_interval([0, 1] * 30) == stats.cluster_bootstrap([0, 1] * 30)


def test_an_interval_of_any_statistic_heeds_clusters():
    values = np.random.default_rng(0).normal(size=100)
    alone = stats.cluster_replicates(np.mean, values)
    assert np.allclose(stats.percentile_interval(alone), stats.cluster_bootstrap(values), atol=0.05)
    again = stats.cluster_replicates(np.mean, np.repeat(values, 4), clusters=np.repeat(range(100), 4))
    assert np.allclose(again, alone)  # four copies of a row are no more evidence than one


@pytest.mark.parametrize(("metric", "scipys"), [("spearman", spearmanr), ("pearson", pearsonr)])
def test_correlations_of_resamples_are_scipys(metric, scipys):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 6, 60) / 5
    draws = {"clusters": rng.integers(0, 20, 60)}
    similarity = (gold + rng.normal(size=60)).round(1)  # with ties
    expected = stats.cluster_replicates(lambda a, b: scipys(a, b).statistic, similarity, gold, **draws)
    found = stats.correlation_replicates(metric, similarity, -similarity, truth=gold, **draws)
    np.testing.assert_allclose(found, [expected, -expected], atol=1e-12)


def test_a_resample_of_one_value_has_no_correlation():
    (found,) = stats.correlation_replicates("spearman", [0.1, 0.2], truth=[1.0, 2.0])
    assert np.isnan(found).any() and set(found[~np.isnan(found)].round(9)) == {1.0}


def test_mcnemars_p_value_is_statsmodels():
    first, second = pd.Series([1] * 9 + [0] * 11), pd.Series([1] * 6 + [0] * 3 + [1] * 8 + [0] * 3)
    found = stats.mcnemar(first, second)
    assert (found["only_first"], found["only_second"]) == (3, 8) and found["difference"] == pytest.approx(25)
    assert found["p"] == pytest.approx(contingency_tables.mcnemar([[6, 3], [8, 3]], exact=True).pvalue)
    assert stats.mcnemar(first, first)["p"] == 1


def test_random_splits_are_corrected_for_their_overlap():
    gains = [1.0, 2.0, 4.0]
    usual = scipy_stats.ttest_1samp(gains, 0).confidence_interval()
    assert stats.corrected_resampled_t(gains, 1e9, 1) == pytest.approx(tuple(usual))
    wider = stats.corrected_resampled_t(gains, 3, 2)  # three times the variance
    assert np.ptp(wider) == pytest.approx(3**0.5 * np.ptp(usual))
    assert stats.corrected_resampled_t([0.0, 0.0], 3, 2) == (0, 0)


def test_fishers_interval_is_scipys():
    r = pearsonr(*np.random.default_rng(0).normal(size=(2, 50)))
    assert stats.fisher(100 * r.statistic, 50) == pytest.approx(
        [100 * end for end in r.confidence_interval()], abs=0.01
    )
