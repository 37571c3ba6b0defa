"""Send many requests to any OpenAI-compatible server: concurrently, retried, counted, and within a budget.

`ask` takes requests from an iterator and hands each answer to its caller as soon as it arrives, so memory doesn't grow with
the job and no answer is lost. The openai SDK retries; this module bounds concurrency and cost, keeps the account, and
explains in one sentence why a job can't go on. The key is read from the environment variable `OPENAI_API_KEY` and sent only to
the server; where a server echoes it, in an answer or an error, stars stand for it. A server is not trusted: it can't make a
job wait for ever, follow it to another address, fill the memory or lower the bill.
"""

import asyncio
import base64
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import quote, urlsplit

import httpx2
import openai
from tqdm.auto import tqdm

from nblib.errors import StudyError

KEY_VARIABLE = "OPENAI_API_KEY"
IN_A_ROW = 10  # requests given up with no answer between them: the fault is then the server's, not the requests'
LONGEST = 2**24  # bytes of a response; what is cut there is no answer
MOST_TOKENS = 10**9  # of one answer or prompt; a server that counts more doesn't count
SECRET = 16  # characters; a shorter key is a word for servers that want none, and may stand in any answer
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_RESERVED = ("model", "messages", "stream", "n")  # set by the client, never by sampling parameters
_FATAL = {
    401: "the key is not accepted: set the environment variable OPENAI_API_KEY to a valid one",
    402: "the account has no credit left",
    403: "the key may not use this model or server",
    404: "no such model or address there: mend model or base_url (which often ends in /v1)",
}


class LLMError(StudyError):
    """A job can't start or go on; the message gives cause and remedy. All answers so far have been handed over."""


@dataclass(frozen=True)
class Server:
    """A model behind an OpenAI-compatible server, and how to ask it.

    Attributes:
        model: the name the server knows it by.
        base_url: of the server, up to and with its /v1.
        sampling: sent as it is: temperature, max_tokens, seed, and whatever else that server takes.
        concurrency: requests in flight at once.
        timeout: seconds for one attempt, from the request to the last byte of the response.
        retries: of one request, by the openai SDK (408, 409, 429, 5xx, no connection; exponential backoff with jitter, or
            what the server asks for with Retry-After, up to two minutes).
    """

    model: str
    base_url: str = "https://api.openai.com/v1"
    sampling: Mapping[str, object] = field(default_factory=lambda: {"temperature": 1.0, "max_tokens": 512})
    concurrency: int = 64
    timeout: float = 120.0
    retries: int = 8

    def __post_init__(self) -> None:
        try:
            address = urlsplit(self.base_url)
            known = address.scheme in ("http", "https") and address.hostname and address.port != 0
        except ValueError:  # http://[::1, or a port of letters
            known = False
        if not known:
            raise LLMError(f"base_url {self.base_url!r} is no address. It must look like http(s)://host[:port]/v1.")
        if address.username or address.password or address.query:
            raise LLMError(
                f"base_url holds more than an address: secrets belong in {KEY_VARIABLE}, which is not recorded."
            )
        if reserved := [name for name in _RESERVED if name in self.sampling]:
            raise LLMError(f"sampling can't set {', '.join(reserved)}, because the client does.")
        if self.concurrency < 1 or self.retries < 0 or not 0 < self.timeout < math.inf:
            raise LLMError("concurrency must be at least 1, retries at least 0, and timeout more than 0 seconds.")

    def body(self, request: "Request") -> dict:
        """The JSON that is sent for a request."""
        messages = [{"role": "user", "content": request.prompt}]
        return {"model": self.model, "messages": messages, **self.sampling, **request.sampling}


