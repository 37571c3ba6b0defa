"""Trainings beside their base, on test and on dev data."""

import numpy as np
import pandas as pd
import pytest

from nblib import artefacts
from nblib.analysis import training_comparison
from nblib.benchmarks import catalogue, scoring
from nblib.errors import StudyError


def record(run, name, **about):
    artefacts.write_json(run / "trainings" / name / "training.json", {"base": "base", "alpha": 1.0, **about})


@pytest.fixture
def run(tmp_path):
    """A run with two encoders: the base knows nothing, a tuned one (two seeds, one of them also interpolated) all but a part."""

    def leave(name, right):
        for task in catalogue.names("mini"):
            rows = pd.DataFrame({"id": [str(k) for k in range(4)], "cluster": range(4)})
            if catalogue.get(task).metric == "spearman":
                rows = rows.assign(score=[0.0, 1.0, 2.0, 3.0], similarity=[0.0, 1.0, 2.0, 3.0][:: 1 if right else -1])
            else:
                rows = rows.assign(correct=[True] * right + [False] * (4 - right))
            scoring.save_predictions(rows, tmp_path, name, task)

    leave("base", 0)
    trained = {"variant": "both", "training_data": "both", "training_items": 50}
    for name, right, seed, alpha in [("both-s0", 2, 0, 1.0), ("both-s1", 4, 1, 1.0)]:
        leave(name, right)
        record(tmp_path, name, **trained, seed=seed, alpha=alpha)
    leave("both-s0+adapter", 3)
    artefacts.write_json(scoring.folder_of(tmp_path, "both-s0+adapter") / "system.json", {"base": "both-s0"})
    return tmp_path


def test_seeds_of_a_variant_are_averaged_with_their_extremes(run):
    averaged = training_comparison.over_seeds(training_comparison.collect(run, ["base", "both-s0", "both-s1"], "mini"))
    nevir = averaged[averaged.benchmark == "nevir"]
    assert nevir.training.tolist() == ["base", "both"]
    both = nevir.iloc[1]
    assert (both.value, both.low, both.high, both.runs, both.seeds) == (75, 50, 100, 2, "0+1")
    table = training_comparison.wide(averaged).set_index("variant")["NevIR"]
    assert table.tolist() == ["0.0", "75.0 (50.0 – 100.0)"]


def test_an_adapter_was_put_on_what_its_scores_say(run):
    collected = training_comparison.collect(run, ["base", "both-s0", "both-s0+adapter"], "mini")
    assert collected.groupby("encoder").base.first().to_dict() == {
        "base": "base", "both-s0": "base", "both-s0+adapter": "both-s0",
    }  # fmt: skip


def test_only_the_named_benchmarks_are_collected_by_their_main_metrics_with_the_average_of_three(run):
    named = ["nevir", "excluir", "cannot_wmt", "stsb"]
    collected = training_comparison.collect(run, ["both-s0"], "mini", named).set_index("benchmark")
    assert set(collected.index) == {*named, "negation_average"}
    assert collected.metric[["nevir", "cannot_wmt", "stsb"]].tolist() == ["right_rank", "pearson", "spearman"]
    assert collected.value["negation_average"] == pytest.approx((50 + 50 + 100) / 3)


def test_what_was_not_scored_is_named(run):
    wrong = {"needs cannot_wmt, excluir": ("both-s0", ["nevir", "stsb"]), "nobody": ("nobody", [])}
    for message, (name, benchmarks) in wrong.items():
        with pytest.raises(StudyError, match=message):
            training_comparison.collect(run, [name], "mini", benchmarks)


def test_seeds_are_averaged_before_two_trainings_are_compared(run):
    tables = [scoring.load_predictions(run, name, "nevir_mini") for name in ("both-s0", "both-s1")]
    found = training_comparison.change_over_seeds(tables[:1], tables)
    assert (found["before"], found["after"], found["difference"]) == (50, 75, 25)
    assert found["low"] <= 25 <= found["high"] and found["n"] == len(tables[0])
    similar = [scoring.load_predictions(run, name, "stsb_mini") for name in ("base", "both-s0")]
    found = training_comparison.change_over_seeds(similar[:1], similar[1:])
    assert (found["before"], found["after"], found["low"]) == pytest.approx((-100, 100, 200))


