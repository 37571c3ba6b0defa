"""What the packed predictions of record say of a printed number and of three claims: recomputed here, item by item."""

from dataclasses import replace

import pandas as pd
import pytest

from nblib import paths, results
from nblib.analysis import claims, vahtola, weller
from nblib.benchmarks import catalogue, scoring
from nblib.benchmarks.llm import evaluation
from nblib.results import measurements, scoreboard
from nblib.workflow import archive

BASE = "all-mpnet-base-v2"
RETRIEVERS = ("TF-IDF", BASE, "all-MiniLM-L6-v2")
QWEN = ("qwen2.5-coder-0.5b-instruct-q4", "qwen2.5-coder-1.5b-instruct-q4")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("record")
    archive.unpack(archive.archive("official"), folder)
    return folder


@pytest.fixture(scope="module")
def measured(run):
    """The measurements of stored predictions; those by type of edit as the record has them."""
    rows = []
    for system, name in [(system, "nevir") for system in RETRIEVERS] + [(BASE, "cannot_wmt")]:
        summary = scoring.summarise(catalogue.get(name), {"test": scoring.load_predictions(run, system, name)})
        rows += [{**row, "system": system} for row in summary]
    for system in QWEN:
        answers = scoring.load_predictions(run, system, "llm_nevir_pointwise")
        rows += [{**row, "system": system} for row in evaluation.summarise("llm_nevir_pointwise", answers, True)]
    recorded = measurements.read(paths.FIGURES / "official" / "measurements.csv")
    for system in (*RETRIEVERS[1:], "nevir-minilm", "nevir-minilm-fast", "hedge-minilm-3"):
        errors = weller.errors(scoring.load_predictions(run, system, "nevir")).assign(benchmark="nevir")
        chosen = vahtola.choices(scoring.load_predictions(run, system, "semantoneg"))
        chosen = chosen.rename(columns={"share": "value", "low": "ci_low", "high": "ci_high"}).assign(n=3152)
        chosen = chosen.assign(metric=chosen.option.map(vahtola.CHOSEN), benchmark="semantoneg")
        both = pd.concat([errors, chosen]).assign(**scoring.measured_system(run, system), split="test")
        rows += both.assign(corpus=both.benchmark).to_dict("records")
    by_edit = recorded[recorded.part.isin(["negation_undone", "scope_changed"])]
    return pd.concat([results.record(rows, scale="official"), by_edit], ignore_index=True)


@pytest.fixture
def checked(run, measured, monkeypatch):
    """The row of a claim, as if nothing limited the evidence, and the best verdict that the evidence allows."""
    board, known = scoreboard.build(measured, run, "official"), {claim.id: claim for claim in claims.load()}

    def check(name):
        monkeypatch.setattr(claims, "load", lambda: [replace(known[name], most=claims.SUPPORTED)])
        (row,) = claims.table(run, measured, board).itertuples()
        return row, known[name].most

    return check


def test_truongs_cannot_is_the_pearson_of_the_predictions(run, measured):
    found = measured[(measured.benchmark == "cannot_wmt") & (measured.part == "")].set_index("metric")
    assert found.value.round(2).to_dict() == {"spearman": 32.42, "pearson": 34.91} and set(found.n) == {7804}
    board = scoreboard.build(measured, run, "official").set_index(["paper", "exhibit", "system", "benchmark"])
    row = board.loc["truong", "Table 1", "MPNet", "Cannot"]
    assert (row.published, round(row.value, 2), row.measured_metric) == (34.91, 34.91, "pearson")
    assert (row.measured, row.agrees) == ("other protocol", "within rounding")
    rho = found.loc["spearman"]
    assert not rho.ci_low <= 34.91 <= rho.ci_high, "Spearman's ρ itself has not the printed number in its interval"


def test_first_stage_retrievers_rank_below_chance_and_the_type_of_edit_makes_a_difference(checked):
    row, most = checked("weller-below-chance")
    assert row.verdict == most == claims.SUPPORTED and row.measured.count(", below 25") == 2
    assert "2 printed, 1.95 measured" in row.measured and "8.1 printed, 8.10 measured" in row.measured
    row, _ = checked("weller-edit-types")
    assert (row.verdict, row.holds) == (claims.NOT_SUPPORTED, "0 of 20, 11 against")


def test_the_larger_of_two_language_models_ranks_better_and_the_larger_encoder_does_not(checked):
    row, most = checked("weller-model-size")
    assert row.verdict == most == claims.PARTLY
    assert "qwen2.5-coder-1.5b-instruct-q4 55.2 (+23.3, +" in row.measured
    assert "all-mpnet-base-v2 8.1 (+1.0, -0.8" in row.measured


def test_training_on_negations_helps_on_three_benchmarks_of_four(checked):
    row, most = checked("truong-negation-gain")
    assert row.verdict == most == claims.PARTLY, "as ExcluIR's change has 0 in its interval"
    changes = dict(part.split(": ", 1) for part in row.measured.split(". ") if f"{BASE} " in part)
    assert set(changes) == {"NevIR", "ExcluIR", "CANNOT-WMT, Pearson's r × 100", "M3-derived"}
    assert "(+1.0, " in changes["ExcluIR"] and "(+27.8, " in changes["NevIR"]


def test_encoders_below_guessing_choose_by_overlap_and_bi_encoders_lean_to_the_document_without_the_negation(checked):
    assert checked("vahtola-overlap")[0].holds == "3 of 4, 1 against"
    row, _ = checked("weller-errors")
    # reversals are rare, the preference isn't even
    assert row.verdict == "partly" and row.measured.count("below 20") == 2


def test_the_tuned_encoder_gains_and_loses_by_category_and_keeps_its_ability_in_classification_alone(checked):
    row, most = checked("truong-categories")
    assert (row.verdict, most) == ("supported", "partly")
    assert checked("truong-general-ability")[0].holds == "1 of 5, 1 against"
    assert checked("truong-llm")[0].holds == "1 of 17, 1 against"
    assert checked("truong-hedging-retains")[0].holds == "2 of 3, 1 against"
    assert checked("vahtola-families")[0].holds == "4 of 5"
