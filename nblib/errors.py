"""The errors that a user can mend: one plain sentence, in a terminal and in a notebook."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class StudyError(ValueError):
    """Bad input, a missing file or service, or an impossible request; the message names what, where and the remedy.

    The command line and IPython show the message alone, without a traceback.
    """

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


def one_of(value: str, known: Iterable[str], what: str) -> str:
    """A value that must be one of several.

    Raises:
        StudyError: it isn't; names those that are known.
    """
    if value not in known:
        raise StudyError(f"No {what} called {value!r}. Known: {', '.join(known)}.")
    return value


def check_numbers(seed: int, **positive: float) -> None:
    """Check that NumPy and PyTorch take a seed, and that other numbers, by the name that the user knows, are above 0.

    Raises:
        StudyError: names the number.
    """
    for name, number in positive.items():
        if not number > 0:  # NaN isn't, either
            raise StudyError(f"{name} must be above 0, and is {number}.")
    if not 0 <= seed < 2**32:
        raise StudyError(f"seed must be from 0 to {2**32 - 1}, and is {seed}.")


@contextmanager
def readable(file: str | Path, remedy: str, kind: type[StudyError] = StudyError) -> Iterator[None]:
    """Turn whatever a parser raises in the block about a damaged file into one sentence.

    Args:
        remedy: the sentence that says how to get a sound file.
        kind: the error's class.

    Raises:
        StudyError: of that class; errors that name the file already (absent, not permitted) stay what they are.
    """
    try:
        yield
    except (StudyError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # pandas, pyarrow, json, yaml and codecs raise a dozen classes
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise kind(f"{file} can't be read, it is damaged or of another form ({cause}). {remedy}") from error
