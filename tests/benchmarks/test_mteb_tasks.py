"""MTEB's tasks on local rows: the protocol is mteb's, what differs is where the rows come from."""

import os
import subprocess
import sys

import mteb
import numpy as np
import pandas as pd
import pytest
from support import mteb_rows
from support.benchmarks import run
from support.encoders import tiny, written

from nblib import corpora, paths
from nblib.benchmarks import general, mteb_catalogue, mteb_tasks, scoring
from nblib.benchmarks.mteb_encoder import MtebEncoder
from nblib.models import encoders

GIVEN_CACHE = os.environ.get("NBLIB_CACHE")  # read before the fixtures hide it
ONE_OF_EACH = [
    "STS12", "STS17", "EmotionClassification", "MassiveIntentClassification", "SummEval", "TwitterURLCorpus", "ArguAna",
]  # fmt: skip


@pytest.fixture
def rows(monkeypatch):
    """The written-down rows in place of the official files."""
    monkeypatch.setattr(mteb_tasks.corpora, "load", mteb_rows.load)


@pytest.fixture
def few(monkeypatch):
    """Two classification experiments on two texts a label."""
    monkeypatch.setattr(mteb_tasks.LocalClassification, "n_experiments", 2)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_the_predictions_give_mtebs_main_score_and_texts_are_what_is_encoded(name, rows, few, tmp_path):
    task, encoder = mteb_tasks.get(name), MtebEncoder(tiny(tmp_path))
    done = mteb.evaluate(
        encoder, task, cache=None, overwrite_strategy="always", prediction_folder=tmp_path, co2_tracker=False,
        show_progress_bar=False,
    )  # fmt: skip
    main, predictions = done.task_results[0].get_score(), task.predictions["test"]
    assert scoring.point(predictions) == pytest.approx(main, abs=1e-4)
    assert predictions.equals(pd.read_parquet(tmp_path / f"{name}_test.parquet"))
    expected = {role: set(texts) for role, texts in mteb_tasks.get(name).texts().items()}
    assert {role: texts for role, texts in encoder.seen[name].items() if texts} == expected
    assert done.task_results[0].dataset_revision == task.metadata.revision


@pytest.mark.parametrize("name", mteb_catalogue.TASKS)
def test_all_but_the_rows_is_mtebs(name):
    local, stock = mteb_tasks.get(name), mteb.get_task(name)
    assert isinstance(local, type(stock)) and local.seed == stock.seed
    same = ["main_score", "type", "prompt", "license", "bibtex_citation", "modalities", "category"]
    assert [getattr(local.metadata, field) for field in same] == [getattr(stock.metadata, field) for field in same]
    protocol = {"n_experiments", "samples_per_label", "min_score", "max_score", "k_values", "ignore_identical_ids"}
    shared = (protocol | {"evaluator", "skip_first_result"}) & set(dir(stock))
    assert all(np.all(getattr(local, field) == getattr(stock, field)) for field in shared)
    entry = mteb_catalogue.TASKS[name]
    assert entry.category == stock.metadata.type
    assert local.metadata.eval_splits == ["test"] and local.hf_subsets == [entry.subset or "default"]
    assert all(corpora.describe(corpus).benchmark in (name, "STSB") for corpus in entry.corpora)


def test_sts12_to_sts16_read_the_tokenised_form(rows):
    assert mteb_tasks.get("STS12").texts()["symmetric"][:6] == mteb_rows.WORDS
    kept = [corpora.describe(f"sts{year}").columns for year in range(12, 17)]
    assert all("sentence1_tok" in columns and "sentence1" not in columns for columns in kept)


def test_arguana_drops_the_document_with_the_querys_id_and_reads_titles(rows, few):
    far = [0.0, 1.0]
    vectors = {"the boat is red": [1.0, 0.0], "boat is not blue": [0.9, 0.4], "night": far}
    vectors |= {"night and day": far, "day is the night": far}
    assert set(mteb_tasks.get("ArguAna").texts()["document"]) == vectors.keys() - {"night"}
    found = {}
    for name in ("ArguAna", "NFCorpus"):
        _, predictions = run(mteb_tasks.get(name), written(vectors))
        found[name] = predictions["test"].set_index("id").correct["q1"]
    assert found == {"ArguAna": 1.0, "NFCorpus": pytest.approx(1 / np.log2(3), abs=1e-4)}


def test_an_article_whose_summaries_have_one_score_is_left_out_by_mteb_and_here(rows, tmp_path):
    _, predictions = run(mteb_tasks.get("SummEval"), tiny(tmp_path), tmp_path)
    assert predictions["test"].id.tolist() == ["a", "c"]


def test_the_share_right_of_a_text_is_over_the_experiments(rows, few, tmp_path):
    _, predictions = run(mteb_tasks.get("EmotionClassification"), tiny(tmp_path), tmp_path)
    assert set(predictions["test"].correct) <= {0.0, 0.5, 1.0} and len(predictions["test"]) == 4


def test_an_unknown_task_is_named():
    with pytest.raises(mteb_catalogue.GeneralError, match=r"'STS22' is not among those .*STS12"):
        mteb_tasks.get("STS22")


def test_the_choices():
    assert len(mteb_catalogue.names("all")) == 20 and mteb_catalogue.names("none") == ()
    lite = mteb_catalogue.names("lite")
    assert len(lite) == 10 and set(lite) | set(mteb_catalogue.missing_of_lite()) == set(general.MTEB_LITE)
    assert {mteb_catalogue.TASKS[name].category for name in mteb_catalogue.names("short")} == {"STS", "Classification"}
    assert "scifact_corpus" in mteb_catalogue.corpora_of("lite")
    with pytest.raises(mteb_catalogue.GeneralError, match=r"'long'\. Known: none, lite, short, all"):
        mteb_catalogue.names("long")


def test_planning_needs_no_mteb():
    code = "import sys; from nblib.benchmarks import mteb_catalogue as c; c.corpora_of('all'); sys.exit('mteb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=paths.PROJECT_ROOT).returncode == 0


@pytest.mark.official
@pytest.mark.parametrize("name", mteb_catalogue.corpora_of("all"))
def test_the_official_files_are_the_registered_ones(name):
    table = corpora.load(name)
    assert len(table) == sum(split.rows for split in corpora.describe(name).splits.values())


@pytest.mark.official
@pytest.mark.parametrize(("name", "published"), [("STS17", 87.59), ("STS16", 78.99)])
def test_minilm_gets_its_published_score(name, published, monkeypatch):
    if GIVEN_CACHE:
        monkeypatch.setenv("NBLIB_CACHE", GIVEN_CACHE)
    result, _ = run(mteb_tasks.get(name), encoders.load("all-MiniLM-L6-v2"))
    assert 100 * result["main_score"] == pytest.approx(published, abs=0.1)
