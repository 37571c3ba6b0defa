"""What a file of generations yields: usable answers, and anchors with all six variants."""

import json
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from nblib.corpora.authored import HEDGES, NEGATIONS
from nblib.errors import StudyError
from nblib.synthesis import generations, prompts
from nblib.synthesis.client import Server


def load_recording(file: str | Path) -> tuple[pd.DataFrame, Server]:
    """The anchors (id, anchor) and the model of a file of generations, to read it again without a server. StudyError: nothing in
    it, or answers of several models or sampling parameters."""
    anchors, models = {}, set()
    for generation in generations.read(file):
        anchors.setdefault(generation.id, generation.anchor)
        if not generation.attempt:  # a later one may have had another seed
            models.add((generation.model, json.dumps(generation.sampling, sort_keys=True)))
    if len(models) != 1:
        listed = "; ".join(map(" ".join, sorted(models))) or "none"
        raise StudyError(f"{file} must hold answers of one model, by one way to sample; it has: {listed}.")
    ((model, sampling),) = models
    return pd.DataFrame(anchors.items(), columns=["id", "anchor"]), Server(model, sampling=json.loads(sampling))


def results(anchors: pd.DataFrame, server: Server, file: str | Path, seed: int = 0) -> pd.DataFrame:
    """The outcome of each question, by its first usable answer or else the last one: id, kind, reason ("" where usable, "not
    answered" where there is nothing), attempts, answer (raw), sentences (by label), cues. StudyError: nothing is answered."""
    questions = list(prompts.questions(anchors, server.model, server.sampling, seed))
    nothing = {"reason": "not answered", "attempts": 0, "answer": "", "sentences": {}}
    ends = {question.key: nothing.copy() for question in questions}  # equal anchors share one
    for generation in generations.read(file):
        if end := ends.get(generation.key):
            end["attempts"] += 1
            if end["reason"]:
                parsed = prompts.parse(generation)
                end |= {"reason": parsed.reason, "answer": generation.answer, "sentences": parsed.sentences}
    if not any(end["attempts"] for end in ends.values()):
        raise StudyError(f"{file} has no answer of {server.model} to these questions, of seed {seed} and its sampling.")
    return pd.DataFrame([{"id": q.id, "kind": q.kind, **ends[q.key], "cues": q.cues} for q in questions])


def variants(anchors: pd.DataFrame, outcomes: pd.DataFrame) -> pd.DataFrame:
    """The anchors (id, anchor, perhaps entailment) with all six variants by `results`: id, anchor, entailment (or None), the four
    negations, word_cue, word, phrase_cue, phrase. StudyError: no anchor has all six."""
    rows: dict[str, dict] = {}
    for row in outcomes[outcomes.reason == ""].itertuples(index=False):
        cues = {f"{hedge}_cue": cue for hedge, cue in row.cues.items()}
        rows.setdefault(row.id, {"id": row.id}).update({**row.sentences, **cues})
    complete = [row for row in rows.values() if not _problem(row)]
    if not complete:
        reasons = ", ".join(f"{reason or 'usable'} ({n})" for reason, n in outcomes.reason.value_counts().items())
        remedy = "Ask another model, or with a greater max_tokens; replay a recording with its own seed."
        raise StudyError(f"None of {len(anchors):,} anchors has all six variants. The answers: {reasons}. {remedy}")
    texts = anchors if "entailment" in anchors else anchors.assign(entailment=None)
    cued = [column for hedge in HEDGES for column in (f"{hedge}_cue", hedge)]
    columns = ["id", "anchor", "entailment", *NEGATIONS, *cued]
    return pd.DataFrame(complete).merge(texts[["id", "anchor", "entailment"]], on="id")[columns]


def yields(outcomes: pd.DataFrame) -> pd.DataFrame:
    """How many questions ended how: kind (negation, hedging, or "anchor": can it be used?), reason ("usable" first, also where
    there is none; then by number), n, asked (of how many), share (percent)."""
    by_anchor = outcomes.groupby("id").sentences.apply(lambda parts: _problem(ChainMap(*parts)))
    reasons = pd.concat([outcomes[["kind", "reason"]], pd.DataFrame({"kind": "anchor", "reason": by_anchor})])
    kinds = [*prompts.LABELS, "anchor"]
    counts = {(kind, ""): 0 for kind in kinds} | reasons.value_counts().to_dict()
    rows = [(kind, reason, n) for (kind, reason), n in counts.items()]
    rows.sort(key=lambda row: (kinds.index(row[0]), row[1] != "", -row[2], row[1]))
    table = pd.DataFrame(rows, columns=["kind", "reason", "n"]).replace({"reason": {"": "usable"}})
    return table.assign(asked=len(by_anchor), share=100 * table.n / len(by_anchor))


def _problem(sentences: Mapping[str, str]) -> str:
    """Why an anchor with these sentences can't be used; "" where it can."""
    if not {*NEGATIONS, *HEDGES} <= {*sentences}:
        return "a question without a usable answer"
    clash = {sentences[name] for name in NEGATIONS} & {sentences[name] for name in HEDGES}
    return "a hedge that equals a negation" if clash else ""
