"""The client against a server that misbehaves on purpose, counted there: nothing lost, nothing answered asked again."""

import asyncio
import json
import logging
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.llm_server import LLMServer, Reply, chat, echoes, error, traces

from nblib.synthesis import client
from nblib.synthesis.client import LLMError, Prices, Request, Server

CANARY = "sk-canary-5d41402abc4b2a76b9719d911017c592"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)


def to(server, **options):
    return Server(**{"model": "toy", "base_url": server.base_url, "concurrency": 4, "timeout": 5, **options})


def requests(n):
    return [Request(f"q{k}", f"Text: Sentence {k}.\nNegate") for k in range(n)]


def ask(server, asked, keep=None, **options):
    kept = {}
    account = asyncio.run(client.ask(server, asked, keep or (lambda q, a: kept.update({q.key: a})), **options))
    return account, kept


def fail_first(reply, of=lambda number: number == 0):
    """The reply to some calls, a good one to the others."""
    return lambda call, number: reply if of(number) else None


# --- failures that pass -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "counted"),
    [
        (error(429), "HTTP 429"),
        (error(500), "HTTP 500"),
        (error(502), "HTTP 502"),
        (error(503), "HTTP 503"),
        (error(408), "HTTP 408"),
        (Reply(500, b"<html>"), "HTTP 500"),
        (Reply(drop="before"), "no response"),
        (Reply(body=b'{"choices": [{"message"', drop="middle"), "no response"),
        (Reply(delay=6.0), "no response"),
    ],
)
def test_a_failure_that_passes_is_tried_again_and_counted(reply, counted):
    with LLMServer(fail_first(reply, lambda number: number % 3 == 0)) as server:
        # a busy machine must not time out where none is meant
        account, kept = ask(to(server, timeout=2 if reply.delay else 60), requests(12))
    assert sorted(kept) == sorted(request.key for request in requests(12))
    assert set(account.failures) == {counted}
    assert account.failures.total() == len(server.calls) - 12
    assert (account.answered, account.given_up.total()) == (12, 0)
    assert max(Counter(server.answered()).values()) == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b'{"choices": []}', b'{"choices": [{"message": 1}]}', b'{"error": {"message": "x"}}', b"<html>",
     chat(["no text"]).body],
)  # fmt: skip
@pytest.mark.parametrize("type_", ["application/json", "text/html"])
def test_an_answer_that_is_no_chat_completion_is_given_up_and_counted(body, type_):
    reply = Reply(body=body, headers={"Content-Type": type_})
    with LLMServer(fail_first(reply, lambda number: number % 3 == 0)) as server:
        account, kept = ask(to(server), requests(12))
        assert len(server.calls) == 12
    assert account.failures == account.given_up == {"unreadable answer": 4}
    assert account.answered == len(kept) == 8


def test_retry_after_is_honoured():
    times = []

    def handle(call, number):
        times.append(time.monotonic())
        return error(429, Retry_After="1") if number == 0 else None

    with LLMServer(handle) as server:
        assert len(ask(to(server, concurrency=1), requests(2))[1]) == 2
    assert len(times) == 3
    assert times[1] - times[0] > 0.9


def test_a_wait_of_hours_is_not_waited_for_and_the_job_ends():
    with (
        LLMServer(fail_first(error(429, Retry_After="7200"), lambda number: number >= 3)) as server,
        pytest.raises(LLMError, match=r"10 requests in a row failed.*429.*Mend that, then run again"),
    ):
        ask(to(server, concurrency=1), requests(100))
    assert len(server.calls) == 13


def test_slow_answers_are_waited_for():
    with LLMServer(lambda call, number: Reply(delay=0.8, body=chat("x").body)) as server:
        account, kept = ask(to(server, timeout=3), requests(4))
    assert len(kept) == 4
    assert not account.failures


