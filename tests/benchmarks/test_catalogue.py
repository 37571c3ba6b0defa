"""The catalogue of benchmarks: what each is, its forms, and what is derived from it."""

import os
import subprocess
import sys

import pandas as pd
import pytest
from support.benchmarks import Written, run
from support.encoders import tiny

from nblib import corpora, paths
from nblib.analysis import encoder_card, training_comparison
from nblib.benchmarks import catalogue, general, scoring
from nblib.benchmarks.base import DevSet, metadata
from nblib.benchmarks.llm import harness
from nblib.benchmarks.nevir import NevIR
from nblib.corpora import registry
from nblib.models import encoders
from nblib.training import dev_scores
from nblib.workflow import dependencies

GIVEN_CACHE = os.environ.get("NBLIB_CACHE")  # read before the fixtures hide it
ALL = list(catalogue.tasks().values())


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.metadata.name)
def test_metadata_is_complete_and_names_the_data(task):
    assert task.metadata.is_filled()
    hashes = [split.sha256 for split in corpora.describe(task.corpus).splits.values()]
    assert len(task.metadata.dataset["revision"]) == 64 and task.metadata.dataset["revision"] not in hashes
    assert {task.metric, task.headline()} <= set(scoring.METRICS)


def test_no_two_corpora_share_a_data_revision():
    revisions = {task.corpus: task.metadata.dataset["revision"] for task in ALL}
    assert len(set(revisions.values())) == len(revisions)


def test_a_miniature_is_its_official_task_on_another_corpus():
    both = [one.tasks for one in catalogue.BENCHMARKS.values() if {"mini", "official"} <= one.tasks.keys()]
    assert len(both) == 6
    for forms in both:
        small, whole = catalogue.get(forms["mini"]), catalogue.get(forms["official"])
        assert isinstance(small, type(whole)) and "mini" in small.benchmark
        assert whole.official and not small.official


def test_every_form_knows_its_corpora():
    for data in catalogue.DATA:
        assert [catalogue.get(name).corpus for name in catalogue.names(data)] == list(catalogue.corpora_of(data))


def test_planning_needs_no_mteb_and_the_import_graph_sees_every_benchmark():
    code = "import sys; from nblib.benchmarks import catalogue; catalogue.names('official'); sys.exit('mteb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=paths.PROJECT_ROOT).returncode == 0
    reached = dependencies.module_files("nblib/benchmarks/catalogue.py")
    assert {one.module.replace(".", "/") + ".py" for one in catalogue.BENCHMARKS.values()} <= set(reached)


def test_a_benchmark_has_one_label_and_its_corpora_have_it_too():
    for task in ALL:
        assert corpora.describe(task.corpus).benchmark == task.label


def test_the_printed_scores_of_a_benchmark_are_those_of_its_official_items():
    papers = {key: {one.paper for one in task.printed()} for key, task in catalogue.main_tasks().items()}
    assert papers["nevir"] == {"truong", "weller"} and papers["semantoneg"] == {"vahtola"}
    assert papers["cannot_wmt"] == papers["excluir"] == papers["m3"] == {"truong"}
    assert papers["stsb"] == papers["intents"] == set(), "no paper prints STSB's test set alone"
    for task in ALL:
        whole = catalogue.main_tasks().get(task.metadata.name.removesuffix("_mini").removesuffix("_sample"))
        assert whole is None or task.printed() == whole.printed(), "a form of it"


def test_the_headline_is_the_metric_beside_the_printed_numbers():
    assert (catalogue.get("cannot_wmt").metric, catalogue.get("cannot_wmt").headline()) == ("spearman", "pearson")
    assert catalogue.get("nevir").headline() == "right_rank"
    assert catalogue.get("stsb").headline() == "spearman", "its own, where none is printed"
    assert training_comparison.in_average() == {"NevIR": "NevIR", "ExcluIR": "ExcluIR", "CANNOT-WMT": "Cannot"}


def test_the_forms_of_some_benchmarks():
    samples = ("semantoneg", "nevir_sample", "excluir_sample", "cannot_wmt_sample")
    assert catalogue.names("sample", "negation") == samples
    assert catalogue.names("mini", keys=["stsb", "nevir"]) == ("nevir_mini", "stsb_mini")
    with pytest.raises(
        catalogue.BenchmarkError, match="No benchmark called m3 among the sample ones: semantoneg, nevir"
    ):
        catalogue.names("sample", keys=["m3"])
    with pytest.raises(catalogue.BenchmarkError, match=r"No data called 'quick'\. Known: mini, official, sample"):
        catalogue.names("quick")


@pytest.mark.official
@pytest.mark.parametrize(
    ("name", "rows", "ids"), [("nevir_sample", 200, 100), ("excluir_sample", 100, 100), ("cannot_wmt_sample", 750, 750)]
)
def test_a_sample_is_a_fixed_part_of_its_task(name, rows, ids):
    sample, whole = (catalogue.get(task).rows("test") for task in (name, name.removesuffix("_sample")))
    assert (len(sample), sample.id.nunique()) == (rows, ids)
    assert sample.equals(catalogue.get(name).rows("test"))
    assert set(sample.id) < set(whole.id)
    assert "sample" in catalogue.get(name).sampled and not catalogue.get(name.removesuffix("_sample")).sampled


def test_an_unknown_task_is_named():
    with pytest.raises(ValueError, match=r"No task called 'NevirMini'.*nevir_mini"):
        catalogue.get("NevirMini")


