"""Asking a server that counts: nothing that was answered is lost or asked again, and every failure has its sentence."""

import asyncio
from collections import Counter

import openai._base_client
import pytest
from support.llm_server import LLMServer, anchors, chat, error, good

from nblib.errors import StudyError
from nblib.synthesis import client, generations, prompts
from nblib.synthesis.client import Server

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


def generate(server, file, n, *, sampling=SAMPLING, concurrency=4, **options):
    to = Server("toy", getattr(server, "base_url", server), sampling, concurrency)
    return asyncio.run(client.generate(anchors(n), to, file, **options))


def kept(file):
    return list(generations.read(file))


def negations_of(number, reply):
    """The reply to one anchor's negations, whenever they are asked for."""
    return lambda prompt, _: reply if f"number {number} has" in prompt and "Negate" in prompt else None


def test_a_run_asks_all_and_a_second_one_only_what_is_missing(file):
    with LLMServer(seconds=0.05) as server:
        run = generate(server, file, 20, concurrency=7)
        assert (run.answered, run.failures, len(run.pending), len(server.prompts)) == (40, {}, 0, 40)
        assert server.most_together == 7
        assert generate(server, file, 20).answered == 0
        assert generate(server, file, 25).answered == 10
        assert max(Counter(server.prompts).values()) == 1
        assert server.keys == {f"Bearer {KEY}"}
    first = next(generation for generation in kept(file) if generation.id == "a1" and generation.kind == "hedging")
    prompt = prompts.prompt("hedging", first.anchor, {"word": "say", "phrase": "not exactly sure"})
    assert (first.answer, first.answered_by, first.input_tokens, first.sampling) == (good(prompt), "toy", 50, SAMPLING)
    assert {"model": "toy", "messages": [{"role": "user", "content": prompt}], **SAMPLING} in server.bodies


@pytest.mark.parametrize("reply", [error(429), error(503), "drop"])
def test_a_failure_that_passes_is_tried_again(file, reply):
    with LLMServer(lambda prompt, number: reply if number % 3 == 0 else None) as server:
        run = generate(server, file, 6)
    assert (run.answered, run.failures) == (12, {})
    assert len(server.prompts) > 12


@pytest.mark.parametrize("n", [1, 100])  # fewer questions than failures in a row that end a run, and more
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (error(401, f"Incorrect API key: {KEY}."), r"HTTP 401: Incorrect API key: \*\*\*\. .*OPENAI_API_KEY"),
        ((400, {"error": "no option", "message": "no option"}), r"HTTP 400: no option\. Mend"),
        ((404, {"object": "error", "message": "no model toy"}), "HTTP 404: no model toy. Mend model"),  # vLLM
        ((401, {"error": "Unauthorized", "message": "bad token"}), "HTTP 401: Unauthorized; bad token"),
        ((422, {"detail": [{"loc": ["body", "n"], "msg": "no int"}]}), "HTTP 422: .*n.*no int"),  # FastAPI
        ((400, [{"error": {"code": 400, "message": "no such key"}}]), "HTTP 400: no such key"),  # Gemini
        ((404, "<html><style>b {}</style><h1>not\n here</h1>"), "HTTP 404: not here"),
        ((404, ""), "HTTP 404: Not Found"),
        ((200, "<html><h1>Welcome</h1>"), "Welcome. .*base_url"),
        ((200, {"error": {"message": "credits used up"}, "choices": None}), "credits used up"),  # OpenRouter
        ((200, {"choices": [{"error": {"message": "gone"}, "message": {"content": ""}}]}), "gone"),
        ((200, {"choices": []}), "choices"),
    ],
)
def test_a_server_that_answers_nothing_ends_the_run_in_its_own_words(file, reply, said, n):
    with LLMServer(lambda prompt, number: reply) as server, pytest.raises(StudyError, match=f"(?s){said}") as failure:
        generate(server, file, n)
    assert len(server.prompts) < 20
    assert KEY not in str(failure.value)
    assert not kept(file)


def test_a_question_that_fails_is_told_in_the_servers_words_and_left_to_the_next_run(file):
    with LLMServer(negations_of(3, error(400, "too long"))) as server:
        run = generate(server, file, 10)
        assert (run.answered, len(run.failures[400])) == (19, 1)
        assert "HTTP 400: too long. Mend" in run.failures[400][0]
        assert generate(server, file, 10).failures == run.failures, "most is answered: no error"
    with LLMServer() as server:
        assert generate(server, file, 10).answered == 1


@pytest.mark.parametrize("path", ["/openai/deployments/d", "/openai/deployments/d/chat/completions", "/models/"])
def test_azures_addresses_have_their_version_in_the_query_and_the_key_in_a_header_of_its_own(file, path):
    with LLMServer() as server:
        server.base_url = server.base_url.replace("/v1", f"{path}?api-version=2024-12-01-preview")
        generate(server, file, 1)
    folder = path.rstrip("/").removesuffix("/chat/completions")
    assert server.paths == {f"{folder}/chat/completions?api-version=2024-12-01-preview"}
    assert server.keys == {KEY}


