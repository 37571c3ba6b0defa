"""Two models' solutions of one problem side by side, as HTML, with the first step in which they differ marked."""

import re
from difflib import SequenceMatcher
from html import escape

from nblib.gsm8k.tokens import normalise

CSS = (
    "<style>.gsm8k td{vertical-align:top;text-align:left;width:33%;white-space:normal;padding:.4em .8em}"
    ".gsm8k ol{margin:0;padding-left:1.6em}.gsm8k mark{background:#E69F0066;color:inherit}</style>"
)


def steps(solution: str) -> list[str]:
    """A solution's steps: its lines, and the sentences within them."""
    return [
        step.strip()
        for line in solution.splitlines()
        for step in re.split(r"(?<=[.!?])\s+(?=\S)", line)
        if step.strip()
    ]


def first_difference(first: str, second: str) -> tuple[int | None, int | None]:
    """The place of the first step of each solution that the other doesn't have there; None where there is none (it has ended,
    or they are the same). How a step is spelt (×, spaces, calculator marks, case) doesn't matter."""
    plain = [[_plain(step) for step in steps(text)] for text in (first, second)]
    for tag, a, b, c, d in SequenceMatcher(None, *plain, autojunk=False).get_opcodes():
        if tag != "equal":
            return (a if b > a else None), (c if d > c else None)
    return None, None


def side_by_side(question: str, gold: str, solutions: dict[str, str], reference: str = "") -> str:
    """The problem, its answer, and the solutions in columns; in the first two the first differing step is marked.

    Args:
        solutions: heading → text; the first two are compared.
        reference: the data set's own solution, shown last.
    """
    compared = list(solutions.values())[:2]
    marked = first_difference(*compared) if len(compared) == 2 else (None, None)
    columns = {**solutions, **({"data set's solution": reference} if reference else {})}
    places = [*marked, *[None] * len(columns)]
    heads = "".join(f"<th>{escape(name)}</th>" for name in columns)
    cells = "".join(f"<td>{_list(text, place)}</td>" for text, place in zip(columns.values(), places, strict=False))
    return (
        f"{CSS}<p><b>Problem.</b> {escape(question)} <b>Answer:</b> {escape(gold)}</p>"
        f'<table class="gsm8k"><thead><tr>{heads}</tr></thead><tbody><tr>{cells}</tr></tbody></table>'
    )


def _list(text: str, marked: int | None) -> str:
    shown = [escape(step) for step in steps(text)]
    if marked is not None:
        shown[marked] = f"<mark>{shown[marked]}</mark>"
    return "<ol>" + "".join(f"<li>{step}</li>" for step in shown) + "</ol>" if shown else "<i>nothing</i>"


def _plain(step: str) -> str:
    return re.sub(r"<<.*?>>|[\s$.,]", "", normalise(step)).lower()
