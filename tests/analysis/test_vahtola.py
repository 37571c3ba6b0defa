"""SemAntoNeg: the items, which candidate is chosen, where all encoders fail, and the families of models."""

import numpy as np
import pandas as pd
import pytest

from nblib import artefacts
from nblib.analysis import vahtola
from nblib.benchmarks import scoring
from nblib.results import published

ITEMS = pd.DataFrame({
    "idx": [0, 1, 2, 3],
    "input": ["That is good.", "That's not the same thing.", "I'm not uncertain.", "That is not bad."],
    "positive": ["", "", "", ""],
    "negatives": [
        ["That is bad.", "That is not good."], ["That's not a different thing.", "That's the same thing."],
        ["I'm not sure.", "I'm uncertain."], ["That is not good.", "That is bad."],
    ],
})  # fmt: skip


def predictions(*correct, nearest=None):
    n = len(correct)
    table = pd.DataFrame({"id": [str(k) for k in range(n)], "cluster": range(n), "correct": correct})
    return table.assign(nearest_negative=nearest or [0] * n)


def test_choices_count_the_paraphrase_where_it_won_and_else_the_nearest_negative():
    table = vahtola.choices(predictions(True, False, False, False, nearest=[1, 1, 1, 0]))
    assert table.option.tolist() == list(vahtola.OPTIONS)
    assert table.n.tolist() == [1, 2, 1] and table.share.tolist() == [25, 50, 25]
    assert (table.low < table.share).all() and (table.share < table.high).all()


def test_errors_are_counted_by_the_words_that_the_two_texts_do_not_share(monkeypatch):
    pairs = vahtola.antonym_pairs(ITEMS)
    assert pairs.to_dict() == {"0": "bad – good", "1": "different – same", "2": "sure – uncertain", "3": "bad – good"}
    correct = pd.Series([False, False, True, True], index=list("0123"))
    table = vahtola.errors_by_antonyms(correct, ITEMS)
    assert table.antonyms.tolist() == ["bad – good", "different – same", "sure – uncertain"]
    assert (table.n.tolist(), table.errors.tolist()) == ([2, 1, 1], [1, 1, 0])
    assert table.share.tolist() == [50, 100, 0]
    monkeypatch.setattr(vahtola, "HARDEST", ("bad – good",))
    items = ITEMS.assign(sentence_set=range(4))
    shares = [vahtola.on_hardest(correct, items, name) for name in vahtola.HARDEST_SHARES]
    assert [(share["value"], share["n"]) for share in shares] == [(50, 2)] * 3


def test_families_are_the_papers_tables_beside_our_scores():
    table = vahtola.families({"all-MiniLM-L6-v2": 1.9}).set_index("system")
    assert table.family.value_counts().to_dict() == {"NLI": 15, "paraphrase": 15, "general purpose": 11, "STSB": 9}
    printed = published.printed("vahtola", "Table 5", system="nli-mpnet-base-v2", metric="accuracy")
    assert table.published["nli-mpnet-base-v2"] == printed
    assert table.ours["all-MiniLM-L6-v2"] == 1.9 and np.isnan(table.ours["all-mpnet-base-v2"])


def test_a_family_is_compared_with_its_base_item_by_item(tmp_path):
    for name, right in {"base": 5, "family-nli-s1": 15, "other": 15}.items():
        scored = predictions(*[True] * right, *[False] * (20 - right))
        scoring.save_predictions(scored, tmp_path, name, "semantoneg_mini")
        about = {"trained_on": {"family-nli-s1": "nli", "other": "both"}.get(name, ""), "seed": 1}
        artefacts.write_json(tmp_path / "scores" / name / "system.json", about)
    (row,) = vahtola.families_on_one_base(tmp_path, ["family-nli-s1"], "base", "semantoneg_mini").to_dict("records")
    assert (row["system"], row["family"], row["seed"]) == ("family-nli-s1", "NLI", 1)
    assert (row["value"], row["n"], row["difference"]) == (75.0, 20, 50.0), "the base has 25"
    assert row["low"] < 75 < row["high"]
    assert 0 < row["difference_low"] < 50 < row["difference_high"]
    assert vahtola.families_on_one_base(tmp_path, [], "base", "semantoneg_mini").empty
    with pytest.raises(KeyError, match="both"):
        vahtola.families_on_one_base(tmp_path, ["other"], "base", "semantoneg_mini")
    with pytest.raises(scoring.ScoreError, match=r"No predictions at .*absent"):
        vahtola.families_on_one_base(tmp_path, ["absent"], "base", "semantoneg_mini")
