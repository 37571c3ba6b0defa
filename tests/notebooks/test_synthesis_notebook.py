"""Notebook 02 against a scripted server: what it leaves, what it asks a second time (nothing), and where the key is (nowhere)."""

import pytest
from support.llm_server import LLMServer, chat, error, good

from nblib.corpora import triples
from nblib.synthesis import outcomes
from nblib.workflow import cli, run_notebook

CANARY = "sk-canary-7391-never-to-be-seen"


def leaks(folder):
    return [file for file in folder.rglob("*") if file.is_file() and CANARY.encode() in file.read_bytes()]


@pytest.mark.notebooks
def test_it_asks_a_server_keeps_all_answers_and_shows_the_key_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    given = {"model": "toy", "pool": "authored", "size": 10, "other_recordings": [], "run_dir": str(tmp_path / "run"),
             "rates": {"toy": [1.0, 2.0]}}  # fmt: skip

    def handle(prompt, number):
        return chat(f"I'm sorry, not with the key {CANARY}." if prompt == server.prompts[0] else good(prompt))

    with LLMServer(handle) as server:
        given["base_url"] = server.base_url
        run_notebook.execute("02", tmp_path / "once.ipynb", given)
        assert len(server.prompts) == 20 + 2, "two questions an anchor, one of them thrice"
        run_notebook.execute("02", tmp_path / "again.ipynb", given)
        assert len(server.prompts) == 22, "a second run asks nothing"
    assert server.keys == {f"Bearer {CANARY}"}
    anchors, asked = outcomes.load_recording(tmp_path / "run" / "synthesis" / "generations.jsonl")
    assert (len(anchors), asked.model) == (10, "toy")
    assert len(triples.load_variants(tmp_path / "run" / "synthesis" / "variants.parquet")) == 9
    assert "not with the key ***" in (tmp_path / "again.ipynb").read_text(), "the answers are shown"
    assert leaks(tmp_path) == []


@pytest.mark.notebooks
def test_an_error_that_echoes_the_key_ends_it_in_the_servers_words_without_the_key(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with LLMServer(lambda prompt, number: error(401, f"Incorrect API key provided: {CANARY}")) as server:
        given = f"{{model: toy, size: 10, run_dir: {tmp_path}/run, base_url: '{server.base_url}'}}"
        with pytest.raises(SystemExit, match="2"):
            cli.main(["run", "02", str(tmp_path / "out.ipynb"), "-y", given])
    said = "".join(capfd.readouterr())
    assert "Incorrect API key provided: ***. Set the environment variable OPENAI_API_KEY" in said
    assert CANARY not in said
    assert leaks(tmp_path) == []