def test_the_main_training_was_measured_on_most_items_and_so_was_its_base(tmp_path):
    for name, base in [("small", "base"), ("large", "base"), ("orphan", "unmeasured")]:
        record(tmp_path, name, base=base)
    rows = [("base", "", 900), ("small", "negation", 100), ("large", "both", 200), ("orphan", "hedging", 999)]
    scores = pd.DataFrame([*rows, ("nevir", "nevir", 999)], columns=["system", "trained_on", "n"])
    assert training_comparison.main_training(tmp_path, scores) == ("base", "large")
    assert training_comparison.main_training(tmp_path, scores[scores.system != "base"]) is None
    assert training_comparison.main_training(tmp_path, scores[scores.trained_on == ""]) is None


def test_the_highest_training_is_held_against_its_own_base():
    plane = pd.DataFrame({"training": ["base", "a", "b"], "base": ["base", "b", "base"]})
    plane = plane.assign(**{"negation average": [25.0, 50.0, 40.0], "STSB": [82.0, 71.0, 79.0]})
    said = training_comparison.describe_highest(plane)
    assert said == "a: negation average 40.0 → 50.0, STSB 79.0 → 71.0"


def test_the_rule_takes_the_first_of_the_highest_that_keep_stsb():
    means = pd.DataFrame(
        {"STSB dev": [87.0, 86.1, 86.0, 85.9], training_comparison.NEGATION: [40, 60, 60.4, 70]}, [*"bxyz"]
    )
    assert training_comparison.choose_recipe(means) == "x"


ITEMS = 40


def leave_training(run, name, right, stsb=86.0):
    """A training that has so many of the forty items of one set on negation right, and STSB dev in an order as good as asked."""
    correct = pd.DataFrame({"set": "NevIR mini", "id": [f"i{k}" for k in range(ITEMS)], "cluster": range(ITEMS)})
    correct = correct.assign(correct=[float(k < right) for k in range(ITEMS)])
    gold = np.arange(ITEMS, dtype=float)
    noise = np.random.default_rng(0).normal(size=ITEMS) * (100 - stsb)
    anchors = correct.assign(set="dev anchors", correct=[float(k < 36) for k in range(ITEMS)])
    graded = correct.assign(set="STSB dev", correct=np.nan, similarity=gold + noise, score=gold)
    rows = [("STSB dev", "general", stsb), ("NevIR mini", "negation", 100 * right / ITEMS)]
    rows += [("dev anchors", "negation", 90.0), ("NevIR mini: document cosine", "diagnostic", 99.0)]
    after = pd.DataFrame(rows, columns=["set", "kind", "value"]).assign(alpha=1.0, n=ITEMS)
    before = after.assign(alpha=0.0, value=[86.4, 10.0, 72.0, 99.0])
    record(run, name, variant=name.removesuffix("-s0"), seed=0)
    for table, part in [("alphas", pd.concat([before, after])), ("predictions", pd.concat([correct, anchors, graded]))]:
        artefacts.write_table(part, run / "trainings" / name / f"{table}.csv")


@pytest.fixture
def mixtures(tmp_path):
    leave_training(tmp_path, "mix-s0", 20)
    leave_training(tmp_path, "mix-no-statements-s0", 4)
    leave_training(tmp_path, "mix-no-retention-s0", 36, stsb=80.0)
    return tmp_path


MIXTURES = ["mix-s0", "mix-no-statements-s0", "mix-no-retention-s0"]


def test_the_base_stands_first_and_each_has_the_mean_of_its_sets_on_negation(mixtures):
    scores = training_comparison.dev_scores(mixtures, MIXTURES)
    means = scores[scores.set == training_comparison.NEGATION].set_index("training").value
    assert means.to_dict() == dict(zip(["base", *MIXTURES], [41.0, 70.0, 50.0, 90.0], strict=True))
    assert list(means.index) == ["base", *MIXTURES] and "diagnostic" not in set(scores.kind)


def test_a_change_is_measured_on_the_same_items_and_its_mean_has_an_interval(mixtures):
    moved = training_comparison.dev_changes(mixtures, MIXTURES).set_index(["training", "set"])
    without = moved.loc["mix-no-statements-s0", "NevIR mini"]
    assert (without.difference, without.n) == (-40, ITEMS) and without.low < -40 < without.high < 0
    mean = moved.loc["mix-no-statements-s0", training_comparison.NEGATION]
    halved = (without.difference / 2, without.low / 2, without.high / 2)
    assert (mean.difference, mean.low, mean.high) == pytest.approx(halved), "the other set is as it was"
    assert moved.loc["mix-no-retention-s0", "STSB dev"].difference < 0
