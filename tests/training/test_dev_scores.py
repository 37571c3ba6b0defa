"""Dev scores: what is measured, on which items, and the α they choose."""

import copy

import pandas as pd
import pytest
from support.benchmarks import doors
from support.close import assert_close, close

from nblib import corpora
from nblib.benchmarks import negation_profile, scoring
from nblib.benchmarks.base import DevSet
from nblib.benchmarks.nevir import NevIR
from nblib.benchmarks.stsb import STSB
from nblib.corpora import triples
from nblib.models import embeddings
from nblib.models.systems import BiEncoder
from nblib.training import dev_scores


@pytest.fixture(scope="module")
def anchors():
    return corpora.load("hedgetriple").head(5)


@pytest.fixture
def evaluator(tiny_encoder, anchors, monkeypatch):
    """An evaluator over a sample of STS mini's dev split, NevIR mini and five anchors, for given ids of training items."""
    monkeypatch.setattr(STSB, "dev_sets", (DevSet("stsb_mini", "dev", ("mini",), 20),))
    monkeypatch.setattr(NevIR, "dev_sets", (DevSet("nevir_mini", "test", ("mini",)),))
    load = corpora.load
    monkeypatch.setattr(corpora, "load", lambda name, *split: doors(30) if name == "nevir_mini" else load(name, *split))
    return lambda *ids: dev_scores.DevEvaluator(BiEncoder(tiny_encoder), anchors, ids, "mini")


def by_set(measured):
    assert list(measured.columns) == ["set", "kind", "metric", "value", "n"]
    return measured.set_index("set")


def test_unknown_data_is_refused(tiny_encoder, anchors):
    with pytest.raises(dev_scores.DevDataError, match="Unknown dev data 'paper'; known: mini, official"):
        dev_scores.DevEvaluator(BiEncoder(tiny_encoder), anchors, [], "paper")


def test_every_set_is_a_split_of_a_task_and_none_a_test_set_of_the_official_scale():
    for data in dev_scores.DATA:
        for task, dev in dev_scores.sets(data).values():
            assert dev.split in corpora.describe(task.corpus).splits
            assert data == "mini" or not task.official or dev.split != "test"
    assert all(dev.split != "test" for _, dev in dev_scores.sets("mini").values()), (
        "in quick the miniatures are the tests"
    )


def test_the_sets_stand_in_a_fixed_order():
    assert list(dev_scores.sets("mini")) == ["STSB mini dev"]
    assert list(dev_scores.sets("official")) == [
        "STSB dev", "CANNOT-WMT eval", "NevIR train sample", "NevIR mini", "ExcluIR mini", "SemAntoNeg mini",
        "Contrast passages mini dev", "Exclusions mini dev",
    ]  # fmt: skip
    assert list(dev_scores.sets("nevir")) == ["STSB dev", "NevIR train sample", "NevIR mini"]
    assert {dev.task: dev.most for _, dev in dev_scores.sets("official").values() if dev.most} == {
        "stsb": 750, "cannot_wmt": 500,
    }  # fmt: skip


def test_a_measure_is_what_the_embeddings_say(evaluator, tiny_encoder, anchors):
    measured = by_set(evaluator().measure(tiny_encoder.model))
    assert measured.kind.to_dict() == {
        "STSB mini dev": "general", "NevIR mini": "negation", "NevIR mini: document cosine": "diagnostic",
        "dev anchors": "negation",
    }  # fmt: skip
    pairs = corpora.load("nevir_mini")
    q1, q2, doc1, doc2 = (embeddings.encode(tiny_encoder, pairs[column]) for column in ("q1", "q2", "doc1", "doc2"))
    near = embeddings.similarity
    right = (near(q1, doc1) > near(q1, doc2)) & (near(q2, doc2) > near(q2, doc1))
    assert_close(measured.value["NevIR mini"], 100 * right.mean())
    assert_close(measured.value["NevIR mini: document cosine"], 100 * near(doc1, doc2).mean())
    predicted = negation_profile.predictions(anchors, BiEncoder(tiny_encoder))
    assert_close(measured.value["dev anchors"], 100 * predicted.correct.mean())
    assert measured.n.to_dict() == {
        "STSB mini dev": 20, "NevIR mini": len(pairs), "NevIR mini: document cosine": len(pairs), "dev anchors": 40,
    }  # fmt: skip


def rho(encoder, pairs):
    first, second = (embeddings.encode(encoder, pairs[column]) for column in ("sentence1", "sentence2"))
    return 100 * scoring.correlation("spearman", embeddings.similarity(first, second), pairs.score)


def test_items_trained_on_are_left_out(evaluator, tiny_encoder):
    pairs = corpora.load("stsb_mini", "dev")
    rest = pairs[35:]
    contrasts = corpora.load("nevir_mini")
    measured = by_set(evaluator(*pairs.id[:35], contrasts.id[0]).measure(tiny_encoder.model))
    assert measured.n["STSB mini dev"] == 15
    assert_close(measured.value["STSB mini dev"], rho(tiny_encoder, rest))
    assert measured.n["NevIR mini"] == len(contrasts) - 1


