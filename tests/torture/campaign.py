"""A kind of fault, and the outcomes that a case of it can have."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Step = Callable[[random.Random], tuple[str, str]]  # draws one case; its outcome, and the message or place

GOOD = (
    "named",  # one sentence with the file and the way out; of a bad input: a sentence that refuses it
    "whole",  # what is read is what was written; of an input: it was taken
    "as an edit",  # a well-formed change of a file that people edit
    "nothing yet",  # as if the work had not begun: it is done by the next run
)
BAD = ("SILENT", "TRACEBACK", "UNCLEAR", "CUT AFTER RERUN", "DRAFT LEFT")
MISSED = "done before"  # the kill came too late, and isn't counted


@dataclass(frozen=True)
class Kind:
    """Cases of one kind.

    Attributes:
        fault: kill, full disk, damage or input.
        cases: how many the campaign has.
        prepare: makes in an empty folder what the cases need.
    """

    fault: str
    name: str
    cases: int
    prepare: Callable[[Path], Step]
