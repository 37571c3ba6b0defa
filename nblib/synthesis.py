"""From anchors to four negations and two hedges each, by a language model (Truong §3.1.2, cues from Appendix A).

Two questions an anchor: the paper's negation prompt, and its hedging prompt with a random cue for each of the two kinds. Every
answer goes to a file of generations (`nblib.generations`) before the next step looks at it; what that file has answered in a
usable way is not asked again, what it has answered in an unusable way is, up to a number of attempts. So a job can be killed and
run again, or mixed from direct calls and batches, and ends with the same questions asked.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from nblib import answers, generations, llm_batch, llm_client, paths
from nblib.answers import Reading
from nblib.generations import Generation, GenerationError, Store
from nblib.llm_client import Account, Prices, Request, Server
from nblib.llm_replies import Answer
from nblib.negation_profile import HEDGES, NEGATIONS

KINDS = {"negation": NEGATIONS, "hedging": HEDGES}  # prompt → the labels it asks for, as it numbers them
ATTEMPTS = 3  # at an answer that can be used
BATCH_DISCOUNT = 0.5  # what OpenAI takes off for its Batch API
COLUMNS = ["id", "anchor", "entailment", *NEGATIONS, "word_cue", "word", "phrase_cue", "phrase"]


class SynthesisError(ValueError):
    """Anchors that can't be asked about."""


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


# --- what is asked ----------------------------------------------------------------------------------------------------


def questions(anchors: pd.DataFrame, server: Server, seed: int = 0) -> Iterator[Question]:
    """Two questions an anchor, always the same ones for the same seed, model and sampling parameters.

    Args:
        anchors: id (unique), anchor.

    Raises:
        SynthesisError: a missing column, a repeated id or an empty anchor; names the first.
    """
    _check(anchors)
    for anchor_id, anchor in zip(anchors.id, anchors.anchor, strict=True):
        for kind in KINDS:
            cues = {hedge: cue(anchor_id, hedge, seed) for hedge in HEDGES} if kind == "hedging" else {}
            key = generations.key(server.model, prompt(kind, anchor, cues), server.sampling)
            yield Question(key, anchor_id, anchor, kind, cues)


def prompt(kind: str, anchor: str, cues: Mapping[str, str]) -> str:
    """The paper's prompt, filled."""
    return prompts()[kind].format(text=anchor, **{f"{hedge}_cue": chosen for hedge, chosen in cues.items()})


def cue(anchor_id: str, hedge: str, seed: int = 0) -> str:
    """The hedge cue for an anchor: drawn at random, but the same each time (no generator's state, no library's version)."""
    cues = _published("hedge_cues")[hedge]
    drawn = hashlib.sha256(f"{seed}/{anchor_id}/{hedge}".encode()).digest()
    return cues[int.from_bytes(drawn) % len(cues)]


def prompts() -> dict[str, str]:
    """The paper's two prompts, to the letter, with their slots."""
    return {kind: _published("prompts")[kind]["template"] for kind in KINDS}


@cache
def _published(name: str) -> dict:
    return json.loads((paths.DATA / "published" / f"{name}.json").read_text(encoding="utf-8"))


def _check(anchors: pd.DataFrame) -> None:
    if missing := [column for column in ("id", "anchor") if column not in anchors]:
        raise SynthesisError(
            f"Anchors without the column {', '.join(missing)}; they have {', '.join(anchors.columns)}."
        )
    if anchors.id.duplicated().any():
        raise SynthesisError(
            f"Two anchors have the id {anchors.id[anchors.id.duplicated()].iloc[0]!r}: ids must be unique."
        )
    empty = ~anchors.anchor.map(lambda text: isinstance(text, str) and bool(text.strip()))
    if empty.any():
        raise SynthesisError(
            f"{empty.sum()} anchors are empty, first: id {anchors.id[empty].iloc[0]!r}. Leave them out."
        )


# --- asking -----------------------------------------------------------------------------------------------------------


async def generate(
    anchors: pd.DataFrame,
    server: Server,
    file: str | Path,
    *,
    seed: int = 0,
    prices: Prices | None = None,
    budget: float | None = None,
    attempts: int = ATTEMPTS,
) -> Account:
    """Ask what the file has no usable answer to, until all is answered, attempts or budget are used up.

    Args:
        anchors: id, anchor.
        file: of generations; made if need be, appended to.
        budget: for the file as a whole, earlier runs included, in the prices' currency.
        attempts: at a usable answer, earlier runs included.

    Returns:
        what this run came to.

    Raises:
        LLMError: see `llm_client.ask`.
        GenerationError: another run writes to the file, the file is damaged, or a batch of its questions is under way.
    """
    prices = prices or Prices()
    with Store(file) as store:
        job = _Job(store)
        if waiting := llm_batch.waiting(job.batches):
            raise GenerationError(
                f"{len(waiting)} batches of {job.file} are under way, the first {waiting[0]}: what they ask would be paid for "
                "twice. Collect them first (synthesis.collect)."
            )
        left = None if budget is None else budget - job.spent(prices)
        account = Account()
        asked: set[str] = set()  # what is given up in this run is a matter for the next one
        while not account.stopped and (total := job.count(anchors, server, seed, attempts, asked)):
            pending = job.pending(anchors, server, seed, attempts, asked)
            account = await llm_client.ask(
                server, pending, job.keep, prices=prices, budget=left, total=total, account=account
            )
    return account


