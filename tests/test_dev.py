"""Dev scores: what is measured, on which items, and the α they choose."""

import copy

import numpy as np
import pandas as pd
import pytest

from nblib import corpora, dev, embeddings, negation_profile, scores, tasks, triples

TRAINED_ON_NOTHING = pd.DataFrame({"id": []})


@pytest.fixture(scope="module")
def anchors():
    return corpora.load("hedgetriple").head(5)


@pytest.fixture
def watch(tiny_encoder, anchors, monkeypatch):
    """A watch over a sample of STS mini's dev split, NevIR mini and five anchors, for given ids of training items."""
    sets = {"STSB mini dev": ("STSBMini", "dev", 20), "NevIR mini": ("NevIRMini", "test", None)}
    monkeypatch.setattr(dev, "SETS", {"mini": sets})
    return lambda *ids: dev.Watch(tiny_encoder, anchors, pd.DataFrame({"id": ids}), "mini")


def by_set(measured):
    assert list(measured.columns) == ["set", "kind", "value", "n"]
    return measured.set_index("set")


def test_unknown_data_is_refused(tiny_encoder, anchors):
    with pytest.raises(ValueError, match="Unknown dev data 'paper'; known: mini, official"):
        dev.Watch(tiny_encoder, anchors, TRAINED_ON_NOTHING, "paper")


def test_every_set_is_a_split_of_a_task_and_none_a_test_set_of_the_official_scale():
    for data, sets in dev.SETS.items():
        for task_name, split, _ in sets.values():
            corpus = corpora.describe(tasks.get(task_name).corpus)
            assert split in corpus.splits
            assert data == "mini" or not corpus.official or split != "test"
    assert all(split != "test" for _, split, _ in dev.SETS["mini"].values()), "in quick the miniatures are the tests"


def test_a_measure_is_what_the_embeddings_say(watch, tiny_encoder, anchors):
    measured = by_set(watch().measure(tiny_encoder.model))
    assert measured.kind.to_dict() == {
        "STSB mini dev": "general", "NevIR mini": "negation", "NevIR mini: document cosine": "diagnostic",
        "dev anchors": "negation",
    }  # fmt: skip
    pairs = corpora.load("nevir_mini")
    q1, q2, doc1, doc2 = (embeddings.encode(tiny_encoder, pairs[column]) for column in ("q1", "q2", "doc1", "doc2"))
    near = embeddings.similarity
    right = (near(q1, doc1) > near(q1, doc2)) & (near(q2, doc2) > near(q2, doc1))
    assert measured.value["NevIR mini"] == pytest.approx(100 * right.mean())
    assert measured.value["NevIR mini: document cosine"] == pytest.approx(100 * near(doc1, doc2).mean())
    judged = negation_profile.predictions(anchors, tiny_encoder)
    assert measured.value["dev anchors"] == pytest.approx(100 * judged.correct.mean())
    assert measured.n.to_dict() == {
        "STSB mini dev": 20, "NevIR mini": len(pairs), "NevIR mini: document cosine": len(pairs), "dev anchors": 40,
    }  # fmt: skip


def rho(encoder, pairs):
    first, second = (embeddings.encode(encoder, pairs[column]) for column in ("sentence1", "sentence2"))
    return 100 * scores.spearman(embeddings.similarity(first, second), pairs.score)


def test_items_trained_on_are_left_out(watch, tiny_encoder):
    pairs = corpora.load("sts_mini", "dev")
    rest = pairs[35:]
    contrasts = corpora.load("nevir_mini")
    measured = by_set(watch(*pairs.id[:35], contrasts.id[0]).measure(tiny_encoder.model))
    assert measured.n["STSB mini dev"] == 15
    assert measured.value["STSB mini dev"] == pytest.approx(rho(tiny_encoder, rest))
    assert measured.n["NevIR mini"] == len(contrasts) - 1


def test_a_sample_is_the_same_every_time(watch, tiny_encoder, monkeypatch):
    measured = watch().measure(tiny_encoder.model)
    pd.testing.assert_frame_equal(watch().measure(tiny_encoder.model), measured)
    pairs = corpora.load("sts_mini", "dev")
    whole, sample = rho(tiny_encoder, pairs), rho(tiny_encoder, pairs.sample(20, random_state=0))
    assert by_set(measured).value["STSB mini dev"] == pytest.approx(sample)
    assert sample != pytest.approx(whole)
    monkeypatch.setitem(dev.SETS["mini"], "STSB mini dev", ("STSBMini", "dev", None))
    assert by_set(watch().measure(tiny_encoder.model)).value["STSB mini dev"] == pytest.approx(whole)


def test_an_equal_copy_measures_the_same_and_leaves_no_embeddings(watch, tiny_encoder, fresh_cache):
    twin = copy.deepcopy(tiny_encoder.model)
    measured = watch().measure(twin)
    assert not list(fresh_cache.rglob("*.sqlite"))
    pd.testing.assert_frame_equal(watch().measure(tiny_encoder.model), measured, rtol=1e-6)
    assert list(fresh_cache.rglob("*.sqlite")), "the base's are kept"
    twin[0].auto_model.encoder.layer[1].output.dense.weight.data.neg_()
    assert not np.allclose(watch().measure(twin).value, measured.value), "another model is measured anew"


def test_the_table_has_every_epoch_measured(watch, tiny_encoder):
    watcher = watch()
    first = watcher(tiny_encoder.model, 0)
    watcher(tiny_encoder.model, 1)
    watcher.measure(tiny_encoder.model)  # not on the way: not remembered
    table = watcher.table()
    assert table.epoch.tolist() == [0] * 4 + [1] * 4
    pd.testing.assert_frame_equal(table[table.epoch == 0].drop(columns="epoch"), first)
    assert list(first.columns) == ["set", "kind", "value", "n"]


@pytest.mark.official
def test_of_nevirs_training_pairs_those_trained_on_are_no_dev_items(tiny_encoder, anchors, monkeypatch):
    sets = {name: entry for name, entry in dev.SETS["official"].items() if name == "NevIR train sample"}
    monkeypatch.setattr(dev, "SETS", {"official": sets})
    trained = triples.training_set(anchors, "NevIR")
    measured = by_set(dev.Watch(tiny_encoder, anchors, trained, "official").measure(tiny_encoder.model))
    assert measured.n["NevIR train sample"] == triples.NEVIR_DEV


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
    assert dev.choose_alpha(curve(general), budget) == alpha


def test_only_general_scores_count_and_their_mean_does():
    table = curve([80, 79, 70], negation=50)
    table.loc[(table.kind == "negation") & (table.alpha > 0), "value"] = 0
    assert dev.choose_alpha(table, 3) == 0.25
    other = table[table.kind == "general"].assign(set="other", value=lambda rows: 80 + 20 * rows.alpha)
    assert dev.choose_alpha(pd.concat([table, other]), 3) == 0.5  # means: 80, 82, 80
