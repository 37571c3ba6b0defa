"""Notebook 02 against a scripted server: what it leaves, what it asks a second time (nothing), and where the key is (nowhere)."""

import pytest
from support.llm_server import LLMServer, chat, echoes, error, good, traces

from nblib.corpora import triples
from nblib.synthesis import outcomes
from nblib.workflow import cli, run_notebook

CANARY = "sk-canary-7391-never-to-be-seen"


def leaks(folder):
    """The files that hold the key, in any form that a server may echo."""
    hidden = [trace.encode().lower() for trace in traces(CANARY).values()]
    return [file for file in folder.rglob("*") if file.is_file() and any(map(file.read_bytes().lower().count, hidden))]


@pytest.mark.notebooks
def test_it_asks_a_server_keeps_all_answers_and_shows_the_key_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    run = tmp_path / "runs" / "toy"
    given = {"model": "toy", "pool": "authored", "size": 10, "other_recordings": [], "run_dir": str(run),
             "rates": {"toy": [1.0, 2.0]},
             "sampling": {"temperature": 1.0, "max_tokens": 200}}  # fmt: skip
    refused = [f"I'm sorry, not with the key {echo}." for echo in echoes(CANARY).values()]

    def handle(call, number):
        always = call.prompt == server.calls[0].prompt
        answer = refused[0 if always else number] if always or number < len(refused) else good(call.prompt)
        return chat(answer, model=f"toy {CANARY}")

    with LLMServer(handle) as server:
        given["base_url"] = server.base_url
        run_notebook.execute("02", run / "notebooks" / "02_synthesis.ipynb", given)
        assert {call.headers.get("authorization") for call in server.calls} == {f"bearer {CANARY}"}, (
            "it is sent, though"
        )
        calls = len(server.calls)
        assert calls == 20 + len(refused) + 1, (
            "two questions an anchor, once more what was refused, one question thrice"
        )
        run_notebook.execute("02", tmp_path / "again.ipynb", given)
        assert len(server.calls) == calls, "a second run asks nothing"
    anchors, asked = outcomes.load_recording(run / "synthesis" / "generations.jsonl")
    assert (len(anchors), asked.model) == (10, "toy")
    assert len(triples.load_variants(run / "synthesis" / "variants.parquet")) == 9
    executed = (run / "notebooks" / "02_synthesis.ipynb").read_text()
    assert "not with the key ***" in executed, "the answers are shown"
    assert leaks(tmp_path) == []


@pytest.mark.notebooks
def test_an_error_that_echoes_the_key_ends_it_without_the_key(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    echo = " ".join(echoes(CANARY).values())
    with LLMServer(lambda call, number: error(401, f"Incorrect API key provided: {echo}")) as server:
        given = f"{{model: toy, size: 10, run_dir: {tmp_path}/run, base_url: '{server.base_url}'}}"
        with pytest.raises(SystemExit, match="2"):
            cli.main(["run", "02", str(tmp_path / "out.ipynb"), "-y", given])
    (tmp_path / "said").write_text("".join(capfd.readouterr()))
    assert "the key is not accepted: set the environment variable OPENAI_API_KEY" in (tmp_path / "said").read_text()
    assert leaks(tmp_path) == []
