"""What a training learns from: triples, pairs, and several kinds of batches at once."""

import gzip
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import yaml

from nblib import corpora, paths
from nblib.corpora import authored, triples
from nblib.errors import StudyError
from nblib.training import data
from nblib.training.data import Kind
from nblib.workflow import run_notebook, sweeps

RECIPE = yaml.safe_load((paths.PROJECT_ROOT / "config/trainings/hedge-3.yaml").read_text())


@pytest.fixture(scope="module")
def split_anchors():
    return triples.split(corpora.load("authored_triples"), dev=50)


@pytest.fixture(scope="module")
def mixture(split_anchors):
    kinds = {name: Kind(**own) for name, own in RECIPE["kinds"].items()}
    return data.load(RECIPE["training_data"], split_anchors, kinds=kinds, size=RECIPE["size"])


def test_the_recipe_for_any_encoder_is_that_of_the_one_that_ships():
    run_notebook.check_parameters(paths.NOTEBOOKS / "04_encoder_training.ipynb", RECIPE)
    config = yaml.safe_load((paths.PROJECT_ROOT / "config/official.yaml").read_text())
    shipped = sweeps.declared(config)["mpnet-two-epochs-s0"]
    del shipped["kinds"]["retention"]["sizes"]["general"]  # needs the official folder
    assert RECIPE.items() <= shipped.items()


def test_of_triples_anchors_are_counted_and_kept_out_of_dev_data(split_anchors):
    learnt = data.load("verbal", split_anchors, size=5)
    assert (learnt.items, len(learnt.datasets["statements"])) == (5, 10)
    assert learnt.seen == set(split_anchors.id[:5])


def test_for_a_cross_encoder_size_counts_labelled_pairs(split_anchors):
    learnt = data.load("both", split_anchors, "cross-entropy", size=20, seed=3)
    assert (learnt.items, Counter(learnt.datasets["statements"]["label"])) == (20, {0.0: 10, 1.0: 10})


