"""ExcluIR by its official rule, over the whole corpus."""

import json

import pandas as pd
import pytest
from support.benchmarks import run
from support.encoders import written

from nblib import corpora
from nblib.benchmarks import catalogue, excluir

NEAR, FAR = [1.0, 0.0], [0.0, 1.0]


def test_the_official_right_rank():
    assert excluir.right_rank(["w", "e"], "w", "e") and excluir.right_rank(["w"], "w", "e")
    assert not excluir.right_rank(["e", "w"], "w", "e")
    assert not excluir.right_rank(["e"], "w", "e") and not excluir.right_rank(["x"], "w", "e")


def corpus_task(tmp_path, monkeypatch, documents):
    monkeypatch.setenv("NBLIB_DATA", str(tmp_path))
    queries = pd.DataFrame({"index": [0], "query": ["q"], "neg_title": ["E"], "pos_index": [1], "neg_index": [0]})
    monkeypatch.setattr(corpora, "load", lambda name, *splits: queries)
    if documents:
        (tmp_path / "excluir").mkdir()
        (tmp_path / "excluir" / "corpus.json").write_text(json.dumps(documents))
    return catalogue.get("excluir_corpus")


def test_the_whole_corpus_is_ranked_where_it_is(tmp_path, monkeypatch):
    others = [f"other {k}" for k in range(12)]
    vectors = {"q": NEAR, "W\nwanted": [1.0, 0.4], "E\nexcluded": [1.0, 0.5], **{text: FAR for text in others}}
    task = corpus_task(tmp_path, monkeypatch, ["E\nexcluded", "W\nwanted", *others])
    assert run(task, written(vectors))[0]["right_rank_at_10"] == 1
    crowd = {text: [1.0, 0.1] for text in others}  # both fall out of the top ten: not right
    task.data_loaded = False
    assert run(task, written({**vectors, **crowd}, name="crowded"))[0]["right_rank_at_10"] == 0


def test_without_its_corpus_excluir_says_so(tmp_path, monkeypatch):
    with pytest.raises(corpora.CorpusError, match=r"corpus.json there, or use the task excluir"):
        corpus_task(tmp_path, monkeypatch, None).load_data()
    with pytest.raises(corpora.CorpusError, match="document 0 is 'Other', expected 'E'"):
        corpus_task(tmp_path, monkeypatch, ["Other\ntext", "W"]).load_data()
