"""Choices among texts: strict, by the right similarity and prompts, and never another model's score."""

import mteb
import numpy as np
import pytest
from mteb.models import ModelMeta
from support.benchmarks import question, run, with_rows
from support.encoders import tiny, written

from nblib import corpora
from nblib.benchmarks import catalogue
from nblib.benchmarks.mteb_encoder import MtebEncoder
from nblib.models import embeddings

NEAR, FAR = [1.0, 0.0], [0.0, 1.0]


def test_nevir_needs_both_queries():
    rows = [
        question(ask="q1", query="q", positive="p", negatives=["n"]),
        question(ask="q2", query="r", positive="n", negatives=["p"]),
    ]
    both = {"q": NEAR, "p": NEAR, "r": FAR, "n": FAR}
    result, predictions = run(with_rows(catalogue.get("nevir_mini"), rows), written(both))
    assert result["accuracy"] == 1 and predictions["test"].margin_q2.item() == pytest.approx(1)
    result, predictions = run(with_rows(catalogue.get("nevir_mini"), rows), written({**both, "r": NEAR}))
    assert result["accuracy"] == 0 and predictions["test"].margin.item() == pytest.approx(-1)


def test_a_tie_is_wrong():
    result, predictions = run(
        with_rows(catalogue.get("excluir_mini"), [question(ask="query")]), written({"q": NEAR, "p": FAR, "n": FAR})
    )
    assert result["accuracy"] == 0 and predictions["test"].margin.item() == 0


def test_the_nearest_of_several_negatives_counts():
    rows = [question(ask="input", negatives=["n", "m"])]
    vectors = {"q": NEAR, "p": [1.0, 0.5], "n": FAR, "m": [1.0, 0.1]}
    result, predictions = run(with_rows(catalogue.get("semantoneg_mini"), rows), written(vectors))
    assert result["accuracy"] == 0 and predictions["test"].nearest_negative.tolist() == [1]
    assert run(with_rows(catalogue.get("semantoneg_mini"), rows), written({**vectors, "m": FAR}))[0]["accuracy"] == 1


def test_the_models_own_similarity_is_used_but_semantoneg_forces_cosine():
    long_negative = {"q": NEAR, "p": NEAR, "n": [5.0, 5.0]}  # cosine prefers p, the dot product n
    for kind, expected in [("cosine", 1), ("dot", 0)]:
        encoder = written(long_negative, similarity=kind)
        assert (
            run(with_rows(catalogue.get("excluir_mini"), [question(ask="query")]), encoder)[0]["accuracy"] == expected
        )
    result, _ = run(
        with_rows(catalogue.get("semantoneg_mini"), [question(ask="input")]), written(long_negative, similarity="dot")
    )
    assert result["accuracy"] == 1 and result["accuracy_own_similarity"] == 0


def test_each_text_gets_the_prompt_of_its_role():
    prompts = {"query_prompt": "Q: ", "document_prompt": "D: ", "symmetric_prompt": "S: "}
    vectors = {"q": NEAR, "p": NEAR, "n": FAR}
    encoder = written(vectors, **prompts)
    run(with_rows(catalogue.get("nevir_mini"), [question()]), encoder)
    assert set(encoder.model.asked) == {("Q: ", "q"), ("D: ", "p"), ("D: ", "n")}
    encoder = written(vectors, name="other", **prompts)
    run(with_rows(catalogue.get("semantoneg_mini"), [question()]), encoder)
    assert {prompt for prompt, _ in encoder.model.asked} == {"S: "}


def test_agrees_with_mtebs_own_nevir(tmp_path):
    from datasets import Dataset
    from mteb.tasks import NevIR as Theirs

    table = corpora.load("nevir_mini")
    ids = table.id.str.replace("_", "")  # mteb cuts its ids at "_"
    theirs = Theirs()
    theirs.dataset = {"default": {"test": {
        "corpus": Dataset.from_dict({
            "id": [*(ids + "_doc1"), *(ids + "_doc2")], "text": [*table.doc1, *table.doc2], "title": [""] * 200,
        }),
        "queries": Dataset.from_dict({"id": [*(ids + "_q1"), *(ids + "_q2")], "text": [*table.q1, *table.q2]}),
        "relevant_docs": {f"{i}_q{k}": {f"{i}_doc{k}": 1} for i in ids for k in (1, 2)},
        "top_ranked": {f"{i}_q{k}": [f"{i}_doc1", f"{i}_doc2"] for i in ids for k in (1, 2)},
    }}}  # fmt: skip
    theirs.data_loaded = True
    # Cut off, the documents of a pair would be the same; and no margin may be so small that rounding decides
    encoder = tiny(tmp_path, max_length=512, initializer_range=0.5, seed=1)
    done = mteb.evaluate(MtebEncoder(encoder), theirs, cache=None, co2_tracker=False, show_progress_bar=False)
    ours, _ = run(catalogue.get("nevir_mini"), encoder)
    assert ours["accuracy"] == pytest.approx(done.task_results[0].get_score())


@pytest.mark.parametrize(
    ("vector", "message"),
    [([np.nan, 1.0], "written gives NaN"), ([0.0, 0.0], "a zero vector"), (1.0, "array of shape")],
)
def test_an_encoder_that_gives_nonsense_is_refused(tmp_path, vector, message):
    task = with_rows(catalogue.get("nevir_mini"), [question()])
    with pytest.raises(embeddings.EmbeddingError, match=message):
        run(task, written(dict.fromkeys("qpn", vector)))


# --- the stale-cache trap ---------------------------------------------------------------------------------------------


class _Anonymous(MtebEncoder):
    def __init__(self, encoder):
        super().__init__(encoder)
        self.mteb_model_meta = ModelMeta.create_empty()


@pytest.mark.parametrize(("wrapper", "stale"), [(MtebEncoder, False), (_Anonymous, True)])
def test_a_score_is_never_another_models(tmp_path, wrapper, stale):
    """Two encoders of the same name and other weights; an anonymous model shows that the test would catch the trap."""
    right, wrong = {"q": NEAR, "p": NEAR, "n": FAR}, {"q": NEAR, "p": FAR, "n": NEAR}
    cache, found = mteb.ResultCache(tmp_path / "mteb"), []
    for vectors in (right, wrong):
        task = with_rows(catalogue.get("excluir_mini"), [question(ask="query")])
        done = mteb.evaluate(wrapper(written(vectors)), task, cache=cache, co2_tracker=False, show_progress_bar=False)
        found.append(done.task_results[0].get_score())
    assert found == ([1, 1] if stale else [1, 0])
