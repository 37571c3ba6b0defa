"""MTEB's tasks on local rows: the protocol is mteb's; what is measured is kept, resumed and never another model's."""

import os

import mteb as stock_mteb
import numpy as np
import pandas as pd
import pytest
from mteb.abstasks import AbsTaskClassification
from support import mteb_rows
from support.encoders import tiny, written

from nblib import artefacts, corpora
from nblib.benchmarks import mteb, scoring
from nblib.errors import StudyError
from nblib.models import encoders, rankers
from nblib.models.systems import BiEncoder

GIVEN_CACHE = os.environ.get("NBLIB_CACHE")  # read before the fixtures hide it
THREE = ["STS12", "EmotionClassification", "SciFact"]


@pytest.fixture
def rows(monkeypatch):
    """Written-down rows in place of the official files; two classification experiments."""
    monkeypatch.setattr(corpora, "load", mteb_rows.load)
    monkeypatch.setattr(AbsTaskClassification, "n_experiments", 2)


@pytest.fixture
def choices(monkeypatch):
    """Three tasks: short has two of them, all has all."""
    monkeypatch.setattr(mteb, "names", lambda choice: THREE[: {"short": 2, "all": 3}[choice]])


@pytest.fixture
def system(tmp_path):
    return BiEncoder(tiny(tmp_path))


def evaluated(name, encoder, folder):
    """mteb's main score of a task, and its predictions."""
    task = mteb.local_task(name)
    revision = task.metadata.revision
    (result,) = mteb._evaluate(mteb.MtebEncoder(encoder), task, folder, prediction_folder=folder)
    assert result.dataset_revision == revision != type(task).metadata.revision
    return result.get_score(), task


SIZES = {"STS12": 6, "STS17": 6, "EmotionClassification": 4, "ArguAna": 2, "SummEval": 2, "TwitterURLCorpus": 6}


@pytest.mark.parametrize("name", SIZES)
def test_the_predictions_by_item_give_mtebs_main_score(name, rows, tmp_path):
    score, task = evaluated(name, tiny(tmp_path), tmp_path)
    measured = mteb.measure(task.predictions)
    assert measured["value"] == pytest.approx(100 * score, abs=1e-2) and measured["n"] == SIZES[name]
    assert measured["ci_low"] <= measured["value"] <= measured["ci_high"]


@pytest.mark.parametrize("name", mteb.TASKS)
def test_all_but_the_rows_is_mtebs(name):
    local, stock, entry = mteb.local_task(name), stock_mteb.get_task(name), mteb.TASKS[name]
    same = ["main_score", "type", "prompt", "license", "bibtex_citation", "modalities", "category"]
    assert [getattr(local.metadata, field) for field in same] == [getattr(stock.metadata, field) for field in same]
    assert type(local) is type(stock) and local.seed == stock.seed and entry.category == stock.metadata.type
    assert list(local.eval_splits) == ["test"] and local.hf_subsets == [entry.subset or "default"]
    assert all(corpora.describe(corpus).benchmark.lower() in (name.lower(), "stsb") for corpus in entry.corpora)


def test_sts12_to_sts16_are_read_in_the_tokenised_form(rows):
    task = mteb.local_task("STS12")
    task.load_data()
    assert task.dataset["default"]["test"]["sentence1"][:6] == mteb_rows.WORDS
    kept = [corpora.describe(f"sts{year}").columns for year in range(12, 17)]
    assert all("sentence1_tok" in columns and "sentence1" not in columns for columns in kept)


def test_arguana_drops_the_document_with_the_querys_id_and_reads_titles(rows, tmp_path):
    far = [0.0, 1.0]
    vectors = {"the boat is red": [1.0, 0.0], "boat is not blue": [0.9, 0.4], "night": far}
    vectors |= {"night and day": far, "day is the night": far}
    found = {}
    for name in ("ArguAna", "NFCorpus"):
        _, task = evaluated(name, written(vectors), tmp_path)
        found[name] = task.predictions.set_index("id").correct["q1"]
    assert found == {"ArguAna": 1.0, "NFCorpus": pytest.approx(1 / np.log2(3), abs=1e-4)}


