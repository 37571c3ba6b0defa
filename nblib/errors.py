"""The errors that a user can mend: one plain sentence, in a terminal and in a notebook."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# In an address: user:password@, or in the query a name of a key or a value as long as one
_SECRET = re.compile(
    r"://(?:[^/?#\s]*@|[^\s?]*\?\S*?(?:(?:key|token|secret|pass|sig|auth|code)[^=&\s]*=|=[^&\s]{20}))", re.I
)


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


def check_parameters(variables: Mapping[str, object]) -> None:
    """Raise a StudyError unless a notebook's parameters have the types that their cell declares: papermill's -p guesses them."""
    for name, form in variables.get("__annotations__", {}).items():
        value = variables.get(name)
        if type(value) is not form and (form, type(value)) != (float, int):
            remedy = f"Give papermill a text by -r {name} TEXT, a list or dict by -y '{name}: YAML'."
            raise StudyError(f"{name} must be a {form.__name__}, and is {value!r}. {remedy}")


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


def check_address(text: str, name: str) -> None:
    """Raise a StudyError where a text has an address with a password or a key in it: outputs would show it."""
    if _SECRET.search(text):
        remedy = "Set a language model's in the environment variable OPENAI_API_KEY."
        raise StudyError(f"{name} has a password or a key in its address, which outputs would show. {remedy}")
