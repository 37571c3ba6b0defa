"""Dev scores: what is measured, on which items, and the α they choose."""

import copy

import pandas as pd
import pytest
from support.benchmarks import doors
from support.close import assert_close, close

from nblib import corpora
from nblib.benchmarks import scoring
from nblib.benchmarks.base import DevSet
from nblib.benchmarks.negation_profile import NegationProfile
from nblib.benchmarks.nevir import NevIR
from nblib.benchmarks.stsb import STSB
from nblib.corpora import triples
from nblib.models import embeddings
from nblib.models.systems import BiEncoder
from nblib.training import dev_scores


@pytest.fixture(scope="module")
def anchors():
    return corpora.load("authored_triples").head(5)


@pytest.fixture
def evaluator(tiny_encoder, anchors, monkeypatch):
    """An evaluator over a sample of STS mini's dev split, NevIR mini and five anchors, for given ids of training items."""
    monkeypatch.setattr(STSB, "dev_sets", (DevSet("dev", ("mini",), form="mini", most=20),))
    monkeypatch.setattr(NevIR, "dev_sets", (DevSet("test", ("mini",), form="mini"),))
    load = corpora.load
    monkeypatch.setattr(corpora, "load", lambda name, *split: doors(30) if name == "nevir_mini" else load(name, *split))
    return lambda *ids: dev_scores.DevEvaluator(BiEncoder(tiny_encoder), anchors, ids, "mini")


def by_set(measured):
    assert list(measured.columns) == ["set", "kind", "value", "n"]
    return measured.set_index("set")


def test_no_dev_set_is_a_test_set_of_its_scale(tiny_encoder, anchors):
    with pytest.raises(ValueError, match=r"No dev data called 'paper'\. Known: mini, official"):
        dev_scores.DevEvaluator(BiEncoder(tiny_encoder), anchors, [], "paper")
    for data in ("mini", "official", "nevir"):
        for benchmark, dev in dev_scores.sets(data).values():
            assert dev.split in corpora.describe(benchmark.corpus).splits
            tested = not benchmark.official if data == "mini" else benchmark.official
            assert not (tested and dev.split == "test")


def test_a_measure_is_what_the_embeddings_say(evaluator, tiny_encoder, anchors):
    measured = by_set(evaluator().measure(tiny_encoder.model))
    kinds = {"STSB mini dev": "general", "NevIR mini": "negation", "NevIR mini: document cosine": "diagnostic"}
    assert measured.kind.to_dict() == kinds | {"dev anchors": "negation"}
    pairs = corpora.load("nevir_mini")
    q1, q2, doc1, doc2 = (embeddings.encode(tiny_encoder, pairs[column]) for column in ("q1", "q2", "doc1", "doc2"))
    near = embeddings.similarity
    right = (near(q1, doc1) > near(q1, doc2)) & (near(q2, doc2) > near(q2, doc1))
    assert_close(measured.value["NevIR mini"], 100 * right.mean())
    assert_close(measured.value["NevIR mini: document cosine"], 100 * near(doc1, doc2).mean())
    predicted = NegationProfile().predict(BiEncoder(tiny_encoder), NegationProfile.of_anchors(anchors))
    assert_close(measured.value["dev anchors"], 100 * predicted.correct.mean())
    pairwise = {"NevIR mini": len(pairs), "NevIR mini: document cosine": len(pairs)}
    assert measured.n.to_dict() == {"STSB mini dev": 20, "dev anchors": 40} | pairwise


def rho(encoder, pairs):
    first, second = (embeddings.encode(encoder, pairs[column]) for column in ("sentence1", "sentence2"))
    return 100 * scoring.point(pairs.assign(similarity=embeddings.similarity(first, second)))


def test_items_trained_on_are_left_out(evaluator, tiny_encoder):
    pairs, contrasts = corpora.load("stsb_mini", "dev"), corpora.load("nevir_mini")
    measured = by_set(evaluator(*pairs.id[:35], contrasts.id[0]).measure(tiny_encoder.model))
    assert measured.n["STSB mini dev"] == 15
    assert_close(measured.value["STSB mini dev"], rho(tiny_encoder, pairs[35:]))
    assert measured.n["NevIR mini"] == len(contrasts) - 1


def test_a_sample_is_the_same_every_time(evaluator, tiny_encoder, monkeypatch):
    measured = evaluator().measure(tiny_encoder.model)
    pd.testing.assert_frame_equal(evaluator().measure(tiny_encoder.model), measured)
    pairs = corpora.load("stsb_mini", "dev")
    whole, sample = rho(tiny_encoder, pairs), rho(tiny_encoder, pairs.sample(20, random_state=0))
    assert_close(by_set(measured).value["STSB mini dev"], sample)
    assert not close(sample, whole)
    monkeypatch.setattr(STSB, "dev_sets", (DevSet("dev", ("mini",), form="mini"),))
    assert_close(by_set(evaluator().measure(tiny_encoder.model)).value["STSB mini dev"], whole)


def test_an_equal_copy_measures_the_same_and_leaves_no_embeddings(evaluator, tiny_encoder, fresh_cache):
    twin = copy.deepcopy(tiny_encoder.model)
    measured = evaluator().measure(twin)
    assert not list(fresh_cache.rglob("*.sqlite"))
    pd.testing.assert_frame_equal(evaluator().measure(tiny_encoder.model), measured)
    assert list(fresh_cache.rglob("*.sqlite")), "the base's are kept"
    twin[0].auto_model.encoder.layer[1].output.dense.weight.data.neg_()
    assert not close(evaluator().measure(twin).value, measured.value), "another model is measured anew"


@pytest.mark.official
def test_of_nevirs_training_pairs_those_trained_on_are_no_dev_items(tiny_encoder, anchors, monkeypatch):
    sets = {name: entry for name, entry in dev_scores.sets("official").items() if name == "NevIR train sample"}
    monkeypatch.setattr(dev_scores, "sets", lambda data: sets)
    trained = set(triples.training_set(anchors, "nevir").id)
    measure = dev_scores.DevEvaluator(BiEncoder(tiny_encoder), anchors, trained, "official").measure
    measured = by_set(measure(tiny_encoder.model))
    assert measured.n["NevIR train sample"] == triples.NEVIR_DEV


def curve(general):
    """A curve of one general and one negation set over α = 0, 0.25, …"""
    rows = [
        {"alpha": 0.25 * place, "set": name, "kind": kind, "value": value}
        for place, score in enumerate(general)
        for name, kind, value in [("STS", "general", score), ("NevIR", "negation", 50.0 * (place == 0))]
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
    ],
)
def test_the_largest_alpha_within_the_budget_is_chosen(general, budget, alpha):
    assert dev_scores.choose_alpha(curve(general), budget) == alpha


def test_the_mean_of_general_scores_counts():
    table = curve([80, 79, 70])
    other = table[table.kind == "general"].assign(set="other", value=lambda rows: 80 + 20 * rows.alpha)
    assert dev_scores.choose_alpha(pd.concat([table, other]), 3) == 0.5  # means: 80, 82, 80
