"""Which negation an encoder misses: held-out anchors, strict comparisons, intervals."""

import pandas as pd
import pytest
from encoders import tiny, written

from nblib import corpora, embeddings, negation_profile
from nblib.negation_profile import HEDGES, NEGATIONS


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NBLIB_CACHE", str(tmp_path / "cache"))


def test_the_committed_list_is_the_seeds_choice():
    ids = corpora.load("hedgetriple").id
    assert negation_profile.held_out() == negation_profile.choose_held_out(ids)
    assert len(set(negation_profile.held_out())) == 300
    assert negation_profile.choose_held_out(ids, seed=1) != negation_profile.held_out()


def test_an_anchor_that_does_not_exist_is_named(tmp_path, monkeypatch):
    (tmp_path / "ids.txt").write_text("ht0-004\nht9-999\n")
    monkeypatch.setattr(negation_profile, "HELD_OUT", tmp_path / "ids.txt")
    with pytest.raises(corpora.CorpusError, match="1 anchors that don't exist, first: ht9-999"):
        negation_profile.load()


def anchors():
    row = {"id": "1", "register": "news", "anchor": "a"} | {name: name for name in (*NEGATIONS, *HEDGES)}
    return pd.DataFrame([row])


def test_only_a_strictly_nearer_hedge_is_right():
    vectors = {"a": [1.0, 0.0], "word": [1.0, 0.1], "phrase": [1.0, 0.5], "verbal": [1.0, 0.3], "absolute": [1.0, 0.5],
               "affixal": [0.0, 1.0], "lexical": [1.0, 0.05]}  # fmt: skip
    judged = negation_profile.predictions(anchors(), written(vectors)).set_index(["negation", "hedge"])
    assert judged.correct.to_dict() == {
        ("verbal", "word"): True, ("verbal", "phrase"): False, ("absolute", "word"): True, ("absolute", "phrase"): False,
        ("affixal", "word"): True, ("affixal", "phrase"): True, ("lexical", "word"): False, ("lexical", "phrase"): False,
    }  # fmt: skip
    assert judged.margin["absolute", "phrase"] == 0  # a tie


def test_the_models_own_similarity_decides():
    vectors = {name: [1.0, 0.0] for name in (*NEGATIONS, *HEDGES)} | {"a": [1.0, 0.0], "verbal": [3.0, 3.0]}
    for kind, right in [("cosine", True), ("dot", False)]:
        judged = negation_profile.predictions(anchors(), written(vectors, similarity=kind, name=kind))
        assert judged[judged.negation == "verbal"].correct.eq(right).all()


def test_the_profile_counts_and_finds_the_weakest(tmp_path):
    judged = negation_profile.predictions(negation_profile.load().head(40), tiny(tmp_path))
    profiled = negation_profile.profile(judged)
    assert profiled.n.tolist() == [40] * 8 + [320]
    assert profiled.correct.iloc[-1] == pytest.approx(100 * judged.correct.mean())
    assert ((profiled.correct_low <= profiled.correct) & (profiled.correct <= profiled.correct_high)).all()
    by_type = judged.groupby("negation").correct.mean()
    assert by_type[negation_profile.weakest(profiled)] == by_type.min()


def test_an_empty_variant_is_refused():
    with pytest.raises(embeddings.EmbeddingError, match="not a non-empty string"):
        negation_profile.predictions(anchors().assign(word=""), written({}))