def test_a_request_that_always_fails_is_given_up_and_the_others_are_not():
    with LLMServer(lambda call, number: error(500) if "Sentence 3." in call.prompt else None) as server:
        account, kept = ask(to(server, retries=2), requests(20))
    assert len(kept) == 19
    assert account.given_up == {"HTTP 500": 1}
    assert sum("Sentence 3." in call.prompt for call in server.calls) == 3


def test_a_request_the_server_refuses_is_not_tried_again():
    with LLMServer(lambda call, number: error(400, "too long") if "Sentence 3." in call.prompt else None) as server:
        account, kept = ask(to(server), requests(20))
    assert (len(kept), len(server.calls)) == (19, 20)
    assert account.given_up == {"HTTP 400": 1}


# --- failures that don't ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            error(401, f"Incorrect API key provided: {CANARY}."),
            "the key is not accepted: set the environment variable OPENAI",
        ),
        (error(402), "no credit left"),
        (error(403), "the key may not use this model"),
        (error(404, "The model `toy` does not exist"), "model 'toy': no such model .* mend model or base_url"),
        (error(429, "quota", "insufficient_quota"), "quota is used up"),
    ],
)
def test_what_trying_again_can_not_mend_stops_the_job_and_keeps_what_was_answered(reply, message, caplog):
    caplog.set_level(logging.DEBUG)
    kept = []
    with (
        LLMServer(fail_first(reply, lambda number: number >= 10)) as server,
        pytest.raises(LLMError, match=message) as failure,
    ):
        ask(to(server), requests(1000), lambda request, answer: kept.append(request.key))
    assert len(kept) == 10
    assert len(server.calls) <= 14
    assert CANARY not in str(failure.value) + caplog.text


def test_requests_in_flight_are_heard_to_the_end_when_the_job_stops():
    def handle(call, number):
        return error(401) if number == 3 else Reply(delay=0.3, body=chat("x").body)

    kept = []
    with LLMServer(handle) as server, pytest.raises(LLMError):
        ask(to(server), requests(100), lambda request, answer: kept.append(request.key))
    assert len(kept) == 3 == len(server.answered())


def test_a_stop_does_not_wait_for_those_who_wait():
    def handle(call, number):
        return {0: error(503, Retry_After="60"), 1: error(401)}.get(number)

    started = time.monotonic()
    with LLMServer(handle) as server, pytest.raises(LLMError, match="key is not accepted"):
        ask(to(server, concurrency=2), requests(5))
    assert time.monotonic() - started < 5


def test_no_server_is_one_message():
    with LLMServer() as server:
        pass
    with pytest.raises(LLMError, match=r"does not answer, tried 3 times .*See that it runs, that base_url is right"):
        ask(to(server, retries=2), requests(100))


def test_a_server_that_goes_away_ends_the_job():
    with (
        LLMServer(fail_first(error(500), lambda number: number >= 5)) as server,
        pytest.raises(LLMError, match=r"10 requests in a row failed, .*HTTP|500"),
    ):
        ask(to(server, retries=1), requests(1000))
    assert len(server.calls) < 60


def test_an_error_in_the_callers_hands_ends_the_job_as_it_is():
    def keep(request, answer):
        raise OSError("disk full")

    with LLMServer() as server, pytest.raises(OSError, match="disk full"):
        ask(to(server), requests(50), keep)
    assert len(server.calls) <= 5


# --- key and address --------------------------------------------------------------------------------------------------


def test_the_key_comes_from_the_environment_and_goes_to_the_server_alone(caplog, capsys):
    caplog.set_level(logging.DEBUG)
    with LLMServer(fail_first(error(500, CANARY))) as server:
        ask(to(server), requests(2))
    assert all(call.headers["authorization"] == f"bearer {CANARY}" for call in server.calls)
    assert CANARY not in caplog.text + "".join(capsys.readouterr()) + repr(to(server))


