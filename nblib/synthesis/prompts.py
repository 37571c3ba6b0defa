"""What a language model is asked about an anchor, and how its answers are read (Truong §3.1.2, cues from Appendix A).

Two questions an anchor: the paper's negation prompt, and its hedging prompt with a random cue for each of the two kinds.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from nblib.corpora.hedgetriple import HEDGES, NEGATIONS
from nblib.results import published
from nblib.synthesis import generations, parsing
from nblib.synthesis.generations import Generation
from nblib.synthesis.parsing import Parsed

KINDS = {"negation": NEGATIONS, "hedging": HEDGES}  # prompt → the labels it asks for, as it numbers them


@dataclass(frozen=True)
class Question:
    """One thing to ask: an anchor's negations or its hedges.

    Attributes:
        key: its name in the file of generations.
        id, anchor: the anchor's id and text.
        kind: of `KINDS`.
        cues: the hedge cues in the prompt, by kind of hedge.
    """

    key: str
    id: str
    anchor: str
    kind: str
    cues: Mapping[str, str]


def questions(anchors: pd.DataFrame, model: str, sampling: Mapping[str, object], seed: int = 0) -> Iterator[Question]:
    """Two questions an anchor, always the same ones for the same seed, model and sampling parameters.

    Args:
        anchors: id (unique), anchor.
    """
    for anchor_id, anchor in zip(anchors.id, anchors.anchor, strict=True):
        for kind in KINDS:
            cues = {hedge: cue(anchor_id, hedge, seed) for hedge in HEDGES} if kind == "hedging" else {}
            key = generations.key(model, prompt(kind, anchor, cues), sampling)
            yield Question(key, anchor_id, anchor, kind, cues)


def prompt(kind: str, anchor: str, cues: Mapping[str, str]) -> str:
    """The paper's prompt to the letter, its slots filled."""
    slots = {f"{hedge}_cue": chosen for hedge, chosen in cues.items()}
    return published.prompts()[kind]["template"].format(text=anchor, **slots)


def cue(anchor_id: str, hedge: str, seed: int = 0) -> str:
    """The hedge cue for an anchor: random, but the same in every run (no generator's state, no library's version)."""
    cues = published.hedge_cues()[hedge]
    digest = hashlib.sha256(f"{seed}/{anchor_id}/{hedge}".encode()).digest()
    return cues[int.from_bytes(digest) % len(cues)]


def parse(generation: Generation) -> Parsed:
    """The sentences in a generation by label, or why it is unusable."""
    return parsing.parse(
        generation.answer,
        KINDS[generation.kind],
        finish_reason=generation.finish_reason,
        anchor=generation.anchor,
        prompt=prompt(generation.kind, generation.anchor, generation.cues),
    )
