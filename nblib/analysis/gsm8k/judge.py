"""An optional LLM judge that names the type of each error. Its answers are stored as generations; only exact ones count."""

import re
from pathlib import Path

import pandas as pd

from nblib.analysis.gsm8k.errors import LABELS
from nblib.synthesis import client, generations
from nblib.synthesis.client import Account, Prices, Request, Server
from nblib.synthesis.generations import Store

KIND = "gsm8k error"

# The descriptions are those of Truong's Table 5, with "wrong unit" and "multiplication" named by what they describe.
PROMPT = """A model answered a school mathematics problem, and its final answer is wrong. Say what type of error its solution
makes.

Types:
- wrong calculation: the steps and the equations are right, but a calculated result is wrong
- missing information: the logic is right, but one or more important steps are left out
- unit or parsing: the solution arrives at the right answer, but in another unit or in a form that is not read as the answer
- commonsense quantity: it disregards a quantity everybody knows (a week has 7 days, a cow has 4 legs)
- inverted operands: it subtracts where it should add, or exchanges the left and right operand
- hallucination: the reasoning is not coherent, logical or relevant to the problem
- base or gold wrong: the given right answer is wrong, or the reference reaches it by wrong reasoning
- repetition: it repeats one step many times
- undecided: none of these, or it can't be told

Problem: {question}

Reference solution:
{reference}

The model's solution:
{solution}

Answer with one line and nothing else:
Type: <one of the types>"""

_HEAD, _LABEL = r"\s*(?:\*\*)?(?:type\s*:)?(?:\*\*)?\s*", r"[\"'“`*<]{0,2}(?P<label>[a-z ]+?)[\"'”`*>]{0,2}"
_ANSWER = re.compile(rf"{_HEAD}{_LABEL}\.?\s*", re.I)


def prompt(question: str, reference: str, solution: str) -> str:
    """The question for one error, without anybody's label."""
    return PROMPT.format(question=question, reference=reference, solution=solution)


def read(answer: str, finish_reason: str = "stop") -> str | None:
    """The type in an answer; None unless the answer is exactly one type."""
    if finish_reason in ("length", "content_filter", "refusal"):
        return None
    match = _ANSWER.fullmatch(answer)
    label = " ".join(match["label"].lower().split()) if match else None
    return label if label in LABELS else None


async def ask(
    errors: pd.DataFrame, server: Server, file: str | Path, *, prices: Prices | None = None, budget: float | None = None
) -> Account:
    """Ask for every error without an answer in the file.

    Args:
        errors: from `predictions.sample_errors`.
        file: of generations; new answers are appended.
        budget: for this run, in the prices' currency.

    Raises:
        LLMError: see `client.ask`.
        GenerationError: another run writes to the file, or it is damaged.
    """
    with Store(file) as store:
        answered = {generation.key for generation in generations.read(file)}
        requests = [request for request in _requests(errors, server) if request.key not in answered]
        return await client.ask(server, requests, store.keep, prices=prices, budget=budget, total=len(requests))


def verdicts(errors: pd.DataFrame, server: Server, file: str | Path) -> pd.Series:
    """The type of each error according to the file's answers; None without an exact answer."""
    types = {generation.key: read(generation.answer, generation.finish_reason) for generation in generations.read(file)}
    keys = [request.key for request in _requests(errors, server)]
    return pd.Series([types.get(key) for key in keys], index=errors.index, dtype=object)


def _requests(errors: pd.DataFrame, server: Server) -> list[Request]:
    requests = []
    for row in errors.itertuples():
        text = prompt(row.question, row.reference, row.tuned_solution)
        key = generations.key(server.model, text, server.sampling)
        about = {"key": key, "attempt": 0, "id": row.id, "anchor": row.tuned_solution, "kind": KIND, "cues": {}}
        about |= {"model": server.model, "sampling": dict(server.sampling)}
        requests.append(Request(key, text, about=about))
    return requests