def test_a_sample_is_the_same_every_time(evaluator, tiny_encoder, monkeypatch):
    measured = evaluator().measure(tiny_encoder.model)
    pd.testing.assert_frame_equal(evaluator().measure(tiny_encoder.model), measured)
    pairs = corpora.load("stsb_mini", "dev")
    whole, sample = rho(tiny_encoder, pairs), rho(tiny_encoder, pairs.sample(20, random_state=0))
    assert_close(by_set(measured).value["STSB mini dev"], sample)
    assert not close(sample, whole)
    monkeypatch.setattr(STSB, "dev_sets", (DevSet("stsb_mini", "dev", ("mini",)),))
    assert_close(by_set(evaluator().measure(tiny_encoder.model)).value["STSB mini dev"], whole)


def test_an_equal_copy_measures_the_same_and_leaves_no_embeddings(evaluator, tiny_encoder, fresh_cache):
    twin = copy.deepcopy(tiny_encoder.model)
    measured = evaluator().measure(twin)
    assert not list(fresh_cache.rglob("*.sqlite"))
    pd.testing.assert_frame_equal(evaluator().measure(tiny_encoder.model), measured)
    assert list(fresh_cache.rglob("*.sqlite")), "the base's are kept"
    twin[0].auto_model.encoder.layer[1].output.dense.weight.data.neg_()
    assert not close(evaluator().measure(twin).value, measured.value), "another model is measured anew"


def test_the_table_has_every_epoch_measured(evaluator, tiny_encoder):
    measuring = evaluator()
    first = measuring(tiny_encoder.model, 0)
    measuring(tiny_encoder.model, 1)
    measuring.measure(tiny_encoder.model)  # not on the way: not remembered
    table = measuring.table()
    assert table.epoch.tolist() == [0] * 4 + [1] * 4
    pd.testing.assert_frame_equal(table[table.epoch == 0].drop(columns="epoch"), first)
    assert list(first.columns) == ["set", "kind", "metric", "value", "n"]


@pytest.mark.official
def test_of_nevirs_training_pairs_those_trained_on_are_no_dev_items(tiny_encoder, anchors, monkeypatch):
    sets = {name: entry for name, entry in dev_scores.sets("official").items() if name == "NevIR train sample"}
    monkeypatch.setattr(dev_scores, "sets", lambda data: sets)
    trained = set(triples.training_set(anchors, "NevIR").id)
    measured = by_set(
        dev_scores.DevEvaluator(BiEncoder(tiny_encoder), anchors, trained, "official").measure(tiny_encoder.model)
    )
    assert measured.n["NevIR train sample"] == triples.NEVIR_DEV


def test_a_system_that_says_only_which_text_is_nearer_is_asked_no_correlations(tiny_encoder, anchors, evaluator):
    graded = evaluator()
    choices_only = dev_scores.DevEvaluator(BiEncoder(tiny_encoder), anchors, [], "mini", graded=False)
    expected = graded.measure(tiny_encoder.model)
    measured = choices_only.measure(tiny_encoder.model)
    assert measured.set.tolist() == ["NevIR mini", "NevIR mini: document cosine", "dev anchors"]
    pd.testing.assert_frame_equal(measured, expected[expected.set != "STSB mini dev"].reset_index(drop=True))


# --- the choice of α --------------------------------------------------------------------------------------------------


def curve(general, negation=50.0):
    """A curve of one general and one negation set over α = 0, 0.25, …"""
    rows = [
        {"alpha": 0.25 * place, "set": name, "kind": kind, "value": value}
        for place, score in enumerate(general)
        for name, kind, value in [("STS", "general", score), ("NevIR", "negation", negation)]
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=0)


@pytest.mark.parametrize(
    ("general", "budget", "alpha"),
    [
        ([80, 79, 77.5, 76, 70], 3, 0.5),
        ([80, 79, 77, 76, 70], 3, 0.5),  # at the budget itself
        ([80, 76, 78, 76, 70], 3, 0.5),  # the largest within, whatever lies before it
        ([80, 81, 82, 83, 84], 0, 1.0),  # nothing lost
        ([80, 70, 60, 50, 40], 3, 0.25),  # none within: the smallest above 0
        ([80, 70, 60, 50, 0], 100, 1.0),
    ],
)
def test_the_largest_alpha_within_the_budget_is_chosen(general, budget, alpha):
    assert dev_scores.choose_alpha(curve(general), budget) == alpha


def test_only_general_scores_count_and_their_mean_does():
    table = curve([80, 79, 70], negation=50)
    table.loc[(table.kind == "negation") & (table.alpha > 0), "value"] = 0
    assert dev_scores.choose_alpha(table, 3) == 0.25
    other = table[table.kind == "general"].assign(set="other", value=lambda rows: 80 + 20 * rows.alpha)
    assert dev_scores.choose_alpha(pd.concat([table, other]), 3) == 0.5  # means: 80, 82, 80
