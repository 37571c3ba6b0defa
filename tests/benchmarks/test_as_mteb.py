"""Our benchmarks as tasks of mteb, beside mteb's own."""

import mteb
import pytest
from datasets import Dataset
from mteb.tasks import NevIR as MtebNevIR
from support.encoders import tiny

from nblib import corpora
from nblib.benchmarks import scoring
from nblib.benchmarks.as_mteb import as_mteb
from nblib.benchmarks.nevir import NevIR
from nblib.benchmarks.semantoneg import SemAntoNeg
from nblib.benchmarks.stsb import STSB
from nblib.models.systems import BiEncoder


@pytest.fixture
def encoder(tmp_path):
    # Cut off, the documents of a pair would be the same; and no margin may be so small that rounding decides
    return tiny(tmp_path, max_length=512, initializer_range=0.5, seed=1)


def evaluate(task, encoder):
    done = mteb.evaluate(encoder.model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    return done.task_results[0].get_score()


def mtebs_nevir(table):
    """mteb's retrieval task on these pairs."""
    ids = table.id.str.replace("_", "")  # mteb cuts its ids at "_"
    task = MtebNevIR()
    texts = {"id": [*(ids + "_doc1"), *(ids + "_doc2")], "text": [*table.doc1, *table.doc2]}
    queries = {"id": [*(ids + "_q1"), *(ids + "_q2")], "text": [*table.q1, *table.q2]}
    rows = {
        "corpus": Dataset.from_dict({**texts, "title": [""] * len(texts["id"])}),
        "queries": Dataset.from_dict(queries),
        "relevant_docs": {f"{i}_q{k}": {f"{i}_doc{k}": 1} for i in ids for k in (1, 2)},
        "top_ranked": {f"{i}_q{k}": [f"{i}_doc1", f"{i}_doc2"] for i in ids for k in (1, 2)},
    }
    task.dataset, task.data_loaded = {"default": {"test": rows}}, True
    return task


def test_it_agrees_with_mtebs_own_nevir(encoder):
    theirs = evaluate(mtebs_nevir(corpora.load("nevir_mini")), encoder)
    assert 0 < theirs < 1 and evaluate(as_mteb(NevIR("mini")), encoder) == pytest.approx(theirs)
    tasks = [as_mteb(benchmark(form)) for benchmark in (NevIR, STSB) for form in ("mini", "official")]
    assert len({task.metadata.dataset["revision"] for task in tasks}) == len(tasks), "those of the data"


@pytest.mark.parametrize("benchmark", [NevIR, SemAntoNeg, STSB])
def test_mteb_gives_the_score_that_the_study_gives(benchmark, encoder, tmp_path):
    ours = scoring.score(BiEncoder(encoder), [benchmark("mini").name], tmp_path).summary.value.iloc[0]
    assert 100 * evaluate(as_mteb(benchmark("mini")), encoder) == pytest.approx(ours, abs=1e-3)
