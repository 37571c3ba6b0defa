"""Which negation a system misses: held-out anchors, strict comparisons, intervals."""

import pandas as pd
import pytest
from support.encoders import tiny, written

from nblib.benchmarks.negation_profile import NegationProfile, profile
from nblib.corpora import authored
from nblib.corpora.authored import HEDGES, NEGATIONS
from nblib.models.systems import BiEncoder

ANCHOR = pd.DataFrame([{"id": "1", "anchor": "a"} | {name: name for name in (*NEGATIONS, *HEDGES)}])


def predictions(anchors, encoder):
    return NegationProfile().predict(BiEncoder(encoder), NegationProfile.of_anchors(anchors))


def test_only_a_strictly_nearer_hedge_is_right():
    vectors = {"a": [1.0, 0.0], "word": [1.0, 0.1], "phrase": [1.0, 0.5], "verbal": [1.0, 0.3]}
    vectors |= {"absolute": [1.0, 0.5], "affixal": [0.0, 1.0], "lexical": [1.0, 0.05]}
    predicted = predictions(ANCHOR, written(vectors)).set_index(["negation", "hedge"])
    right = {("verbal", "word"), ("absolute", "word"), ("affixal", "word"), ("affixal", "phrase")}
    assert set(predicted.index[predicted.correct]) == right and len(predicted) == 8
    assert predicted.margin["absolute", "phrase"] == 0  # a tie


def test_the_profile_counts(tmp_path):
    predicted = predictions(authored.held_out_anchors().head(40), tiny(tmp_path))
    profiled = profile(predicted)
    assert profiled.n.tolist() == [40] * 8 + [320]
    cells = [*((negation, hedge) for negation in NEGATIONS for hedge in HEDGES), ("all", "all")]
    assert list(zip(profiled.negation, profiled.hedge, strict=True)) == cells
    assert profiled.correct.iloc[-1] == pytest.approx(100 * predicted.correct.mean())
    assert profiled.margin.iloc[-1] == pytest.approx(predicted.margin.mean())
    assert ((profiled.correct_low <= profiled.correct) & (profiled.correct <= profiled.correct_high)).all()
