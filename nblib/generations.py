"""What was generated, kept: one JSON line an answer, appended the moment it arrives, never changed.

A line says what was asked (anchor, kind of prompt, cues, model, sampling parameters), under a key that is a hash of it, and
what came back, raw: whether it can be used is decided on reading, so that a better parser rescues old answers.

A line is written in one piece before the answer counts as kept: a killed process leaves at most the last line unfinished,
and that one is dropped when the file is next opened. Disks are told to write (fsync) once a second: only a power cut
loses more. One run at a time may write, since two would ask the same questions; to work on two machines, split the anchors and
join the files (`cat`): keys make that safe.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import filelock

from nblib import paths

logger = logging.getLogger(__name__)

SYNC_SECONDS = 1.0


class GenerationError(ValueError):
    """A file of generations that can't be used."""


@dataclass(frozen=True)
class Generation:
    """One answer and what it answers.

    Attributes:
        key: from `key`.
        attempt: 0, 1, … where an answer could not be used and the same was asked again.
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
_TYPES = {
    "key": str,
    "attempt": int,
    "id": str,
    "anchor": str,
    "kind": str,
    "cues": dict,
    "answer": str,
    "finish_reason": str,
}


def key(model: str, prompt: str, sampling: Mapping[str, object]) -> str:
    """What names a question: a hash (32 hexadecimal digits) of model, prompt (its cues within) and sampling parameters."""
    asked = json.dumps([model, prompt, dict(sampling)], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()[:32]


def read(file: str | Path) -> Iterator[Generation]:
    """The generations in a file, in order; none where there is no file. An unfinished last line is passed over.

    Raises:
        GenerationError: any other line that is no generation; names it.
    """
    file = paths.resolve(file)
    if not file.exists():
        return
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield _parse(line)
            except ValueError as error:
                if not line.endswith(b"\n"):
                    return
                raise GenerationError(
                    f"{file}, line {number}: no generation ({error}). Restore the file, or delete that line: its question is "
                    "then asked again."
                ) from error


def _parse(line: bytes) -> Generation:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError("not an object")
    if missing := [name for name in _NAMES if name not in row]:
        raise ValueError(f"without {', '.join(missing)}")
    if wrong := [name for name, type_ in _TYPES.items() if not isinstance(row[name], type_)]:
        raise ValueError(f"ill-typed {', '.join(wrong)}")
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
        try:
            self.descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            self._mend()
        except BaseException:
            self.lock.release()
            raise
        self.synced = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.fsync(self.descriptor)
        finally:
            os.close(self.descriptor)
            self.lock.release()

    def append(self, generation: Generation) -> None:
        """Keep one more.

        Raises:
            GenerationError: it can't be written (a full disk); the file is left as it was.
        """
        line = json.dumps(asdict(generation)).encode() + b"\n"  # ASCII: an answer may hold what UTF-8 can't
        end = os.fstat(self.descriptor).st_size
        try:
            written = os.write(self.descriptor, line)
            if written < len(line):
                written += os.write(self.descriptor, line[written:])
            if written < len(line):
                raise OSError("written in part only")
        except OSError as error:
            os.ftruncate(self.descriptor, end)
            raise GenerationError(
                f"Can't write to {self.file} ({error.strerror or error}). Free space, then run again: all before is kept."
            ) from error
        if time.monotonic() - self.synced >= SYNC_SECONDS:
            os.fsync(self.descriptor)
            self.synced = time.monotonic()

    def _mend(self) -> None:
        """End the file with a whole line: a killed run may have left half a one."""
        size = os.fstat(self.descriptor).st_size
        last = _after_last_newline(self.descriptor, size)
        if not last:
            return
        try:
            _parse(last)
        except ValueError:
            os.ftruncate(self.descriptor, size - len(last))
            logger.warning("%s ended in half a line (%d bytes), left by a killed run: dropped.", self.file, len(last))
        else:
            os.write(self.descriptor, b"\n")


def _after_last_newline(descriptor: int, size: int) -> bytes:
    tail = b""
    while b"\n" not in tail and len(tail) < size:
        length = min(size, len(tail) + 65536)
        tail = os.pread(descriptor, length, size - length)
    return tail.rpartition(b"\n")[2]
