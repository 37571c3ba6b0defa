"""Systems beside each other: who is compared, on what, and how surely."""

import json

import numpy as np
import pandas as pd
import pytest

from nblib import paths, results, scores, systems


def predictions(correct, ids=None):
    ids = ids or [f"i-{k}" for k in range(len(correct))]
    return pd.DataFrame({"id": ids, "cluster": ids, "correct": correct})


@pytest.fixture
def run(tmp_path):
    """Two systems scored on NevIRMini, one of them an encoder, and one scored on nothing."""
    for name, correct in {"TF-IDF": [True] * 5 + [False] * 15, "good-encoder": [True] * 18 + [False] * 2}.items():
        scores.save_predictions(predictions(correct), tmp_path, name, "NevIRMini")
    with paths.write_atomically(scores.folder_of(tmp_path, "TF-IDF") / "ranker.json") as draft:
        draft.write_text(json.dumps({"name": "TF-IDF", "kind": "tf-idf", "source": "here"}))
    with paths.write_atomically(tmp_path / "results" / "07_TF-IDF.csv.json") as draft:
        draft.write_text(json.dumps({"seconds": 2.0, "pairs": 400}))
    with paths.write_atomically(tmp_path / "results" / "07_good-encoder.csv.json") as draft:
        draft.write_text(json.dumps({"throughput": {"texts_per_second": 50.0}, "parameters": 22.7}))
    return tmp_path


def test_only_what_was_scored_on_the_whole_task_is_compared(run):
    assert list(systems.left_by(run, ["TF-IDF", "absent", "good-encoder"], "NevIRMini")) == ["TF-IDF", "good-encoder"]
    with pytest.raises(scores.ScoreError, match=r"No predictions at .*absent"):
        systems.left_by(run, ["absent"], "NevIRMini")


def test_accuracies_come_with_intervals(run):
    table = systems.accuracies(systems.left_by(run, ["TF-IDF", "good-encoder"], "NevIRMini")).set_index("system")
    assert table.value.to_dict() == {"TF-IDF": 25.0, "good-encoder": 90.0}
    assert (table.low < table.value).all()
    assert (table.high > table.value).all()
    assert (table.n == 20).all()


def test_wellers_table_has_ours_beside_its_own_and_others_below(tmp_path):
    for name, kind in [("TF-IDF", "tf-idf"), ("maxsim-tiny", "late-interaction")]:
        file = scores.folder_of(tmp_path, name) / "ranker.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"name": name, "kind": kind, "source": "here"}))
    measured = pd.DataFrame({
        "system": ["TF-IDF", "maxsim-tiny", "my-encoder"], "value": [5.0, 40.0, 30.0], "low": [1.0, 30.0, 20.0],
        "high": [9.0, 50.0, 40.0], "n": 100,
    })  # fmt: skip
    table = systems.architectures(tmp_path, measured).set_index("system")
    assert (table.published["TF-IDF"], table.ours["TF-IDF"]) == (2.0, 5.0)
    assert (table.kind["maxsim-tiny"], table.kind["my-encoder"]) == ("Late Interaction", "Bi-Encoders")
    assert np.isnan(table.published["my-encoder"])
    assert table.ours.notna().sum() == 3
    assert len(table) == 24 + 2, "Table 2's systems and two of ours it doesn't have"


def test_tests_are_exact_and_corrected_for_their_number():
    judged = {
        "a": predictions([True] * 10 + [False] * 10), "b": predictions([True] * 10 + [False] * 10),
        "c": predictions([False] * 10 + [True] * 10),
    }  # fmt: skip
    table = systems.mcnemar_holm(judged).set_index(["first", "second"])
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


def test_epochs_of_every_architecture_stand_in_one_table(tmp_path):
    left = {"figures/fig_04_training_bi.csv": "kind", "scores/nevir-multi-vector/epochs.csv": "metric"}
    for place, (file, column) in enumerate(left.items()):
        rows = pd.DataFrame(
            {"epoch": [0, 1], "set": "NevIR mini", column: "x", "value": [10.0 + place, 20.0], "n": 100}
        )
        loss = pd.DataFrame({"epoch": [0.5], "set": ["training loss"], column: ["loss"], "value": [1.0]})
        with paths.write_atomically(tmp_path / file) as draft:
            pd.concat([rows, loss] if column == "kind" else [rows]).to_csv(draft, index=False)
    table = systems.epochs(tmp_path, "bi", ["multi-vector"])
    assert list(table.columns) == ["architecture", "epoch", "set", "value", "n"]
    assert table.architecture.tolist() == ["bi-encoder"] * 2 + ["multi-vector"] * 2
    assert table.value.tolist() == [10, 20, 11, 20], "and no training loss"
    assert systems.epochs(tmp_path, "bi", []).architecture.unique().tolist() == ["bi-encoder"]
    with pytest.raises(
        scores.ScoreError, match=r"No epochs of a cross-encoder at .*nblib.nevir_training cross-encoder"
    ):
        systems.epochs(tmp_path, "bi", ["cross-encoder"])
    with pytest.raises(scores.ScoreError, match=r"No epochs of a bi-encoder at .*notebook 04 as absent"):
        systems.epochs(tmp_path, "absent", [])


