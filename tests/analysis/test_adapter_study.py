"""The experiments: nothing leaks from test to training, and no mean is over a chosen part of the splits."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nblib import artefacts
from nblib.analysis import adapter_study
from nblib.analysis.adapter_study import BY_ROW, BY_SET
from nblib.errors import StudyError
from nblib.models.negation_adapter import WEIGHTINGS

SETS = np.repeat(np.arange(15), 4)


@pytest.fixture(scope="module")
def vectors():
    """60 items in 15 sets of 4, with a dimension that helps."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(60, 8))
    negatives = inputs[:, None] + 0.2 * rng.normal(size=(60, 2, 8))
    negatives[..., 0] *= -1
    return inputs, inputs + 0.4 * rng.normal(size=(60, 8)), negatives


@pytest.fixture(scope="module")
def runs(vectors):
    return adapter_study.within_semantoneg(vectors, SETS, [5, 10, 15], repeats=4)


def test_a_split_by_set_shares_no_sentence_and_both_have_the_papers_proportions():
    splits = adapter_study.random_splits(SETS, repeats=5, seed=0)
    shared = {name: [set(SETS[train]) & set(SETS[test]) for train, test in parts] for name, parts in splits.items()}
    assert not any(shared[BY_SET])
    assert all(shared[BY_ROW])
    (train, test), *_ = adapter_study.random_splits(range(3152), repeats=1, seed=0)[BY_ROW]
    assert (len(train), len(test)) == (1000, 2152)
    assert not set(train) & set(test)


def test_the_same_seed_gives_the_same_numbers_and_sizes_beyond_the_training_part_all_of_it(vectors, runs):
    counts = runs.groupby(["split", "weighting", "k"]).size()
    assert len(counts) == 2 * (1 + 3 * len(WEIGHTINGS)) and (counts == 4).all()
    again = adapter_study.within_semantoneg(vectors, SETS, [5, 10, 15, 1000], repeats=4)
    pd.testing.assert_frame_equal(again[again.k < 1000].reset_index(drop=True), runs)
    assert (
        again[again.k == 1000].n_train.max() == 60 - again.n_test.min() and (again.n_apart + again.n_test == 60).all()
    )


@pytest.mark.parametrize("wrong", [{"train_sizes": []}, {"train_sizes": [5, -5]}, {"repeats": 0}, {"seed": -1}])
def test_impossible_splits_are_refused(vectors, wrong):
    with pytest.raises(StudyError):
        adapter_study.within_semantoneg(vectors, SETS, **{"train_sizes": [5], **wrong})


def test_an_encoder_without_a_sensitive_dimension_gets_no_number(vectors):
    inputs, _, _ = vectors
    runs = adapter_study.within_semantoneg((inputs, -inputs, np.stack([inputs, inputs], axis=1)), SETS, [5], repeats=2)
    fits = runs[runs.k > 0]
    assert fits.accuracy.isna().all()
    assert fits.error.str.startswith("max(V̄)").all() and adapter_study.summary(runs).gain.isna().all()


def test_an_average_needs_a_result_on_every_split(runs):
    table = adapter_study.summary(runs.assign(accuracy=runs.accuracy.where(runs.index != runs[runs.k == 5].index[0])))
    missing = table.accuracy.isna()
    assert missing.sum() == 1 and table.answers[missing].item() == 3
    first = runs[(runs.split == BY_ROW) & (runs.k == 0)].accuracy
    assert (table.accuracy[0], table.sd[0]) == pytest.approx((first.mean(), first.std()))
    adapted = table[(table.k > 0) & ~missing]
    plain = table[table.k == 0].set_index("split").accuracy[adapted.split]
    assert adapted.gain.tolist() == pytest.approx((adapted.accuracy - plain.to_numpy()).tolist())
    assert (adapted.low < adapted.gain).all() and table.gain[missing | (table.k == 0)].isna().all()


