"""Many questions to any OpenAI-compatible server: at once, retried, counted, and within a budget.

`ask` takes requests from an iterator and hands each answer on the moment it is there, so that memory does not grow with the
job and what was answered is never lost. The key comes from the environment variable `OPENAI_API_KEY` and goes nowhere else.
"""

import asyncio
import json
import logging
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import openai
import tenacity
from tqdm.auto import tqdm

from nblib.llm_replies import (
    KEY_VARIABLE,
    LONGEST_WAIT,
    Answer,
    UnreadableError,
    describe,
    kind,
    no_quota,
    passes,
    read,
    retry_after,
)

logger = logging.getLogger(__name__)

LONGEST_BACKOFF = 60.0  # seconds between two attempts, where the server asks for nothing else
IN_A_ROW = 10  # requests given up with no answer between them: then it isn't they that are at fault
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OURS = ("model", "messages", "stream", "n")
_FATAL = {
    401: "the key is not accepted: set the environment variable OPENAI_API_KEY to a valid one",
    402: "the account has no credit left",
    403: "the key may not use this model or server",
    404: "no such model or address there: mend model or base_url (which often ends in /v1)",
}


class LLMError(RuntimeError):
    """A job that can't start or can't go on: says why, and what to mend. What was answered has been handed on."""


