"""Files of generations: one JSON line an answer, appended as soon as it arrives, never changed.

A line has the question (anchor, kind of prompt, cues, model, sampling parameters), under a key that is a hash of it, and the
raw answer. Whether an answer is usable is decided on reading, so that a better
parser rescues old answers.

A killed process leaves at most the last line unfinished; readers skip it, and the next run drops it. One run at a time may
write, since two would ask the same questions. To work on two machines, split the anchors and join the files with `cat`: keys
make that safe.
"""

import hashlib
import json
import logging
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import filelock

from nblib import paths
from nblib.errors import StudyError
from nblib.synthesis.client import Answer, Request

logger = logging.getLogger(__name__)


class GenerationError(StudyError):
    """A file of generations that can't be used."""


@dataclass(frozen=True)
class Generation:
    """One answer and what it answers.

    Attributes:
        key: from `key`.
        attempt: 0, 1, … where an answer was unusable and the same was asked again.
        id, anchor: the anchor's id and text.
        kind: of prompt, "negation" or "hedging".
        cues: the hedge cues in the prompt, by kind of hedge; empty for negations.
        model, sampling: as asked for.
        answered_by: the model that the server names.
        answer: raw.
        input_tokens, output_tokens: None where the server doesn't count.
    """

    key: str
    attempt: int
    id: str
    anchor: str
    kind: str
    cues: Mapping[str, str]
    model: str
    sampling: Mapping[str, object]
    answer: str
    finish_reason: str
    answered_by: str
    input_tokens: int | None
    output_tokens: int | None


_NAMES = [column.name for column in fields(Generation)]
_TEXTS = ("key", "id", "anchor", "kind", "model", "answer", "finish_reason")
_TOKENS = ("input_tokens", "output_tokens")
_TYPES = {
    **dict.fromkeys(_TEXTS, str), **dict.fromkeys(_TOKENS, int | None), "attempt": int, "cues": dict, "sampling": dict,
}  # fmt: skip


def key(model: str, prompt: str, sampling: Mapping[str, object]) -> str:
    """A question's name: a hash (32 hexadecimal digits) of model, prompt (with its cues) and sampling parameters."""
    question = json.dumps([model, prompt, dict(sampling)], sort_keys=True)
    return hashlib.sha256(question.encode()).hexdigest()[:32]


def read(file: str | Path) -> Iterator[Generation]:
    """The generations in a file, in order; none where there is no file. An unfinished last line is skipped.

    Raises:
        GenerationError: no file, or any other line that is no generation; names it.
    """
    file = paths.resolve(file)
    if not file.exists():
        return
    if not file.is_file():
        raise GenerationError(f"{file} is no file. Give a file of generations, such as generations.jsonl.")
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield _parse(line)
            except (ValueError, RecursionError) as error:
                if not line.endswith(b"\n"):
                    logger.warning("%s ends in half a line (%d bytes), which is not read.", file, len(line))
                    return
                raise GenerationError(
                    f"{file}, line {number}: no generation ({error}). Restore the file, or delete that line: its question is "
                    "then asked again."
                ) from error


def _line(generation: Generation) -> bytes:
    return json.dumps(asdict(generation)).encode() + b"\n"  # ASCII: an answer may hold what UTF-8 can't


def _parse(line: bytes) -> Generation:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError("not an object")
    if missing := [name for name in _NAMES if name not in row]:
        raise ValueError(f"without {', '.join(missing)}")
    if wrong := [name for name, types in _TYPES.items() if not isinstance(row[name], types)]:
        raise ValueError(f"ill-typed {', '.join(wrong)}")
    if negative := [name for name in ("attempt", *_TOKENS) if (row[name] or 0) < 0]:
        raise ValueError(f"negative {', '.join(negative)}")
    return Generation(**{name: row[name] for name in _NAMES})


class Store:
    """A file of generations, opened to append to; a context manager that holds the file's lock.

    Raises (on entering):
        GenerationError: another run writes to it.
    """

    def __init__(self, file: str | Path) -> None:
        self.file = paths.resolve(file)

    def __enter__(self) -> "Store":
        paths.writable_folder(self.file.parent)
        # a lock of the operating system's: it goes when its process does, however that ends
        self.lock = filelock.FileLock(self.file.with_name(f".{self.file.name}.lock"))
        try:
            self.lock.acquire(timeout=0)
        except filelock.Timeout:
            raise GenerationError(
                f"Another run is writing to {self.file}. Wait for it to end, or give this one a file of its own and join them "
                "afterwards (cat)."
            ) from None
        self.lines = self.file.open("ab+", buffering=0)
        self._end_with_a_whole_line()
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.close()
        self.lock.release()

    def keep(self, request: Request, answer: Answer) -> Generation:
        """Append the answer to a request whose `about` holds a generation's fields about its question; see `append`."""
        given = asdict(answer)
        generation = Generation(**request.about, answer=given.pop("text"), answered_by=given.pop("model"), **given)
        self.append(generation)
        return generation

    def append(self, generation: Generation) -> None:
        """Write one more.

        Raises:
            GenerationError: it can't be written (a full disk); the file is left as it was.
        """
        line = _line(generation)
        end = self.lines.seek(0, 2)
        try:
            if self.lines.write(line) < len(line):
                raise OSError("the disk is full")
        except OSError as error:
            self.lines.truncate(end)
            raise GenerationError(
                f"Can't write to {self.file} ({error.strerror or error}). Free space, then run again: all before is kept."
            ) from error

    def _end_with_a_whole_line(self) -> None:
        with self.file.open("rb") as lines:
            last = next(iter(deque(lines, maxlen=1)), b"\n")
        if last.endswith(b"\n"):
            return
        try:
            _parse(last)
        except (ValueError, RecursionError):
            self.lines.truncate(self.lines.seek(0, 2) - len(last))
            logger.warning("%s ended in half a line (%d bytes), left by a killed run: dropped.", self.file, len(last))
        else:
            self.lines.write(b"\n")
