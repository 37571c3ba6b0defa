"""The anchors that are held out of training."""

import numpy as np
import pytest

from nblib import corpora
from nblib.corpora import hedgetriple


def draw(ids, seed=0):
    """300 of the ids, drawn without replacement, sorted."""
    return sorted(np.random.default_rng(seed).choice(list(ids), 300, replace=False).tolist())


def test_the_committed_list_is_the_seeds_choice():
    ids = corpora.load("hedgetriple").id
    assert hedgetriple.held_out() == draw(ids)
    assert len(set(hedgetriple.held_out())) == 300
    assert draw(ids, seed=1) != hedgetriple.held_out()


def test_an_anchor_that_does_not_exist_is_named(tmp_path, monkeypatch):
    (tmp_path / "ids.txt").write_text("ht0-004\nht9-999\n")
    monkeypatch.setattr(hedgetriple, "HELD_OUT", tmp_path / "ids.txt")
    with pytest.raises(corpora.CorpusError, match="1 anchors that don't exist, first: ht9-999"):
        hedgetriple.load()
