"""Which negation an encoder misses: held-out anchors, strict comparisons, intervals."""

import pandas as pd
import pytest
from support.encoders import tiny, written

from nblib.benchmarks import negation_profile
from nblib.corpora import hedgetriple
from nblib.corpora.hedgetriple import HEDGES, NEGATIONS
from nblib.models import embeddings
from nblib.models.systems import BiEncoder


def anchors():
    row = {"id": "1", "register": "news", "anchor": "a"} | {name: name for name in (*NEGATIONS, *HEDGES)}
    return pd.DataFrame([row])


def test_only_a_strictly_nearer_hedge_is_right():
    vectors = {"a": [1.0, 0.0], "word": [1.0, 0.1], "phrase": [1.0, 0.5], "verbal": [1.0, 0.3], "absolute": [1.0, 0.5],
               "affixal": [0.0, 1.0], "lexical": [1.0, 0.05]}  # fmt: skip
    predicted = negation_profile.predictions(anchors(), BiEncoder(written(vectors))).set_index(["negation", "hedge"])
    assert predicted.correct.to_dict() == {
        ("verbal", "word"): True, ("verbal", "phrase"): False, ("absolute", "word"): True, ("absolute", "phrase"): False,
        ("affixal", "word"): True, ("affixal", "phrase"): True, ("lexical", "word"): False, ("lexical", "phrase"): False,
    }  # fmt: skip
    assert predicted.margin["absolute", "phrase"] == 0  # a tie


def test_the_models_own_similarity_decides():
    vectors = {name: [1.0, 0.0] for name in (*NEGATIONS, *HEDGES)} | {"a": [1.0, 0.0], "verbal": [3.0, 3.0]}
    for kind, right in [("cosine", True), ("dot", False)]:
        predicted = negation_profile.predictions(anchors(), BiEncoder(written(vectors, similarity=kind, name=kind)))
        assert predicted[predicted.negation == "verbal"].correct.eq(right).all()


def test_the_profile_counts_and_finds_the_weakest(tmp_path):
    predicted = negation_profile.predictions(hedgetriple.load().head(40), BiEncoder(tiny(tmp_path)))
    profiled = negation_profile.profile(predicted)
    assert profiled.n.tolist() == [40] * 8 + [320]
    assert profiled.correct.iloc[-1] == pytest.approx(100 * predicted.correct.mean())
    assert ((profiled.correct_low <= profiled.correct) & (profiled.correct <= profiled.correct_high)).all()
    by_type = predicted.groupby("negation").correct.mean()
    assert by_type[negation_profile.weakest(profiled)] == by_type.min()


def test_the_largest_errors_have_their_texts_and_what_is_right_is_none(monkeypatch):
    rows = [("1", "verbal", "word", -0.1), ("2", "lexical", "phrase", -0.3), ("1", "affixal", "word", 0.2)]
    predicted = pd.DataFrame(rows, columns=["cluster", "negation", "hedge", "margin"])
    predicted["correct"] = predicted.margin > 0
    monkeypatch.setattr(hedgetriple, "load", lambda: pd.concat([anchors(), anchors().assign(id="2", anchor="b")]))
    shown = negation_profile.errors(predicted, 3)
    assert shown.to_numpy().tolist() == [
        ["lexical", "b", "lexical", "phrase", -0.3],
        ["verbal", "a", "verbal", "word", -0.1],
    ]
    assert negation_profile.errors(predicted, 0).empty


def test_an_empty_variant_is_refused():
    with pytest.raises(embeddings.EmbeddingError, match="it is empty, or no string"):
        negation_profile.predictions(anchors().assign(word=""), BiEncoder(written({})))
