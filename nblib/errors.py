"""The errors that a user can mend: one plain sentence, in a terminal and in a notebook."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class StudyError(ValueError):
    """Bad input, a missing file or service, or an impossible request; the message names what, where and the remedy.

    The command line and IPython show the message alone, without a traceback.
    """

    def _render_traceback_(self) -> list[str]:  # IPython shows this instead of a traceback
        return [f"{type(self).__name__}: {self}"]


def one_of(value: str, known: Iterable[str], what: str) -> str:
    """A value that must be one of several; a StudyError names those that are known."""
    if value not in known:
        raise StudyError(f"No {what} called {value!r}. Known: {', '.join(known)}.")
    return value


def check_numbers(seed: int, **positive: float) -> None:
    """Raise a StudyError unless NumPy and PyTorch take a seed, and other numbers, by the user's names, are above 0."""
    for name, number in positive.items():
        if not number > 0:  # NaN isn't, either
            raise StudyError(f"{name} must be above 0, and is {number}.")
    if not 0 <= seed < 2**32:
        raise StudyError(f"seed must be from 0 to {2**32 - 1}, and is {seed}.")


@contextmanager
def readable(file: str | Path, remedy: str, error: type[StudyError] = StudyError) -> Iterator[None]:
    """Turn whatever a parser raises in the block about a damaged file into an `error` of one sentence.

    Errors that name the file already (absent, not permitted) stay what they are. `remedy` is a sentence.
    """
    try:
        yield
    except (StudyError, FileNotFoundError, PermissionError):
        raise
    except Exception as raised:  # pandas, pyarrow, json, yaml and codecs raise a dozen classes
        cause = " ".join(f"{type(raised).__name__}: {raised}".split())[:200]
        raise error(f"{file} can't be read, it is damaged or of another form ({cause}). {remedy}") from raised
