"""An optional judge: a language model that names the type of each error, kept as generations are and read only where plain."""

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from nblib import generations, llm_client
from nblib.generations import Generation, Store
from nblib.gsm8k.categories import LABELS
from nblib.llm_client import Account, Answer, Prices, Request, Server

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

_ANSWER = re.compile(
    r"\s*(?:\*\*)?(?:type\s*:)?(?:\*\*)?\s*[\"'“`*<]{0,2}(?P<label>[a-z ]+?)[\"'”`*>]{0,2}\.?\s*", re.I
)


def prompt(question: str, reference: str, solution: str) -> str:
    """What the judge is asked; it sees neither the rules' verdict nor anybody's label."""
    return PROMPT.format(question=question, reference=reference, solution=solution)


def read(answer: str, finish_reason: str = "stop") -> str | None:
    """The type an answer names; None where it doesn't say exactly one, and nothing else."""
    if finish_reason in ("length", "content_filter", "refusal"):
        return None
    match = _ANSWER.fullmatch(answer)
    label = " ".join(match["label"].lower().split()) if match else None
    return label if label in LABELS else None


async def ask(
    errors: pd.DataFrame, server: Server, file: str | Path, *, prices: Prices | None = None, budget: float | None = None
) -> Account:
    """Have every error judged that the file holds no answer for.

    Args:
        errors: from `predictions.draw_errors`.
        file: of generations; made if need be, appended to.
        budget: for this run, in the prices' currency.

    Raises:
        LLMError: see `llm_client.ask`.
        GenerationError: another run writes to the file, or it is damaged.
    """
    with Store(file) as store:
        answered = {generation.key for generation in generations.read(file)}
        requests = [request for request in _requests(errors, server) if request.key not in answered]

        def keep(request: Request, answer: Answer) -> None:
            store.append(
                Generation(
                    **request.about, answer=answer.text, finish_reason=answer.finish_reason, answered_by=answer.model,
                    input_tokens=answer.input_tokens, output_tokens=answer.output_tokens,
                )
            )  # fmt: skip

        return await llm_client.ask(server, requests, keep, prices=prices, budget=budget, total=len(requests))


def verdicts(errors: pd.DataFrame, server: Server, file: str | Path) -> pd.Series:
    """What the judge said of each error (from the file alone); None where it has not answered, or not plainly."""
    said = {generation.key: read(generation.answer, generation.finish_reason) for generation in generations.read(file)}
    keys = [request.key for request in _requests(errors, server)]
    return pd.Series([said.get(key) for key in keys], index=errors.index, dtype=object)


def _requests(errors: pd.DataFrame, server: Server) -> list[Request]:
    sampling: Mapping[str, object] = server.sampling
    requests = []
    for row in errors.itertuples():
        asked = prompt(row.question, row.reference, row.tuned_solution)
        key = generations.key(server.model, asked, sampling)
        about = {
            "key": key, "attempt": 0, "id": row.id, "anchor": row.tuned_solution, "kind": KIND, "cues": {},
            "model": server.model, "sampling": dict(sampling),
        }  # fmt: skip
        requests.append(Request(key, asked, about=about))
    return requests