def test_scores_are_tidy_and_kept(rows, choices, system, tmp_path):
    table = mteb.score(system, "all", tmp_path)
    assert table.columns.tolist() == mteb.SCORE_COLUMNS and table.task.tolist() == THREE
    assert table.n.tolist() == [6, 4, 2] and set(table.fingerprint) == {system.fingerprint}
    assert ((table.ci_low <= table.value) & (table.value <= table.ci_high)).all()
    pd.testing.assert_frame_equal(mteb.load(tmp_path, "tiny"), table, check_dtype=False)
    assert mteb.systems(tmp_path) == ["tiny"]
    correct = scoring.load_predictions(tmp_path, "tiny", "EmotionClassification").correct
    assert len(correct) == 4 and set(correct) <= {0.0, 0.5, 1.0}, "the share of the two experiments that are right"


def test_a_stopped_run_goes_on_where_it_was(rows, choices, system, tmp_path, monkeypatch):
    first = mteb.score(system, "short", tmp_path)
    scored, score_task = [], mteb._score_task
    monkeypatch.setattr(mteb, "_score_task", lambda *given: scored.append(given[1]) or score_task(*given))
    table = mteb.score(system, "all", tmp_path)
    assert scored == ["SciFact"] and table.value[:2].tolist() == first.value.tolist()
    # a shorter choice afterwards forgets nothing
    mteb.score(system, "short", tmp_path)
    assert scored == ["SciFact"] and len(mteb.load(tmp_path, "tiny")) == 3


def test_other_weights_under_the_same_name_are_another_model(rows, choices, system, tmp_path):
    before = mteb.score(system, "all", tmp_path)
    other = BiEncoder(tiny(tmp_path / "other", max_length=4))
    after = mteb.score(other, "short", tmp_path)
    assert set(mteb.load(tmp_path, "tiny").fingerprint) == {other.fingerprint} != set(before.fingerprint)
    assert len(mteb.load(tmp_path, "tiny")) == len(after) == 2, "nor is the first one's third task the second's"
    file = scoring.folder_of(tmp_path, "tiny") / mteb.SCORE_FILE
    artefacts.write_table(artefacts.read_table(file).drop(columns="fingerprint"), file)  # as older runs left it
    assert set(mteb.load(tmp_path, "tiny").fingerprint) == {other.fingerprint}


def test_a_second_model_of_a_name_is_refused(rows, choices, system, tmp_path):
    mteb.score(system, "short", tmp_path)
    system.fingerprint, system.source = "other weights", "other/folder"
    with pytest.raises(scoring.ScoreError, match=r"scores of another tiny.*other/folder"):
        mteb.score(system, "short", tmp_path)


def test_results_from_the_hub_are_not_run_again(rows, system, tmp_path, monkeypatch):
    monkeypatch.setattr(mteb, "hub_tasks", lambda benchmark: [mteb.local_task("STS12")])
    first = mteb.score_hub(system, "MTEB-lite", tmp_path)
    assert first.task.tolist() == ["STS12"] and first.category.tolist() == ["STS"]
    monkeypatch.setattr(mteb.MtebEncoder, "encode", lambda *_, **__: pytest.fail("encoded anew"))
    pd.testing.assert_frame_equal(mteb.score_hub(system, "MTEB-lite", tmp_path), first)


def test_a_system_without_embeddings_is_refused(tmp_path):
    with pytest.raises(StudyError, match=r"Random .* has no embeddings"):
        mteb.score(rankers.Chance(), "short", tmp_path)


def test_the_choices():
    assert len(mteb.names("all")) == 20 and mteb.names("none") == []
    assert len(mteb.names("lite")) == 10 and set(mteb.names("lite")) < set(mteb.MTEB_LITE)
    assert {mteb.TASKS[name].category for name in mteb.names("short")} == {"STS", "Classification"}
    assert sorted(task.metadata.name for task in mteb.hub_tasks("MTEB-lite")) == sorted(mteb.MTEB_LITE)
    assert len(mteb.hub_tasks("MTEB(eng, v1)")) == 56


@pytest.mark.official
@pytest.mark.parametrize(("name", "published"), [("STS17", 87.59), ("STS16", 78.99)])
def test_minilm_gets_its_published_score(name, published, monkeypatch, tmp_path):
    if GIVEN_CACHE:
        monkeypatch.setenv("NBLIB_CACHE", GIVEN_CACHE)
    score, _ = evaluated(name, encoders.load("all-MiniLM-L6-v2"), tmp_path)
    assert 100 * score == pytest.approx(published, abs=0.1)
