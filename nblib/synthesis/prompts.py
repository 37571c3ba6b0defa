"""What a language model is asked about an anchor (Truong §3.1.2): the paper's two prompts, with random cues of Appendix A."""

import hashlib
from collections.abc import Iterator, Mapping

import pandas as pd

from nblib.corpora.authored import HEDGES, NEGATIONS
from nblib.results import published
from nblib.synthesis import generations, parsing
from nblib.synthesis.generations import Generation, Question
from nblib.synthesis.parsing import Parsed

LABELS = {"negation": NEGATIONS, "hedging": HEDGES}  # kind of prompt → the labels it asks for, as it numbers them


def questions(anchors: pd.DataFrame, model: str, sampling: Mapping[str, object], seed: int = 0) -> Iterator[Question]:
    """Two questions an anchor (id, anchor), the same for the same arguments."""
    for anchor_id, anchor in zip(anchors.id, anchors.anchor, strict=True):
        for kind in LABELS:
            cues = {hedge: cue(anchor_id, hedge, seed) for hedge in HEDGES} if kind == "hedging" else {}
            key = generations.key(model, prompt(kind, anchor, cues), sampling)
            yield Question(key, anchor_id, anchor, kind, cues)


def prompt(kind: str, anchor: str, cues: Mapping[str, str]) -> str:
    """The paper's prompt to the letter, its slots filled."""
    slots = {f"{hedge}_cue": chosen for hedge, chosen in cues.items()}
    return published.prompts()[kind]["template"].format(text=anchor, **slots)


def cue(anchor_id: str, hedge: str, seed: int = 0) -> str:
    """The hedge cue for an anchor: random, but the same in every run."""
    cues = published.hedge_cues()[hedge]
    digest = hashlib.sha256(f"{seed}/{anchor_id}/{hedge}".encode()).digest()
    return cues[int.from_bytes(digest) % len(cues)]


def parse(generation: Generation) -> Parsed:
    """The sentences in a generation by label, or why it is unusable."""
    asked = prompt(generation.kind, generation.anchor, generation.cues)
    labels = LABELS[generation.kind]
    return parsing.parse(generation.answer, labels, generation.finish_reason, generation.anchor, asked)
