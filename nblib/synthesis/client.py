"""Ask a server with OpenAI's API for each anchor's negations and hedges: many questions at once, retried, within a budget.

Every answer goes into the file of generations first, so a run that was killed and begun again asks what is missing. The key is
read from `OPENAI_API_KEY` and sent to the server alone.
"""

import asyncio
import json
import math
import os
import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import openai
import pandas as pd
from tqdm.auto import tqdm

from nblib import paths
from nblib.errors import StudyError, check_address, check_numbers
from nblib.synthesis import generations, prompts
from nblib.synthesis.generations import Generation, Question

ATTEMPTS = 3  # at a usable answer, those of earlier runs included
RETRIES = 8  # of one request, by the openai SDK
TIMEOUT = 120.0  # seconds
GIVE_UP = 10  # failures with no answer between them
_MESSAGE = re.compile(r'"(?:message|error|detail|raw)"\s*:\s*("(?:[^"\\]|\\["\\/bfnrt]|\\u[\da-f]{4})+")', re.I)
_SET_KEY = "Set the environment variable OPENAI_API_KEY to a key of that server"
_REMEDIES = {  # by status
    **dict.fromkeys((400, 422), "Mend model or sampling"),
    **dict.fromkeys((401, 403), _SET_KEY),
    **dict.fromkeys((402, 429), "Raise the account's limit, or lower concurrency"),
    404: "Mend model or base_url, which often ends in /v1",
}


@dataclass(frozen=True)
class Server:
    """A model behind a server with OpenAI's API, and how to ask it: `sampling` is sent as it is."""

    model: str
    base_url: str = "https://api.openai.com/v1"
    sampling: Mapping[str, object] = field(default_factory=lambda: {"temperature": 1.0, "max_tokens": 512})
    concurrency: int = 64  # questions in flight at once

    def __post_init__(self) -> None:
        check_address(self.base_url, "base_url")
        if not re.fullmatch(r"https?://(\[[\da-f:]+\]|[^\s/?:\[\]]+)(:\d+)?([/?]\S*)?", self.base_url):
            raise StudyError("base_url must be an address such as http://localhost:8000/v1.")

    @property
    def most_tokens(self) -> int:
        """The most tokens of an answer; 0 where nothing limits them."""
        return self.sampling.get("max_completion_tokens") or self.sampling.get("max_tokens") or 0


async def generate(
    anchors: pd.DataFrame,
    server: Server,
    file: str | Path,
    seed: int = 0,
    rates: Sequence[float] = (0.0, 0.0),
    budget: float = 0.0,
) -> "Run":
    """Ask what the file has no usable answer to, until all is answered, or attempts or budget are used up.

    Args:
        anchors: id, anchor.
        file: of generations; created or appended to.
        rates: the price of a million input and of a million output tokens.
        budget: of the file, earlier runs included; 0: no limit. No question is asked that could exceed it.

    Raises:
        StudyError: a budget without max_tokens, a damaged file, no key, one failure after another, or nothing answered.
    """
    check_numbers(seed, concurrency=server.concurrency)
    if budget and not server.most_tokens:
        raise StudyError("With a budget, the length of an answer needs a limit: set max_tokens in sampling.")
    run = Run(server, paths.resolve(file), rates, budget or math.inf)
    run.look_up(anchors, seed)
    if run.pending:
        with tqdm(total=len(run.pending), desc=server.model, unit="answer", mininterval=0.5) as run.progress:
            async with _client(server.base_url) as run.client:
                ended = await asyncio.gather(*(run.work() for _ in range(server.concurrency)), return_exceptions=True)
        for error in filter(None, ended):
            raise error
        if not run.attempts.keys() & run.keys:
            first = next(iter(run.failures.values()), [f"No question fits into the budget of {budget}. Raise it."])
            raise StudyError(first[0])
    return run


