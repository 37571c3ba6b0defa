"""Systems beside each other: who is compared, on what, and how surely."""

import json

import pandas as pd
import pytest

from nblib import paths
from nblib.analysis import systems
from nblib.benchmarks import scoring
from nblib.results import schema


def predictions(correct, ids=None):
    ids = ids or [f"i-{k}" for k in range(len(correct))]
    return pd.DataFrame({"id": ids, "cluster": ids, "correct": correct})


@pytest.fixture
def run(tmp_path):
    """Two systems scored on nevir_mini, one of them an encoder."""
    for name, correct in {"TF-IDF": [True] * 5 + [False] * 15, "good-encoder": [True] * 18 + [False] * 2}.items():
        scoring.save_predictions(predictions(correct), tmp_path, name, "nevir_mini")
    with paths.write_atomically(scoring.folder_of(tmp_path, "TF-IDF") / "system.json") as draft:
        draft.write_text(json.dumps({"name": "TF-IDF", "kind": "tf-idf", "source": "here"}))
    with paths.write_atomically(tmp_path / "results" / "07_TF-IDF.csv.json") as draft:
        draft.write_text(json.dumps({"seconds": 2.0, "pairs": 400}))
    with paths.write_atomically(tmp_path / "results" / "07_good-encoder.csv.json") as draft:
        draft.write_text(json.dumps({"throughput": {"texts_per_second": 50.0}, "parameters": 22.7}))
    return tmp_path


def test_only_what_was_scored_on_the_whole_task_is_compared(run):
    predictions = systems.load_predictions_for(run, ["TF-IDF", "absent", "good-encoder"], "nevir_mini")
    assert list(predictions) == ["TF-IDF", "good-encoder"]
    with pytest.raises(scoring.ScoreError, match=r"No predictions at .*absent"):
        systems.load_predictions_for(run, ["absent"], "nevir_mini")


def test_accuracies_come_with_intervals(run):
    predictions = systems.load_predictions_for(run, ["TF-IDF", "good-encoder"], "nevir_mini")
    table = systems.accuracies(predictions).set_index("system")
    assert table.value.to_dict() == {"TF-IDF": 25.0, "good-encoder": 90.0}
    assert (table.low < table.value).all()
    assert (table.high > table.value).all()
    assert (table.n == 20).all()


def test_tests_are_exact_and_corrected_for_their_number():
    scored = {
        "a": predictions([True] * 10 + [False] * 10), "b": predictions([True] * 10 + [False] * 10),
        "c": predictions([False] * 10 + [True] * 10),
    }  # fmt: skip
    table = systems.mcnemar_holm(scored).set_index(["first", "second"])
    assert table.loc[("a", "b"), ["difference", "only_first", "only_second", "p"]].tolist() == [0, 0, 0, 1]
    swapped = table.loc[("a", "c")]
    assert (swapped.only_first, swapped.only_second, swapped.p) == (10, 10, 1.0)
    better = {"a": predictions([False] * 12), "b": predictions([True] * 12), "c": predictions([False] * 12)}
    table = systems.mcnemar_holm(better).set_index(["first", "second"])
    assert table.p["a", "b"] == pytest.approx(3 * 2 * 0.5**12), "two-sided binomial, times three tests"
    assert table.difference["a", "b"] == 100


def test_items_are_matched_by_id_not_by_place():
    shuffled = predictions([False, True], ids=["i-1", "i-0"])
    table = systems.mcnemar_holm({"a": predictions([True, False]), "b": shuffled})
    assert table.loc[0, ["only_first", "only_second"]].tolist() == [0, 0]


def test_costs_are_milliseconds_a_text(run):
    table = systems.costs(run, ["TF-IDF", "good-encoder"], "nevir_mini").set_index("system")
    assert table.milliseconds.to_dict() == {"TF-IDF": 5.0, "good-encoder": 20.0}
    assert table.kind.to_dict() == {"TF-IDF": "Sparse", "good-encoder": "Bi-Encoders"}
    assert table.parameters.to_dict() == {"TF-IDF": 0.0, "good-encoder": 22.7}


def test_what_has_no_known_cost_is_left_out(run):
    (run / "results" / "07_TF-IDF.csv.json").unlink()
    assert systems.costs(run, ["TF-IDF", "good-encoder"], "nevir_mini").system.tolist() == ["good-encoder"]


def test_what_is_drawn_is_reproduced_only_from_official_data_alone():
    rows = systems.shown_rows("weller", {"Figure 3": 10, "Figure 4": 5}, "official", "sample", reproduced=["Figure 3"])
    assert [row["status"] for row in rows] == ["reproduced", "partial"]
    rows += systems.shown_rows("weller", {"Figure 3": 10}, "quick", "mini", reproduced=["Figure 3"])
    assert rows[-1]["status"] == "partial"
    shown = schema.validate(pd.DataFrame(rows), "here")
    assert shown.ours.isna().all() and shown.n.tolist() == [10, 5, 10]
    assert systems.shown_rows("weller", {"Figure 3": 0}, "quick", "mini") == []
