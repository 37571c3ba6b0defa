"""Asking a server that counts: nothing that was answered is lost or asked again, and every failure has its sentence."""

import asyncio
from collections import Counter

import openai._base_client
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.llm_server import LLMServer, chat, error, good

from nblib.synthesis import client, generations, prompts
from nblib.synthesis.client import Prices, Server, SynthesisError

KEY = "sk-canary-5d41402abc4b2a76b9719d911017c592"
SAMPLING = {"temperature": 1.0, "max_tokens": 200}


@pytest.fixture(autouse=True)
def key_and_short_waits(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr(openai._base_client, "MAX_RETRY_DELAY", 0.02)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "new" / "generations.jsonl"


def anchors(n):
    return pd.DataFrame({"id": f"a{k}", "anchor": f"House number {k} has a red door."} for k in range(n))


def generate(server, file, n, *, sampling=SAMPLING, concurrency=4, **options):
    to = Server("toy", getattr(server, "base_url", server), sampling, concurrency)
    return asyncio.run(client.generate(anchors(n), to, file, **options))


def kept(file):
    return list(generations.read(file))


def negations_of(number, reply):
    """The reply to one anchor's negations, whenever they are asked for."""
    return lambda prompt, _: reply if f"number {number} has" in prompt and "Negate" in prompt else None


def test_a_run_asks_all_and_a_second_one_only_what_is_missing(file):
    with LLMServer() as server:
        account = generate(server, file, 20)
        assert (account.answered, account.failures, account.stopped, len(server.prompts)) == (40, {}, "", 40)
        assert generate(server, file, 20).answered == 0
        assert generate(server, file, 25).answered == 10
        assert max(Counter(server.prompts).values()) == 1
        assert server.keys == {f"Bearer {KEY}"}
    first = next(generation for generation in kept(file) if generation.id == "a1" and generation.kind == "hedging")
    prompt = prompts.prompt("hedging", first.anchor, {"word": "say", "phrase": "not exactly sure"})
    assert (first.answer, first.answered_by, first.input_tokens, first.sampling) == (good(prompt), "toy", 50, SAMPLING)
    assert {"model": "toy", "messages": [{"role": "user", "content": prompt}], **SAMPLING} in server.bodies


def test_equal_anchors_are_asked_about_once(file):
    with LLMServer() as server:
        asyncio.run(client.generate(anchors(3).assign(anchor="It is red."), Server("toy", server.base_url), file))
    assert sum("Negate" in prompt for prompt in server.prompts) == 1


def test_no_more_questions_are_in_flight_than_allowed(file):
    with LLMServer(seconds=0.02) as server:
        generate(server, file, 15, concurrency=7)
    assert server.most_together == 7


@pytest.mark.parametrize("reply", [error(429), error(503), (500, "<html>"), "drop"])
def test_a_failure_that_passes_is_tried_again(file, reply):
    with LLMServer(lambda prompt, number: reply if number % 3 == 0 else None) as server:
        account = generate(server, file, 6)
    assert (account.answered, account.failures) == (12, {})
    assert len(server.prompts) > 12


@pytest.mark.parametrize(
    ("reply", "calls", "said"),
    [
        (error(401, f"Incorrect API key: {KEY}."), 10, r"Incorrect API key: \*\*\*\. Set .* OPENAI_API_KEY to a key that"),
        (error(404, "The model `toy` does not exist"), 10, "model 'toy': The model `toy` does not exist. Mend model or base_url"),
        (error(400, "maximum context length is 9 tokens"), 10, "context length is 9 tokens. See that .* has room for prompt and"),
        ((200, "<html>Welcome</html>"), 10, "no chat completion, but '<html>Welcome.*base_url is that of the API"),
        (chat({"text": "It"}), 10, "no chat completion, but "),
        (error(429, "You exceeded your current quota"), 30, "exceeded your current quota. Wait, lower concurrency"),
    ],
)  # fmt: skip
def test_a_server_that_answers_nothing_ends_the_run_in_its_own_words(file, monkeypatch, reply, calls, said):
    monkeypatch.setattr(client, "RETRIES", 2)
    with LLMServer(lambda prompt, number: reply) as server, pytest.raises(SynthesisError, match=said) as failure:
        generate(server, file, 100, concurrency=1)
    assert len(server.prompts) == calls
    assert KEY not in str(failure.value)
    assert "\n" not in str(failure.value)


def test_no_server_is_one_sentence(file):
    with LLMServer() as server:
        pass
    with pytest.raises(SynthesisError, match=r"connection.*failed\. See that the server runs at base_url"):
        generate(server, file, 2)


def test_a_question_that_fails_is_counted_and_left_to_the_next_run(file):
    with LLMServer(negations_of(3, error(400))) as server:
        account = generate(server, file, 10)
    assert (account.answered, account.failures) == (19, {"HTTP 400": 1})
    with LLMServer() as server:
        assert generate(server, file, 10).answered == 1


def test_a_server_that_goes_away_ends_the_run_and_the_next_one_goes_on(file, monkeypatch):
    monkeypatch.setattr(client, "RETRIES", 0)
    with LLMServer(lambda prompt, number: None if number < 15 else "drop") as server, pytest.raises(SynthesisError):
        generate(server, file, 100)
    assert len(kept(file)) == 15
    assert len(server.prompts) < 100, "of 200"
    with LLMServer() as server:
        assert generate(server, file, 20).answered == 25


def test_answers_in_flight_are_kept_when_the_disk_is_full(file, monkeypatch):
    append, tried = generations.append, []

    def second_fails(generation, file):
        tried.append(generation)
        if len(tried) == 2:
            raise SynthesisError("Can't write")
        append(generation, file)

    monkeypatch.setattr(generations, "append", second_fails)
    with LLMServer(seconds=0.1) as server, pytest.raises(SynthesisError, match="Can't write"):
        generate(server, file, 50)
    assert len(kept(file)) == len(server.prompts) - 1 < 9


def test_half_a_line_of_a_killed_run_is_asked_again_and_nothing_else(file):
    with LLMServer() as server:
        generate(server, file, 5)
        whole = file.read_bytes()
        file.write_bytes(whole[:-20])
        assert len(kept(file)) == 9
        assert generate(server, file, 5).answered == 1
    assert sorted(file.read_bytes().splitlines()) == sorted(whole.splitlines())


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (chat("I'm sorry, I can't help with that."), "refusal"),
        (chat(None, refusal="No."), "refusal"),
        (chat("", "content_filter"), "filtered"),
        (chat(None, usage=None), "empty"),
        (chat('1. "verbal": House number 3 has no', "length"), "truncated"),
        (chat([{"type": "thinking", "thinking": []}, {"type": "text", "text": "no"}]), "no labels"),
    ],
)
def test_an_unusable_answer_is_kept_and_asked_for_three_times(file, reply, reason):
    with LLMServer(negations_of(3, reply)) as server:
        assert generate(server, file, 5).answered == 12
        assert generate(server, file, 5).answered == 0
    parsed = [(generation.attempt, prompts.parse(generation).reason) for generation in kept(file)]
    assert sorted(found for found in parsed if found[1]) == [(0, reason), (1, reason), (2, reason)]


