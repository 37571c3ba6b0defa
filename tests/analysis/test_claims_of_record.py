"""What the packed predictions of record say of a printed number and of three claims: recomputed here, item by item."""

from dataclasses import replace

import pandas as pd
import pytest

from nblib import results
from nblib.analysis import claims, weller
from nblib.benchmarks import catalogue, scoring
from nblib.results import measurements
from nblib.workflow import archive

BASE, TUNED = "all-mpnet-base-v2", "hedge-mpnet"
RETRIEVERS = ("TF-IDF", BASE, "all-MiniLM-L6-v2")
BY_EDIT = (TUNED, "nevir-mpnet", "nevir-multi-vector-mpnet", "maxsim-all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("record")
    archive.unpack("official", folder)
    return folder


def scored(run, system, task):
    """The measurements of a system's stored predictions."""
    evaluated = catalogue.get(task)
    evaluated.predictions = {"test": scoring.load_predictions(run, system, task)}
    return scoring.result_rows(pd.DataFrame(scoring.summarise(evaluated)), system, "official")


def scored_by_edit(run, system):
    """The same by type of edit, as notebook 09 records them."""
    return [
        results.row(
            system, "NevIR", "right_rank", item.value, data=f"nevir test, {item.edit}", n=item.n, scale="official",
            interval=(item.low, item.high),
        )
        for item in weller.by_edit(scoring.load_predictions(run, system, "nevir")).itertuples()
    ]  # fmt: skip


@pytest.fixture(scope="module")
def measured(run):
    rows = [row for system in RETRIEVERS for row in scored(run, system, "nevir")]
    rows += [row for system in BY_EDIT for row in scored_by_edit(run, system)]
    return measurements.validate(pd.DataFrame(rows + scored(run, BASE, "cannot_wmt")), "the predictions of record")


@pytest.fixture
def judged(run, measured, monkeypatch):
    """The row of a claim, as if nothing limited the evidence, and the best verdict that the evidence allows."""
    board = results.scoreboard(measured, run, "official")
    known = {claim.id: claim for claim in claims.load()}

    def judge(name):
        monkeypatch.setattr(claims, "load", lambda: [replace(known[name], most=claims.SUPPORTED)])
        (row,) = claims.table(run, measured, board).itertuples()
        return row, known[name].most

    return judge


def test_truongs_cannot_is_the_pearson_of_the_predictions(run, measured):
    found = measured[(measured.benchmark == "CANNOT-WMT") & (measured.data == "cannot_wmt test")].set_index("metric")
    assert found.value.round(2).to_dict() == {"spearman": 32.42, "pearson": 34.91}
    assert set(found.n) == {7804}
    board = results.scoreboard(measured, run, "official").set_index(["paper", "exhibit", "system", "benchmark"])
    row = board.loc[("truong", "Table 1", "MPNet", "Cannot")]
    assert (row.published, round(row.value, 2)) == (34.91, 34.91)
    assert (row.metric, row.measured_metric, row.measured, row.agrees) == (
        "spearman",
        "pearson",
        "other protocol",
        "within rounding",
    )
    rho = found.loc["spearman"]
    assert not rho.ci_low <= 34.91 <= rho.ci_high, "Spearman's ρ itself has not the printed number in its interval"


def test_first_stage_retrievers_rank_below_chance(judged):
    row, most = judged("weller-below-chance")
    assert row.verdict == most == claims.SUPPORTED
    assert "2 printed, 1.95 measured" in row.measured and "8.1 printed, 8.10 measured" in row.measured
    assert row.measured.count(", below 25") == 2


def test_the_type_of_edit_makes_a_difference(judged, measured):
    row, _ = judged("weller-edit-types")
    assert row.verdict == claims.NOT_SUPPORTED
    assert row.measured.count("the intervals are disjoint") == len(BY_EDIT)
    best = measured[measured.system == "nevir-multi-vector-mpnet"].set_index("data").value
    gap = best["nevir test, negation undone"] - best["nevir test, scope of the negation changed"]
    assert gap == pytest.approx(14.8, abs=0.1)


def test_training_on_negations_helps_on_three_benchmarks_of_four(judged):
    row, most = judged("truong-negation-gain")
    assert row.verdict == most == claims.PARTLY, "as ExcluIR's change has 0 in its interval"
    changes = dict(part.split(": ", 1) for part in row.measured.split(". ") if f"{BASE} " in part)
    assert set(changes) == {"NevIR", "ExcluIR", "CANNOT-WMT, Pearson's r × 100", "M3-derived"}
    assert "(+1.0, " in changes["ExcluIR"] and "(+27.8, " in changes["NevIR"]