async def submit(
    anchors: pd.DataFrame,
    server: Server,
    file: str | Path,
    *,
    seed: int = 0,
    prices: Prices | None = None,
    budget: float | None = None,
    attempts: int = ATTEMPTS,
) -> list[str]:
    """Send what the file has no usable answer to as batches; where some are under way already, see those through instead.

    Returns:
        the ids of the batches under way.

    Raises:
        LLMError, GenerationError: as `generate`; a budget (for the file as a whole) that the batches could exceed.
    """
    prices = prices or Prices()
    with Store(file) as store:
        job = _Job(store)
        if not llm_batch.waiting(job.batches):
            left = None if budget is None else budget - job.spent(prices)
            pending = job.pending(anchors, server, seed, attempts, set())
            llm_batch.prepare(server, pending, job.batches, prices=prices, budget=left)
        return await llm_batch.submit(server, job.batches)


async def collect(server: Server, file: str | Path, *, wait: bool = True, poll: float = 60.0) -> pd.DataFrame:
    """Take the answers of the batches that have ended into the file; see `llm_batch.collect`."""
    with Store(file) as store:
        job = _Job(store)
        return await llm_batch.collect(server, job.batches, job.keep, wait=wait, poll=poll)


class _Job:
    """A file of generations and what is known of it: how often each question was answered, and which usably."""

    def __init__(self, store: Store) -> None:
        self.store, self.file = store, store.file
        self.batches = store.file.with_name(store.file.name + ".batches")
        self.answered: Counter[str] = Counter()
        self.usable: set[str] = set()
        for generation in generations.read(self.file):
            self.note(generation)

    def note(self, generation: Generation) -> None:
        self.answered[generation.key] += 1
        if not read(generation).reason:
            self.usable.add(generation.key)

    def count(self, anchors: pd.DataFrame, server: Server, seed: int, attempts: int, asked: set[str]) -> int:
        return sum(1 for _ in self.pending(anchors, server, seed, attempts, asked.copy()))

    def pending(
        self, anchors: pd.DataFrame, server: Server, seed: int, attempts: int, asked: set[str]
    ) -> Iterator[Request]:
        """A request for each question without a usable answer and with attempts left; its key is added to `asked`, and what is
        there already is passed over (equal questions, questions given up)."""
        for question in questions(anchors, server, seed):
            key, attempt = question.key, self.answered[question.key]
            name = f"{key}-{attempt}"
            if name in asked or key in self.usable or attempt >= attempts:
                continue
            asked.add(name)
            seeded = server.sampling.get("seed")  # with the same one, the answer would be the same again
            other = {"seed": seeded + attempt} if attempt and isinstance(seeded, int) else {}
            about = {
                **asdict(question),
                "attempt": attempt,
                "model": server.model,
                "sampling": {**server.sampling, **other},
            }
            yield Request(name, prompt(question.kind, question.anchor, question.cues), other, about)

    def keep(self, request: Request, answer: Answer) -> None:
        """Append an answer, once: a batch whose collection was killed hands it on again."""
        if request.about["attempt"] < self.answered[request.about["key"]]:
            return
        generation = Generation(
            **request.about,
            answer=answer.text,
            finish_reason=answer.finish_reason,
            answered_by=answer.model,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
        )
        self.store.append(generation)
        self.note(generation)

    def spent(self, prices: Prices) -> float:
        """What the file has cost."""
        return sum(cost(generation, prices) for generation in generations.read(self.file))


def cost(generation: Generation, prices: Prices) -> float:
    """Of one generation; the most it can have cost where the server didn't count its tokens.

    Raises:
        LLMError: neither are tokens counted nor their number limited.
    """
    if generation.input_tokens is not None and generation.output_tokens is not None:
        return prices.cost(generation.input_tokens, generation.output_tokens)
    asked = prompt(generation.kind, generation.anchor, generation.cues)
    return prices.bound({**generation.sampling, "messages": [{"content": asked}]})


# --- what came back ---------------------------------------------------------------------------------------------------


def read(generation: Generation) -> Reading:
    """The sentences in a generation by label, or why it can't be used.

    Raises:
        SynthesisError: it answers a prompt that the paper doesn't have.
    """
    if generation.kind not in KINDS:
        raise SynthesisError(f"A generation of kind {generation.kind!r}; known: {', '.join(KINDS)}.")
    return answers.read(
        generation.answer,
        KINDS[generation.kind],
        finish_reason=generation.finish_reason,
        anchor=generation.anchor,
        prompt=prompt(generation.kind, generation.anchor, generation.cues),
    )


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
    asked = list(questions(anchors, server, seed))
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
            reading = read(generation)
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
    complete = usable[usable.map(len) == len(KINDS)]
    clashes = int(complete.map(lambda parts: _clash(parts[0] | parts[1])).sum())
    total = came.id.nunique()
    anchors = {
        "usable": len(complete) - clashes,
        "a hedge that equals a negation": clashes,
        "a question without a usable answer": total - len(complete),
    }
    rows = []
    for kind in KINDS:
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