def test_a_seed_is_another_one_when_the_same_is_asked_again(file):
    with LLMServer(negations_of(0, chat("no"))) as server:
        generate(server, file, 1, sampling={"seed": 5})
    assert [body["seed"] for body in server.bodies if "Negate" in body["messages"][0]["content"]] == [5, 6, 7]
    assert len({generation.key for generation in kept(file)}) == 2


def test_a_key_in_an_answer_is_not_in_the_file(file):
    with LLMServer(lambda prompt, number: chat(f"{good(prompt)} {KEY}", model=KEY)) as server:
        generate(server, file, 1)
    assert "***" in kept(file)[0].answer
    assert KEY not in file.read_text()


def test_without_a_key_only_a_server_on_this_machine_is_asked(file, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with LLMServer() as server:
        assert generate(server, file, 1).answered == 2
    with pytest.raises(SynthesisError, match=r"No key for https://a.b/v1: set the environment variable OPENAI_API_KEY"):
        generate("https://a.b/v1", file, 2)


@pytest.mark.parametrize("usage", [{"prompt_tokens": 20, "completion_tokens": 30}, None])
def test_a_budget_is_for_the_file_over_all_runs_and_never_exceeded(file, usage):
    prices, sampling = Prices(0, 1e6), {"max_tokens": 30}  # 1 a token
    with LLMServer(lambda prompt, number: chat(good(prompt), usage=usage)) as server:
        account = generate(server, file, 2, sampling=sampling, prices=prices, budget=200)
        assert (account.cost, account.stopped) == (120, "")
        account = generate(server, file, 50, sampling=sampling, prices=prices, budget=200)
    assert (account.cost, account.stopped, len(server.prompts)) == (60, "budget", 6)


def test_room_in_the_budget_comes_back_with_answers_that_cost_less_than_they_could(file):
    with LLMServer() as server:
        account = generate(server, file, 50, prices=Prices(0, 1e6), budget=500)  # an answer costs 30, and can cost 200
    assert (len(server.prompts), account.stopped) == (11, "budget")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "localhost:8000"}, "base_url must look like"),
        ({"base_url": "https://me:secret@host/v1"}, "holds no key"),
        ({"base_url": "https://host/v1?key=secret"}, "holds no key"),
        ({"sampling": {"n": 2, "model": "x"}}, "sampling can't set model, n"),
        ({"concurrency": 0}, "at least 1"),
    ],
)
def test_a_server_that_can_not_be_asked_is_refused(options, said):
    with pytest.raises(SynthesisError, match=said) as failure:
        Server("toy", **options)
    assert "secret" not in str(failure.value)


def test_money_needs_a_limit_and_a_price(file):
    with pytest.raises(SynthesisError, match="set max_tokens in sampling"):
        generate("http://localhost/v1", file, 1, sampling={}, budget=1)
    with pytest.raises(SynthesisError, match=r"no price of 'x'. Add it, e.g. x: \[0.5, 1.5\]"):
        Prices.of("x", {"y": [1, 2]})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["choices", "message", "content", "type", "text", "usage", "prompt_tokens"]), inner, max_size=4
    ), max_leaves=12,
)  # fmt: skip


@given(
    ANYTHING | st.fixed_dictionaries({"choices": st.lists(st.fixed_dictionaries({"message": ANYTHING}), max_size=2)})
)
def test_whatever_a_server_sends_is_taken_or_refused(completion):
    try:
        assert {"answer", "finish_reason", "answered_by"} < client._answer(completion).keys()
    except ValueError as refused:
        assert "no chat completion" in str(refused)