@dataclass(frozen=True)
class Server:
    """Whom to ask, and how.

    Attributes:
        model: the name the server knows it by.
        base_url: of any OpenAI-compatible server, up to and with its /v1.
        sampling: sent as it is: temperature, max_tokens, seed, and whatever else that server takes.
        concurrency: requests in flight at once.
        timeout: seconds for one attempt.
        attempts: at one request, before it is given up for this run.
        backoff: seconds; the n-th wait is drawn from 0 to backoff · 2ⁿ, at most `LONGEST_BACKOFF`.
    """

    model: str
    base_url: str = "https://api.openai.com/v1"
    sampling: Mapping[str, object] = field(default_factory=lambda: {"temperature": 1.0, "max_tokens": 512})
    concurrency: int = 64
    timeout: float = 120.0
    attempts: int = 8
    backoff: float = 1.0

    def __post_init__(self) -> None:
        address = urlsplit(self.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise LLMError(f"base_url {self.base_url!r} is no address: http(s)://host[:port]/v1 is needed.")
        if address.username or address.password or address.query:
            raise LLMError(
                f"base_url holds more than an address: secrets belong in {KEY_VARIABLE}, which is not recorded."
            )
        if taken := [name for name in _OURS if name in self.sampling]:
            raise LLMError(f"sampling can't set {', '.join(taken)}: the client does.")
        if self.concurrency < 1 or self.attempts < 1 or self.timeout <= 0:
            raise LLMError("concurrency and attempts must be at least 1, and timeout more than 0 seconds.")

    def body(self, request: "Request") -> dict:
        """What is sent for a request."""
        messages = [{"role": "user", "content": request.prompt}]
        return {"model": self.model, "messages": messages, **self.sampling, **request.sampling}


@dataclass(frozen=True)
class Request:
    """One question.

    Attributes:
        key: the caller's name for it, unique within a job.
        sampling: added to the server's, for this request alone.
        about: whatever the caller wants back with the answer; not sent. JSON, where requests go into a batch.
    """

    key: str
    prompt: str
    sampling: Mapping[str, object] = field(default_factory=dict)
    about: Mapping[str, object] = field(default_factory=dict)


Keep = Callable[[Request, Answer], None]


@dataclass(frozen=True)
class Prices:
    """What a million tokens cost, in any one currency."""

    input: float = 0.0
    output: float = 0.0

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """Of that many tokens."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6

    def bound(self, body: Mapping[str, object]) -> float:
        """The most one request can cost: no token is shorter than a byte (and a chat template adds a few), and the answer
        has its limit.

        Raises:
            LLMError: the sampling parameters set no limit.
        """
        limit = body.get("max_completion_tokens", body.get("max_tokens"))
        if limit is None:
            raise LLMError("A budget needs to know how long an answer can be: set max_tokens in sampling.")
        said = sum(len(message["content"].encode("utf-8", "replace")) + 64 for message in body["messages"])
        return self.cost(said, int(limit))


@dataclass
class Account:
    """What a job came to: `failures` counts failed attempts by kind, `given_up` requests left unanswered, by kind."""

    answered: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    failures: Counter = field(default_factory=Counter)
    given_up: Counter = field(default_factory=Counter)
    stopped: str = ""

    def add(self, answer: Answer, prices: Prices, bound: float) -> None:
        """Count an answer; one whose tokens the server doesn't count costs as much as it can have."""
        self.answered += 1
        self.input_tokens += answer.input_tokens or 0
        self.output_tokens += answer.output_tokens or 0
        counted = answer.input_tokens is not None and answer.output_tokens is not None
        self.cost += prices.cost(answer.input_tokens, answer.output_tokens) if counted else bound


async def ask(
    server: Server,
    requests: Iterable[Request],
    keep: Keep,
    *,
    prices: Prices | None = None,
    budget: float | None = None,
    total: int | None = None,
    account: Account | None = None,
) -> Account:
    """Ask all requests, `server.concurrency` at once.

    Failures that pass (429, 5xx, time-outs, dropped connections, unreadable answers) are tried again after what the server
    asks for (Retry-After, up to `LONGEST_WAIT`) or an exponential back-off with full jitter; a request that fails
    `server.attempts` times is given up and counted. When the job stops, for whatever reason but a kill, requests in
    flight are still heard to the end: they are being paid for.

    Args:
        requests: taken one by one, as there is room.
        keep: gets each answer as it arrives; what it has accepted counts as safe.
        budget: in the prices' currency. No request is started that could exceed it (`Prices.bound`). What a server charges
            for attempts that failed can't be known.
        total: of requests, for the progress bar.
        account: of an earlier job, to be carried on (its cost counts towards the budget).

    Returns:
        the account; `stopped` is "budget" where that ended the job, else "".

    Raises:
        LLMError: no key, a server that can't be reached, a key or model it refuses, a wait too long, or one failure after
            another.
    """
    return await _Job(server, requests, keep, prices or Prices(), budget, account or Account()).run(total)


def connect(server: Server, retries: int = 0) -> openai.AsyncOpenAI:
    """A client for the server.

    Raises:
        LLMError: no key in the environment, and the server isn't on this machine.
    """
    return openai.AsyncOpenAI(
        api_key=_key(server.base_url),
        base_url=server.base_url,
        timeout=server.timeout,
        max_retries=retries,
        http_client=openai.DefaultAioHttpClient(),  # a third less processor time a request than the library's own
    )


def _key(base_url: str) -> str:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise LLMError(
            f"The environment variable {KEY_VARIABLE} holds no key: it has blanks or letters that no key has."
        )
    if not key and urlsplit(base_url).hostname not in _LOOPBACK:
        raise LLMError(
            f"No key for {base_url}: set the environment variable {KEY_VARIABLE} (to any word, if that server wants none). "
            "Don't write it into a notebook or its parameters: both are kept."
        )
    return key or "none"


# --- one job ----------------------------------------------------------------------------------------------------------


class _HaltedError(Exception):
    """The job has stopped before this attempt was made."""


class _Job:
    """The state that the workers of one job share."""

    def __init__(
        self,
        server: Server,
        requests: Iterable[Request],
        keep: Keep,
        prices: Prices,
        budget: float | None,
        account: Account,
    ) -> None:
        self.server, self.requests, self.keep = server, iter(requests), keep
        self.prices, self.budget, self.account = prices, budget, account
        self.in_flight, self.reserved = 0, 0.0  # how many requests, and what they can cost
        self.room = asyncio.Condition()  # told whenever one has come back
        self.in_a_row = 0
        self.open_at = 0.0  # by the monotonic clock; before it, a server that has asked to be left alone is
        self.halt = asyncio.Event()
        self.error: Exception | None = None

    async def run(self, total: int | None) -> Account:
        async with connect(self.server) as self.client:
            with tqdm(total=total, desc=self.server.model, unit="answer", mininterval=0.5) as self.progress:
                async with asyncio.TaskGroup() as group:
                    for _ in range(self.server.concurrency):
                        group.create_task(self.work())
                self.show(refresh=True)
        if self.error is not None:
            raise self.error
        return self.account

    async def work(self) -> None:
        while not self.halt.is_set():
            try:
                request = next(self.requests, None)
                if request is None:
                    return
                await self.serve(request)
            except _HaltedError:
                return
            except Exception as error:  # the caller's iterator or `keep`: what else is in flight must still be kept
                self.stop(error)

    async def serve(self, request: Request) -> None:
        """Ask one request until it is answered or given up."""
        body = self.server.body(request)
        bound = 0.0 if self.budget is None else self.prices.bound(body)
        if not await self.afford(bound):
            return
        self.reserved += bound
        self.in_flight += 1
        try:
            answer = await self.retrying(body)
        except (openai.OpenAIError, UnreadableError) as error:
            self.give_up(error)
        else:
            self.keep(request, answer)
            self.in_a_row = 0
            self.account.add(answer, self.prices, bound)
            self.progress.update()
            self.show()
        finally:
            self.reserved -= bound
            self.in_flight -= 1
            async with self.room:
                self.room.notify_all()

    async def afford(self, bound: float) -> bool:
        """Wait until a request that can cost so much fits into the budget; False where it never will."""

        def fits() -> bool:
            return self.budget is None or self.account.cost + self.reserved + bound <= self.budget

        async with self.room:
            await self.room.wait_for(lambda: fits() or not self.in_flight or self.halt.is_set())
        if not fits() and not self.halt.is_set():
            self.account.stopped, self.requests = "budget", iter(())
        return fits() and not self.halt.is_set()

    async def retrying(self, body: dict) -> Answer:
        attempts = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(passes),
            wait=self.wait,
            stop=tenacity.stop_after_attempt(self.server.attempts) | tenacity.stop_when_event_set(self.halt),
            before_sleep=self.note,
            sleep=self.pause,
            reraise=True,
        )
        return await attempts(self.attempt, body)

    async def attempt(self, body: dict) -> Answer:
        while (seconds := self.open_at - time.monotonic()) > 0:
            await self.pause(seconds)
            if self.halt.is_set():
                break
        if self.halt.is_set():
            raise _HaltedError
        try:
            # not chat.completions.create: its typed request and reply cost as much time as all else, and check nothing
            completion = await self.client.post("/chat/completions", body=body, cast_to=object)
            completion = json.loads(completion) if isinstance(completion, str) else completion  # sent as another type
        except ValueError as error:  # a body that is not JSON
            raise UnreadableError(f"the answer is not JSON ({error})") from None
        return read(completion)

    def wait(self, state: tenacity.RetryCallState) -> float:
        """Seconds until the next attempt: never less than the server asks for, a little more so that not all come at once."""
        asked = retry_after(state.outcome.exception())
        if asked is not None:
            return asked + random.uniform(0, min(1.0, 0.1 * asked))
        return tenacity.wait_random_exponential(multiplier=self.server.backoff, max=LONGEST_BACKOFF)(state)

    def note(self, state: tenacity.RetryCallState) -> None:
        """Count a failed attempt; a server that asks one request to wait asks them all."""
        error = state.outcome.exception()
        self.account.failures[kind(error)] += 1
        logger.debug("attempt %d failed: %s", state.attempt_number, describe(error))
        if retry_after(error) is not None:
            self.open_at = max(self.open_at, time.monotonic() + state.upcoming_sleep)
        self.show()

    async def pause(self, seconds: float) -> None:
        """Sleep, but not on when the job stops."""
        try:
            async with asyncio.timeout(seconds):
                await self.halt.wait()
        except TimeoutError:
            pass

    def give_up(self, error: Exception) -> None:
        """Leave a request unanswered, and stop the job where the next one would fare no better."""
        self.account.failures[kind(error)] += 1
        self.account.given_up[kind(error)] += 1
        self.in_a_row += 1
        self.show()
        where, said = self.server.base_url, describe(error)
        status = getattr(error, "status_code", None)
        asked = retry_after(error)
        if status in _FATAL:
            self.stop(LLMError(f"{where}, model {self.server.model!r}: {_FATAL[status]} ({said})."))
        elif no_quota(error):
            self.stop(LLMError(f"{where}: the account's quota is used up ({said}). Raise it, then run again."))
        elif asked is not None and asked > LONGEST_WAIT:
            self.stop(LLMError(f"{where} asks to wait {asked:,.0f} seconds ({said}). Run again after that."))
        elif isinstance(error, openai.APIConnectionError) and not self.account.answered:
            self.stop(
                LLMError(
                    f"{where} does not answer, tried {self.server.attempts} times ({said}). Is the server running, base_url "
                    f"right, and timeout ({self.server.timeout:g} s) long enough?"
                )
            )
        elif self.in_a_row >= IN_A_ROW:
            self.stop(
                LLMError(
                    f"{where}: {self.in_a_row} requests in a row came to nothing, the last with {said}. Mend that, then run "
                    "again: what was answered is kept."
                )
            )

    def stop(self, error: Exception) -> None:
        self.error = self.error or error
        self.halt.set()

    def show(self, refresh: bool = False) -> None:
        account = self.account
        tokens = account.input_tokens + account.output_tokens
        said = f"failures {account.failures.total()}, tokens {tokens:,}, cost {account.cost:.4f}"
        self.progress.set_postfix_str(said, refresh=refresh)
