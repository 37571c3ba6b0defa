"""The experiments: nothing leaks from test to training, and every table says what it is."""

import numpy as np
import pandas as pd
import pytest

from nblib.analysis import adapter_study
from nblib.analysis.adapter_study import BY_ROW, BY_SET
from nblib.benchmarks import semantoneg
from nblib.models import encoders
from nblib.models.negation_adapter import WEIGHTINGS
from nblib.results import published
from nblib.stats import wilcoxon_holm


@pytest.fixture(scope="module")
def vectors():
    """60 items in 15 sets of 4, with a dimension that helps."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(60, 8))
    negatives = inputs[:, None] + 0.2 * rng.normal(size=(60, 2, 8))
    negatives[..., 0] *= -1
    return inputs, inputs + 0.4 * rng.normal(size=(60, 8)), negatives


SETS = np.repeat(np.arange(15), 4)


@pytest.fixture(scope="module")
def runs(vectors):
    return adapter_study.within_semantoneg(vectors, SETS, [5, 10, 15], repeats=4)


def test_both_splits_cover_every_weighting_and_size(runs):
    counts = runs.groupby(["split", "weighting", "k"]).size()
    assert len(counts) == 2 * (1 + 3 * len(WEIGHTINGS))
    assert (counts == 4).all()


def test_a_split_by_set_shares_no_sentence_and_a_split_by_row_does():
    splits = adapter_study.random_splits(SETS, repeats=5, seed=0)
    shared = {name: [set(SETS[train]) & set(SETS[test]) for train, test in parts] for name, parts in splits.items()}
    assert not any(shared[BY_SET])
    assert all(shared[BY_ROW])


def test_a_split_has_the_papers_proportions():
    (train, test), *_ = adapter_study.random_splits(range(3152), repeats=1, seed=0)[BY_ROW]
    assert (len(train), len(test)) == (1000, 2152)
    assert not set(train) & set(test)


def test_training_sizes_beyond_the_training_part_use_all_of_it(vectors):
    runs = adapter_study.within_semantoneg(vectors, SETS, [1000], repeats=2)
    assert runs[runs.k == 1000].n_train.max() == 60 - runs.n_test.min()


def test_the_same_seed_gives_the_same_numbers(vectors, runs):
    pd.testing.assert_frame_equal(adapter_study.within_semantoneg(vectors, SETS, [5, 10, 15], repeats=4), runs)


def test_an_encoder_without_a_sensitive_dimension_gets_no_number(vectors):
    inputs, _, _ = vectors
    runs = adapter_study.within_semantoneg((inputs, -inputs, np.stack([inputs, inputs], axis=1)), SETS, [5], repeats=2)
    fits = runs[runs.k > 0]
    assert fits.accuracy.isna().all()
    assert fits.error.str.startswith("max(V̄)").all()


def test_an_average_needs_a_result_on_every_split(runs):
    spoilt = runs.copy()
    first = spoilt[(spoilt.k == 5)].index[0]
    spoilt.loc[first, "accuracy"] = np.nan
    table = adapter_study.summary(spoilt)
    missing = table[table.accuracy.isna()]
    assert len(missing) == 1 and missing.answers.item() == 3


def test_the_rank_diagram_pools_only_methods_with_all_results(runs):
    wide = adapter_study.by_method(runs)
    assert list(wide.columns) == ["unweighted", "K = 5", "K = 10", "K = 15"] and len(wide) == 4
    assert set(runs.split) == {BY_ROW, BY_SET}


def test_only_the_papers_own_sizes_have_a_published_number():
    assert [adapter_study.metric_name(k) for k in (0, 200)] == ["accuracy", "accuracy_w_anto_200"]
    metrics = map(adapter_study.metric_name, (0, 20, 1000))
    printed = [published.value_or_nan("cao", "Table 3", "all-mpnet-base-v2", metric) for metric in metrics]
    np.testing.assert_array_equal(printed, [32.1, np.nan, 45.66])


def test_the_smallest_p_value_knows_of_holms_correction():
    scores = pd.DataFrame({name: np.arange(10) + shift for name, shift in zip("abcd", (0, 0.1, 0.3, 0.6), strict=True)})
    p = wilcoxon_holm(scores).to_numpy()
    assert p[np.triu_indices(4, 1)].min() == pytest.approx(adapter_study.smallest_p(scores)) == pytest.approx(6 / 512)


def pairs_frame(score):
    table = pd.DataFrame({"score": score, "group": [5 if s >= 4 else 1 for s in score]})
    texts = {"sentence1": "a b", "sentence2": "b a", "negated": "a not b"}
    return table.assign(**{column: [f"{text} {i}" for i in table.index] for column, text in texts.items()})


def test_only_paraphrases_become_triplets_and_all_pairs_are_scored(tiny_encoder):
    pairs = adapter_study.embed_pairs(pairs_frame([4.5, 1.0, 5.0]), tiny_encoder)
    assert [len(part) for part in pairs.triplets] == [2, 2, 2]
    assert [len(part) for part in pairs.scored] == [3, 3, 3]


@pytest.mark.official
def test_the_unweighted_accuracy_is_vahtolas_to_the_printed_digit():
    vectors = adapter_study.encode(semantoneg.load(), encoders.load("all-MiniLM-L6-v2"))
    assert round(100 * adapter_study.unweighted(vectors).mean(), 1) == 1.9


def test_no_paraphrase_at_all_is_an_error(tiny_encoder):
    with pytest.raises(ValueError, match="group 5"):
        adapter_study.embed_pairs(pairs_frame([1.0, 2.0]), tiny_encoder)
