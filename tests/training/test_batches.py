"""What a step sees: how triples become examples, and which of them share a batch."""

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from support.encoders import toy_triples

from nblib.corpora import authored
from nblib.errors import StudyError
from nblib.training import batches
from nblib.training.batches import AnchorBatches


def test_an_example_is_an_anchor_and_a_positive_with_all_their_negatives():
    table = toy_triples(2)
    grouped = batches.examples(table)
    assert grouped.columns.tolist() == ["anchor", "positive_1", "negative_1", "negative_2", "negative_3", "negative_4"]
    assert len(grouped) == 4
    first = table[(table.id == "t-0") & (table.hedge == "word")]
    assert grouped.iloc[0].tolist() == [first.anchor.iloc[0], first.positive.iloc[0], *first.negative]


def test_together_an_example_is_an_anchor_with_all_its_positives_and_negatives():
    table = toy_triples(2)
    grouped = batches.examples(table, together=True)
    assert grouped.columns.tolist() == ["anchor", "positive_1", "positive_2", *(f"negative_{k}" for k in range(1, 5))]
    assert len(grouped) == 2
    first = table[table.id == "t-0"]
    assert grouped.iloc[0].tolist() == [first.anchor.iloc[0], *first.positive.unique(), *first.negative.unique()]
    with pytest.raises(StudyError, match="between 1 and 2 positives"):
        batches.examples(table[(table.id == "t-0") | (table.hedge == "word")], together=True)
    with pytest.raises(StudyError, match="between 3 and 4 negatives"):
        batches.examples(table.iloc[1:])


def test_labelled_a_hedge_is_right_and_a_negation_wrong():
    table = toy_triples(3)
    pairs = batches.labelled(table)
    assert pairs.label.value_counts().to_dict() == {0.0: 12, 1.0: 6}, "four negations and two hedges, each once"
    hedged = pairs[pairs.label == 1]
    assert set(zip(hedged["query"], hedged.document, strict=True)) == set(
        zip(table.anchor, table.positive, strict=True)
    )
    assert not set(pairs.document[pairs.label == 0]) & set(table.positive)


PAIRED = authored.exclusions("dev").head(3)


@pytest.mark.parametrize(
    ("layout", "columns", "rows"),
    [
        ("positive", ["anchor", "positive_1", "negative_1"], 6),
        ("labelled", ["query", "document", "label"], 12),
        ("paired queries", ["anchor", "twin", "positive", "negative"], 3),
    ],
)
def test_paired_queries_have_every_layout_of_triples_and_their_own(layout, columns, rows):
    laid_out = batches.lay_out(PAIRED, layout)
    assert (laid_out.column_names, len(laid_out)) == (columns, rows)


@pytest.mark.parametrize("layout", ["scored", "texts", "paired queries"])
def test_what_has_a_layout_already_is_left_and_what_cannot_have_it_is_refused(layout):
    with pytest.raises(StudyError, match=f"layout '{layout}' can't learn from these texts"):
        batches.lay_out(toy_triples(), layout)
    table = pd.DataFrame({"anchor": ["a"], "other": ["b"], "score": [0.5]})
    pd.testing.assert_frame_equal(batches.lay_out(table, "scored").to_pandas(), table)


def test_groups_are_of_similar_length_and_keep_pairs_together():
    lengths = np.random.default_rng(0).permutation(range(1, 23))
    table = pd.DataFrame({"anchor": ["a" * n for n in lengths], "related": ["b" * n for n in lengths]})
    rows = batches.groups(table).to_numpy()
    assert rows.shape == (5, 8), "twenty of 22 pairs, four an example"
    for row in rows:
        assert [len(text) for text in row[::2]] == [len(text) for text in row[1::2]]
    assert max(map(len, rows[0])) == 4


def sampler(anchors, batch_size, seed=0, epoch=0):
    dataset = Dataset.from_dict({"anchor": anchors})
    batches = AnchorBatches(dataset, batch_size=batch_size, drop_last=False, seed=seed)
    batches.set_epoch(epoch)
    return batches


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40), st.integers(1, 5), st.integers(0, 3))
def test_an_epoch_has_each_example_once_and_a_batch_no_anchor_twice(anchors, batch_size, epoch):
    batches = sampler(anchors, batch_size, epoch=epoch)
    epoch_batches = list(batches)
    assert len(epoch_batches) == len(batches)
    assert sorted(place for batch in epoch_batches for place in batch) == list(range(len(anchors)))
    for batch in epoch_batches:
        assert len(batch) <= batch_size
        assert len({anchors[place] for place in batch}) == len(batch)


def test_the_order_is_the_seeds_and_the_epochs():
    anchors = [f"{'x' * (k % 7)}{k // 2}" for k in range(60)]
    order = list(sampler(anchors, 4, seed=1, epoch=2))
    assert list(sampler(anchors, 4, seed=1, epoch=2)) == order
    torch.manual_seed(99)  # the global generator has no say
    assert list(sampler(anchors, 4, seed=1, epoch=2)) == order
    assert list(sampler(anchors, 4, seed=1, epoch=3)) != order
    assert list(sampler(anchors, 4, seed=5, epoch=2)) != order


def test_texts_of_similar_length_go_together():
    lengths = np.random.default_rng(0).integers(5, 200, size=400)
    anchors = [f"{k:03}" + "x" * length for k, length in enumerate(lengths)]

    def padding(batches):
        return sum(max(lengths[batch]) * len(batch) - sum(lengths[batch]) for batch in batches)

    at_random = np.random.default_rng(1).permutation(400).reshape(-1, 8)
    assert padding(list(sampler(anchors, 8))) < 0.5 * padding(at_random)
