"""General ability beside what is published: same tasks only, what is missing counted, nothing compared that doesn't compare."""

import numpy as np
import pandas as pd
import pytest

from nblib import artefacts
from nblib.analysis import general_comparison
from nblib.benchmarks import mteb, scoring
from nblib.results import published

MPNET = "all-mpnet-base-v2"


def measured_as_published(tasks=mteb.TASKS, shift=0.0):
    """What `mteb.score` gives of a system that scores as published, or so many points above."""
    known = published.mteb_scores(MPNET) + shift
    rows = [(name, mteb.TASKS[name].category, "m", known[name]) for name in tasks]
    return pd.DataFrame(rows, columns=mteb.SCORE_COLUMNS[:4]).assign(n=9).reindex(columns=mteb.SCORE_COLUMNS)


def leave(run_dir, system, measured, **predictions):
    """A system's files, as a run leaves them: its scores, and who was right of the items of some tasks."""
    artefacts.write_table(measured, scoring.folder_of(run_dir, system) / mteb.SCORE_FILE)
    artefacts.write_json(scoring.folder_of(run_dir, system) / "system.json", {"fingerprint": system})
    for task, correct in predictions.items():
        items = range(len(correct))
        table = pd.DataFrame({"id": list(map(str, items)), "cluster": items, "correct": correct})
        artefacts.write_table(table, scoring.predictions_file(run_dir, system, task))


def test_averages_are_of_tasks_and_of_categories():
    measured = pd.DataFrame({"task": list("abc"), "category": ["STS", "STS", "Retrieval"], "value": [80.0, 60.0, 40.0]})
    found = general_comparison.averages(measured).set_index("average")
    assert found["value"].to_dict() == {"STS": 70, "Retrieval": 40, "mean of tasks": 60, "mean of categories": 55}
    assert found.tasks.to_dict() == {"STS": 2, "Retrieval": 1, "mean of tasks": 3, "mean of categories": 3}


def test_changes_average_the_tasks_changes_resample_by_resample(tmp_path):
    tasks = ["NFCorpus", "SciFact", "SummEval", "ArguAna"]
    known = measured_as_published(tasks)
    right = [True] * 30 + [False] * 30
    leave(tmp_path, "before", known.assign(value=[50.0, 50, 9, 9]), NFCorpus=right, SciFact=right, SummEval=right)
    worse, better = np.roll(right, 3) & right, np.ones(60, bool)
    leave(tmp_path, "after", known[:3].assign(value=[45.0, 100, 9]), NFCorpus=worse, SciFact=better, SummEval=right)
    found = general_comparison.changes(tmp_path, ["before"], ["after"]).set_index("average")
    assert found.tasks.to_dict() == {"Retrieval": 2, "mean of tasks": 2, "mean of categories": 2}
    assert found.difference["Retrieval"] == 22.5 and found.low["Retrieval"] < 22.5 < found.high["Retrieval"]
    same = general_comparison.changes(tmp_path, ["after"], ["after"])
    assert np.allclose(same[["difference", "low", "high"]], 0)
    assert general_comparison.changes(tmp_path, ["before"], ["absent"]).tasks.sum() == 0
    seeds = general_comparison.changes(tmp_path, ["before"], ["before", "after"]).set_index("average")
    assert np.allclose(seeds[["difference", "low"]], found[["difference", "low"]] / 2), "the mean over two seeds"


def test_sentiment_is_compared_with_the_other_classification(tmp_path):
    known = ["EmotionClassification", "Banking77Classification"]
    half, better = [True, False] * 30, [True, True, False] * 20
    for name, right, values in [("a", half, [50.0, 50]), ("b", better, [200 / 3, 50])]:
        scored = measured_as_published(known).assign(value=values)
        leave(tmp_path, name, scored, EmotionClassification=right, Banking77Classification=half)
    gap = general_comparison.changes(tmp_path, ["a"], ["b"]).set_index("average").loc[general_comparison.SENTIMENT_GAP]
    assert (gap.tasks, gap.before, round(gap.after, 1)) == (2, 0, 16.7) and gap.low < gap.after < gap.high


def test_scores_are_set_beside_the_published_ones_and_outliers_are_named():
    shifted = measured_as_published(shift=0.15)
    compared = general_comparison.beside_published(shifted, MPNET)
    assert np.allclose(compared.difference, 0.15)
    assert set(compared.category[compared.outside]) == {"STS"}  # 0.1 there, 0.2 and 0.5 elsewhere
    assert compared.set_index("task").note["BIOSSES"].startswith("the authors' release")
    unknown = general_comparison.beside_published(shifted, "hedge-mpnet")
    assert unknown.published.isna().all() and not unknown.outside.any()


def test_truongs_columns_have_their_coverage_and_mtebs_own_score_over_the_same_tasks():
    lite = general_comparison.truong_columns(measured_as_published(), MPNET, "Table 2", "MPNet").set_index("column")
    assert lite.coverage.tolist() == ["3 of 3", "3 of 3", "3 of 3", "1 of 1", "10 of 16"]
    assert lite.index[[0, -1]].tolist() == ["MTEB-Classification-lite", "mean of these 4 columns"]
    assert np.allclose(lite.published, lite.ours)
    assert lite.printed["MTEB-STS"] == 84.87 and lite.published["MTEB-STS"] == pytest.approx(84.87, abs=0.01)
    whole = general_comparison.truong_columns(measured_as_published(), MPNET, "Table 1", "MPNet").set_index("column")
    assert whole.coverage["MTEB-STS"] == "9 of 10" and whole.printed["MTEB-STS"] == 80.28
    assert whole.published["MTEB-STS"] == pytest.approx(81.65, abs=0.01)