def test_without_a_key_a_server_on_this_machine_is_asked_and_any_other_is_not(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with LLMServer() as server:
        assert len(ask(to(server), requests(2))[1]) == 2
    with pytest.raises(
        LLMError, match=r"No key for https://api.openai.com/v1: set the environment variable OPENAI_API_KEY"
    ):
        ask(Server("toy"), requests(2))
    monkeypatch.setenv("OPENAI_API_KEY", "two words")
    with pytest.raises(LLMError, match="holds no key") as failure:
        ask(Server("toy"), requests(2))
    assert "two words" not in str(failure.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "localhost:8000"}, "is no address"),
        ({"base_url": "http://[::1"}, "is no address"),
        ({"base_url": "http://host:port/v1"}, "is no address"),
        ({"base_url": "https://me:secret@host/v1"}, "secrets belong in OPENAI_API_KEY"),
        ({"base_url": "https://host/v1?key=secret"}, "secrets belong in OPENAI_API_KEY"),
        ({"sampling": {"model": "x", "n": 2}}, "sampling can't set model, n"),
        ({"concurrency": 0}, "at least 1"),
        ({"timeout": float("nan")}, "timeout more than 0 seconds"),
    ],
)
def test_a_server_that_can_not_be_asked_is_refused_at_once(options, message):
    with pytest.raises(LLMError, match=message) as failure:
        Server(**{"model": "toy", **options})
    assert "secret@" not in str(failure.value)
    assert "key=secret" not in str(failure.value)


# --- what is sent, and what it costs ----------------------------------------------------------------------------------


def test_sampling_parameters_are_sent_as_they_are_and_a_requests_own_come_first():
    sampling = {"temperature": 0.3, "max_tokens": 9, "top_k": 5, "seed": 1}
    with LLMServer() as server:
        ask(to(server, sampling=sampling), [Request("a", "Text: A.\nNegate", {"seed": 2}, {"own": "data"})])
    sent = json.loads(server.calls[0].body)
    messages = [{"role": "user", "content": "Text: A.\nNegate"}]
    assert sent == {"model": "toy", "messages": messages, **sampling, "seed": 2}


def test_an_answers_parts_are_handed_on():
    with LLMServer(lambda call, number: chat("", "length", None, "other")) as server:
        _, kept = ask(to(server), requests(1))
    assert kept["q0"] == client.Answer("", "length", "other", None, None)
    with LLMServer(lambda call, number: chat(None, refusal="No.")) as server:
        _, kept = ask(to(server), requests(1))
    assert (kept["q0"].text, kept["q0"].finish_reason) == ("No.", "refusal")


def test_no_more_requests_are_in_flight_than_asked_for_and_they_are_taken_as_there_is_room():
    taken = []

    def asked():
        for request in requests(30):
            taken.append(request.key)
            yield request

    def keep(request, answer):
        assert len(taken) <= kept_so_far[0] + 7
        kept_so_far[0] += 1

    kept_so_far = [0]
    with LLMServer(lambda call, number: Reply(delay=0.02, body=chat("x").body)) as server:
        ask(to(server, concurrency=7), asked(), keep)
    assert server.most_together == 7
    assert kept_so_far == [30]


def test_tokens_and_cost_are_added_up():
    with LLMServer() as server:
        account, _ = ask(to(server), requests(10), prices=Prices(input=2, output=10))
    assert (account.input_tokens, account.output_tokens) == (500, 300)
    assert account.cost == pytest.approx((500 * 2 + 300 * 10) / 1e6)


@pytest.mark.parametrize("usage", [{"prompt_tokens": 20, "completion_tokens": 30}, None])
def test_a_budget_is_never_exceeded_and_stops_cleanly(usage):
    prices = Prices(output=1e6)  # 1 a token
    with LLMServer(lambda call, number: chat("x", usage=usage)) as server:
        account, kept = ask(to(server, sampling={"max_tokens": 30}), requests(100), prices=prices, budget=200)
    assert account.stopped == "budget"
    assert account.cost == 180, "a seventh could have cost more than is left"
    assert len(kept) == len(server.calls) == 6


