"""The catalogue of benchmarks: what each is, its forms, and what is derived from it."""

import os

import numpy as np
import pytest
from support.encoders import tiny

from nblib import corpora
from nblib.benchmarks import catalogue, scoring
from nblib.benchmarks.base import FORMS, Choice
from nblib.benchmarks.nevir import NevIR
from nblib.models import encoders
from nblib.models.systems import BiEncoder
from nblib.results import scoreboard

GIVEN_CACHE = os.environ.get("NBLIB_CACHE")  # read before the fixtures hide it
ALL = [catalogue.get(name) for name in dict.fromkeys(name for form in FORMS for name in catalogue.names(form))]


@pytest.mark.parametrize("benchmark", ALL, ids=lambda benchmark: benchmark.name)
def test_a_benchmark_is_described_once(benchmark):
    corpus = corpora.describe(benchmark.corpus)
    assert corpus.label == benchmark.label + " (mini)" * (benchmark.form == "mini")
    assert corpus.benchmark == benchmark.key and corpus.official == (benchmark.form != "mini")
    assert benchmark.metrics[0] == benchmark.metric
    assert {*benchmark.metrics, benchmark.main_metric} <= set(scoring.METRICS)
    assert {dev.split for dev in benchmark.dev_sets if dev.form == benchmark.form} <= set(corpus.splits)
    assert catalogue.get(benchmark.name).name == benchmark.name


def test_the_main_metric_is_the_one_beside_the_printed_numbers():
    papers = {}
    for key in catalogue.BENCHMARKS:
        mappings = scoreboard.mappings_of(key)
        papers[key] = {one.paper for one in mappings}
        printed = {one.ours.get("metric", metric) for one in mappings for metric in one.metrics}
        assert not printed or printed == {catalogue.get(key).main_metric}
    assert papers["nevir"] == {"truong", "weller"} and papers["semantoneg"] == {"vahtola"}
    assert papers["cannot_wmt"] == papers["excluir"] == papers["m3"] == {"truong"} and papers["stsb"] == set()


def test_the_forms_of_some_benchmarks():
    assert catalogue.names("official", "negation", ["stsb", "m3"]) == ("m3",)
    assert catalogue.names("mini", keys=["stsb", "nevir"]) == ("nevir_mini", "stsb_mini")
    unknown = [lambda: catalogue.names("official", keys=["contrast"]), lambda: catalogue.names("quick")]
    for what in [*unknown, lambda: NevIR("quick"), lambda: catalogue.get("NevirMini")]:
        with pytest.raises(ValueError, match="Known: "):
            what()


def test_every_miniature_is_scored(tmp_path):
    names = [*catalogue.names("mini"), "negation_profile"]
    scored = scoring.score(BiEncoder(tiny(tmp_path)), names, tmp_path / "run")
    values = scored.summary
    assert list(dict.fromkeys(values.task)) == names
    assert values.value.between(-100, 100).all() and (values.ci_low <= values.value).all()
    assert values[values.benchmark == "m3"].part.unique().tolist() == [""], "each part has one gold score"


@pytest.mark.parametrize("name", [one.name for one in ALL if isinstance(one, Choice) and one.form == "mini"])
def test_chance_is_that_of_the_items(name):
    rows = catalogue.get(name).rows()
    guessed = (1 / (1 + rows.negatives.map(len))).groupby(rows.id).prod()
    assert np.allclose(guessed, catalogue.get(name).chance / 100)


@pytest.mark.official
@pytest.mark.parametrize(("name", "expected"), [("semantoneg", 1.9), ("stsb", 82.0)])
def test_minilm_gets_its_published_score(name, expected, monkeypatch):
    """NevIR's, 7.1, is compared with every run of record: encoding it anew takes minutes."""
    if GIVEN_CACHE:
        monkeypatch.setenv("NBLIB_CACHE", GIVEN_CACHE)
    benchmark = catalogue.get(name)
    predicted = benchmark.predict(BiEncoder(encoders.load("all-MiniLM-L6-v2")), benchmark.rows())
    assert 100 * scoring.point(predicted) == pytest.approx(expected, abs=0.05)