@dataclass(frozen=True)
class Request:
    """One question.

    Attributes:
        key: the caller's name for it, unique within a job.
        sampling: added to the server's, for this request alone.
        about: whatever the caller wants back with the answer; not sent.
    """

    key: str
    prompt: str
    sampling: Mapping[str, object] = field(default_factory=dict)
    about: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes:
        text: the raw answer, "" where the model wrote nothing.
        finish_reason: the server's: stop, length, content_filter, …; "refusal" where it marks the text as one.
        model: the model that answered, as the server names it.
        input_tokens, output_tokens: None where the server doesn't count.
    """

    text: str
    finish_reason: str
    model: str
    input_tokens: int | None
    output_tokens: int | None


Keep = Callable[[Request, Answer], None]


@dataclass(frozen=True)
class Prices:
    """What a million tokens cost, in any one currency."""

    input: float = 0.0
    output: float = 0.0

    @classmethod
    def of(cls, model: str, rates: Mapping[str, Sequence[float]]) -> "Prices":
        """A model's in a table of rates.

        Raises:
            LLMError: it has none there, or what stands there is no two prices.
        """
        if model not in rates:
            raise LLMError(f"The rates have no price of {model!r}. Add it, e.g. {model}: [0.5, 1.5].")
        prices = rates[model]
        numbers = isinstance(prices, list | tuple) and [type(price) in (int, float) and price >= 0 for price in prices]
        if numbers != [True, True]:
            raise LLMError(
                f"The rate of {model!r} must be two numbers, the price of a million input and output tokens such as "
                f"[0.5, 1.5], not {prices!r}."
            )
        return cls(*prices)

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """Of that many tokens."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6

    def bound(self, body: Mapping[str, object]) -> float:
        """The most one request can cost: no token is shorter than a byte (and a chat template adds a few), and the answer
        has its limit.

        Raises:
            LLMError: the sampling parameters set no limit, or one that is no number of tokens.
        """
        limit = body.get("max_completion_tokens", body.get("max_tokens"))
        if limit is None:
            raise LLMError("With a budget, the length of an answer needs a limit: set max_tokens in sampling.")
        if type(limit) is not int or not 0 < limit <= MOST_TOKENS:
            raise LLMError(f"max_tokens in sampling must be a whole number of tokens such as 512, not {limit!r}.")
        size = sum(len(message["content"].encode("utf-8", "replace")) + 64 for message in body["messages"])
        return self.cost(size, limit)


@dataclass
class Account:
    """The outcome of a job.

    Attributes:
        answered: requests with an answer.
        failures: failed attempts by kind ("HTTP 429", "no response", "unreadable answer"), those that a retry mended included.
        given_up: requests without an answer, by the kind of their last failure.
        stopped: "budget" where that ended the job, else "".
    """

    answered: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    failures: Counter = field(default_factory=Counter)
    given_up: Counter = field(default_factory=Counter)
    stopped: str = ""

    def add(self, answer: Answer, prices: Prices, bound: float) -> None:
        """Count an answer. If the server doesn't count tokens, the answer costs the most it can have cost."""
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
    """Send all requests, `server.concurrency` at once.

    A request that still fails after `server.retries` retries is given up and counted. When the job stops, for whatever
    reason but a kill, the answers in flight are still awaited and kept: they are being paid for.

    Args:
        requests: taken one by one, as there is room.
        keep: gets each answer as it arrives; what it has accepted counts as safe.
        budget: in the prices' currency. No request is started that could exceed it (`Prices.bound`). Whether a server
            charges for failed attempts can't be known.
        total: of requests, for the progress bar.
        account: of an earlier job, to be carried on (its cost counts towards the budget).

    Raises:
        LLMError: no key, a server that can't be reached, a key or model it refuses, or one failure after another.
    """
    return await _Job(server, iter(requests), keep, prices or Prices(), budget, account or Account()).run(total)


# --- one job ----------------------------------------------------------------------------------------------------------


class _HTTPClient(openai.DefaultAioHttpClient):  # aiohttp: a third less processor time a request than the default
    """Sees every attempt, which the SDK doesn't show: bounds it in time and size, counts the failed ones, and knows which
    tasks wait for a response."""

    def __init__(self, failures: Counter, seconds: float) -> None:
        super().__init__(follow_redirects=False)  # the prompts are for the address that the user has named
        self.failures, self.seconds = failures, seconds
        self.sending: set[asyncio.Task] = set()

    async def send(self, request: httpx2.Request, **options: object) -> httpx2.Response:
        task = asyncio.current_task()
        self.sending.add(task)
        try:
            # the SDK's own timeout is between two bytes: one byte now and then would keep an attempt alive for ever
            async with asyncio.timeout(self.seconds):
                response = await _read(await super().send(request, **{**options, "stream": True}))
        except Exception as error:
            self.failures["no response"] += 1
            if isinstance(error, TimeoutError):
                raise httpx2.ReadTimeout(f"no whole response in {self.seconds:g} s", request=request) from error
            if isinstance(error, httpx2.HTTPError):
                raise
            raise httpx2.ReadError(f"{type(error).__name__}: {error}", request=request) from error  # what is no HTTP
        finally:
            self.sending.discard(task)
        if response.status_code >= 300:
            self.failures[f"HTTP {response.status_code}"] += 1
            if "insufficient_quota" in response.text:
                response.headers["x-should-retry"] = "false"  # the SDK heeds it
        return response


