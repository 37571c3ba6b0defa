"""What a file of generations yields: usable answers, anchors with all six variants, their numbers and their price."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from nblib.corpora.hedgetriple import HEDGES, NEGATIONS
from nblib.synthesis import generations, prompts
from nblib.synthesis.client import Prices, Server
from nblib.synthesis.generations import SynthesisError

COLUMNS = ["id", "anchor", "entailment", *NEGATIONS, "word_cue", "word", "phrase_cue", "phrase"]


def load_recording(file: str | Path) -> tuple[pd.DataFrame, Server]:
    """The anchors (id, anchor) and the model of a file of generations: enough to read it again without a server.

    Raises:
        SynthesisError: no such file, nothing in it, or answers of several models or sampling parameters.
    """
    anchors: dict[str, str] = {}
    models = set()
    for generation in generations.read(file):
        anchors.setdefault(generation.id, generation.anchor)
        if not generation.attempt:  # a later one may have had another seed
            models.add((generation.model, json.dumps(generation.sampling, sort_keys=True)))
    if not models:
        raise SynthesisError(f"No answers in {file}. Give a file of generations, or a model and a server to ask.")
    if len(models) > 1:
        listed = "; ".join(map(" ".join, sorted(models)))
        raise SynthesisError(
            f"{file} holds answers of several models or sampling parameters: {listed}. Read each from a file of its own."
        )
    model, sampling = models.pop()
    return pd.DataFrame(anchors.items(), columns=["id", "anchor"]), Server(model=model, sampling=json.loads(sampling))


def results(anchors: pd.DataFrame, server: Server, file: str | Path, seed: int = 0) -> pd.DataFrame:
    """The outcome of each question by the file: of its first usable answer, or else of the last one.

    Returns:
        id, kind, reason ("" where usable, "not answered" where there is nothing), attempts, answer (raw), sentences (by label),
        cues.
    """
    questions = list(prompts.questions(anchors, server.model, server.sampling, seed))
    nothing = {"reason": "not answered", "attempts": 0, "answer": "", "sentences": {}}
    rows = {question.key: nothing.copy() for question in questions}
    for generation in generations.read(file):
        if (row := rows.get(generation.key)) is None:
            continue
        row["attempts"] += 1
        if row["reason"]:
            parsed = prompts.parse(generation)
            row |= {"reason": parsed.reason, "answer": generation.answer, "sentences": parsed.sentences}
    table = [{"id": q.id, "kind": q.kind, **rows[q.key], "cues": q.cues} for q in questions]
    return pd.DataFrame(table, columns=["id", "kind", *nothing, "cues"])


def variants(anchors: pd.DataFrame, outcomes: pd.DataFrame) -> pd.DataFrame:
    """The anchors with all six variants: what `nblib.corpora.triples` builds from.

    Args:
        anchors: id, anchor, and entailment where there is one.
        outcomes: from `results`.

    Returns:
        `COLUMNS`; entailment is missing (None) where the source gives none, and the triples "only negation"
        can't be built from such anchors.

    Raises:
        SynthesisError: no anchor has all six.
    """
    found: dict[str, dict] = {}
    for row in outcomes[outcomes.reason == ""].itertuples(index=False):
        cues = {f"{hedge}_cue": cue for hedge, cue in row.cues.items()}
        found.setdefault(row.id, {}).update({**row.sentences, **cues})
    complete = [
        {"id": name, **row} for name, row in found.items() if {*NEGATIONS, *HEDGES} <= {*row} and not _clash(row)
    ]
    if not complete:
        raise SynthesisError(
            f"None of {len(anchors):,} anchors has all six variants. See the reasons in the yields; then ask a model that "
            "follows the prompts, or replay another recording."
        )
    texts = anchors if "entailment" in anchors else anchors.assign(entailment=None)
    return pd.DataFrame(complete).merge(texts[["id", "anchor", "entailment"]], on="id")[COLUMNS]


def yields(outcomes: pd.DataFrame) -> pd.DataFrame:
    """How many questions of each kind ended how, and how many anchors can be used.

    Returns:
        kind (negation, hedging, anchor), reason ("usable" first, also where there is none; then by number), n, asked (of how
        many), share (percent).
    """
    reasons = outcomes.assign(reason=outcomes.reason.replace("", "usable"))
    usable = outcomes[outcomes.reason == ""].groupby("id").sentences.agg(list)
    complete = usable[usable.map(len) == len(prompts.KINDS)]
    clashes = int(complete.map(lambda parts: _clash(parts[0] | parts[1])).sum())
    total = outcomes.id.nunique()
    anchors = {
        "usable": len(complete) - clashes,
        "a hedge that equals a negation": clashes,
        "a question without a usable answer": total - len(complete),
    }
    rows = []
    for kind in prompts.KINDS:
        counts = {"usable": 0, **reasons.reason[reasons.kind == kind].value_counts()}
        rows += [
            (kind, reason, n) for reason, n in sorted(counts.items(), key=lambda x: (x[0] != "usable", -x[1], x[0]))
        ]
    rows += [("anchor", reason, n) for reason, n in anchors.items() if n or reason == "usable"]
    table = pd.DataFrame(rows, columns=["kind", "reason", "n"])
    return table.assign(asked=total, share=100 * table.n / max(total, 1))


def price(questions: pd.DataFrame, rates: Mapping[str, Sequence[float]], anchors: int) -> pd.DataFrame:
    """What it would cost to ask about so many anchors, with prompts and answers as long as these.

    Args:
        questions: kind, attempts, input and output (tokens of one prompt and of one answer); a row a question.
        rates: model → price of a million input and of a million output tokens.

    Returns:
        model, calls, input and output (million tokens), price (in the rates' currency).

    Raises:
        SynthesisError: there are no rates or no anchors.
    """
    if not rates or anchors < 1:
        raise SynthesisError("A price needs rates of at least one model, and at least one anchor.")
    each = questions.groupby("kind")[["attempts", "input", "output"]].mean()
    calls = anchors * each.attempts.sum()
    millions = {side: anchors * (each.attempts * each[side]).sum() / 1e6 for side in ("input", "output")}
    rows = []
    for model in rates:
        prices = Prices.of(model, rates)
        cost = millions["input"] * prices.input + millions["output"] * prices.output
        rows.append((model, calls, *millions.values(), cost))
    return pd.DataFrame(rows, columns=["model", "calls", "input", "output", "price"])


def _clash(sentences: Mapping[str, str]) -> bool:
    """Whether a sentence is both positive and negative."""
    return bool({sentences[name] for name in NEGATIONS} & {sentences[name] for name in HEDGES})
