"""Files of generations: one JSON line an answer, appended as soon as it arrives, never changed.

A line has the question (anchor, kind of prompt, cues, model, sampling parameters), under a key that is a hash of it, and the
raw answer. Whether an answer is usable is decided on reading, so that a better parser rescues old answers. To ask on two
machines, split the anchors and join the files with `cat`: keys make that safe.
"""

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


class SynthesisError(StudyError):
    """A model that can't be asked, or answers that can't be used."""


@dataclass(frozen=True)
class Generation:
    """One answer and what it answers.

    Attributes:
        key: from `key`.
        attempt: 0, 1, … where an answer was unusable and the same was asked again.
        id, anchor: the anchor's id and text.
        kind: of prompt.
        cues: the hedge cues in the prompt, by kind of hedge; empty for negations.
        model, sampling: as asked for.
        answer: raw, "" where the model wrote nothing.
        finish_reason: the server's: stop, length, content_filter, …; "refusal" where it marks the answer as one.
        answered_by: the model that the server names.
        input_tokens, output_tokens: None where the server doesn't count.
    """

    key: str
    attempt: int
    id: str
    anchor: str
    kind: Literal["negation", "hedging"]
    cues: Mapping[str, str]
    model: str
    sampling: Mapping[str, object]
    answer: str
    finish_reason: str
    answered_by: str
    input_tokens: int | None
    output_tokens: int | None


def key(model: str, prompt: str, sampling: Mapping[str, object]) -> str:
    """A question's name: a hash (32 hexadecimal digits) of model, prompt (with its cues) and sampling parameters."""
    question = json.dumps([model, prompt, dict(sampling)], sort_keys=True)
    return hashlib.sha256(question.encode()).hexdigest()[:32]


def read(file: str | Path) -> Iterator[Generation]:
    """The generations in a file, in order; none where there is no file. Half a line at its end, of a killed run, is skipped.

    Raises:
        SynthesisError: any other line is no generation; names it.
    """
    file = paths.resolve(file)
    if not file.is_file():
        return
    remedy = "Restore the file, or delete that line: its question is then asked again."
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                with readable(f"{file}, line {number}", remedy, SynthesisError):
                    generation = Generation(**json.loads(line))
            except SynthesisError:
                if not line.endswith(b"\n"):
                    return
                raise
            yield generation


def append(generation: Generation, file: Path) -> None:
    """Write one more.

    Raises:
        SynthesisError: it can't be written (a full disk); the file is left as it was.
    """
    line = json.dumps(asdict(generation)).encode() + b"\n"  # ASCII: an answer may hold what UTF-8 can't
    with file.open("ab", buffering=0) as lines:
        end = lines.tell()
        try:
            if lines.write(line) < len(line):
                raise OSError("the disk is full")
        except OSError as error:
            lines.truncate(end)
            raise SynthesisError(
                f"Can't write to {file} ({error.strerror or error}). Free space, then run again: all before is kept."
            ) from error


def drop_half_line(file: Path) -> None:
    """Cut off what a killed run has left of its last line, so that the next one doesn't go on in it."""
    content = file.read_bytes() if file.exists() else b""
    if content and not content.endswith(b"\n"):
        os.truncate(file, content.rfind(b"\n") + 1)
