"""What a file of generations came to: usable answers, anchors with all six variants, how many there are, what they cost."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from nblib import generations, questions
from nblib.llm_client import Server
from nblib.negation_profile import HEDGES, NEGATIONS
from nblib.questions import SynthesisError

BATCH_DISCOUNT = 0.5  # what OpenAI takes off for its Batch API
COLUMNS = ["id", "anchor", "entailment", *NEGATIONS, "word_cue", "word", "phrase_cue", "phrase"]


def recorded(file: str | Path) -> tuple[pd.DataFrame, Server]:
    """What a file of generations was asked about (id, anchor), and whom: enough to read it again without any server.

    Raises:
        SynthesisError: no such file, nothing in it, or answers of several models or sampling parameters.
    """
    found: dict[str, str] = {}
    whom = set()
    for generation in generations.read(file):
        found.setdefault(generation.id, generation.anchor)
        if not generation.attempt:  # a later one may have had another seed
            whom.add((generation.model, json.dumps(dict(generation.sampling), sort_keys=True)))
    if not whom:
        raise SynthesisError(f"No answers in {file}. Give a file of generations, or a model and a server to ask.")
    if len(whom) > 1:
        raise SynthesisError(
            f"{file} holds answers of several models or sampling parameters: {'; '.join(map(' '.join, sorted(whom)))}. Read "
            "each from a file of its own."
        )
    model, sampling = whom.pop()
    anchors = pd.DataFrame({"id": list(found), "anchor": list(found.values())})
    return anchors, Server(model=model, sampling=json.loads(sampling))


def results(anchors: pd.DataFrame, server: Server, file: str | Path, seed: int = 0) -> pd.DataFrame:
    """What the file says of each question: of its first usable answer, or else of the last one.

    Returns:
        id, kind, reason ("" where usable, "not answered" where there is nothing), attempts, input_tokens, output_tokens
        (over all attempts, as far as counted), answer (raw), sentences (by label), cues.
    """
    asked = list(questions.of(anchors, server, seed))
    keys = {question.key for question in asked}
    found: dict[str, dict] = {}
    for generation in generations.read(file):
        if generation.key not in keys:
            continue
        row = found.setdefault(
            generation.key, {"reason": "not answered", "attempts": 0, "input_tokens": 0, "output_tokens": 0}
        )
        row["attempts"] += 1
        row["input_tokens"] += generation.input_tokens or 0
        row["output_tokens"] += generation.output_tokens or 0
        if row["reason"]:
            reading = questions.read(generation)
            row |= {"reason": reading.reason, "answer": generation.answer, "sentences": dict(reading.sentences)}
    nothing = {"reason": "not answered", "attempts": 0, "input_tokens": 0, "output_tokens": 0}
    empty = {"answer": "", "sentences": {}}
    rows = [{"id": q.id, "kind": q.kind, **empty, **found.get(q.key, nothing), "cues": dict(q.cues)} for q in asked]
    columns = ["id", "kind", "reason", "attempts", "input_tokens", "output_tokens", "answer", "sentences", "cues"]
    return pd.DataFrame(rows, columns=columns)


def variants(anchors: pd.DataFrame, came: pd.DataFrame) -> pd.DataFrame:
    """The anchors whose six variants are all there: what `nblib.triples` builds from.

    Args:
        anchors: id, anchor, and entailment where there is one.
        came: from `results`.

    Returns:
        `COLUMNS`; entailment is missing (None) where the source gives none: nothing is made up, and the recipe "only negation"
        refuses such anchors.
    """
    sentences: dict[str, dict] = {}
    for row in came[came.reason == ""].itertuples(index=False):
        cues = {f"{hedge}_cue": chosen for hedge, chosen in row.cues.items()}
        sentences.setdefault(row.id, {}).update({**row.sentences, **cues})
    texts = anchors.set_index("id")
    rows = []
    for anchor_id, made in sentences.items():
        complete = all(name in made for name in (*NEGATIONS, *HEDGES))
        if complete and not _clash(made):
            entailment = texts.entailment[anchor_id] if "entailment" in texts else None
            rows.append({"id": anchor_id, "anchor": texts.anchor[anchor_id], "entailment": entailment, **made})
    return pd.DataFrame(rows, columns=COLUMNS)


def yields(came: pd.DataFrame) -> pd.DataFrame:
    """How many questions of each kind ended how, and how many anchors can be used.

    Returns:
        kind (negation, hedging, anchor), reason ("usable" first, also where there is none; then by number), n, asked (of how
        many), share (percent).
    """
    reasons = came.assign(reason=came.reason.replace("", "usable"))
    usable = came[came.reason == ""].groupby("id").sentences.agg(list)
    complete = usable[usable.map(len) == len(questions.KINDS)]
    clashes = int(complete.map(lambda parts: _clash(parts[0] | parts[1])).sum())
    total = came.id.nunique()
    anchors = {
        "usable": len(complete) - clashes,
        "a hedge that equals a negation": clashes,
        "a question without a usable answer": total - len(complete),
    }
    rows = []
    for kind in questions.KINDS:
        counts = {"usable": 0, **reasons.reason[reasons.kind == kind].value_counts()}
        rows += [
            (kind, reason, n) for reason, n in sorted(counts.items(), key=lambda x: (x[0] != "usable", -x[1], x[0]))
        ]
    rows += [("anchor", reason, n) for reason, n in anchors.items() if n or reason == "usable"]
    table = pd.DataFrame(rows, columns=["kind", "reason", "n"])
    return table.assign(asked=total, share=100 * table.n / max(total, 1))


def price(
    asked: pd.DataFrame, rates: Mapping[str, Sequence[float]], anchors: int, batch_discount: float = BATCH_DISCOUNT
) -> pd.DataFrame:
    """What it would cost to ask about so many anchors, as long prompts and answers as these.

    Args:
        asked: kind, attempts, input and output (tokens of one prompt and of one answer); a row a question.
        rates: model → price of a million input and of a million output tokens.

    Returns:
        model, calls, input and output (million tokens), price, in_batches (the price through a Batch API), in the rates'
        currency.
    """
    each = asked.groupby("kind")[["attempts", "input", "output"]].mean()
    calls = anchors * each.attempts.sum()
    millions = {side: anchors * (each.attempts * each[side]).sum() / 1e6 for side in ("input", "output")}
    rows = []
    for model, (of_input, of_output) in rates.items():
        cost = millions["input"] * of_input + millions["output"] * of_output
        rows.append((model, calls, *millions.values(), cost, cost * (1 - batch_discount)))
    return pd.DataFrame(rows, columns=["model", "calls", "input", "output", "price", "in_batches"])


def _clash(made: Mapping[str, str]) -> bool:
    """Whether a sentence is both positive and negative."""
    return bool({made[name] for name in NEGATIONS} & {made[name] for name in HEDGES})
