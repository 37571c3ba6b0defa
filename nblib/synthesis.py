"""Ask a language model for each anchor's four negations and two hedges (the questions are those of `nblib.questions`).

Every answer goes to a file of generations (`nblib.generations`) before the next step looks at it; what that file has answered in
a usable way is not asked again, what it has answered in an unusable way is, up to a number of attempts. So a job can be killed
and run again, or mixed from direct calls and batches, and ends with the same questions asked. What came of it is read by
`nblib.synthesised`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from nblib import generations, llm_batch, llm_client, questions
from nblib.generations import Generation, GenerationError, Store
from nblib.llm_client import Account, Prices, Request, Server
from nblib.llm_replies import Answer

ATTEMPTS = 3  # at an answer that can be used


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
        if not questions.read(generation).reason:
            self.usable.add(generation.key)

    def count(self, anchors: pd.DataFrame, server: Server, seed: int, attempts: int, asked: set[str]) -> int:
        return sum(1 for _ in self.pending(anchors, server, seed, attempts, asked.copy()))

    def pending(
        self, anchors: pd.DataFrame, server: Server, seed: int, attempts: int, asked: set[str]
    ) -> Iterator[Request]:
        """A request for each question without a usable answer and with attempts left; its key is added to `asked`, and what is
        there already is passed over (equal questions, questions given up)."""
        for question in questions.of(anchors, server, seed):
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
            yield Request(name, questions.prompt(question.kind, question.anchor, question.cues), other, about)

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
    asked = questions.prompt(generation.kind, generation.anchor, generation.cues)
    return prices.bound({**generation.sampling, "messages": [{"content": asked}]})
