"""Ask a server with OpenAI's API for each anchor's negations and hedges: many questions at once, retried, within a budget.

Every answer goes into the file of generations first, so a run that was killed and begun again asks what is missing. The key is
read from `OPENAI_API_KEY` and sent to the server alone.
"""

import asyncio
import math
import os
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import openai
import pandas as pd
from tqdm.auto import tqdm

from nblib import paths
from nblib.errors import StudyError, check_numbers
from nblib.synthesis import generations, prompts
from nblib.synthesis.generations import Generation, Question

ATTEMPTS = 3  # at a usable answer, those of earlier runs included
RETRIES = 8  # of one request, by the openai SDK
TIMEOUT = 120.0  # seconds
GIVE_UP = 10  # failures with no answer between them


@dataclass(frozen=True)
class Server:
    """A model behind a server with OpenAI's API, and how to ask it: `sampling` is sent as it is."""

    model: str
    base_url: str = "https://api.openai.com/v1"
    sampling: Mapping[str, object] = field(default_factory=lambda: {"temperature": 1.0, "max_tokens": 512})
    concurrency: int = 64  # questions in flight at once

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
        StudyError: a budget without max_tokens, a damaged file, or one failure after another.
    """
    check_numbers(seed, concurrency=server.concurrency)
    if budget and not server.most_tokens:
        raise StudyError("With a budget, the length of an answer needs a limit: set max_tokens in sampling.")
    run = Run(server, paths.resolve(file), rates, budget or math.inf)
    run.look_up(anchors, seed)
    options = {"api_key": _key() or "none", "base_url": server.base_url, "timeout": TIMEOUT, "max_retries": RETRIES}
    with tqdm(total=len(run.pending), desc=server.model, unit="answer", mininterval=0.5) as run.progress:
        async with openai.AsyncOpenAI(**options) as run.client:
            ended = await asyncio.gather(*(run.work() for _ in range(server.concurrency)), return_exceptions=True)
    for error in filter(None, ended):
        raise error
    return run


@dataclass
class Run:
    """What the questions of a run share, and its outcome."""

    server: Server
    file: Path
    rates: Sequence[float]
    budget: float
    answered: int = 0  # answers, usable or not
    failures: Counter[str] = field(default_factory=Counter)  # by the error's class
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
        distinct = {question.key: question for question in questions if question.key not in usable}
        self.pending.extend(question for key, question in distinct.items() if self.attempts[key] < ATTEMPTS)
        self.patience = min(GIVE_UP, len(self.pending))

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
        try:
            completion = await self.client.post("/chat/completions", body=body, cast_to=object)
            generation = Generation(**about, **_answer(completion))
        except Exception as error:  # the SDK's, or what an answer of another form raises
            self.failures[type(error).__name__] += 1
            self.failed += 1
            if self.failed >= self.patience:
                said = _hide_key(" ".join(f"{type(error).__name__}: {error}".split()))[:300]
                raise StudyError(f"{self.server.base_url}, model {self.server.model!r}: {said}") from None
            return 0.0
        generations.append(generation, self.file)
        self.answered += 1
        self.attempts[question.key] += 1
        self.failed = 0
        if prompts.parse(generation).reason and self.attempts[question.key] < ATTEMPTS:
            self.pending.append(question)
            self.progress.total += 1
        self.progress.update()
        return self.price(generation)


def _key() -> str:
    return os.environ.get("OPENAI_API_KEY", "").strip()


def _hide_key(text: str) -> str:
    """A text with stars for the key, which a server may repeat; under 16 characters it is none."""
    return text.replace(_key(), "***") if len(_key()) >= 16 else text


def _answer(completion: dict) -> dict[str, object]:
    """What a generation keeps of a chat completion."""
    choice, usage = completion["choices"][0], completion.get("usage") or {}
    return {
        "answer": _hide_key(str(choice["message"].get("content") or "")),
        "finish_reason": choice.get("finish_reason") or "",
        "answered_by": completion.get("model") or "",
        "input_tokens": usage.get("prompt_tokens"),
        "output_tokens": usage.get("completion_tokens"),
    }
