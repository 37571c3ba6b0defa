"""General ability beside what is published: same tasks only, what is missing named, nothing compared that doesn't compare."""

import numpy as np
import pandas as pd
import pytest

from nblib import artefacts
from nblib.analysis import general_comparison
from nblib.benchmarks import general_ability, mteb_catalogue, scoring
from nblib.results import published_mteb

MPNET = "all-mpnet-base-v2"


def measured_as_published(model=MPNET, tasks=mteb_catalogue.TASKS, shift=0.0):
    """What `general_ability.score` gives of a system that scores as published, or so many points above."""
    known = published_mteb.scores(model)
    rows = [
        {"task": name, "category": mteb_catalogue.TASKS[name].category, "metric": "m", "value": known[name] + shift,
         "ci_low": 0.0, "ci_high": 100.0, "n": 9, "seconds": 1.0, "caveat": ""}
        for name in tasks
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=general_ability.COLUMNS)


def leave(run_dir, system, measured, nevir=None, parameters=109.5):
    """A system's files, as a run leaves them; `nevir` is the share of right pairs, of four."""
    folder = scoring.folder_of(run_dir, system)
    artefacts.write_table(measured, folder / general_ability.FILE)
    artefacts.write_json(folder / "system.json", {"parameters": parameters, "kind": "bi-encoder"})
    if nevir is not None:
        correct = np.arange(4) < 4 * nevir
        table = pd.DataFrame({"id": list("abcd"), "cluster": range(4), "correct": correct})
        artefacts.write_table(table, folder / "nevir_test.parquet")


def test_scores_are_set_beside_the_published_ones_and_outliers_are_named():
    shifted = measured_as_published(shift=0.15)
    compared = general_comparison.beside_published(shifted, MPNET)
    assert np.allclose(compared.difference, 0.15)
    assert set(general_comparison.outside(compared).category) == {"STS"}  # 0.1 there, 0.2 and 0.5 elsewhere
    unknown = general_comparison.beside_published(shifted, "hedge-mpnet")
    assert unknown.published.isna().all() and general_comparison.outside(unknown).empty


def test_averages_compare_the_tasks_that_both_have():
    compared = general_comparison.beside_published(measured_as_published(shift=1.0), MPNET)
    compared.loc[compared.task == "STS12", "published"] = np.nan
    found = general_comparison.averages(compared).set_index("average")
    assert found.compared["STS"] == 8 and found.tasks["STS"] == 9
    assert found.ours_compared["STS"] - found.published["STS"] == pytest.approx(1)
    assert "published" not in general_comparison.averages(compared.assign(published=np.nan))


def test_missing_tasks_are_named():
    said = general_comparison.missing(mteb_catalogue.names("all"))
    assert said.startswith("10 of the 16") and "SciDocsRR" in said and "ArguAna" not in said
    assert general_comparison.missing(mteb_catalogue.MTEB_LITE) == "All 16 tasks of MTEB-lite were measured."


def test_truongs_columns_have_their_coverage_and_mtebs_own_score_over_the_same_tasks():
    lite = general_comparison.truong_columns(measured_as_published(), MPNET, "Table 2").set_index("column")
    assert lite.coverage.to_dict() == {
        "MTEB-Classification-lite": "3 of 3", "MTEB-Retrieval": "3 of 3", "MTEB-STS": "3 of 3",
        "MTEB-Summarization": "1 of 1", "mean of these 4 columns": "10 of 16",
    }  # fmt: skip
    assert np.allclose(lite.published, lite.ours)
    assert lite.printed["MTEB-STS"] == 84.87 and lite.published["MTEB-STS"] == pytest.approx(84.87, abs=0.01)
    whole = general_comparison.truong_columns(measured_as_published(), MPNET, "Table 1").set_index("column")
    assert whole.coverage["MTEB-STS"] == "9 of 10" and whole.printed["MTEB-STS"] == 80.28
    assert whole.published["MTEB-STS"] == pytest.approx(81.65, abs=0.01)


def test_our_systems_stand_among_the_published_by_the_same_tasks(tmp_path):
    leave(tmp_path, "ours", measured_as_published(shift=100))
    leave(tmp_path, "half", measured_as_published(tasks=["STS12"]))
    table = general_comparison.sts_by_size(tmp_path)
    ours = table[table.ours]
    assert ours.system.tolist() == ["ours"] and ours["rank"].tolist() == [1]
    assert len(table) > 150 and (table[~table.ours]["rank"] > 1).all()


def test_the_pareto_line_is_of_those_that_nobody_beats():
    assert general_comparison.pareto([1, 2, 3, 2], [3, 2, 1, 1]) == [True, True, True, False]
    assert general_comparison.pareto([1, 1], [1, 1]) == [True, True]
    assert general_comparison.pareto([], []) == []


def test_nevir_against_sts_has_ours_and_the_published_on_the_same_tasks(tmp_path):
    leave(tmp_path, "tuned", measured_as_published(shift=-2), nevir=0.5)
    leave(tmp_path, "unscored", measured_as_published())
    table = general_comparison.nevir_and_sts(tmp_path, ["tuned", "unscored", "absent"]).set_index("system")
    assert table.nevir["tuned"] == 50 and table.source["tuned"] == "ours"
    assert "unscored" not in table.index and "absent" not in table.index
    assert table.nevir[MPNET] == 8.1 and table.best[MPNET] and table.best["tuned"]
    assert "HedgeMPNet" not in table.index, "its printed STS average is over other tasks"


def test_a_rank_on_nevir_is_within_the_published_collection_and_not_for_what_was_trained_on_it(tmp_path):
    artefacts.write_json(tmp_path / "encoders" / "tuned.json", {"training_data": "NevIR", "anchors_used": 40})
    measured = pd.DataFrame({"system": ["worst", "best", "tuned"], "value": [0.0, 99.0, 98.0]})
    ranks = general_comparison.nevir_ranks(measured, tmp_path).set_index("system")
    published = len(published_mteb.nevir())
    assert ranks["rank"].dropna().to_dict() == {"best": 1, "worst": published + 1} and set(ranks.of) == {published + 1}
    assert "NevIR" in ranks.trained_on["tuned"] and pd.isna(ranks["rank"]["tuned"])


def test_changes_are_of_those_that_were_measured(tmp_path):
    assert general_comparison.changes(tmp_path, "base", ["other"]).empty


def test_the_finding_names_what_differs():
    compared = general_comparison.beside_published(measured_as_published(), MPNET)
    compared.loc[compared.task == "SummEval", "difference"] = 9  # no tolerance: other texts
    compared.loc[compared.task == "SciFact", "difference"] = -0.3
    said = general_comparison.sentence(MPNET, compared)
    assert "outside the tolerance: SciFact (-0.30)." in said
    assert "no scores of it" in general_comparison.sentence("x", compared.assign(published=np.nan))
