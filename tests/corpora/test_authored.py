"""The authored texts: which anchors are held out, and that no item is in two splits."""

from functools import partial

import numpy as np
import pytest

from nblib import corpora
from nblib.corpora import authored


def test_the_committed_list_is_the_seeds_choice():
    ids = corpora.load("authored_triples").id
    drawn = np.random.default_rng(0).choice(list(ids), 300, replace=False)
    assert authored.held_out_ids() == sorted(drawn.tolist())


MORE = partial(authored.contrast_passages, collection="contrast_more")


@pytest.mark.parametrize("read", [authored.contrast_passages, MORE, authored.exclusions])
def test_no_item_is_in_two_splits(read):
    parts = {split: read(split) for split in ("train", "dev", "test")}
    texts = {split: {*part.anchor, *part.twin, *part.positive, *part.negative} for split, part in parts.items()}
    assert texts["train"].isdisjoint(texts["dev"] | texts["test"])
    assert texts["dev"].isdisjoint(texts["test"])
    assert all(len(part) for part in parts.values())


def test_each_query_of_a_pair_is_asked_with_the_passage_that_answers_it():
    paired = authored.exclusions("train")
    asked = authored.questions(paired)
    assert len(asked) == 2 * len(paired)
    query, twin = asked[asked.id == paired.id[0]].to_dict("records")
    assert (query["positive"], query["negative"]) == (twin["negative"], twin["positive"])
    assert (query["question"], twin["question"]) == ("q1", "q2") and query["anchor"] != twin["anchor"]
