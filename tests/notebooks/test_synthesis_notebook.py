"""Notebook 02 against a scripted server: what it leaves, what it asks a second time (nothing), and where the key is (nowhere)."""

import pytest
from support.llm_server import LLMServer, chat

from nblib.corpora import triples
from nblib.synthesis import outcomes
from nblib.workflow import run_notebook

CANARY = "sk-canary-7391-never-to-be-seen"


@pytest.mark.notebooks
def test_it_asks_a_server_keeps_all_answers_and_shows_the_key_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    run = tmp_path / "run"
    given = {"model": "toy", "pool": "authored", "size": 10, "other_recordings": [], "run_dir": str(run),
             "rates": {"toy": [1.0, 2.0]},
             "sampling": {"temperature": 1.0, "max_tokens": 200}}  # fmt: skip
    with LLMServer(lambda call, number: chat("I'm sorry.") if number == 0 else None) as server:
        given["base_url"] = server.base_url
        run_notebook.execute("02", tmp_path / "out.ipynb", given)
        assert {call.headers.get("authorization") for call in server.calls} == {f"bearer {CANARY}"}, (
            "it is sent, though"
        )
        calls = len(server.calls)
        assert calls == 21, "two questions an anchor, and once more what was refused"
        run_notebook.execute("02", tmp_path / "again.ipynb", given)
        assert len(server.calls) == calls, "a second run asks nothing"
    anchors, asked = outcomes.load_recording(run / "synthesis" / "generations.jsonl")
    assert (len(anchors), asked.model) == (10, "toy")
    assert len(triples.load_variants(run / "synthesis" / "variants.parquet")) == 10
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or CANARY.encode() not in file.read_bytes(), file
