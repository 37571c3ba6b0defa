"""What the rule-based negator makes, and what it is not trusted with."""

import pytest

from nblib.corpora.negator import REASONS, negate_sentences

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
    return negate_sentences([*PLAIN, *NOT_CLEAN, *PLAIN]).set_index("sentence")


def test_a_plain_sentence_gets_its_verbal_negation(negated):
    assert negated.index.tolist() == [*PLAIN, *NOT_CLEAN], "each distinct sentence once, in order"
    assert negated.negated[: len(PLAIN)].to_dict() == PLAIN
    assert set(negated.reason[: len(PLAIN)]) == {""}


@pytest.mark.parametrize(("sentence", "reason"), NOT_CLEAN.items())
def test_what_the_tool_cannot_do_is_said(negated, sentence, reason):
    assert negated.reason[sentence] == reason in REASONS
