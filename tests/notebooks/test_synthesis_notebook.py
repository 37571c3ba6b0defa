"""Notebook 02 against a scripted server: what it leaves, what it asks a second time (nothing), and where the key is (nowhere)."""

import pytest
from papermill import PapermillExecutionError
from support.llm_server import LLMServer, chat, error, good

from nblib import artefacts
from nblib.errors import StudyError
from nblib.synthesis import outcomes
from nblib.workflow import run_notebook

CANARY = "sk-canary-7391-never-to-be-seen"


@pytest.mark.notebooks
def test_it_asks_a_server_keeps_all_answers_and_shows_the_key_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    given = {"model": "toy", "pool": "authored", "size": 10, "other_recordings": [], "rates": {"toy": [1.0, 2.0]}}
    given["run_dir"] = str(tmp_path / "run")

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
    assert len(artefacts.read_table(tmp_path / "run" / "synthesis" / "variants.parquet")) == 9
    assert "not with the key ***" in (tmp_path / "again.ipynb").read_text(), "the answers are shown"
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and CANARY.encode() in file.read_bytes()]


@pytest.mark.notebooks
def test_a_server_that_answers_nothing_is_one_sentence_and_no_result_and_a_key_in_an_address_is_not_kept(tmp_path):
    given = {"model": "toy", "pool": "authored", "size": 2, "other_recordings": [], "run_dir": str(tmp_path / "run")}
    with LLMServer(lambda prompt, number: error(400, "no such model")) as server:
        with pytest.raises(PapermillExecutionError) as failure:
            run_notebook.execute("02", tmp_path / "out.ipynb", {**given, "base_url": server.base_url})
        assert (failure.value.ename, failure.value.evalue.count("no such model")) == ("StudyError", 1)
        with pytest.raises(StudyError, match="base_url"):
            run_notebook.execute("02", tmp_path / "out.ipynb", {**given, "base_url": f"http://me:{CANARY}@host/v1"})
    assert not [file for file in tmp_path.rglob("*yields*")]
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and CANARY.encode() in file.read_bytes()]
