"""Pairs to train on: which are made of the files at hand, and how they are drawn."""

import gzip
import json
from collections import Counter

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nblib.corpora import anchors, pairs

A, B, C = "A dog runs on the grass.", "Two women are singing.", "A man sleeps."
SNLI = {
    "snli_dev": [
        (A, "An animal moves.", 0), (A, "The dog is asleep.", 2), (A, "The dog chases a ball.", 1), (A, "It runs.", 0),
        (B, "Women sing.", 0), (B, "Women sing.", 0),
    ],
    "snli_test": [(C, C, 0), (C, "A man is awake.", 2), (B, "Nobody sings.", 2)],
}  # fmt: skip


@pytest.fixture
def at_hand(tmp_path, monkeypatch):
    """A data folder with a small SNLI."""
    (tmp_path / "anchors").mkdir()
    for name, rows in SNLI.items():
        with gzip.open(tmp_path / "anchors" / f"{name}.jsonl.gz", "wt") as lines:
            for premise, hypothesis, label in rows:
                lines.write(json.dumps({"premise": premise, "hypothesis": hypothesis, "label": label}) + "\n")
    monkeypatch.setenv("NBLIB_DATA", str(tmp_path))


def test_snli_is_both_files_with_each_pair_once(at_hand):
    assert len(pairs.snli()) == 8
    assert pairs.snli().label.tolist() == [0, 2, 1, 0, 0, 0, 2, 2]


def test_a_premise_needs_both_an_entailed_and_a_contradicting_sentence(at_hand):
    table = pairs.contrasted().set_index("anchor")
    assert set(table.index) == {A, B}, "C entails only itself"
    assert table.loc[A, ["positive_1", "negative_1"]].tolist() == ["An animal moves.", "The dog is asleep."]
    assert table.loc[B, ["positive_1", "negative_1"]].tolist() == ["Women sing.", "Nobody sings."]


def test_without_the_official_data_it_says_what_is_missing():
    with pytest.raises(anchors.AnchorError, match="NBLIB_DATA isn't set"):
        pairs.snli()


def test_a_missing_file_is_named(at_hand, tmp_path):
    (tmp_path / "anchors" / "snli_test.jsonl.gz").unlink()
    with pytest.raises(anchors.AnchorError, match=r"No file .*snli_test\.jsonl\.gz of SNLI"):
        pairs.contrasted()


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=40), st.integers(0, 50), st.integers(0, 3))
def test_a_draw_has_equally_many_of_each_source_and_none_twice(sources, size, seed):
    table = pd.DataFrame({"text": range(len(sources)), "source": sources})
    counts = Counter(sources)
    share = size // len(counts)
    if not 0 < share <= min(counts.values()):
        with pytest.raises(pairs.PairError, match=f"{size} pairs takes {share} of each source"):
            pairs.sample(table, size, seed)
        return
    drawn = pairs.sample(table, size, seed)
    assert Counter(drawn.source) == dict.fromkeys(counts, share)
    assert drawn.text.is_unique
    assert drawn.index.tolist() == list(range(len(drawn)))
    pd.testing.assert_frame_equal(drawn, pairs.sample(table, size, seed))


def test_another_seed_draws_others():
    table = pd.DataFrame({"text": range(100), "label": [0.0, 1.0] * 50})
    first, second = (set(pairs.sample(table, 20, seed, by="label").text) for seed in (0, 1))
    assert first != second


@pytest.mark.official
def test_every_family_has_pairs_enough_at_hand():
    contrasted, graded = pairs.contrasted(), pairs.graded()
    assert len(contrasted) > 5000 and contrasted.anchor.is_unique
    assert not (contrasted.anchor == contrasted.positive_1).any()
    assert len(graded) == 5749 and graded.score.between(0, 1).all()


@pytest.mark.official
def test_paraphrases_come_from_three_sources():
    table = pairs.paraphrases()
    assert set(table.source) == set(pairs.PARAPHRASED)
    assert (table.anchor != table.positive_1).all()
    assert table.source.value_counts().min() >= 667
    assert table.anchor.str.split().str.len().max() <= pairs.SHORT