@pytest.mark.parametrize(
    "address", ["http://me:sesame@host/v1", "http://host/v1?key=sesame", f"http://host?k={'sesame' * 4}", "sesame/v1"]
)
def test_an_address_with_a_secret_or_of_no_server_is_refused_and_not_shown(address):
    with pytest.raises(StudyError, match="base_url") as failure:
        Server("toy", address)
    assert "sesame" not in str(failure.value)


def test_a_key_is_needed_where_it_always_is_and_only_to_ask(file, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    for base_url in ("https://api.openai.com/v1", "https://x.openai.azure.com/openai/deployments/d?api-version=1"):
        with pytest.raises(StudyError, match="OPENAI_API_KEY"):
            generate(base_url, file, 1)
    with LLMServer() as server:
        assert generate(server, file, 1).answered == 2
    assert generate("https://api.openai.com/v1", file, 1).answered == 0


def test_a_server_that_goes_away_ends_the_run_and_the_next_one_goes_on(file, monkeypatch):
    monkeypatch.setattr(client, "RETRIES", 0)
    with (
        LLMServer(lambda prompt, number: None if number < 15 else "drop") as server,
        pytest.raises(StudyError, match="Connection error"),
    ):
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
            raise StudyError("The disk is full")
        append(generation, file)

    monkeypatch.setattr(generations, "append", second_fails)
    with LLMServer(seconds=0.1) as server, pytest.raises(StudyError, match="is full"):
        generate(server, file, 50)
    assert len(kept(file)) == len(server.prompts) - 1 < 9


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (chat("I'm sorry, I can't help with that."), "no labels"),
        (chat(None, usage=None), "empty"),
        (chat(None, None, {"prompt_tokens": None}, reasoning_content="Hm."), "empty"),
        (chat(None, refusal="No."), "refused"),
        ((400, {"error": {"message": "A policy.", "code": "content_filter"}}), "filtered"),  # Azure
        (chat('1. "verbal": House number 3 has no', "length"), "truncated"),
    ],
)
def test_an_unusable_answer_is_kept_and_asked_for_three_times(file, reply, reason):
    with LLMServer(negations_of(3, reply)) as server:
        assert generate(server, file, 5).answered == 12
        assert generate(server, file, 5).answered == 0
    parsed = [(generation.attempt, prompts.parse(generation).reason) for generation in kept(file)]
    assert sorted(found for found in parsed if found[1]) == [(0, reason), (1, reason), (2, reason)]


def test_parts_of_an_answer_are_joined_without_the_thoughts(file):
    def handle(prompt, number):
        first, rest = good(prompt).split("\n", 1)
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
        return chat([thought, {"type": "reasoning", "text": "Hm."}, {"type": "text", "text": f"{first}\n"}, rest])

    with LLMServer(handle) as server:
        generate(server, file, 1)
    assert {generation.answer for generation in kept(file)} == set(map(good, server.prompts))


def test_a_seed_is_another_one_when_the_same_is_asked_again(file):
    with LLMServer(negations_of(0, chat("no"))) as server:
        generate(server, file, 1, sampling={"seed": 5})
    assert [body["seed"] for body in server.bodies if "Negate" in body["messages"][0]["content"]] == [5, 6, 7]
    assert len({generation.key for generation in kept(file)}) == 2


@pytest.mark.parametrize("usage", [{"prompt_tokens": 20, "completion_tokens": 30}, None])
def test_a_budget_is_for_the_file_over_all_runs_and_never_exceeded(file, usage):
    options = {"sampling": {"max_tokens": 30}, "rates": (0, 1e6), "budget": 200}  # 1 a token
    with LLMServer(lambda prompt, number: chat(good(prompt), usage=usage)) as server:
        run = generate(server, file, 2, **options)
        assert (run.spent, len(run.pending)) == (120, 0)
        run = generate(server, file, 50, **options)
    assert (run.spent, run.answered, len(run.pending)) == (180, 2, 94)
    with pytest.raises(StudyError, match="set max_tokens in sampling"):
        generate(server, file, 1, **options | {"sampling": {}})
    with pytest.raises(StudyError, match="No question fits into the budget"):
        generate(server, file.with_name("other.jsonl"), 1, **options | {"budget": 1})


def test_room_in_the_budget_comes_back_with_answers_that_cost_less_than_they_could(file):
    with LLMServer(seconds=0.01) as server:
        run = generate(server, file, 50, rates=(0, 1e6), budget=500)  # an answer costs 30, and can cost 200
    assert (len(server.prompts), run.spent, len(run.pending)) == (11, 330, 89)
