"""Distances, yields, patterns of negation and hedge cues, each counted by hand."""

import pandas as pd
import pytest

from nblib import corpora
from nblib.corpora import triple_statistics
from nblib.corpora.hedgetriple import VARIANTS


def test_distances_are_levenshteins():
    rows = [
        {"id": f"t-{k}", "anchor": f"The door of house {k} is red."}
        | {name: f"The door of house {k} is red. {name}" for name in VARIANTS}
        for k in range(2)
    ]
    table = pd.DataFrame(rows).assign(verbal=["The door of house 0 isn't red.", "A door of house 1 is red."])
    assert triple_statistics.distances(table).iloc[0].to_dict() == {
        "id": "t-0", "verbal": 3, "absolute": 9, "affixal": 8, "lexical": 8, "word": 5, "phrase": 7,
    }  # fmt: skip
    assert triple_statistics.distances(table).verbal.tolist() == [3, 3]  # The → A: one replaced, two removed


def test_yields_are_the_shares_counted_by_hand():
    measured = pd.DataFrame({"id": ["a", "b", "c", "d"]} | {name: [0, 0, 0, 0] for name in VARIANTS})
    measured = measured.assign(verbal=[1, 5, 10, 11], word=[20, 5, 1, 1])
    table = triple_statistics.yields(measured, [5, 10, 20]).pivot(index="threshold", columns="variant", values="share")
    assert table.verbal.tolist() == [50, 75, 100]
    assert table.word.tolist() == [75, 75, 100]
    assert table["all six"].tolist() == [25, 50, 100]  # b; b and c; all
    assert table.affixal.tolist() == [100, 100, 100]


def test_a_higher_threshold_never_drops_more():
    measured = triple_statistics.distances(corpora.load("hedgetriple").head(200))
    table = triple_statistics.yields(measured, range(0, 200, 20))
    shares = table.pivot(index="threshold", columns="variant", values="share")
    assert shares.apply(lambda column: column.is_monotonic_increasing).all()
    assert shares["all six"].le(shares[list(VARIANTS)].min(axis=1)).all()


PLAIN = ["The pump works.", "The ship sank.", "The ship sank.", "The ship sank."]
DENIED = [
    "The pump doesn't work.",
    "The ship did not sink.",
    "The ship was unwilling to sink.",
    "The ship kept afloat.",
]


def test_one_pattern_of_negation_is_one_whatever_its_auxiliary():
    works, sank, unwilling, afloat = triple_statistics.patterns(PLAIN, DENIED)
    assert works == sank == "not"
    assert "unwilling" in unwilling
    assert "afloat" in afloat
    assert triple_statistics.patterns(PLAIN[:1], PLAIN[:1]) == [""]


def test_diversity_counts_patterns():
    table = pd.DataFrame({"anchor": PLAIN, "some": DENIED, "one": [DENIED[0], DENIED[1], None, None]})
    some, one = triple_statistics.diversity(table, ["some", "one"]).to_dict("records")
    assert one == {"variant": "one", "n": 2, "ways": 1, "per_draws": 1, "entropy": 0, "commonest": "not", "share": 100}
    assert (some["n"], some["ways"], some["commonest"], some["share"]) == (4, 3, "not", 50)
    assert some["entropy"] == pytest.approx(1.5)  # a half, a quarter and a quarter
    assert some["per_draws"] == pytest.approx((1 - 0.5**4) + 2 * (1 - 0.75**4))


def test_cue_coverage_counts_the_papers_cues_alone():
    table = pd.DataFrame({"word_cue": ["may", "may", "may", "might", "surely not a cue"], "phrase_cue": "not clear"})
    word, phrase = triple_statistics.cue_coverage(table).to_dict("records")
    assert (word["kind"], word["used"], word["asked"]) == ("word", 2, 4)
    assert (word["median_uses"], word["most_uses"]) == (2, 3)
    assert phrase["kind"] == "phrase"
