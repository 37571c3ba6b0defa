"""Ask a language model for each anchor's four negations and two hedges (the questions are those of `prompts`).

Every answer goes to a file of generations before the next step looks at it. A question with a usable answer there is not
asked again; one with unusable answers is, up to a number of attempts. So a job can be killed and run again, and ends with the
same questions asked. `outcomes` reads what the file then holds.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from nblib.synthesis import client, generations, prompts
from nblib.synthesis.client import Account, Answer, Prices, Request, Server
from nblib.synthesis.generations import Generation, Store

ATTEMPTS = 3  # at a usable answer


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
    """Ask what the file has no usable answer to, until all is answered, or attempts or budget are used up.

    Args:
        anchors: id, anchor.
        file: of generations; created or appended to.
        budget: for the file as a whole, earlier runs included, in the prices' currency.
        attempts: at a usable answer, earlier runs included.

    Returns:
        The account of this run.

    Raises:
        LLMError: see `client.ask`.
        GenerationError: another run writes to the file, or the file is damaged.
    """
    prices = prices or Prices()
    with Store(file) as store:
        left = None if budget is None else budget - spent(store.file, prices)
        job = _Job(store, anchors, server, seed, attempts)
        account = Account()
        while not account.stopped and (total := sum(1 for _ in job.pending(job.requested.copy()))):
            requests = job.pending(job.requested)
            account = await client.ask(
                server, requests, job.keep, prices=prices, budget=left, total=total, account=account
            )
    return account


class _Job:
    """The questions of a run, and what its file holds: how often each was answered, and which of them usably."""

    def __init__(self, store: Store, anchors: pd.DataFrame, server: Server, seed: int, attempts: int) -> None:
        self.store, self.anchors, self.server, self.seed, self.attempts = store, anchors, server, seed, attempts
        self.answered: Counter[str] = Counter()
        self.usable: set[str] = set()
        self.requested: set[str] = set()  # in this run; one that was given up is for the next run
        for generation in generations.read(store.file):
            self.note(generation)

    def note(self, generation: Generation) -> None:
        self.answered[generation.key] += 1
        if not prompts.parse(generation).reason:
            self.usable.add(generation.key)

    def pending(self, requested: set[str]) -> Iterator[Request]:
        """A request for each question without a usable answer and with attempts left.

        Nothing in `requested` is requested again, and all that is yielded is added to it: equal questions make one request.
        """
        for question in prompts.questions(self.anchors, self.server, self.seed):
            key, attempt = question.key, self.answered[question.key]
            name = f"{key}-{attempt}"
            if name in requested or key in self.usable or attempt >= self.attempts:
                continue
            requested.add(name)
            seed = self.server.sampling.get("seed")  # with the same one, the answer would be the same again
            other = {"seed": seed + attempt} if attempt and isinstance(seed, int) else {}
            sampling = {**self.server.sampling, **other}
            about = {**asdict(question), "attempt": attempt, "model": self.server.model, "sampling": sampling}
            yield Request(name, prompts.prompt(question.kind, question.anchor, question.cues), other, about)

    def keep(self, request: Request, answer: Answer) -> None:
        self.note(self.store.keep(request, answer))


def spent(file: str | Path, prices: Prices) -> float:
    """What a file of generations has cost; an answer without counted tokens counts the most it can have cost.

    Raises:
        LLMError: neither are tokens counted nor their number limited.
    """
    return sum(_cost(generation, prices) for generation in generations.read(file))


def _cost(generation: Generation, prices: Prices) -> float:
    if generation.input_tokens is not None and generation.output_tokens is not None:
        return prices.cost(generation.input_tokens, generation.output_tokens)
    prompt = prompts.prompt(generation.kind, generation.anchor, generation.cues)
    return prices.bound({**generation.sampling, "messages": [{"content": prompt}]})
