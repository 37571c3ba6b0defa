"""Trainings on several kinds of batches, compared on dev data."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from nblib import artefacts
from nblib.analysis import mixture_study
from nblib.benchmarks.scoring import ScoreError
from nblib.training import dev_scores
from nblib.training.tuning import Tuned

ITEMS = 40


def trained(right, stsb=86.0):
    """A training that has so many of the forty items of one set on negation right, and STSB dev in an order as good as asked."""
    correct = pd.DataFrame({"set": "NevIR mini", "id": range(ITEMS), "cluster": range(ITEMS)})
    correct = correct.assign(id=correct.id.astype(str), correct=[float(k < right) for k in range(ITEMS)])
    gold = np.arange(ITEMS, dtype=float)
    noise = np.random.default_rng(0).normal(size=ITEMS) * (100 - stsb)
    anchors = correct.assign(set=dev_scores.ANCHORS, correct=[float(k < 36) for k in range(ITEMS)])
    graded = correct.assign(set="STSB dev", correct=np.nan, similarity=gold + noise, score=gold)
    rows = [
        ("STSB dev", "general", stsb), ("NevIR mini", "negation", 100 * right / ITEMS), (dev_scores.ANCHORS, "negation", 90.0),
        (dev_scores.KEPT, "diagnostic", 93.0), ("NevIR mini: document cosine", "diagnostic", 99.0),
    ]  # fmt: skip
    after = pd.DataFrame(rows, columns=["set", "kind", "value"]).assign(alpha=1.0, n=ITEMS, metric="accuracy")
    before = after.assign(alpha=0.0, value=[86.4, 10.0, 72.0, 100.0, 99.0])
    predictions = pd.concat([correct, anchors, graded]).reset_index(drop=True)
    tables = {"alphas": pd.concat([before, after]), "predictions": predictions}
    return Tuned(None, SimpleNamespace(about={"alpha": 1.0}, table=tables.get), found=True)


@pytest.fixture
def trainings():
    return {"mix-s0": trained(20), "mix-no-statements-s0": trained(4), "mix-no-retention-s0": trained(36, stsb=80.0)}


def test_the_base_stands_first_and_each_has_the_mean_of_its_sets_on_negation(trainings):
    table = mixture_study.wide(mixture_study.scores(trainings, "base"))
    assert list(table.index) == ["base", *trainings]
    assert table[mixture_study.NEGATION].tolist() == [41.0, 70.0, 50.0, 90.0]
    assert "NevIR mini: document cosine" not in table


def test_the_highest_on_negation_is_chosen_among_those_that_keep_stsb(trainings):
    assert mixture_study.chosen(mixture_study.scores(trainings, "base"), "base") == "mix-s0"
    kept = {**trainings, "mix-no-retention-s0": trained(36, stsb=85.5)}
    assert mixture_study.chosen(mixture_study.scores(kept, "base"), "base") == "mix-no-retention-s0"


def test_a_change_is_measured_on_the_same_items_and_its_mean_has_an_interval(trainings):
    measured = mixture_study.scores(trainings, "base")
    moved = mixture_study.changes(trainings, "mix-s0", measured).set_index(["training", "set"])
    without = moved.loc["mix-no-statements-s0", "NevIR mini"]
    assert (without.before, without.after, without.difference, without.n) == (50, 10, -40, ITEMS)
    assert without.low < -40 < without.high < 0
    mean = moved.loc["mix-no-statements-s0", mixture_study.NEGATION]
    halved = (without.difference / 2, without.low / 2, without.high / 2)
    assert (mean.difference, mean.low, mean.high) == pytest.approx(halved), "the other set is as it was"
    assert moved.loc["mix-no-retention-s0", "STSB dev"].difference < 0
    said = mixture_study.sentence(moved.reset_index())
    assert said == "Without statements the mean of negation changes most: -20.0 points"


def test_the_findings_name_the_chosen_one_and_the_clear_changes(trainings):
    measured = mixture_study.scores(trainings, "base")
    first, second = mixture_study.findings(measured, mixture_study.changes(trainings, "mix-s0", measured), "base")
    assert first.startswith("Of 3 trainings") and "mix-s0 is chosen" in first and "STSB dev 86.4 → 86.0" in first
    assert "mix-no-statements-s0 -20.0 [" in second and "mix-no-retention-s0 +20.0 [" in second


def test_a_training_that_is_not_there_is_named_with_the_command(tmp_path):
    artefacts.write_json(tmp_path / "x.json", {})
    with pytest.raises(ScoreError, match=r"No training mix-s0 in .*Run: snakemake mixtures"):
        mixture_study.load(tmp_path, ["mix-s0"])