async def _read(response: httpx2.Response) -> httpx2.Response:
    """A response with its body, as far as `LONGEST`."""
    chunks, size = [], 0
    try:
        async for chunk in response.aiter_bytes():
            chunks.append(chunk)
            size += len(chunk)
            if size > LONGEST:
                break
    finally:
        await response.aclose()
    headers = [(name, value) for name, value in response.headers.multi_items() if name != "content-encoding"]
    return httpx2.Response(response.status_code, headers=headers, content=b"".join(chunks), request=response.request)


@dataclass
class _Job:
    """The state that the requests of one job share."""

    server: Server
    requests: Iterator[Request]
    keep: Keep
    prices: Prices
    budget: float | None
    account: Account
    reserved: float = 0.0  # the most that the requests in flight can cost
    in_a_row: int = 0
    tasks: set[asyncio.Task] = field(default_factory=set)
    error: Exception | None = None

    async def run(self, total: int | None) -> Account:
        server = self.server
        self.http = _HTTPClient(self.account.failures, server.timeout)
        client = openai.AsyncOpenAI(
            api_key=_key(server.base_url), base_url=server.base_url, timeout=server.timeout, max_retries=server.retries,
            http_client=self.http,
        )  # fmt: skip
        with tqdm(total=total, desc=server.model, unit="answer", mininterval=0.5) as self.progress:
            async with client as self.client, asyncio.TaskGroup() as group:
                try:
                    await self.start_all(group)
                except Exception as error:  # of the caller's iterator: answers in flight must still be kept
                    self.stop(error)
        if self.error is not None:
            raise self.error
        return self.account

    async def start_all(self, group: asyncio.TaskGroup) -> None:
        """Start request after request, as there is room and budget."""
        room = asyncio.Semaphore(self.server.concurrency)

        def end(task: asyncio.Task) -> None:
            self.tasks.discard(task)
            room.release()

        while await room.acquire() and self.error is None:
            if (request := next(self.requests, None)) is None:
                return
            body = self.server.body(request)
            bound = 0.0 if self.budget is None else self.prices.bound(body)
            while self.tasks and not self.affords(bound):
                await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
            if self.error is not None:
                return
            if not self.affords(bound):
                self.account.stopped = "budget"
                return
            self.reserved += bound
            task = group.create_task(self.serve(request, body, bound))
            self.tasks.add(task)
            task.add_done_callback(end)

    def affords(self, bound: float) -> bool:
        return self.budget is None or self.account.cost + self.reserved + bound <= self.budget

    async def serve(self, request: Request, body: dict, bound: float) -> None:
        """Get one request answered, or give it up."""
        account = self.account
        try:
            # not chat.completions.create: its typed request and response cost as much time as all else, and check nothing
            answer = _answer(await self.client.post("/chat/completions", body=body, cast_to=object))
        except (openai.OpenAIError, ValueError, RecursionError) as error:  # the last: JSON nested too deeply
            self.give_up(error)
        else:
            try:
                self.keep(request, answer)
            except Exception as error:  # the caller's: other answers in flight must still be kept
                self.stop(error)
            account.add(answer, self.prices, bound)
            self.in_a_row = 0
            self.progress.update()
        finally:
            self.reserved -= bound
            tokens = account.input_tokens + account.output_tokens
            self.progress.set_postfix_str(
                f"failures {account.failures.total()}, tokens {tokens:,}, cost {account.cost:.4f}", refresh=False
            )

    def give_up(self, error: Exception) -> None:
        """Leave a request unanswered, and stop the job where the next one would fare no better."""
        status = getattr(error, "status_code", None)
        if isinstance(error, openai.APIConnectionError):
            kind = "no response"
        elif status:
            kind = f"HTTP {status}"
        else:
            kind = "unreadable answer"
            self.account.failures[kind] += 1
        self.account.given_up[kind] += 1
        self.in_a_row += 1
        text, reason = _describe(error), ""
        if status in range(300, 400):
            address = error.response.headers.get("location", "nowhere")
            reason = (
                f" sends requests on to {_hide_key(address)[:200]}, which may be another's server. If you trust it, set "
                "base_url to that address"
            )
        elif status in _FATAL:
            reason = f", model {self.server.model!r}: {_FATAL[status]} ({text})"
        elif getattr(error, "code", None) == "insufficient_quota":
            reason = f": the account's quota is used up ({text}). Raise it, then run again"
        elif isinstance(error, openai.APIConnectionError) and not self.account.answered:
            reason = (
                f" does not answer, tried {self.server.retries + 1} times ({text}). See that it runs, that base_url is "
                f"right, and that timeout ({self.server.timeout:g} s) is long enough"
            )
        elif self.in_a_row >= IN_A_ROW:
            reason = (
                f": {self.in_a_row} requests in a row failed, the last with {text}. Mend that, then run again: "
                "all answers so far are kept"
            )
        if reason:
            self.stop(LLMError(f"{self.server.base_url}{reason}."))

    def stop(self, error: Exception) -> None:
        """Start no more requests, and end those that wait for their next attempt: nothing is being paid for them."""
        self.error = self.error or error
        for task in self.tasks - self.http.sending - {asyncio.current_task()}:
            task.cancel()


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