def test_the_rank_diagram_pools_only_methods_with_all_results(runs, tmp_path):
    wide = adapter_study.by_method(runs)
    assert list(wide.columns) == ["unweighted", "K = 5", "K = 10", "K = 15"] and len(wide) == 4
    with pytest.raises(FileNotFoundError, match="notebook 06"):
        adapter_study.pooled_methods(tmp_path)
    artefacts.write_table(runs, tmp_path / "scores/whole/adapter_splits.csv")
    failing = runs.assign(accuracy=runs.accuracy.where(runs.k != 10))
    artefacts.write_table(failing, tmp_path / "scores/failing/adapter_splits.csv")
    pooled = adapter_study.pooled_methods(tmp_path)
    assert list(pooled.index.unique("encoder")) == ["whole"] and len(pooled) == 4


def test_the_first_and_the_last_method_are_named_and_the_pairs_not_told_apart_are_counted():
    ranks = pd.DataFrame({"system": ["b", "a", "c"], "rank": [2.0, 1.2, 2.8]})
    ranks[["p against b", "p against a", "p against c"]] = [[1.0, 0.5, 0.01], [0.5, 1.0, 0.001], [0.01, 0.001, 1.0]]
    described = adapter_study.describe_ranks(ranks, 0.01)
    assert described == "a ranks first (1.2), c last (2.8); 1 of 3 pairs differ at α = 0.01"


def test_a_crossbar_is_drawn_from_the_first_of_its_systems_to_the_last():
    rng = np.random.default_rng(0)
    scores = pd.DataFrame({name: rng.normal(size=12) for name in ("delta", "beta", "zeta", "alpha", "eta", "gamma")})
    ax = plt.figure().add_subplot()
    adapter_study.draw_ranks(scores, ax, alpha=0.05)
    crossbars = [list(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 6]
    assert crossbars and all(xs == sorted(xs) for xs in crossbars)
    plt.close("all")


def test_only_paraphrases_become_triplets_and_all_pairs_are_scored(tiny_encoder):
    table = pd.DataFrame({"score": [4.5, 1.0, 5.0], "group": [5, 1, 5]})
    texts = {"sentence1": "a b", "sentence2": "b a", "negated": "a not b"}
    table = table.assign(**{column: [f"{text} {i}" for i in table.index] for column, text in texts.items()})
    pairs = adapter_study.embed_pairs(table, tiny_encoder)
    assert [len(part) for part in pairs.triplets] == [2, 2, 2]
    assert [len(part) for part in pairs.scored] == [3, 3, 3]
    np.testing.assert_array_equal(pairs.triplets[0], pairs.scored[0][[0, 2]])


def test_the_tables_on_stsb_agree_where_they_measure_the_same(vectors):
    inputs, positives, negatives = vectors
    score, train_and_test = np.linspace(0, 5, 60), []
    for part in (np.arange(0, 60, 2), np.arange(1, 60, 2)):
        alike = part[score[part] >= 2]
        triplets = (inputs[alike], positives[alike], negatives[alike, :1])
        train_and_test.append(adapter_study.EmbeddedPairs(triplets, (inputs[part], positives[part], score[part])))
    table1, curves = adapter_study.on_stsb(*train_and_test), adapter_study.trade_off(*train_and_test)
    assert table1[["weighting", "rule"]].duplicated().sum() == 0 and len(table1) == 1 + 2 * len(WEIGHTINGS)
    by_accuracy = table1[table1.rule == "accuracy"]
    drawn = by_accuracy.merge(curves[curves.part == "test"], on=["weighting", "a"], suffixes=("", "_drawn"))
    assert drawn.accuracy.tolist() == pytest.approx(drawn.accuracy_drawn.tolist())
    assert drawn.pearson.tolist() == pytest.approx(drawn.pearson_drawn.tolist())
    constrained = table1[table1.rule == adapter_study.CONSTRAINED]
    assert constrained.train_pearson.min() >= table1.train_pearson[0] - 1
    changed = adapter_study.changes(table1, train_and_test[1])
    for metric, rows in changed.groupby(changed.metric.str.removesuffix("_change")):
        assert rows.value.tolist() == pytest.approx((table1[metric][1:] - table1[metric][0]).tolist())
        assert ((rows.ci_low <= rows.value) & (rows.value <= rows.ci_high)).all()
    table2 = adapter_study.transfer(table1, vectors, repeats=3)
    assert table2.accuracy[0] == pytest.approx(100 * adapter_study.unweighted(vectors).mean())
    assert (table2.n == 60).all() and (table2.sample_n == round(60 * adapter_study.TEST_SHARE)).all()