def test_costs_are_milliseconds_a_text(run):
    table = systems.costs(run, ["TF-IDF", "good-encoder"], "NevIRMini").set_index("system")
    assert table.milliseconds.to_dict() == {"TF-IDF": 5.0, "good-encoder": 20.0}
    assert table.kind.to_dict() == {"TF-IDF": "Sparse", "good-encoder": "Bi-Encoders"}
    assert table.parameters.to_dict() == {"TF-IDF": 0.0, "good-encoder": 22.7}


def test_what_has_no_known_cost_is_left_out(run):
    (run / "results" / "07_TF-IDF.csv.json").unlink()
    assert systems.costs(run, ["TF-IDF", "good-encoder"], "NevIRMini").system.tolist() == ["good-encoder"]


def test_an_alignment_is_of_the_passage_with_the_negation(run):
    folder = scores.folder_of(run, "maxsim-tiny")
    folder.mkdir(parents=True)
    table = pd.DataFrame({"query_token": ["null", "not"], "similarity": [0.5, 1.0], "document": ["negated", "edited"]})
    table.to_csv(folder / "alignment.csv", index=False)
    assert systems.alignment(run, "maxsim-tiny").query_token.tolist() == ["null"]
    with pytest.raises(scores.ScoreError, match=r"No token alignment at .*Make it: python -m nblib.ranking"):
        systems.alignment(run, "TF-IDF")


def test_shared_errors_stand_beside_vahtolas_and_are_never_a_reproduction():
    by_antonyms = pd.DataFrame({"antonyms": ["actual – possible", "bad – good"], "n": [40, 60], "errors": [30, 5]})
    rows = systems.shared_error_rows(pd.DataFrame({"id": range(35)}), by_antonyms, 3, "official", "x")
    table = pd.DataFrame(rows).set_index("metric")
    assert table.ours.to_dict() == {
        "shared_errors": 35, "shared_errors_possible_actual": 30, "shared_errors_same_other": 0,
    }  # fmt: skip
    assert table.published.tolist() == [105, 70, 17]
    assert set(table.status) == {"partial"} and set(table.n) == {100}


def test_what_is_drawn_is_reproduced_only_from_official_data_alone():
    rows = systems.shown_rows("weller", {"Figure 3": 10, "Figure 4": 5}, "official", "sample", reproduced=["Figure 3"])
    assert [row["status"] for row in rows] == ["reproduced", "partial"]
    rows += systems.shown_rows("weller", {"Figure 3": 10}, "quick", "mini", reproduced=["Figure 3"])
    assert rows[-1]["status"] == "partial"
    shown = results.validate(pd.DataFrame(rows), "here")
    assert shown.ours.isna().all() and shown.n.tolist() == [10, 5, 10]
    assert systems.shown_rows("weller", {"Figure 3": 0}, "quick", "mini") == []


def test_a_family_stands_beside_its_base_item_by_item(run):
    for name, about in {"family-nli-s1": {"family": "NLI", "seed": 1}, "family-x": {}}.items():
        scores.save_predictions(predictions([True] * 15 + [False] * 5), run, name, "NevIRMini")
        with paths.write_atomically(run / "results" / f"07_{name}.csv.json") as draft:
            draft.write_text(json.dumps(about))
    (row,) = systems.claim(run, ["family-nli-s1"], "TF-IDF", "NevIRMini").to_dict("records")
    assert (row["system"], row["family"], row["seed"], row["value"], row["n"]) == ("family-nli-s1", "NLI", 1, 75.0, 20)
    assert row["difference"] == 50.0, "TF-IDF has 25"
    assert row["low"] < 75 < row["high"]
    assert 0 < row["difference_low"] < 50 < row["difference_high"]
    assert systems.claim(run, [], "TF-IDF", "NevIRMini").empty
    with pytest.raises(scores.ScoreError, match="family-x is no training of a family's"):
        systems.claim(run, ["family-x"], "TF-IDF", "NevIRMini")
    with pytest.raises(scores.ScoreError, match=r"No predictions at .*absent"):
        systems.claim(run, ["absent"], "TF-IDF", "NevIRMini")
