"""The experiments: nothing leaks from test to training, and every table says what it is."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nblib.analysis import adapter_study
from nblib.analysis.adapter_study import BY_ROW, BY_SET
from nblib.corpora import semantoneg
from nblib.models import encoders
from nblib.models.negation_adapter import WEIGHTINGS
from nblib.results import answers, measurements, published
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


@pytest.fixture(scope="module")
def measured():
    """The measurements of a toy run of notebook 06."""
    table1 = pd.DataFrame({
        "weighting": ["none", "original norms"], "rule": ["", "accuracy"], "negations": "all", "accuracy": [72.0, 75.0],
        "pearson": [86.0, 64.0], "n": 543, "n_pairs": 2626,
    })  # fmt: skip
    table2 = pd.DataFrame({
        "weighting": ["none", "original norms"], "rule": ["", "accuracy"], "accuracy": [31.9, 34.0], "n": 3152,
        "mean": [31.6, 33.8], "sd": [0.5, 0.6], "sample_n": 2152,
    })  # fmt: skip
    table3 = pd.DataFrame({
        "k": [0, 200, 200, 500], "split": [BY_ROW, BY_ROW, BY_SET, BY_ROW], "weighting": "original norms",
        "n_train": [0, 200, 196, 500], "accuracy": [31.6, 45.0, 44.0, np.nan], "sd": [0.5, 1.0, 1.0, np.nan], "n_test": 2152,
        "answers": 10,
    })  # fmt: skip
    where = {"sts": "stsb", "benchmark": "semantoneg", "scale": "toy", "fingerprint": "abc"}
    rows = adapter_study.result_rows("enc", table1=table1, table2=table2, table3=table3, **where)
    return measurements.validate(pd.DataFrame(rows), "here").set_index(["system", "metric", "data"])


def test_a_variant_of_the_method_is_a_system_of_its_own(measured):
    adapted = "enc + adapter (original norms, a by accuracy)"
    assert measured.value[adapted, "pearson", "stsb dev+test, all negations"] == 64
    assert measured.n[adapted, "pearson", "stsb dev+test, all negations"] == 2626
    assert measured.n["enc", "accuracy", "stsb dev+test, all negations"] == 543
    assert measured.value[adapted, "accuracy", "semantoneg test"] == 34
    assert ("enc", "accuracy", "semantoneg test") not in measured.index, "notebook 07 measures the encoder itself"


def test_the_interval_of_samples_and_of_splits_holds_95_percent_of_them(measured):
    sample = measured.loc[("enc", "accuracy", "semantoneg, 10 samples")]
    assert (sample.value, sample.n) == (31.6, 2152)
    assert (sample.ci_low, sample.ci_high) == pytest.approx((31.6 - 1.96 * 0.5, 31.6 + 1.96 * 0.5))
    split = measured.loc[("enc + adapter (original norms, K = 200)", "accuracy", f"semantoneg, 10 splits {BY_ROW}")]
    assert (split.value, split.ci_low, split.ci_high) == pytest.approx((45, 45 - 1.96, 45 + 1.96))


def test_a_split_by_sentence_set_is_another_measurement_and_one_without_answer_none(measured):
    assert ("enc + adapter (original norms, K = 196)", "accuracy", f"semantoneg, 10 splits {BY_SET}") in measured.index
    assert not [system for system, *_ in measured.index if "K = 500" in system]
    assert not [data for system, _, data in measured.index if system == "enc" and "split" in data], "as in the samples"


def test_the_papers_cells_are_answered_by_names_that_this_notebook_gives(measured):
    systems = set(measured.index.get_level_values("system"))
    suffixes = {one.suffix for one in answers.cells() if one.paper == "cao" and one.exhibits == ("Table 1",)}
    assert {f"enc{suffix}" for suffix in suffixes} <= systems
    tuned = answers.of("cao", "Table 3", "SemAntoNeg", "accuracy_w_anto_200")
    (item,) = [key for key in measured.index if key[0] == f"enc{tuned.suffix}" and key[2].startswith(tuned.data)]
    assert measured.n[item] == tuned.n


def test_which_methods_are_not_told_apart_is_said_by_name():
    ranks = pd.DataFrame({
        "system": ["b", "a", "c"], "rank": [2.0, 1.2, 2.8], "p against a": [0.5, 1.0, 0.001],
        "p against b": [1.0, 0.5, 0.01], "p against c": [0.01, 0.001, 1.0],
    })  # fmt: skip
    assert adapter_study.not_told_apart(ranks, 0.01) == (
        "mean ranks a (1.2), b (2.0), c (2.8); not told apart at α = 0.01: a and b; b and c"
    )
    assert adapter_study.best_and_worst(ranks, 0.01) == (
        "a ranks first (1.2), c last (2.8); not told apart at α = 0.01: 2 of 3 pairs"
    )
    apart = ranks.assign(**{f"p against {name}": 0.001 for name in "abc"})
    assert adapter_study.not_told_apart(apart, 0.005).endswith("not told apart at α = 0.005: none")


def test_a_crossbar_is_drawn_from_the_first_of_its_systems_to_the_last():
    rng = np.random.default_rng(0)
    scores = pd.DataFrame({name: rng.normal(size=12) for name in ("delta", "beta", "zeta", "alpha", "eta", "gamma")})
    ax = plt.figure().add_subplot()
    adapter_study.draw_ranks(scores, ax, alpha=0.05)
    places = [list(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 6]
    assert places and all(xs == sorted(xs) for xs in places)


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


def test_a_trade_off_marks_what_was_chosen_and_says_what_it_changes():
    curves = pd.DataFrame(
        {"part": ["test", "test"], "a": [0.0, 5.0], "accuracy": [30.0, 70.0], "pearson": [85.0, 60.0]}
    )
    chosen = pd.DataFrame({"weighting": ["none", "w", "w"], "rule": ["", "accuracy", "constrained"], "a": [0.0, 5.0, 1.0],
                           "accuracy": [30.0, 70.0, 40.0], "pearson": [85.0, 60.0, 84.0]})  # fmt: skip
    _, ax = plt.subplots(figsize=(6, 4))
    adapter_study.draw_trade_off(curves, chosen, ax)
    assert [line.get_xydata().tolist() for line in ax.lines[1:]] == [[[60, 70]], [[84, 40]]]
    assert ax.get_title(loc=plt.rcParams["axes.titlelocation"]).replace("\n", " ") == "w: accuracy 30 → 70, r 85 → 60"
    plt.close("all")


def test_the_highest_mean_is_of_the_weighting_and_size_that_has_it():
    rows = [("none", 0, 30.0), ("w", 10, 40.0), ("w", 10, 50.0), ("w", 20, 44.0), ("v", 20, np.nan)]
    table = pd.DataFrame(rows, columns=["weighting", "k", "accuracy"])
    assert adapter_study.highest_mean(table) == "30 % unweighted, at most 45 % (w, K = 10)"