def test_hub_benchmarks_have_their_sizes():
    assert sorted(task.metadata.name for task in general.hub_tasks("MTEB-lite")) == sorted(general.MTEB_LITE)
    assert len(general.hub_tasks("MTEB(eng, v1)")) == 56
    with pytest.raises(ValueError, match="MTEB-lite"):
        general.hub_tasks("MTEB-light")


@pytest.mark.parametrize("name", catalogue.names("mini"))
def test_every_miniature_runs(name, tmp_path):
    task = catalogue.get(name)
    result, predictions = run(task, tiny(tmp_path), tmp_path)
    assert -1 <= result["main_score"] <= 1
    assert predictions["test"].equals(pd.read_parquet(tmp_path / f"{name}_test.parquet"))
    value = scoring.measure(predictions["test"])["value"] / 100
    assert value == pytest.approx(result["main_score"], abs=1e-4)


PAIR = {"id": "1", "q1": "a", "q2": "b", "doc1": "c", "doc2": "d"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([PAIR, PAIR], "repeat a key"),
        ([{k: v for k, v in PAIR.items() if k != "id"}], "row 1 has no column 'id'"),
        ([{**PAIR, "q1": 7}], "column 'q1': 7 is no usable str"),
        ([PAIR, {**PAIR, "id": "2", "doc2": " "}], "row 2, column 'doc2': ' ' is no usable str"),
    ],
)
def test_a_bad_benchmark_file_is_refused(rows, message):
    with pytest.raises(corpora.CorpusError, match=message):
        registry.validate(rows, corpora.describe("nevir_mini"), "test", "file")


@pytest.mark.parametrize("ids", [["1", "1"], ["1", None]])
def test_items_need_ids_of_their_own(ids):
    table = pd.DataFrame({"id": ids, "cluster": [0, 1], "correct": [True, False]})
    with pytest.raises(ValueError, match=r"nevir_mini \(test\): an item has no id"):
        catalogue.get("nevir_mini").keep("test", table, None)


# --- a benchmark that is added -----------------------------------------------------------------------------------------


class Toy(NevIR):
    """A benchmark on the first pairs of another's miniature."""

    label = "Toy"
    corpus = "nevir_mini"
    averaged = False
    chance = 12.5
    dev_sets = (DevSet("toy_mini", "test", ("mini",), 4),)
    metadata = metadata("toy_mini", "nevir_mini", type="Reranking", main_score="accuracy")

    def rows(self, split):
        return super().rows(split).groupby("question").head(5).reset_index(drop=True)


FORMS = (Toy,)


@pytest.fixture
def toy(monkeypatch):
    """The toy benchmark, added by its class and one entry."""
    monkeypatch.setitem(sys.modules, "toy", sys.modules[__name__])
    monkeypatch.setitem(catalogue.BENCHMARKS, "toy", catalogue.Benchmark("toy", "negation", {"mini": "toy_mini"}))


def test_an_added_benchmark_is_scored_shown_and_compared(toy, tmp_path):
    rows = catalogue.get("toy_mini").rows("test")
    right = {(query, positive): 1.0 for query, positive in zip(rows["query"], rows.positive, strict=True)}
    systems = [Written(name="none"), Written(right, "all")]
    assert "toy_mini" in catalogue.names("mini")
    assert "toy_mini" in scoring.scorable(systems[0], catalogue.names("mini", "negation"))
    none, both = (scoring.score(system, ["toy_mini"], tmp_path).summary for system in systems)
    assert (none.value.item(), both.value.item(), both.n.item()) == (0, 100, 5)
    (shown,) = encoder_card.with_published(both).itertuples()
    assert (shown.benchmark, shown.chance) == ("Toy (mini)", 12.5)
    (change,) = scoring.compare(tmp_path, "none", ["all"], ["toy_mini"]).itertuples()
    assert (change.encoder, change.difference) == ("all", 100)
    (row,) = scoring.result_rows(both, "all", "toy")
    assert (row["benchmark"], row["metric"], row["value"]) == ("Toy (mini)", "right_rank", 100)


def test_an_added_benchmark_is_in_the_lists_that_are_derived(toy):
    assert {"Toy mini", "STSB mini dev"} <= set(dev_scores.sets("mini"))
    assert len(dev_scores.items("mini", seen=set())["Toy mini"][1]) == 4
    assert harness.task("llm_toy_mini") == harness.LlmTask("ranking", "toy_mini", "Toy", "right_rank")


# --- the numbers of record --------------------------------------------------------------------------------------------


@pytest.mark.official
@pytest.mark.parametrize(
    ("name", "rows"),
    [("nevir", 1433), ("excluir", 1014), ("excluir_queries", 3452), ("cannot_wmt", 15609), ("m3", 696)],
)
def test_the_official_files_are_the_ones_described(name, rows):
    assert len(corpora.load(name)) == rows


@pytest.mark.official
@pytest.mark.parametrize(("name", "expected"), [("semantoneg", 1.9), ("stsb", 82.0)])
def test_minilm_gets_its_published_score(name, expected, monkeypatch):
    """NevIR's, 7.1, is compared with every run of record: encoding it anew takes minutes."""
    if GIVEN_CACHE:
        monkeypatch.setenv("NBLIB_CACHE", GIVEN_CACHE)
    result, _ = run(catalogue.get(name), encoders.load("all-MiniLM-L6-v2"))
    assert 100 * result["main_score"] == pytest.approx(expected, abs=0.05)
