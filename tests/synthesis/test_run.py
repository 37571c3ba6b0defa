"""Synthesis against a server that counts: killed, refused, resumed, and nothing paid for twice."""

import asyncio
import hashlib
import json
import logging
import random
import time
from collections import Counter

import pandas as pd
import pytest
from support.llm_jobs import PROCESSES, SAMPLING, anchors, generate, to
from support.llm_server import LLMServer, Reply, chat, error, good

from nblib import paths
from nblib.corpora import triples
from nblib.synthesis import generations, outcomes, prompts, run
from nblib.synthesis.client import LLMError, Prices
from nblib.synthesis.generations import GenerationError
from nblib.synthesis.prompts import SynthesisError

PUBLISHED = paths.DATA / "published"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "generations.jsonl"


# --- what is asked ----------------------------------------------------------------------------------------------------


def test_the_prompts_are_the_papers_to_the_letter():
    published = json.loads((PUBLISHED / "prompts.json").read_text())
    cues = {"word": "reportedly", "phrase": "not entirely clear"}
    for kind in ("negation", "hedging"):
        text = published[kind]["template"].replace("{text}", "A {b} c.")
        for hedge, chosen in cues.items():
            text = text.replace(f"{{{hedge}_cue}}", chosen)
        assert prompts.prompt(kind, "A {b} c.", cues) == text
    assert "cue such as not entirely clear" in text


def test_cues_are_taken_from_the_papers_list_evenly_and_always_the_same():
    known = json.loads((PUBLISHED / "hedge_cues.json").read_text())
    for hedge, cues in known.items():
        counts = Counter(prompts.cue(f"a{k}", hedge) for k in range(20_000))
        assert set(counts) == set(cues)
        assert max(counts.values()) < 1.6 * 20_000 / len(cues)
    assert (prompts.cue("a1", "word"), prompts.cue("a1", "phrase")) == ("say", "not exactly sure")  # for ever
    assert [prompts.cue("a1", "word", seed) for seed in (1, 2)] != [prompts.cue("a1", "word", 0)] * 2


def test_a_question_is_the_same_in_every_run_and_another_with_another_seed_or_sampling():
    def keys(seed=0, **options):
        return [question.key for question in prompts.questions(anchors(20), to("http://127.0.0.1/v1", **options), seed)]

    first = keys()
    assert first == keys() == keys(concurrency=1, timeout=9)
    assert len(set(first)) == 40
    assert not set(first) & set(keys(model="other"))
    assert not set(first) & set(keys(sampling={**SAMPLING, "temperature": 0.5}))
    assert first[::2] == keys(seed=1)[::2], "a negation has no cue"
    assert not set(first[1::2]) & set(keys(seed=1)[1::2])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"id": ["a"]}), "lack the column anchor"),
        (pd.DataFrame({"id": ["a", "a"], "anchor": ["x", "y"]}), "Two anchors have the id 'a'"),
        (pd.DataFrame({"id": ["a", "b"], "anchor": ["x", " "]}), "1 anchors are empty; the first has the id 'b'"),
    ],
)
def test_anchors_that_can_not_be_asked_about_are_refused(table, message):
    with pytest.raises(SynthesisError, match=message):
        list(prompts.questions(table, to("http://127.0.0.1/v1")))


# --- asking -----------------------------------------------------------------------------------------------------------


def test_a_run_ends_with_all_variants_and_a_second_one_asks_nothing(file):
    with LLMServer() as server:
        account = generate(server.base_url, file, 20)
        assert (account.answered, len(server.calls)) == (40, 40)
        assert generate(server.base_url, file, 20).answered == 0
        assert len(server.calls) == 40
        assert generate(server.base_url, file, 25).answered == 10
    kept = list(generations.read(file))
    assert Counter(generation.kind for generation in kept) == {"negation": 25, "hedging": 25}
    first = next(generation for generation in kept if generation.id == "a1" and generation.kind == "hedging")
    assert first.cues == {"word": "say", "phrase": "not exactly sure"}
    assert (first.model, first.sampling, first.answered_by, first.input_tokens) == ("toy", SAMPLING, "toy", 50)
    assert first.answer == good(prompts.prompt("hedging", first.anchor, first.cues))