def test_an_earlier_jobs_account_counts_towards_the_budget():
    with LLMServer(lambda call, number: chat("x")) as server:
        options = {"prices": Prices(output=1e6), "budget": 100}
        first, _ = ask(to(server, sampling={"max_tokens": 30}), requests(2), **options)
        second, kept = ask(to(server, sampling={"max_tokens": 30}), requests(5), **options, account=first)
    assert (second.cost, len(kept), second.stopped) == (90, 1, "budget")


def test_a_budget_without_a_limit_on_answers_is_refused():
    with LLMServer() as server, pytest.raises(LLMError, match="set max_tokens in sampling"):
        ask(to(server, sampling={}), requests(3), budget=1)
    assert not server.calls


# --- a server that means harm -----------------------------------------------------------------------------------------


def endless(chunk, pause=0.0):
    """A reply that drips: its body in chunks, without a length."""
    return Reply(headers={"Content-Length": None, "Connection": "close"}, drip=(chunk, pause))


@pytest.mark.parametrize("chunk", [b" ", b" " * 100_000])
def test_a_response_that_never_ends_is_given_up_after_the_time_for_one_attempt(chunk):
    """A byte now and then keeps a connection alive, and blanks before the JSON are allowed."""
    drip = endless(chunk, 0.05)
    started = time.monotonic()
    with (
        LLMServer(lambda call, number: drip) as server,
        pytest.raises(LLMError, match="does not answer, tried 2 times"),
    ):
        ask(to(server, timeout=0.6, retries=1, concurrency=1), requests(1))
    assert time.monotonic() - started < 5


def test_a_response_without_measure_is_cut_and_no_answer(monkeypatch):
    monkeypatch.setattr(client, "LONGEST", 200_000)
    with LLMServer(fail_first(endless(b"x" * 65_536))) as server:
        account, kept = ask(to(server, concurrency=1), requests(2))
    assert (account.given_up, len(kept)) == ({"unreadable answer": 1}, 1)


def test_json_nested_without_end_is_no_answer():
    deep = Reply(body=b'{"choices": ' + b"[" * 100_000, headers={"Content-Type": "application/json"})
    closed = Reply(body=b"[" * 100_000 + b"]" * 100_000, headers={"Content-Type": "application/json"})
    with LLMServer(lambda call, number: (deep, closed, None)[number]) as server:
        account, kept = ask(to(server, concurrency=1), requests(3))
    assert (account.given_up, len(kept)) == ({"unreadable answer": 2}, 1)


@pytest.mark.parametrize(
    "head", [b"no HTTP at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"]
)
def test_what_is_no_http_is_no_response(head):
    with LLMServer(lambda call, number: Reply(raw=head)) as server, pytest.raises(LLMError, match="does not answer"):
        ask(to(server, retries=0), requests(1))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_prompt_is_sent_on_to_another_address(status):
    with LLMServer() as other:
        away = Reply(status, headers={"Location": f"{other.base_url}/chat/completions"})
        with LLMServer(lambda call, number: away) as server, pytest.raises(LLMError) as failure:
            ask(to(server, concurrency=1), requests(3))
        assert not other.calls
    assert f"sends requests on to {other.base_url}/chat/completions" in str(failure.value)
    assert "set base_url to that address" in str(failure.value)
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5_000_000, "completion_tokens": True},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": 5, "completion_tokens": -1},
        {"prompt_tokens": 5, "completion_tokens": 0},
        {"prompt_tokens": float("nan"), "completion_tokens": 1},
        {"prompt_tokens": "5", "completion_tokens": [1]},
        {"prompt_tokens": 10**400, "completion_tokens": 1},
    ],
)
def test_counts_that_can_not_be_cost_the_most_an_answer_can(usage):
    prices = Prices(output=1e6)  # 1 a token
    with LLMServer(lambda call, number: chat("x", usage=usage)) as server:
        account, _ = ask(to(server, sampling={"max_tokens": 30}), requests(100), prices=prices, budget=200)
    assert account.stopped == "budget"
    assert account.cost == 180