def _answer(completion: object) -> Answer:
    """The answer in a chat completion; a ValueError where it is none."""
    try:
        completion = json.loads(completion) if isinstance(completion, str) else completion  # sent as another type
        choice = completion["choices"][0]
        text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
        usage = completion.get("usage") or {}
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the answer is no chat completion: {str(completion)[:200]!r}") from error
    if not isinstance(text, str | None):
        raise ValueError(f"the answer's content is no text: {str(text)[:200]!r}")
    finish = choice.get("finish_reason")
    if isinstance(refusal, str) and refusal and not text:
        text, finish = refusal, "refusal"
    # a prompt has a token, and so has an answer with a text; a server that says otherwise counts as one that doesn't count
    tokens = [_count(count, least) for count, least in zip(counts, (1, int(bool(text))), strict=True)]
    told = (text or "", str(finish or ""), str(completion.get("model") or ""))
    return Answer(*map(_hide_key, told), *tokens)


def _count(tokens: object, least: int) -> int | None:
    return tokens if type(tokens) is int and least <= tokens <= MOST_TOKENS else None


def _describe(error: Exception) -> str:
    """An error in one line, without the key, whatever the server has put into it."""
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    text = _hide_key(" ".join(f"{type(cause).__name__}: {cause}".split()))
    if head := os.environ.get(KEY_VARIABLE, "").strip()[:3]:
        text = re.sub(rf"{re.escape(head)}[^\s*]*\*\*\S*", "***", text)  # the server's own way to hide it, sk-ab***yz
    return text if len(text) <= 300 else text[:300] + " …"


def _hide_key(text: str) -> str:
    """A text with stars for the key, in whatever form a server has echoed it."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if len(key) < SECRET:
        return text
    return re.sub("|".join(map(re.escape, _forms(key))), "***", text, flags=re.IGNORECASE)


@cache
def _forms(key: str) -> list[str]:
    """A key as it is, reversed, and in the encodings of URLs, JSON, HTML, hexadecimal digits and base64."""
    raw = key.encode()
    by_sign = [r"\u{:04x}", "%{:02x}", "&#{};", "&#x{:x};", "{:02x}", r"\x{:02x}"]
    forms = {key, key[::-1], quote(key, safe=""), *("".join(form.format(byte) for byte in raw) for form in by_sign)}
    for before in range(
        3
    ):  # in base64 a text looks different by its place; the signs shared with its neighbours are left out
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(bytes(before) + raw).decode()
            forms.add(encoded[-(-before * 4 // 3) : (before + len(raw)) * 4 // 3])
    return sorted(forms, key=len, reverse=True)