def bad_for(number, reply):
    """The reply for one anchor's negations, whenever they are asked for."""
    return lambda call, _: reply if f"number {number} has" in call.prompt and "Negate" in call.prompt else None


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (chat("I'm sorry, I can't help with that."), "refusal"),
        (chat(None, refusal="No."), "refusal"),
        (chat('1. "verbal": House number 3 has no', "length"), "truncated"),
        (chat("", "content_filter"), "filtered"),
        (chat(""), "empty"),
        (chat('1. "verbal": House number 3 does not have a red door.'), "missing: absolute, affixal, lexical"),
    ],
)
def test_only_what_can_not_be_used_is_asked_again_and_kept_with_its_reason(file, reply, reason):
    with LLMServer(bad_for(3, reply)) as server:
        account = generate(server.base_url, file, 10, attempts=3)
        assert account.answered == 20 + 2
        assert max(Counter(call.prompt for call in server.calls).values()) == 3
        assert generate(server.base_url, file, 10, attempts=3).answered == 0, "attempts of earlier runs count"
        answers = outcomes.results(anchors(10), to(server.base_url), file)
    row = answers[answers.reason != ""].iloc[0]
    assert (len(answers[answers.reason != ""]), row.id, row.kind, row.reason, row.attempts) == (
        1, "a3", "negation", reason, 3,
    )  # fmt: skip
    kept = [generation for generation in generations.read(file) if prompts.parse(generation).reason]
    assert [generation.attempt for generation in kept] == [0, 1, 2]


def test_a_better_answer_is_taken_when_it_comes(file):
    replies = iter([chat("no"), chat("no")])
    with LLMServer(lambda call, _: next(replies, None) if "Negate" in call.prompt else None) as server:
        generate(server.base_url, file, 1)
        answers = outcomes.results(anchors(1), to(server.base_url), file)
    assert answers.reason.tolist() == ["", ""]
    assert answers.attempts.tolist() == [3, 1]


def test_equal_anchors_are_asked_about_once_and_all_get_the_answer(file):
    same = anchors(3).assign(anchor="House number 7 has a red door.")
    with LLMServer() as server:
        asyncio.run(run.generate(same, to(server.base_url), file))
        assert sum("Negate" in call.prompt for call in server.calls) == 1
        assert len(outcomes.variants(same, outcomes.results(same, to(server.base_url), file))) == 3


def test_a_seed_is_another_one_when_the_same_is_asked_again(file):
    with LLMServer(bad_for(0, chat("no"))) as server:
        asyncio.run(run.generate(anchors(1), to(server.base_url, sampling={"seed": 5}), file))
        seeds = [json.loads(call.body)["seed"] for call in server.calls if "Negate" in call.prompt]
    assert seeds == [5, 6, 7]
    assert len({generation.key for generation in generations.read(file)}) == 2


def test_a_budget_holds_for_the_file_over_all_runs(file):
    prices = Prices(output=1e6)  # 1 a token: an answer costs 30, and can cost 200
    with LLMServer() as server:
        for _ in range(3):
            account = generate(server.base_url, file, 50, prices=prices, budget=500)
    assert account.stopped == "budget"
    assert len(server.calls) == 11  # 300 after ten: 200 are left, just enough for an eleventh


def test_a_server_that_fails_ends_the_run_and_the_next_one_goes_on(file):
    with LLMServer(lambda call, number: error(401) if number >= 15 else None) as server, pytest.raises(LLMError):
        generate(server.base_url, file, 20)
    assert len(list(generations.read(file))) == 15
    with LLMServer() as server:
        generate(server.base_url, file, 20)
        assert len(server.calls) == 25


def test_what_was_given_up_is_for_the_next_run(file):
    with LLMServer(bad_for(3, error(400))) as server:
        account = generate(server.base_url, file, 5)
        assert account.given_up == {"HTTP 400": 1}
        assert len(server.calls) <= 11
        answers = outcomes.results(anchors(5), to(server.base_url), file)
    assert answers[answers.reason != ""].reason.tolist() == ["not answered"]
    with LLMServer() as server:
        assert generate(server.base_url, file, 5).answered == 1


def test_a_run_that_is_killed_at_any_moment_loses_nothing_and_pays_for_nothing_twice(file):
    """Twelve times kill -9. What the file has is never asked again; an answer that was sent and not yet written when the kill
    came (on the wire, or being read) can't but be: at most as many as were in flight."""
    random.seed(0)
    count, in_flight, overtaken = 240, 8, 0
    with LLMServer(
        lambda call, _: Reply(200, chat(good(call.prompt)).body, delay=random.uniform(0.02, 0.08))
    ) as server:
        for _ in range(12):
            before = {generation.key for generation in generations.read(file)}
            seen = len(server.calls)
            process = PROCESSES.Process(target=generate, args=(server.base_url, file, count))
            process.start()
            while len(server.calls) == seen and process.is_alive():
                process.join(0.002)
            time.sleep(random.uniform(0, 0.25))
            killed = time.monotonic()
            process.kill()
            process.join()
            assert process.exitcode == -9
            kept = {generation.key for generation in generations.read(file)}
            calls = server.calls[seen:]
            sent = {_key(call.prompt) for call in calls if call.answered is not None and call.answered < killed}
            assert before <= kept
            assert not {_key(call.prompt) for call in calls} & before, "what the file had was asked again"
            assert len(sent - kept) <= in_flight
            overtaken += len(sent - kept)
        assert len(kept) < 2 * count, "the last kill was before the end"
        seen = len(server.calls)
        generate(server.base_url, file, count)
        assert not {_key(call.prompt) for call in server.calls[seen:]} & kept
        answers = outcomes.results(anchors(count), to(server.base_url), file)
    assert (answers.reason == "").all()
    assert len(list(generations.read(file))) == 2 * count
    logging.getLogger(__name__).info("%d answers of %d were sent and not yet written at a kill", overtaken, 2 * count)


