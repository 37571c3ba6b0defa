"""SemAntoNeg: the items, and the scores of record."""

import pytest

from nblib import models, semantoneg


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