@pytest.mark.parametrize(
    ("name", "loss", "kinds", "message"),
    [
        ("everything", "in-batch", {}, "No training data called 'everything'"),
        ("both", "cosent", {}, "layout 'scored' can't learn from these texts"),
        ("mixture", "in-batch", {}, "A mixture, and it alone, needs kinds"),
        ("both", "in-batch", {"contrast": {"loss": "in-batch"}}, "A mixture, and it alone"),
        ("mixture", "in-batch", {"statement": {"loss": "in-batch"}}, "No kind of batch called 'statement'"),
        ("mixture", "in-batch", {"contrast": {"loss": "twin"}}, "No loss called 'twin'"),
        ("mixture", "in-batch", {"contrast": {"loss": "in-batch", "weight": 0}}, "weight must be above 0"),
        ("mixture", "in-batch", {"retention": {"loss": "retention", "sizes": {"poems": 3}}}, "called 'poems'"),
        ("mixture", "in-batch", {"retention": {"loss": "retention", "sizes": {"authored": 10**6}}}, "not 1000000"),
        ("mixture", "in-batch", {"retention": {"loss": "retention"}}, "Retention has no sizes"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(name, loss, kinds, message, split_anchors):
    with pytest.raises(StudyError, match=message):
        data.load(name, split_anchors, loss, {kind: Kind(**own) for kind, own in kinds.items()})


A, B, C = "A dog runs on the grass.", "Two women are singing.", "A man sleeps."
SNLI = {
    "snli_dev": [
        (A, "An animal moves.", 0),
        (A, "The dog is asleep.", 2),
        (A, "The dog chases a ball.", 1),
        (A, "It runs.", 0),
        (B, "Women sing.", 0),
        (B, "Women sing.", 0),
    ],
    "snli_test": [(C, C, 0), (C, "A man is awake.", 2), (B, "Nobody sings.", 2)],
}


@pytest.fixture
def at_hand(tmp_path, monkeypatch):
    """A data folder with a small SNLI."""
    (tmp_path / "anchors").mkdir()
    for name, rows in SNLI.items():
        with gzip.open(tmp_path / "anchors" / f"{name}.jsonl.gz", "wt") as lines:
            for premise, hypothesis, label in rows:
                lines.write(json.dumps({"premise": premise, "hypothesis": hypothesis, "label": label}) + "\n")
    monkeypatch.setenv("NBLIB_DATA", str(tmp_path))


def test_a_draw_has_equally_many_of_each_source_and_none_twice():
    table = pd.DataFrame({"text": range(30), "source": [*"a" * 18, *"b" * 12]})
    drawn = data.sample(table, 21, 3)
    assert Counter(drawn.source) == {"a": 10, "b": 10} and drawn.text.is_unique
    pd.testing.assert_frame_equal(drawn, data.sample(table, 21, 3))
    for size in (1, 26):
        with pytest.raises(StudyError, match=f"12 pairs or more each, {size} can't"):
            data.sample(table, size, 3)


def test_a_premise_needs_both_an_entailed_and_a_contradicting_sentence(at_hand, split_anchors):
    table = data.nli().set_index("anchor")
    assert set(table.index) == {A, B}, "C entails only itself"
    assert table.loc[A, ["positive_1", "negative_1"]].tolist() == ["An animal moves.", "The dog is asleep."]
    assert table.loc[B, ["positive_1", "negative_1"]].tolist() == ["Women sing.", "Nobody sings."]
    assert data.snli_classes().label.tolist() == [0, 2, 1, 0, 0, 0, 2, 2], "both files, each pair once"
    learnt = data.load("nli", split_anchors, size=1, seed=2)
    assert (learnt.items, learnt.seen) == (1, set())
    assert learnt.datasets["pairs"].column_names == ["anchor", "positive_1", "negative_1"]


@pytest.mark.official
def test_every_family_has_pairs_enough_at_hand():
    nli, stsb, paraphrases = data.nli(), data.stsb(), data.paraphrases()
    assert len(nli) > 5000 and nli.anchor.is_unique and not (nli.anchor == nli.positive_1).any()
    assert len(stsb) == 5749 and stsb.score.between(0, 1).all()
    assert set(paraphrases.source) == set(data.PARAPHRASED) and paraphrases.source.value_counts().min() >= 667
    assert (paraphrases.anchor != paraphrases.positive_1).all()
    assert {*data.cannot().anchor}.isdisjoint(corpora.load("cannot_wmt", "test").reference)


def test_every_kind_has_its_size_and_its_layout(mixture, split_anchors):
    parts, train = mixture.datasets, split_anchors[split_anchors.split == "train"]
    assert (mixture.items, mixture.seen, len(parts["statements"])) == (None, set(train.id), 2 * len(train))
    assert parts["contrast"].column_names == ["anchor", "twin", "positive", "negative"]
    assert len(parts["exclusions"]) == 2 * len(authored.exclusions("train")), "each twice an epoch"
    assert len(parts["retention"]) == 2000 // 4 and len(parts["retention"].column_names) == 8


def test_no_held_out_text_is_used_for_retention(mixture, split_anchors):
    apart = split_anchors[split_anchors.split != "train"]
    held_out = {*apart.anchor, *authored.contrast_passages("test").anchor, *authored.exclusions("test").anchor}
    assert held_out.isdisjoint(text for row in mixture.datasets["retention"] for text in row.values())


@pytest.mark.parametrize(("loss", "queries"), [("cross-entropy", 4), ("in-batch MaxSim", 2)])
def test_other_architectures_take_the_mixture_too(loss, queries, split_anchors):
    contrast, exclusions = authored.contrast_passages("train"), authored.exclusions("train")
    kinds = {"contrast": Kind(loss), "exclusions": Kind(loss, share=3 / len(exclusions))}
    parts = data.load("mixture", split_anchors, kinds=kinds).datasets
    assert len(parts["contrast"]) == queries * len(contrast) and len(parts["exclusions"]) == 3 * queries
    assert np.all([len(part.column_names) == 3 for part in parts.values()])
