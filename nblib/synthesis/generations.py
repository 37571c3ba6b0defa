"""Files of generations: one JSON line an answer, appended as soon as it arrives, never changed. Whether it is usable is decided
on reading, so that a better parser rescues old answers. Files of two machines can be joined with `cat`."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from pydantic.dataclasses import dataclass

from nblib import paths
from nblib.errors import StudyError, readable


@dataclass(frozen=True)
class Question:
    """One thing to ask: an anchor's negations or its hedges."""

    key: str  # see `key`
    id: str  # of the anchor
    anchor: str
    kind: Literal["negation", "hedging"]  # of prompt
    cues: Mapping[str, str]  # the hedge cues in the prompt, by kind of hedge; empty for negations


@dataclass(frozen=True)
class Generation(Question):
    """A question and an answer to it."""

    attempt: int  # 0; 1, … after unusable answers
    model: str
    sampling: Mapping[str, object]
    answer: str  # raw, "" where the model wrote nothing
    finish_reason: str  # the server's: stop, length, content_filter, …
    answered_by: str  # the model that the server names
    input_tokens: int | None  # None where the server doesn't count
    output_tokens: int | None


def key(model: str, prompt: str, sampling: Mapping[str, object]) -> str:
    """A question's name: a hash of model, prompt (with its cues) and sampling parameters."""
    question = json.dumps([model, prompt, dict(sampling)], sort_keys=True)
    return hashlib.sha256(question.encode()).hexdigest()[:32]


def read(file: str | Path) -> Iterator[Generation]:
    """The generations in a file, in order; none where there is no file. Half a line at its end, of a killed run, is skipped.
    StudyError: another line is no generation."""
    file = paths.resolve(file)
    lines = file.read_bytes().split(b"\n")[:-1] if file.is_file() else []
    for number, line in enumerate(lines, start=1):
        with readable(f"{file}, line {number}", "Restore it, or delete that line: its question is then asked again."):
            generation = Generation(**json.loads(line))
        yield generation


def append(generation: Generation, file: Path) -> None:
    """Write one more; on a full disk, leave the file as it was."""
    line = json.dumps(asdict(generation)).encode() + b"\n"  # ASCII: an answer may hold what UTF-8 can't
    with file.open("ab", buffering=0) as lines:
        end = lines.tell()
        if lines.write(line) < len(line):
            lines.truncate(end)
            raise StudyError(f"The disk of {file} is full. Free space, then run again: all before is kept.")


def drop_half_line(file: Path) -> None:
    """Cut off what a killed run has left of its last line."""
    if file.exists():
        os.truncate(file, file.read_bytes().rfind(b"\n") + 1)
