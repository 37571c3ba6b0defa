"""SemAntoNeg: the items, and the scores of record."""

import numpy as np
import pandas as pd
import pytest

from nblib import models, published, semantoneg


def test_the_mini_set_has_60_sets_of_4_with_two_negatives_each():
    items = semantoneg.load("semantoneg_mini")
    assert (len(items), items.sentence_set.nunique()) == (240, 60)
    assert items.negatives.map(len).eq(2).all()
    assert not any(item.positive in item.negatives for item in items.itertuples())


@pytest.mark.official
def test_the_official_rows_come_from_770_sets():
    assert semantoneg.load().sentence_set.nunique() == 770


@pytest.mark.official
@pytest.mark.parametrize(("encoder", "published"), [("all-MiniLM-L6-v2", 1.9)])
def test_the_score_is_vahtolas_to_the_printed_digit(encoder, published):
    predictions = semantoneg.predictions(semantoneg.load(), models.load(encoder))
    assert round(100 * predictions.correct.mean(), 1) == published


# --- analyses ---------------------------------------------------------------------------------------------------------

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
    table = semantoneg.choices(predictions(True, False, False, False, nearest=[1, 1, 1, 0]))
    assert table.option.tolist() == list(semantoneg.OPTIONS)
    assert table.n.tolist() == [1, 2, 1] and table.share.tolist() == [25, 50, 25]


def test_antonyms_are_what_the_two_texts_do_not_share():
    pairs = semantoneg.antonym_pairs(ITEMS)
    assert pairs.to_dict() == {"0": "bad – good", "1": "different – same", "2": "sure – uncertain", "3": "bad – good"}


def test_errors_are_counted_by_antonyms():
    table = semantoneg.errors_by_antonyms(predictions(False, False, True, True), ITEMS)
    assert table.to_dict("list") == {
        "antonyms": ["bad – good", "different – same", "sure – uncertain"], "n": [2, 1, 1], "errors": [1, 1, 0],
        "share": [50, 100, 0],
    }  # fmt: skip


def test_shared_errors_are_those_of_every_system():
    systems = {"a": predictions(False, False, True, True), "b": predictions(False, True, False, True)}
    shared = semantoneg.shared_errors(systems)
    assert shared.id.tolist() == ["0"] and shared.attrs["expected"] == 1
    with pytest.raises(ValueError, match="a, b are not about the same items"):
        semantoneg.shared_errors({**systems, "b": predictions(True)})


def test_families_are_the_papers_tables_beside_our_scores():
    table = semantoneg.families({"all-MiniLM-L6-v2": 1.9}).set_index("system")
    assert table.family.value_counts().to_dict() == {"NLI": 15, "paraphrase": 15, "general purpose": 11, "STSB": 9}
    assert table.published["nli-mpnet-base-v2"] == published.value(
        "vahtola", "Table 5", "nli-mpnet-base-v2", "accuracy"
    )
    assert table.ours["all-MiniLM-L6-v2"] == 1.9 and np.isnan(table.ours["all-mpnet-base-v2"])


@pytest.mark.official
def test_the_options_and_antonyms_of_the_official_items():
    items = semantoneg.load()
    assert (semantoneg.corpora.load("semantoneg").label == 2).all()  # the order of the options is the labels' order
    pairs = semantoneg.antonym_pairs(items).value_counts()
    assert {pairs["actual – possible"], pairs["bad – good"]} == {86, 340}
    assert pairs[pairs.index.str.startswith(" –")].sum() < 5  # a few items have no antonym to name
