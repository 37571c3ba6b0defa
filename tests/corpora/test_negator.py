"""What the rule-based negator makes, and what it is not trusted with."""

import logging

import pytest

from nblib.corpora.negator import NO_OUTPUT, REASONS, negate_sentences

PLAIN = {
    "The horse is white.": "The horse isn't white.",
    "A man is playing the piano.": "A man isn't playing the piano.",
    "A woman wears a red hat.": "A woman doesn't wear a red hat.",
}
NOT_CLEAN = {
    "Two women in a clothing store.": "no verb to negate",
    "A green car parked at a saloon.": "broken output",
    "Is the horse white?": "question",
    "The horse is not white.": "already negative",
    "Nobody went home.": "already negative",
    "All men are mortal.": "quantified subject",
    "Someone is playing the piano.": "quantified subject",
    "The minister said that the bridge is closed.": "reported speech",
}


@pytest.fixture(scope="module")
def negated():
    return negate_sentences([*PLAIN, *NOT_CLEAN]).set_index("sentence")


@pytest.mark.parametrize(("sentence", "expected"), PLAIN.items())
def test_a_plain_sentence_gets_its_verbal_negation(negated, sentence, expected):
    assert (negated.negated[sentence], negated.reason[sentence]) == (expected, "")


@pytest.mark.parametrize(("sentence", "reason"), NOT_CLEAN.items())
def test_what_the_tool_cannot_do_is_said(negated, sentence, reason):
    assert negated.reason[sentence] == reason


def test_every_reason_is_exercised_here():
    assert set(NOT_CLEAN.values()) == set(REASONS) >= set(NO_OUTPUT)


def test_each_distinct_sentence_is_one_row_in_order():
    table = negate_sentences(["B is here.", "A is here.", "B is here."])
    assert table.sentence.tolist() == ["B is here.", "A is here."]


def test_it_leaves_the_root_logger_alone():
    before = (logging.root.level, list(logging.root.handlers))
    negate_sentences(["The horse is white."])
    assert (logging.root.level, list(logging.root.handlers)) == before