def test_an_empty_answer_costs_its_prompt():
    usage = {"prompt_tokens": 50, "completion_tokens": 0}
    with LLMServer(lambda call, number: chat("", usage=usage)) as server:
        account, _ = ask(to(server), requests(1), prices=Prices(input=1e6), budget=1e9)
    assert account.cost == 50


@pytest.mark.parametrize("limit", ["many", -5, 0, True, 1.5, 10**30])
def test_a_limit_that_is_no_number_of_tokens_is_refused_with_a_budget(limit):
    with LLMServer() as server, pytest.raises(LLMError, match="must be a whole number of tokens such as 512"):
        ask(to(server, sampling={"max_tokens": limit}), requests(3), budget=1)
    assert not server.calls


@pytest.mark.parametrize("form", echoes(CANARY))
def test_a_key_in_an_answer_or_error_is_starred_whatever_its_form(form):
    echo = echoes(CANARY)[form]
    with LLMServer(lambda call, number: chat(f"House, {echo}, door.", model=f"toy {echo}", finish=echo)) as server:
        _, kept = ask(to(server), requests(1))
    assert "***" in kept["q0"].text and kept["q0"].text.startswith("House, ") and kept["q0"].text.endswith(", door.")
    hidden = traces(CANARY)[form]
    assert hidden not in repr(kept["q0"])
    with LLMServer(lambda call, number: error(401, f"bad key {echo}.")) as server, pytest.raises(LLMError) as failure:
        ask(to(server), requests(1))
    assert hidden not in str(failure.value)


def test_a_key_that_the_server_has_half_hidden_is_starred():
    with (
        LLMServer(
            lambda call, number: error(401, f"Incorrect API key provided: {CANARY[:8]}********{CANARY[-4:]}.")
        ) as server,
        pytest.raises(LLMError) as failure,
    ):
        ask(to(server), requests(1))
    assert CANARY[:8] not in str(failure.value)
    assert CANARY[-4:] not in str(failure.value)


def test_a_word_in_place_of_a_key_changes_no_answer(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with LLMServer(lambda call, number: chat("There is none.")) as server:
        _, kept = ask(to(server), requests(1))
    assert kept["q0"].text == "There is none."


@pytest.fixture(scope="module")
def any_server():
    with LLMServer() as server:
        yield server


@settings(max_examples=60)
@given(data=st.data())
def test_whatever_a_server_sends_ends_in_an_answer_or_a_count(any_server, data):
    """No status, header or body ends a job in anything but its account or one sentence."""
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "refusal", "usage", "error", "code", "prompt_tokens", "x"]),
            inner, max_size=4,
        ), max_leaves=12,
    )  # fmt: skip
    choice = st.fixed_dictionaries({"message": st.dictionaries(st.sampled_from(["content", "refusal"]), anything)})
    completion = st.fixed_dictionaries(
        {"choices": st.lists(choice | anything, max_size=2)}, optional={"usage": anything}
    )
    body = data.draw(st.binary(max_size=40) | (completion | anything).map(lambda sent: json.dumps(sent).encode()))
    status = data.draw(st.sampled_from([200, 200, 200, 204, 206, 300, 304, 307, 400, 401, 418, 422]))
    headers = data.draw(
        st.dictionaries(
            st.sampled_from(["Content-Type", "Retry-After", "Location", "Content-Encoding"]),
            st.sampled_from(
                ["application/json", "text/html; charset=x", "", "-1", "nan", "gzip", "file:///etc/passwd"]
            ),
        )
    )
    any_server.handle = lambda call, number: Reply(status, body, headers)
    try:
        account, kept = ask(to(any_server, retries=0, timeout=30), requests(1))
    except LLMError as failure:
        assert str(failure).endswith(".") and "\n" not in str(failure)
    else:
        assert account.answered == len(kept) == 1 - account.given_up.total()
        assert account.cost == 0
