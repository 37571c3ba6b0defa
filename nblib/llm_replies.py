"""What a server sends back: an answer, or a failure, and whether trying again can help."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import openai

KEY_VARIABLE = "OPENAI_API_KEY"
LONGEST_WAIT = 600.0  # seconds: a server that asks for more (a daily quota) ends the run


class UnreadableError(ValueError):
    """An answer that is no chat completion."""


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes:
        text: the raw answer, "" where the model said nothing.
        finish_reason: the server's: stop, length, content_filter, …; "refusal" where it marks the text as one.
        model: what the server says has answered.
        input_tokens, output_tokens: None where the server doesn't count.
    """

    text: str
    finish_reason: str
    model: str
    input_tokens: int | None
    output_tokens: int | None


def read(completion: object) -> Answer:
    """The answer in a chat completion as the server has sent it.

    Raises:
        ValueError: it is none.
    """
    try:
        choice = completion["choices"][0]
        said, refusal = choice["message"].get("content"), choice["message"].get("refusal")
        usage = completion.get("usage") or {}
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise UnreadableError(f"the answer is no chat completion: {str(completion)[:200]!r}") from error
    if not isinstance(said, str | None):
        raise UnreadableError(f"the answer's content is no text: {str(said)[:200]!r}")
    counts = [count if isinstance(count, int) else None for count in counts]
    finish = choice.get("finish_reason")
    if isinstance(refusal, str) and refusal and not said:
        said, finish = refusal, "refusal"
    return Answer(said or "", str(finish or ""), str(completion.get("model") or ""), *counts)


def kind(error: BaseException) -> str:
    """What sort of failure, for counting: "HTTP 429", "time-out", "connection", "unreadable answer"."""
    if isinstance(error, openai.APIStatusError):
        return f"HTTP {error.status_code}"
    if not isinstance(error, openai.APIConnectionError):
        return "unreadable answer"
    cause: BaseException | None = error  # the client library calls a dropped connection a time-out too
    while cause is not None and not isinstance(cause, TimeoutError):
        cause = cause.__cause__
    return "connection" if cause is None else "time-out"


def retry_after(error: BaseException) -> float | None:
    """Seconds the server asks to wait (Retry-After, in seconds or as a date); None where it doesn't."""
    if not isinstance(error, openai.APIStatusError):
        return None
    value = error.response.headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):  # no date, or one without a time zone
            return None
    return seconds if 0 < seconds < float("inf") else None


def passes(error: BaseException) -> bool:
    """Whether trying again can help."""
    if isinstance(error, openai.APIStatusError):
        passing = error.status_code in (408, 409, 425, 429) or error.status_code >= 500
        return passing and not no_quota(error) and (retry_after(error) or 0) <= LONGEST_WAIT
    return isinstance(error, openai.APIConnectionError | UnreadableError)


def no_quota(error: BaseException) -> bool:
    return isinstance(error, openai.APIStatusError) and error.code == "insufficient_quota"


def describe(error: BaseException) -> str:
    """An error in one line, without the key, whatever the server has put into it."""
    if isinstance(error, openai.APIConnectionError):
        text = f"{kind(error)}: {error.__cause__ or error}"
    else:
        text = f"{type(error).__name__}: {error}"
    text = " ".join(text.split())
    if key := os.environ.get(KEY_VARIABLE, "").strip():
        text = text.replace(key, "***")
    return text if len(text) <= 300 else text[:300] + " …"
