"""Distances, yields and patterns of negation, each counted by hand."""

import pandas as pd
import pytest

from nblib.corpora import triple_statistics
from nblib.corpora.authored import VARIANTS


def test_distances_are_levenshteins():
    names = {name: f"The door is red. {name}" for name in VARIANTS}
    table = pd.DataFrame([{"id": f"t-{k}", "anchor": "The door is red."} | names for k in range(2)])
    table["verbal"] = ["The door isn't red.", "A door is red."]  # three added; The → A: one replaced, two removed
    first, second = triple_statistics.distances(table).to_dict("records")
    assert first == {"id": "t-0", "verbal": 3, "absolute": 9, "affixal": 8, "lexical": 8, "word": 5, "phrase": 7}
    assert second["verbal"] == 3


def test_yields_are_the_shares_counted_by_hand():
    measured = pd.DataFrame({"id": ["a", "b", "c", "d"]} | {name: [0, 0, 0, 0] for name in VARIANTS})
    measured = measured.assign(verbal=[1, 5, 10, 11], word=[20, 5, 1, 1])
    table = triple_statistics.yields(measured, [5, 10, 20]).pivot(index="threshold", columns="variant", values="share")
    assert table.verbal.tolist() == [50, 75, 100] and table.word.tolist() == [75, 75, 100]
    assert table["all six"].tolist() == [25, 50, 100] and table.affixal.tolist() == [100, 100, 100]  # b; b and c; all


PLAIN = ["The pump works.", "The ship sank.", "The ship sank.", "The ship sank."]
DENIED = ["The pump doesn't work.", "The ship did not sink.", "It was unwilling to sink.", "The ship kept afloat."]


def test_one_pattern_of_negation_is_one_whatever_its_auxiliary():
    works, sank, unwilling, afloat = triple_statistics.patterns(PLAIN, DENIED)
    assert works == sank == "not" and "unwilling" in unwilling and "afloat" in afloat
    assert triple_statistics.patterns(PLAIN[:1], PLAIN[:1]) == [""]


def test_diversity_counts_patterns():
    table = pd.DataFrame({"anchor": PLAIN, "some": DENIED, "one": [DENIED[0], DENIED[1], None, None]})
    some, one = triple_statistics.diversity(table, ["some", "one"]).to_dict("records")
    assert list(one) == ["variant", "n", "patterns", "per_draws", "entropy", "commonest", "share"]
    assert list(one.values()) == ["one", 2, 1, 1, 0, "not", 100]
    assert (some["n"], some["patterns"], some["commonest"], some["share"]) == (4, 3, "not", 50)
    assert (some["entropy"], some["per_draws"]) == pytest.approx((1.5, (1 - 0.5**4) + 2 * (1 - 0.75**4)))
