"""The judge: what it is asked, which answers count, and that nothing is asked twice."""

import asyncio
import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.llm_jobs import to
from support.llm_server import LLMServer, chat

from nblib.analysis.gsm8k import judge
from nblib.analysis.gsm8k.errors import LABELS

ERRORS = pd.DataFrame(
    {
        "id": ["a", "b", "c"], "question": ["What is {1} + 1?", "Two?", "Three?"], "reference": ["1 + 1 = 2", "2", "3"],
        "tuned_solution": ["1 + 1 = 3", "4", "5"], "category": ["SECRET"] * 3,
    }
)  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        "Type: repetition",
        "type: Repetition.",
        "repetition",
        " Type: repetition\n",
        "**Type:** repetition",
        "`repetition`",
    ],
)
def test_plain_answers_are_read(answer):
    assert judge.read(answer) == "repetition"


@pytest.mark.parametrize(
    "answer",
    ["", "Type: repetition or hallucination", "It repeats. Type: repetition", "Type: wrong", 
     "Type: repetition\nType: hallucination", "not repetition", "Type:", "I can't tell"],
)  # fmt: skip
def test_anything_else_is_no_answer(answer):
    assert judge.read(answer) is None


def test_a_cut_answer_is_none():
    assert judge.read("Type: repetition", "length") is None


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_read_without_an_error(text):
    assert judge.read(text) in (None, *LABELS)


def test_the_prompt_names_every_label_and_nobodys():
    asked = judge.prompt(*ERRORS.loc[0, ["question", "reference", "tuned_solution"]])
    assert all(f"- {label}:" in asked for label in LABELS)
    assert "{1}" in asked and "SECRET" not in asked


def test_answers_are_kept_read_and_not_asked_for_again(tmp_path):
    def handle(call, number):
        solution = re.search(r"The model's solution:\n(.*)", call.prompt)[1]
        answers = {"1 + 1 = 3": "Type: wrong calculation", "4": "Perhaps hallucination?", "5": "Type: undecided"}
        return chat(answers[solution])

    file = tmp_path / "judge.jsonl"
    with LLMServer(handle) as server:
        account = asyncio.run(judge.ask(ERRORS, to(server.base_url), file))
        assert account.answered == 3
        assert judge.verdicts(ERRORS, to(server.base_url), file).tolist() == ["wrong calculation", None, "undecided"]
        assert asyncio.run(judge.ask(ERRORS, to(server.base_url), file)).answered == 0
        assert len(server.calls) == 3
        other = judge.verdicts(ERRORS.assign(tuned_solution="another"), to(server.base_url), file)
    assert other.isna().all()


def test_without_a_file_nothing_is_known(tmp_path):
    assert judge.verdicts(ERRORS, to("http://127.0.0.1:1/v1"), tmp_path / "none.jsonl").isna().all()
