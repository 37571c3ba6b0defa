"""Probes: which tokens are of the cue, and that a probe finds what the states have and nothing else."""

import numpy as np
import pytest

from nblib.analysis import probes
from nblib.corpora import authored
from nblib.corpora.authored import NEGATIONS, VARIANTS


def spans(text, *words):
    """The characters of words in a text, each once."""
    return [(text.index(word), text.index(word) + len(word)) for word in words]


def test_the_cue_is_what_the_anchor_has_not_in_its_place():
    text = "The shop isn't open, I think."
    offsets = [*spans(text, "shop", "is", "n't", "open", ",", "think"), (0, 0)]
    changed = probes._changed(text, "The shop is open.", offsets)
    assert np.flatnonzero(changed).tolist() == [1, 2, 5]  # "is", "n't" and "think"


def test_a_probe_finds_a_type_that_it_has_not_seen_by_what_it_shares_with_others():
    rng = np.random.default_rng(0)
    kinds, groups = np.tile(VARIANTS, 30), np.repeat(np.arange(30), len(VARIANTS))
    shared = 4.0 * np.isin(kinds, NEGATIONS)[:, None] + rng.normal(size=(len(kinds), 3))
    assert probes._right(shared, kinds, groups, "affixal").mean() > 0.95
    # A type of its own, in another dimension, can't be found by the others
    own = np.stack([4.0 * (kinds == name) for name in NEGATIONS], axis=1) + rng.normal(size=(len(kinds), 4))
    assert probes._right(own, kinds, groups, "affixal").mean() < 0.8
    assert 0.35 < probes._right(rng.normal(size=(len(kinds), 3)), kinds, groups, "affixal").mean() < 0.65


def test_every_layer_and_position_is_probed(tiny_encoder):
    anchors = authored.held_out_anchors().head(6)
    table = probes.probe(tiny_encoder, anchors)
    layers = tiny_encoder.model[0].auto_model.config.num_hidden_layers + 1
    assert len(table) == layers * len(probes.POSITIONS) * (len(NEGATIONS) + 1)
    assert (table.n == 6).all() and table.value.between(0, 100).all()
    means = table[table.held_out != "all"].groupby(["layer", "position"]).value.mean()
    assert means.to_numpy() == pytest.approx(
        table[table.held_out == "all"].set_index(["layer", "position"]).value[means.index]
    )


def test_the_share_along_a_probe_is_a_share(tiny_encoder):
    share = probes.share_along_probe(tiny_encoder, authored.held_out_anchors().head(9))
    assert 0 <= share["low"] <= share["value"] <= share["high"] <= 100
    assert share["n"] == 9