@dataclass
class Run:
    """What the questions of a run share, and its outcome."""

    server: Server
    file: Path
    rates: Sequence[float]
    budget: float
    answered: int = 0  # answers, usable or not
    failures: dict[object, list[str]] = field(default_factory=dict)  # sentences by status or class of error
    pending: deque[Question] = field(default_factory=deque)  # at the end: those beyond the budget
    attempts: Counter[str] = field(default_factory=Counter)  # by the question's key, earlier runs included
    spent: float = 0.0  # earlier runs included; by a question in flight, the most that it can cost
    failed: int = 0  # failures since the last answer

    def look_up(self, anchors: pd.DataFrame, seed: int) -> None:
        """Find what to ask, and what the file's answers have cost."""
        usable = set()
        paths.writable_folder(self.file.parent)
        generations.drop_half_line(self.file)
        for generation in generations.read(self.file):
            self.spent += self.price(generation)
            self.attempts[generation.key] += 1
            if not prompts.parse(generation).reason:
                usable.add(generation.key)
        questions = prompts.questions(anchors, self.server.model, self.server.sampling, seed)
        distinct = {question.key: question for question in questions}
        self.keys = distinct.keys()
        self.pending.extend(distinct[key] for key in distinct if key not in usable and self.attempts[key] < ATTEMPTS)

    def price(self, question: Question) -> float:
        """Of an answer; where its tokens aren't counted (yet), the most."""
        read, written = (getattr(question, f"{side}_tokens", None) for side in ("input", "output"))
        if read is None or written is None:  # no token is shorter than a byte, and a chat template adds a few
            read = len(prompts.prompt(question.kind, question.anchor, question.cues).encode()) + 64
            written = self.server.most_tokens
        return (read * self.rates[0] + written * self.rates[1]) / 1e6

    async def work(self) -> None:
        """Ask one question after another, while the budget has room for it beside those in flight."""
        while self.pending and self.spent + (most := self.price(self.pending[0])) <= self.budget:
            self.spent += most
            try:
                cost = await self.ask(self.pending.popleft())
            except Exception:
                self.pending.clear()  # the others end with the answers that they wait for
                raise
            self.spent += cost - most

    async def ask(self, question: Question) -> float:
        """Get an answer into the file, or count the failure; the cost."""
        sampling, attempt = dict(self.server.sampling), self.attempts[question.key]
        if isinstance(sampling.get("seed"), int):
            sampling["seed"] += attempt  # else the same answer comes again
        prompt = prompts.prompt(question.kind, question.anchor, question.cues)
        about = {**asdict(question), "attempt": attempt, "model": self.server.model, "sampling": sampling}
        body = {"model": self.server.model, "messages": [{"role": "user", "content": prompt}], **sampling}
        text = ""
        try:  # without a slash before it: else the SDK puts Azure's deployment into any path
            text = await self.client.post("chat/completions", body=body, cast_to=str)
            generation = Generation(**about, **_answer(text))
        except Exception as error:  # the SDK's, or what an answer of another form raises
            said = _said(error, text)
            if getattr(error, "code", None) != "content_filter":
                status = getattr(error, "status_code", None)
                remedy = _REMEDIES.get(status, "See that the server runs, and mend base_url, which often ends in /v1")
                sentence = f"{self.server.base_url}, model {self.server.model!r}: {said.rstrip('.')}. {remedy}."
                self.failures.setdefault(status or type(error), []).append(sentence)
                self.failed += 1
                if self.failed >= GIVE_UP:
                    raise StudyError(sentence) from None
                return 0.0
            unpaid = {"answered_by": "", "input_tokens": 0, "output_tokens": 0}
            generation = Generation(**about, answer=said, finish_reason="content_filter", **unpaid)
        generations.append(generation, self.file)
        self.answered += 1
        self.attempts[question.key] += 1
        self.failed = 0
        if prompts.parse(generation).reason and self.attempts[question.key] < ATTEMPTS:
            self.pending.append(question)
            self.progress.total += 1
        self.progress.update()
        return self.price(generation)


def _client(base_url: str) -> openai.AsyncOpenAI:
    """The SDK's client; with an API version in the address, Azure's, which sends the key in a header of its own."""
    url = urlsplit(base_url)
    if not _key() and url.hostname.endswith((".openai.com", ".azure.com")):
        raise StudyError(f"{base_url} needs a key. {_SET_KEY}.")
    folder = url._replace(query="").geturl().rstrip("/").removesuffix("/chat/completions")
    query = dict(parse_qsl(url.query))
    options = {"api_key": _key() or "none", "base_url": folder, "timeout": TIMEOUT, "max_retries": RETRIES}
    if version := query.get("api-version"):
        return openai.AsyncAzureOpenAI(api_version=version, default_query=query, **options)
    return openai.AsyncOpenAI(default_query=query, **options)


def _key() -> str:
    return os.environ.get("OPENAI_API_KEY", "").strip()


def _hide_key(text: str) -> str:
    """A text with stars for the key, which a server may repeat; under 16 characters it is none."""
    return text.replace(_key(), "***") if len(_key()) >= 16 else text


def _answer(text: str) -> dict[str, object]:
    """What a generation keeps of a chat completion. ValueError and others: it is none, or it has an error in it."""
    completion = json.loads(text)
    choice, usage = completion["choices"][0], completion.get("usage")
    if completion.get("error") or choice.get("error"):
        raise ValueError
    message, usage = choice["message"], usage if isinstance(usage, dict) else {}
    content, refusal = message.get("content"), message.get("refusal")
    parts = content if isinstance(content, list) else [content]
    parts = [part if isinstance(part, dict) else {"text": part} for part in parts]
    texts = [part.get("text") for part in parts if part.get("type", "text") in ("text", "output_text")]  # no thoughts
    answer = "".join(map(str, filter(None, texts)))
    return {
        "answer": _hide_key(answer or str(refusal or "")),
        "finish_reason": "refusal" if refusal and not answer else str(choice.get("finish_reason") or ""),
        "answered_by": str(completion.get("model") or ""),
        "input_tokens": usage.get("prompt_tokens"),
        "output_tokens": usage.get("completion_tokens"),
    }


def _said(error: Exception, answer: str) -> str:
    """A failure in the server's own words, if there are any, in one line without the key."""
    if isinstance(error, openai.APIStatusError):
        said = f"HTTP {error.status_code}: {_message(error.response.text) or error.response.reason_phrase}"
    else:
        said = f"no chat completion: {_message(answer)}" if answer else f"{type(error).__name__}: {error}"
    return _hide_key(" ".join(said.split()))[:300]


def _message(text: str) -> str:
    """What a server says: the messages in its JSON, however deep, or else its text without tags."""
    said = dict.fromkeys(json.loads(message, strict=False) for message in _MESSAGE.findall(text))
    return "; ".join(said) or re.sub(r"<(style|script)\b.*?</\1>|<[^<>]*>", " ", text[:10_000], flags=re.S | re.I)