def _key(prompt):
    return generations.key("toy", prompt, SAMPLING)


def test_a_second_run_on_one_file_is_refused_before_it_asks_anything(file):
    async def both(server):
        first = asyncio.create_task(run.generate(anchors(5), to(server.base_url), file))
        await asyncio.sleep(0.2)
        seen = len(server.calls)
        with pytest.raises(GenerationError, match="Another run is writing"):
            await run.generate(anchors(5), to(server.base_url), file)
        assert len(server.calls) == seen
        await first

    with LLMServer(lambda call, _: Reply(200, chat(good(call.prompt)).body, delay=0.4)) as server:
        asyncio.run(both(server))
        assert len(server.calls) == 10


def test_a_run_that_is_interrupted_frees_the_file_and_the_next_one_goes_on(file):
    async def interrupted(server):
        going = asyncio.create_task(run.generate(anchors(20), to(server.base_url), file))
        while len(server.answered()) < 10:
            await asyncio.sleep(0.01)
        going.cancel()  # what a notebook's stop button does
        with pytest.raises(asyncio.CancelledError):
            await going

    with LLMServer(lambda call, _: Reply(200, chat(good(call.prompt)).body, delay=0.05)) as server:
        asyncio.run(interrupted(server))
        kept = {generation.key for generation in generations.read(file)}
        seen = len(server.calls)
        assert 0 < len(kept) < 40
        generate(server.base_url, file, 20)
        assert not {_key(call.prompt) for call in server.calls[seen:]} & kept
    assert len(list(generations.read(file))) == 40


def test_the_key_is_in_no_file_log_or_message(file, tmp_path, monkeypatch, caplog, capsys):
    canary = "sk-canary-" + hashlib.sha256(b"x").hexdigest()
    monkeypatch.setenv("OPENAI_API_KEY", canary)
    caplog.set_level(logging.DEBUG)
    with (
        LLMServer(lambda call, number: error(401, f"bad key {canary}") if number > 5 else None) as server,
        pytest.raises(LLMError) as failure,
    ):
        generate(server.base_url, file, 10)
    assert server.calls[0].headers["authorization"] == f"bearer {canary}"
    files = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    written = "".join([str(failure.value), caplog.text, *capsys.readouterr(), *files])
    assert "House number" in written
    assert canary not in written


# --- the answers -------------------------------------------------------------------------------------------------------


def test_the_table_is_what_triples_are_built_from(file):
    with LLMServer(bad_for(3, chat("no"))) as server:
        generate(server.base_url, file, 10)
        answers = outcomes.results(anchors(10), to(server.base_url), file)
    given = anchors(10).assign(entailment=[f"Door {k} is red." for k in range(10)])
    table = outcomes.variants(given, answers)
    assert table.columns.tolist() == outcomes.COLUMNS
    assert table.id.tolist() == [f"a{k}" for k in range(10) if k != 3]
    first = table.iloc[1]
    assert first.verbal == "House number 1 has a red door, labrev."
    assert first.phrase == "House number 1 has a red door, esarhp."
    assert (first.word_cue, first.phrase_cue, first.entailment) == ("say", "not exactly sure", "Door 1 is red.")
    assert len(triples.build(triples.filtered(table))) == 72
    assert len(triples.build(table, "only negation")) == 36


def test_an_anchor_without_an_entailed_sentence_has_none_made_up(file):
    with LLMServer() as server:
        generate(server.base_url, file, 2)
        table = outcomes.variants(anchors(2), outcomes.results(anchors(2), to(server.base_url), file))
    assert table.entailment.isna().all()
    assert len(triples.build(table)) == 16
    with pytest.raises(triples.TripleError, match="8 triples have an empty text"):
        triples.build(table, "only negation")


