"""Small cross-encoders: trained on classes or on hedge against negation, left as folders that rank."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from encoders import toy_triples

from nblib import cross_training, negation_profile, rankers, ranking, scores, triples
from nblib.checkpoints import FinetuningError


def toy_table(classes):
    """Pairs that are told apart by one word: green is right, red is wrong (and for classes, a cat is neither)."""
    words = {0: "green", 1: "cat", 2: "red"} if classes else {1.0: "green", 0.0: "red"}
    rows = [(f"the door of house {k}", f"it is {word} {k}", label) for k in range(12) for label, word in words.items()]
    return pd.DataFrame(rows, columns=["query", "document", "label"])


@pytest.fixture
def from_toys(monkeypatch):
    monkeypatch.setattr(cross_training, "judgements", lambda source, _: toy_table(source == "snli"))


def test_it_leaves_a_folder_that_ranks(toy, from_toys, tmp_path):
    folder = cross_training.run("triples", replace(toy, epochs=1), tmp_path, "unread", size=8)
    assert folder == tmp_path / "encoders" / "cross-triples"
    ranker = rankers.load(str(folder))
    assert (type(ranker), ranker.name) == (rankers.Cross, "cross-triples")
    assert ranker.score(["the door"] * 2, ["it is green", "it is red"]).shape == (2,)
    assert not (tmp_path / "checkpoints" / "cross-triples").exists()
    about = json.loads((tmp_path / "encoders" / "cross-triples.json").read_text())
    assert (about["base"], about["pairs"], about["seed"]) == (toy.base, 8, 0)


@pytest.mark.parametrize(("classes", "right", "wrong"), [(False, 1.0, 0.0), (True, 0, 2)])
def test_what_is_called_right_is_ranked_above_what_is_called_wrong(classes, right, wrong, toy, tmp_path):
    table = toy_table(classes)
    scored = {}
    for label in (right, wrong):
        model = cross_training.train(replace(toy, epochs=4), table.assign(label=label), tmp_path)
        scored[label] = rankers.Cross(model, "toy", "here").score(table["query"], table.document)
    assert (scored[right] > scored[wrong]).all()


def test_seed_decides(toy, tmp_path):
    table, settings = toy_table(classes=False), replace(toy, epochs=1)
    scored = [
        cross_training.train(replace(settings, seed=seed), table, tmp_path).predict([("the door", "not open")])[0]
        for seed in (0, 0, 1)
    ]
    assert scored[0] == scored[1] != scored[2]


def test_what_it_leaves_is_ranked_on_a_benchmark(toy, from_toys, tmp_path):
    folder = cross_training.run("snli", replace(toy, epochs=1), tmp_path, "unread", size=6)
    ranking.rank(rankers.load(str(folder)), ["SemAntoNegMini"], tmp_path)
    assert len(scores.load_predictions(tmp_path, "cross-snli", "SemAntoNegMini")) > 50


def test_a_hedge_is_right_a_negation_wrong_and_what_is_held_out_stays_out(tmp_path, monkeypatch):
    table = toy_triples(3)
    monkeypatch.setattr(triples, "load_anchors", lambda file: file)
    monkeypatch.setattr(triples, "training_set", lambda anchors, recipe: table)
    pairs = cross_training.judgements("triples", "anchors")
    assert pairs.label.value_counts().to_dict() == {0.0: 12, 1.0: 6}, "four negations and two hedges, each once"
    hedged = pairs[pairs.label == 1]
    assert set(zip(hedged["query"], hedged.document, strict=True)) == set(
        zip(table.anchor, table.positive, strict=True)
    )
    assert not set(pairs.document[pairs.label == 0]) & set(table.positive)


def test_held_out_anchors_are_refused(tmp_path):
    columns = ["anchor", "entailment", *negation_profile.NEGATIONS, *negation_profile.HEDGES]
    held_out = sorted(negation_profile.held_out())[0]
    file = tmp_path / "anchors.parquet"
    pd.DataFrame([{"id": held_out, "split": "train", **dict.fromkeys(columns, "a text")}]).to_parquet(file)
    with pytest.raises(triples.TripleError, match="would train on 1 held-out anchors"):
        cross_training.judgements("triples", file)


def test_a_base_without_a_transformer_is_refused(toy, tmp_path, monkeypatch):
    class Bare:
        model = object()

    monkeypatch.setattr(cross_training.models, "load", lambda name: Bare())
    with pytest.raises(FinetuningError, match="no text encoder with trainable transformer weights"):
        cross_training.train(toy, toy_table(classes=True), tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [("snli", "No anchors: set NBLIB_DATA"), ("triples", "No anchors at .*triples/anchors.parquet")],
)
def test_without_data_the_command_ends_with_one_line(source, message, tmp_path):
    with pytest.raises(SystemExit, match=f"error: {message}"):
        cross_training.main([source, "--run-dir", str(tmp_path)])
    assert not (tmp_path / "encoders").exists()
