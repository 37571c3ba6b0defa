"""Ask a language model for each anchor's negations and hedges: many questions at once, retried, and within a budget.

The server is any with OpenAI's API. Every answer is in the file of generations before anything else looks at it. A question with
a usable answer there is not asked again; one with unusable answers is, up to `ATTEMPTS`. So a run can be killed and begun again,
and asks what is missing. The key is read from the environment variable `OPENAI_API_KEY` and sent to the server alone.
"""

import asyncio
import math
import os
import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import openai
import pandas as pd
from tqdm.auto import tqdm

from nblib import paths
from nblib.synthesis import generations, prompts
from nblib.synthesis.generations import Generation, SynthesisError
from nblib.synthesis.prompts import Question

ATTEMPTS = 3  # at a usable answer, those of earlier runs included
RETRIES = 8  # of one request, by the openai SDK: after 408, 409, 429, 5xx, no connection, or no answer in time
TIMEOUT = 120.0  # seconds
KEY = "OPENAI_API_KEY"
_REMEDIES = {
    "HTTP 400": "See that the server has this model, takes these sampling parameters, and has room for prompt and answer",
    "HTTP 401": f"Set the environment variable {KEY} to a key that it accepts",
    "HTTP 403": f"Set the environment variable {KEY} to a key that may use this model",
    "HTTP 404": "Mend model or base_url, which often ends in /v1",
    "HTTP 429": "Wait, lower concurrency, or raise the account's limit",
    "no response": f"See that the server runs at base_url and answers within {TIMEOUT:g} seconds",
    "unreadable answer": "See that base_url is that of the API, which often ends in /v1",
}


@dataclass(frozen=True)
class Server:
    """A model behind a server with OpenAI's API, and how to ask it.

    Attributes:
        model: the name the server knows it by.
        base_url: of the server, up to and with its /v1.
        sampling: sent as it is: temperature, max_tokens, seed, and whatever else that server takes.
        concurrency: questions in flight at once.
    """

    model: str
    base_url: str = "https://api.openai.com/v1"
    sampling: Mapping[str, object] = field(default_factory=lambda: {"temperature": 1.0, "max_tokens": 512})
    concurrency: int = 64

    def __post_init__(self) -> None:
        if not re.fullmatch(r"https?://([\w.-]+|\[[\da-fA-F:]+\])(:\d+)?(/[^?#@\s]*)?", self.base_url):
            raise SynthesisError("base_url must look like http(s)://host[:port]/v1, and holds no key.")
        if reserved := sorted({"model", "messages", "stream", "n"} & set(self.sampling)):
            raise SynthesisError(f"sampling can't set {', '.join(reserved)}, because the client does.")
        if self.concurrency < 1:
            raise SynthesisError(f"concurrency must be at least 1, and is {self.concurrency}.")


@dataclass(frozen=True)
class Prices:
    """What a million tokens cost, in any one currency."""

    input: float
    output: float

    @classmethod
    def of(cls, model: str, rates: Mapping[str, Sequence[float]]) -> "Prices":
        """A model's in a table of rates.

        Raises:
            SynthesisError: it has none there.
        """
        if model not in rates:
            raise SynthesisError(f"rates has no price of {model!r}. Add it, e.g. {model}: [0.5, 1.5].")
        return cls(*rates[model])

    def cost(self, generation: Generation) -> float:
        """Of an answer; the most that it can have cost, where the server counts no tokens."""
        if generation.input_tokens is None or generation.output_tokens is None:
            return self.bound(generation, generation.sampling)
        return (generation.input_tokens * self.input + generation.output_tokens * self.output) / 1e6

    def bound(self, question: Question | Generation, sampling: Mapping[str, object]) -> float:
        """The most one answer can cost: no token is shorter than a byte, and a chat template adds a few."""
        read = len(prompts.prompt(question.kind, question.anchor, question.cues).encode()) + 64
        return (read * self.input + _limit(sampling) * self.output) / 1e6


@dataclass
class Account:
    """The outcome of a run.

    Attributes:
        answered: answers, usable or not.
        cost: of these, in the prices' currency.
        failures: questions that got none, by the kind of failure ("HTTP 400", "no response", "unreadable answer").
        stopped: "budget" where that ended the run, else "".
    """

    answered: int = 0
    cost: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    stopped: str = ""


async def generate(
    anchors: pd.DataFrame,
    server: Server,
    file: str | Path,
    *,
    seed: int = 0,
    prices: Prices | None = None,
    budget: float | None = None,
) -> Account:
    """Ask what the file has no usable answer to, until all is answered, or attempts or budget are used up.

    A question that still fails after its retries is left to the next run.

    Args:
        anchors: id, anchor.
        file: of generations; created or appended to.
        budget: for the file as a whole, earlier runs included. No question is asked that could exceed it. Whether a server
            charges for failed requests can't be known.

    Raises:
        SynthesisError: no key, a budget without max_tokens, a damaged file, no answer at all, or one failure after another.
            All answers, those in flight too, are in the file.
    """
    if budget is not None and not _limit(server.sampling):
        raise SynthesisError("With a budget, the length of an answer needs a limit: set max_tokens in sampling.")
    run = _Run(anchors, server, paths.resolve(file), seed, prices or Prices(0.0, 0.0), budget)
    if run.pending:
        await run.ask_all()
    return run.account


