"""Several kinds of batches at once: what a configuration may say, which examples it gives, and what retention retains."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset, DatasetDict
from support.encoders import toy_triples
from torch.utils.data import ConcatDataset

from nblib import corpora
from nblib.corpora import pairs, retention, triples, twins
from nblib.models.folders import FinetuningError
from nblib.training import batches, mixture, trainer
from nblib.training.mixture import Kind

KINDS = {
    "statements": {"loss": "symmetric-supcon", "repeats": 2, "share": 0.25},
    "contrast": {"loss": "twins", "share": 0.1},
    "exclusions": {"loss": "in-batch"},
    "retention": {"loss": "retention", "weight": 0.3, "sizes": {"authored": 100, "definitions": 101}},
}


@pytest.fixture(scope="module")
def split_anchors():
    return triples.split(corpora.load("hedgetriple"), dev=50)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"statement": {"loss": "twins"}}, "Unknown kind of batch statement; known: statements, contrast"),
        ({"contrast": {"loss": "twin"}}, "Unknown loss 'twin'"),
        ({"contrast": {"loss": "twins", "weigth": 2}}, "takes the settings loss, weight, repeats.*weigth"),
        ({"contrast": {"weight": 2}}, "takes the settings loss, weight.*loss"),
        ({"retention": {"loss": "retention", "share": 0.5}}, "retention takes no share. Leave it out"),
        ({"contrast": {"loss": "twins", "weight": 0}}, "To do without a kind, leave it out"),
        ({"contrast": {"loss": "twins", "share": 1.5}}, "a share up to 1, not 1.0, 1 and 1.5"),
    ],
)
def test_a_configuration_that_means_nothing_is_refused(kinds, message):
    with pytest.raises(FinetuningError, match=message):
        mixture.read(kinds)


def test_a_loss_of_another_layout_is_refused(split_anchors):
    kinds = mixture.read({"contrast": {"loss": "symmetric-supcon"}})
    with pytest.raises(FinetuningError, match="contrast can't be laid out as an anchor, all its positives"):
        mixture.data_sets(kinds, split_anchors, 0)


def test_every_kind_has_its_share_and_its_layout(split_anchors):
    data = mixture.data_sets(mixture.read(KINDS), split_anchors, 0)
    train = split_anchors[split_anchors.split == "train"]
    assert len(data["statements"]) == 2 * round(0.25 * len(train))
    assert data["contrast"].column_names == ["anchor", "twin", "positive", "negative"]
    assert len(data["contrast"]) == 64
    assert len(data["exclusions"]) == 2 * len(twins.exclusions("train")), "two triples an item"
    assert len(data["retention"]) == 201 // 4
    assert len(data["retention"].column_names) == 8


def test_a_smaller_share_lies_within_a_larger_one(split_anchors):
    quarter, half = (
        set(mixture.data_sets({"contrast": Kind("twins", share=share)}, split_anchors, 0)["contrast"]["anchor"])
        for share in (0.25, 0.5)
    )
    assert quarter < half


def test_contrast_passages_can_be_of_one_kind_of_negation(split_anchors):
    data = mixture.data_sets({"contrast": Kind("twins", only="affixal")}, split_anchors, 0)["contrast"]
    table = twins.contrast("train")
    assert set(data["anchor"]) == set(table.anchor[table.negation == "affixal"])


def test_contrast_passages_can_be_negated_by_rule(split_anchors):
    data = mixture.data_sets({"contrast": Kind("twins", only="rule-based")}, split_anchors, 0)["contrast"].to_pandas()
    authored = twins.contrast("train")
    assert 300 < len(data) < len(authored), "what can't be negated plainly is left out"
    assert set(data.positive) < {*authored.positive, *authored.negative}
    assert set(data.anchor) < {*authored.anchor, *authored.twin}
    assert (data.anchor != data.twin).all() and (data.positive != data.negative).all()
    gazette = data[data.anchor.str.contains("Hagop Terzian")].iloc[0]
    assert gazette.twin == "What reason didn't Hagop Terzian give for taking the official gazette contract?"
    assert "Terzian accepted within" in gazette.positive and "Terzian didn't accept within" in gazette.negative


@pytest.mark.parametrize("read", [twins.contrast, twins.exclusions])
def test_no_item_is_in_two_splits(read):
    parts = {split: read(split) for split in ("train", "dev", "test")}
    texts = {split: {*part.anchor, *part.twin, *part.positive, *part.negative} for split, part in parts.items()}
    assert texts["train"].isdisjoint(texts["dev"] | texts["test"])
    assert texts["dev"].isdisjoint(texts["test"])
    assert all(len(part) for part in parts.values())


def test_texts_for_retention_have_each_kind_in_equal_shares(split_anchors):
    table = retention.texts({"authored": 60, "definitions": 200}, split_anchors, 0)
    assert list(table.columns) == retention.COLUMNS
    defined = table[table.source != "anchors"].source.value_counts()
    assert defined.max() - defined.min() <= 1
    assert (table.anchor != table.related).all()
    again = retention.texts({"authored": 60, "definitions": 200}, split_anchors, 0)
    pd.testing.assert_frame_equal(table, again)


def test_no_held_out_text_is_used_for_retention(split_anchors):
    table = pd.concat([retention.texts({"authored": 500}, split_anchors, 0), retention.passages()])
    apart = split_anchors[split_anchors.split != "train"]
    held_out = {*apart.anchor, *twins.contrast("test").anchor, *twins.exclusions("test").anchor}
    assert held_out.isdisjoint(table.anchor)


def test_queries_are_held_to_their_passages_one_pair_an_example(split_anchors):
    data = mixture.data_sets(mixture.read({"passages": {"loss": "retention", "share": 0.5}}), split_anchors, 0)[
        "passages"
    ]
    assert data.column_names == ["anchor", "text_2"]
    pairs_of = retention.passages().set_index("anchor").related
    assert len(data) == round(len(pairs_of) / 2)
    assert all(pairs_of[row["anchor"]] == row["text_2"] for row in data)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [({"poems": 3}, "Unknown texts for retention: poems"), ({"authored": 10**6}, "not 1000000. Ask for fewer")],
)
def test_texts_that_are_not_there_are_refused(split_anchors, sizes, message):
    with pytest.raises(pairs.PairError, match=message):
        retention.texts(sizes, split_anchors, 0)


def test_groups_are_of_similar_length_and_keep_pairs_together():
    lengths = np.random.default_rng(0).permutation(range(1, 23))
    table = pd.DataFrame({"anchor": ["a" * n for n in lengths], "related": ["b" * n for n in lengths]})
    rows = batches.groups(table).to_numpy()
    assert rows.shape == (5, 8), "twenty of 22 pairs, four an example"
    for row in rows:
        assert [len(text) for text in row[::2]] == [len(text) for text in row[1::2]]
    assert max(map(len, rows[0])) == 4


def test_retention_holds_the_cosines_to_the_bases(toy, tiny_encoder, tmp_path):
    """Trained on triples alone the cosines move; with retention beside it they move less."""
    statements = Dataset.from_pandas(batches.LAYOUTS["anchor"].form(toy_triples(6)), preserve_index=False)
    texts = [
        f"the {thing} is {state}" for thing in ("dog", "cat", "house", "door") for state in ("red", "green", "open")
    ]
    table = pd.DataFrame({"anchor": texts, "related": texts[1:] + texts[:1]})
    kept = Dataset.from_pandas(batches.groups(table), preserve_index=False)
    settings = replace(toy, method="lora", loss="symmetric-supcon", learning_rate=2e-3, epochs=12)
    alone, _ = trainer.train("bi-encoder", settings, DatasetDict(statements=statements), tmp_path / "alone")
    kinds = {"statements": Kind("symmetric-supcon"), "retention": Kind("retention", weight=3.0)}
    both, history = trainer.train(
        "bi-encoder", replace(settings, kinds=kinds, dropout=False), DatasetDict(statements=statements, retention=kept),
        tmp_path / "both",
    )  # fmt: skip

    def moved(model):
        now, before = (torch.tensor(one.encode(texts)) for one in (model, tiny_encoder.model))
        cosines = [torch.cosine_similarity(side[:, None], side[None], dim=2) for side in (now, before)]
        return float((cosines[0] - cosines[1]).abs().mean())

    assert moved(both) < moved(alone)
    assert np.isfinite(history.loss).all()


def test_settings_of_one_loss_are_described_as_before_there_were_kinds(toy):
    assert "kinds" not in toy.described()
    mixed = replace(toy, kinds={"contrast": Kind("twins")}).described()
    assert "loss" not in mixed
    assert mixed["kinds"]["contrast"]["loss"] == "twins"
    assert "order" not in mixed
    last = replace(toy, kinds={"statements": Kind("in-batch")}, order="statements last").described()
    assert last["order"] == "statements last"


def test_statements_can_come_after_what_ranks_passages():
    """Every example once an epoch; retention stays spread over all of it."""
    sizes = {"statements": 12, "contrast": 10, "retention": 9, "exclusions": 7}
    parts = [Dataset.from_dict({"anchor": [f"{kind} {n}" for n in range(size)]}) for kind, size in sizes.items()]
    samplers = [batches.AnchorBatches(part, batch_size=2, drop_last=False) for part in parts]
    sampler = batches.StatementsLast(ConcatDataset(parts), samplers, torch.Generator(), seed=1, last=0, throughout={2})
    first, again = list(sampler), list(sampler)
    assert first == again
    assert len(first) == len(sampler)
    assert sorted(place for batch in first for place in batch) == list(range(38))
    owners = np.repeat(list(sizes), list(sizes.values()))
    order = [{str(owners[place]) for place in batch} for batch in first]
    assert all(len(kinds) == 1 for kinds in order), "a batch has one kind"
    names = [kinds.pop() for kinds in order]
    labelled = [name for name in names if name != "retention"]
    assert labelled[-6:] == ["statements"] * 6
    assert {"contrast", "exclusions"} == set(labelled[:-6])
    retained = [place for place, name in enumerate(names) if name == "retention"]
    assert retained[0] < len(labelled[:-6]) < retained[-1]
    sampler.set_epoch(1)
    assert list(sampler) != first


def test_an_order_needs_the_kind_it_names(toy):
    with pytest.raises(FinetuningError, match="needs the kind statements"):
        replace(toy, kinds={"contrast": Kind("twins")}, order="statements last")