def test_a_hedge_that_equals_a_negation_is_left_out_and_counted(file):
    same = chat(
        '1. "word": House number 1 has a red door, labrev.\n2. "phrase": House number 1 probably has a red door.'
    )
    with LLMServer(
        lambda call, _: same if "number 1 has" in call.prompt and "hedging" in call.prompt else None
    ) as server:
        generate(server.base_url, file, 3)
        answers = outcomes.results(anchors(3), to(server.base_url), file)
    assert outcomes.variants(anchors(3), answers).id.tolist() == ["a0", "a2"]
    table = outcomes.yields(answers).set_index(["kind", "reason"])
    assert table.n["anchor", "a hedge that equals a negation"] == 1


def test_yields_count_every_question_by_its_reason(file):
    replies = {2: chat("no"), 3: chat("I'm sorry."), 4: chat("I'm sorry.")}
    with LLMServer(lambda call, _: next((r for k, r in replies.items() if bad_for(k, r)(call, 0)), None)) as server:
        generate(server.base_url, file, 8)
        answers = outcomes.results(anchors(10), to(server.base_url), file)
    assert [tuple(row) for row in outcomes.yields(answers).itertuples(index=False)] == [
        ("negation", "usable", 5, 10, 50.0), ("negation", "not answered", 2, 10, 20.0),
        ("negation", "refusal", 2, 10, 20.0), ("negation", "no labels", 1, 10, 10.0),
        ("hedging", "usable", 8, 10, 80.0), ("hedging", "not answered", 2, 10, 20.0),
        ("anchor", "usable", 5, 10, 50.0), ("anchor", "a question without a usable answer", 5, 10, 50.0),
    ]  # fmt: skip


def test_a_model_without_a_usable_answer_is_in_the_yields_with_none(file):
    with LLMServer(lambda call, _: chat("no")) as server:
        generate(server.base_url, file, 3)
        answers = outcomes.results(anchors(3), to(server.base_url), file)
    usable = outcomes.yields(answers).query("reason == 'usable'")
    assert [tuple(row) for row in usable.itertuples(index=False)] == [
        (kind, "usable", 0, 3, 0.0) for kind in ("negation", "hedging", "anchor")
    ]


# --- a recording ------------------------------------------------------------------------------------------------------


def test_a_recording_is_read_again_without_a_server(file):
    seeded = {**SAMPLING, "seed": 7}
    with LLMServer(bad_for(3, chat("no"))) as server:
        generate_with = to(server.base_url, sampling=seeded)
        asyncio.run(run.generate(anchors(5), generate_with, file))
        live = outcomes.results(anchors(5), generate_with, file)
    asked, whom = outcomes.load_recording(file)
    pd.testing.assert_frame_equal(asked.sort_values("id", ignore_index=True), anchors(5))
    assert (whom.model, whom.sampling) == ("toy", seeded)
    again = outcomes.results(anchors(5), whom, file)
    pd.testing.assert_frame_equal(again, live)


def test_the_committed_recordings_are_read_as_on_record():
    folder = paths.DATA / "synthesis" / "generations"
    reasons = {
        name: Counter(prompts.parse(generation).reason for generation in generations.read(folder / f"{name}.jsonl"))
        for name in ("claude", "gemma-3-270m-q4")
    }
    assert reasons["claude"] == {"": 120}
    assert reasons["gemma-3-270m-q4"] == {"truncated": 7, "more than a sentence: phrase": 1, "several texts": 1}


def test_a_file_that_is_no_recording_of_one_model_is_refused(file):
    with pytest.raises(SynthesisError, match=r"No answers in .*generations.jsonl"):
        outcomes.load_recording(file)
    with LLMServer() as server:
        for model in ("toy", "other"):
            asyncio.run(run.generate(anchors(1), to(server.base_url, model=model), file))
    with pytest.raises(SynthesisError, match=r"several models or sampling parameters: other .*; toy"):
        outcomes.load_recording(file)


def test_the_price_is_tokens_times_rates():
    asked = pd.DataFrame({
        "kind": ["negation", "negation", "hedging", "hedging"], "attempts": [1, 3, 1, 1],
        "input": [100, 200, 50, 50], "output": [40, 60, 10, 30],
    })  # fmt: skip
    bill = outcomes.price(asked, {"m": (2.0, 10.0), "free": (0.0, 0.0)}, anchors=1_000_000)
    assert bill.columns.tolist() == ["model", "calls", "input", "output", "price"]
    assert bill.iloc[0].tolist() == ["m", 3_000_000, 2 * 150 + 50, 2 * 50 + 20, 700 + 1200]
    assert bill.price[1] == 0