class _Run:
    """What the questions of a run share."""

    def __init__(
        self, anchors: pd.DataFrame, server: Server, file: Path, seed: int, prices: Prices, budget: float | None
    ) -> None:
        self.server, self.file, self.prices, self.account = server, file, prices, Account()
        self.left = math.inf if budget is None else budget
        self.reserved = 0.0  # the most that the questions in flight can cost
        self.failed: list[str] = []  # failures with no answer between them
        self.attempts: Counter[str] = Counter()
        usable = set()
        paths.writable_folder(file.parent)
        generations.drop_half_line(file)
        for generation in generations.read(file):
            self.left -= prices.cost(generation)
            self.attempts[generation.key] += 1
            if not prompts.parse(generation).reason:
                usable.add(generation.key)
        missing = {}
        for question in prompts.questions(anchors, server.model, server.sampling, seed):
            if question.key not in usable and self.attempts[question.key] < ATTEMPTS:
                missing[question.key] = question  # equal ones once
        self.pending = deque(missing.values())

    async def ask_all(self) -> None:
        server, account = self.server, self.account
        options = {"api_key": _key(server), "base_url": server.base_url, "timeout": TIMEOUT, "max_retries": RETRIES}
        with tqdm(total=len(self.pending), desc=server.model, unit="answer", mininterval=0.5) as self.progress:
            async with openai.AsyncOpenAI(**options) as self.client:
                workers = [self.work() for _ in range(server.concurrency)]
                ended = await asyncio.gather(*workers, return_exceptions=True)
        if errors := [error for error in ended if error]:
            raise errors[0]
        if self.failed and not account.answered:
            raise SynthesisError(self.failed[-1])
        account.stopped = "budget" if self.pending else ""

    async def work(self) -> None:
        """Ask one question after another, until none is left, or the budget has no room for one beside those in flight."""
        try:
            while self.pending:
                bound = self.prices.bound(self.pending[0], self.server.sampling)
                if self.reserved + bound > self.left:
                    return
                self.reserved += bound
                await self.ask(self.pending.popleft())
                self.reserved -= bound
        except Exception:
            self.left = -math.inf  # the others end with the answers that they wait for
            raise

    async def ask(self, question: Question) -> None:
        """Get an answer into the file, or count the failure."""
        sampling, attempt = dict(self.server.sampling), self.attempts[question.key]
        if isinstance(sampling.get("seed"), int):
            sampling["seed"] += attempt  # the same one would bring the same answer again
        prompt = prompts.prompt(question.kind, question.anchor, question.cues)
        body = {"model": self.server.model, "messages": [{"role": "user", "content": prompt}], **sampling}
        about = {**asdict(question), "attempt": attempt, "model": self.server.model, "sampling": sampling}
        try:
            completion = await self.client.post("/chat/completions", body=body, cast_to=object)
            generation = Generation(**about, **_answer(completion))
        except (openai.OpenAIError, ValueError) as error:
            return self.fail(error)
        generations.append(generation, self.file)
        cost = self.prices.cost(generation)
        self.left -= cost
        self.account.cost += cost
        self.account.answered += 1
        self.attempts[question.key] += 1
        self.failed.clear()
        if prompts.parse(generation).reason and self.attempts[question.key] < ATTEMPTS:
            self.pending.append(question)
            self.progress.total += 1
        self.progress.set_postfix_str(f"cost {self.account.cost:.4f}", refresh=False)
        self.progress.update()

    def fail(self, error: Exception) -> None:
        """Count a failure.

        Raises:
            SynthesisError: it is one of many with no answer between them, so the fault is not the question's.
        """
        lost = "no response" if isinstance(error, openai.APIConnectionError) else "unreadable answer"
        kind = f"HTTP {error.status_code}" if isinstance(error, openai.APIStatusError) else lost
        remedy = _REMEDIES.get(kind, "See what the server's log says")
        about = f"{self.server.base_url}, model {self.server.model!r}: {_said(error)}"
        self.account.failures[kind] += 1
        self.failed.append(f"{about}. {remedy}, then run again: it asks only what is missing.")
        if len(self.failed) >= max(self.server.concurrency, 10):
            raise SynthesisError(self.failed[-1])


def _limit(sampling: Mapping[str, object]) -> int:
    """The most tokens of an answer; 0 where nothing limits them."""
    limit = sampling.get("max_completion_tokens", sampling.get("max_tokens"))
    return limit if isinstance(limit, int) else 0


def _key(server: Server) -> str:
    key = os.environ.get(KEY, "").strip()
    if not key and urlsplit(server.base_url).hostname not in ("localhost", "127.0.0.1", "::1"):
        raise SynthesisError(
            f"No key for {server.base_url}: set the environment variable {KEY} (to any word, if that server wants none). "
            "Don't write it into a notebook or its parameters: both are kept."
        )
    return key or "none"


def _hide_key(text: str) -> str:
    """A text with stars for the key, which a server may repeat."""
    key = os.environ.get(KEY, "").strip()
    return text.replace(key, "***") if len(key) >= 16 else text  # a shorter one is a word for servers that want none


def _said(error: Exception) -> str:
    """The server's own words, or else the error's, in one line."""
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, dict) else None
    cause = str(error.__cause__) if isinstance(error, openai.APIConnectionError) else None
    return " ".join(_hide_key(str(said or cause or error)).split()).rstrip(".")[:300]


def _answer(completion: object) -> dict[str, object]:
    """What a generation keeps of a chat completion.

    Raises:
        ValueError: it is none.
    """
    try:
        choice, usage = completion["choices"][0], completion.get("usage") or {}
        text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
        if isinstance(text, list):  # of parts, some of them text
            text = "".join(part["text"] for part in text if part["type"] == "text")
        finish = "refusal" if refusal and not text else choice.get("finish_reason")
        return {
            "answer": _hide_key(text or refusal or ""), "finish_reason": _hide_key(finish or ""),
            "answered_by": _hide_key(completion.get("model") or ""),
            "input_tokens": usage.get("prompt_tokens"), "output_tokens": usage.get("completion_tokens"),
        }  # fmt: skip
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"no chat completion, but {completion!r}") from error
