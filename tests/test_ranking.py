"""Ranking the pairwise benchmarks: as encoders are judged, and kept as theirs are."""

import json

import numpy as np
import pandas as pd
import pytest

from nblib import corpora, published, rankers, ranking, results, scores, tasks
from nblib.rankers import RankerError


class Written:
    """A ranker whose scores are written down: (query, document) → score, 0 for any other."""

    name, source = "written", "here"

    def __init__(self, given):
        self.given = given

    def score(self, queries, documents):
        return np.array([self.given.get(pair, 0.0) for pair in zip(queries, documents, strict=True)])


def questions(*rows):
    columns = ["id", "cluster", "question", "query", "positive", "negatives"]
    return pd.DataFrame([(item, 0, ask, query, positive, negatives) for item, ask, query, positive, negatives in rows],
                        columns=columns)  # fmt: skip


def test_both_questions_must_be_right_and_a_tie_is_wrong():
    asked = questions(
        ("1", "q1", "a", "x", ["y"]),
        ("1", "q2", "b", "y", ["x"]),
        ("2", "q1", "a", "x", ["y"]),
        ("2", "q2", "c", "y", ["x"]),
    )
    judged = ranking.judge(Written({("a", "x"): 2.0, ("a", "y"): 1.0, ("b", "y"): 3.0}), asked).set_index("id")
    assert judged.correct.to_dict() == {"1": True, "2": False}
    assert judged.loc["1", ["margin_q1", "margin_q2", "margin"]].tolist() == [1, 3, 1]
    assert judged.loc["2", "margin_q2"] == 0


def test_of_several_negatives_the_nearest_counts_and_is_named():
    asked = questions(("1", "input", "a", "x", ["y", "z"]), ("2", "input", "b", "x", ["y", "z"]))
    given = {("a", "x"): 1.0, ("a", "z"): 2.0, ("b", "x"): 5.0, ("b", "y"): 4.0}
    judged = ranking.judge(Written(given), asked)
    assert judged.nearest_negative.tolist() == [1, 0]
    assert judged.margin.tolist() == [-1, 1] and judged.correct.tolist() == [False, True]


def test_what_is_left_is_what_the_scores_say(tmp_path):
    names = ["SemAntoNegMini", "NevIRMini", "ExcluIRMini"]
    done = ranking.rank(rankers.TfIdf(), names, tmp_path)
    for name in names:
        kept = scores.load_predictions(tmp_path, "TF-IDF", name)
        pd.testing.assert_frame_equal(kept, done.predictions[name])
        row = done.summary[done.summary.task == name].iloc[0]
        assert row.value == pytest.approx(100 * kept.correct.mean()) and row.ci_low <= row.value <= row.ci_high
    table = corpora.load("nevir_mini")
    assert done.summary.set_index("task").pairs["NevIRMini"] == 4 * len(table)
    about = json.loads((tmp_path / "scores" / "TF-IDF" / "ranker.json").read_text())
    assert about == {"name": "TF-IDF", "kind": "tf-idf", "source": "scikit-learn"}


def test_a_perfect_ranker_and_its_opposite(tmp_path):
    rows = tasks.get("NevIRMini").rows("test")
    right = {(query, positive): 1.0 for query, positive in zip(rows["query"], rows.positive, strict=True)}
    assert ranking.judge(Written(right), rows).correct.all()
    assert not ranking.judge(Written({pair: -1.0 for pair in right}), rows).correct.any()


def test_a_ranker_and_an_encoder_are_compared_item_by_item(tmp_path, tiny_encoder):
    ranking.rank(rankers.Chance(), ["NevIRMini"], tmp_path)
    scores.score(tiny_encoder, ["NevIRMini"], tmp_path)
    before, after = (scores.load_predictions(tmp_path, name, "NevIRMini") for name in ("Random", tiny_encoder.name))
    assert list(before.columns) == list(after.columns)
    assert scores.compare(before, after)["n"] == len(before)


def test_only_pairwise_tasks_are_ranked(tmp_path):
    assert ranking.pairwise(tasks.SUITES["official"]) == ["SemAntoNeg", "NevIR", "ExcluIR"]
    with pytest.raises(RankerError, match="Nothing to rank in CannotMini"):
        ranking.rank(rankers.Chance(), ["NevIRMini", "CannotMini"], tmp_path)
    assert not (tmp_path / "scores").exists()


@pytest.mark.parametrize("nonsense", [[1.0], [1.0, np.nan], [[1.0], [2.0]]])
def test_scores_no_ranking_can_be_made_of_are_refused(nonsense):
    class Broken(Written):
        def score(self, queries, documents):
            return np.array(nonsense)

    with pytest.raises(RankerError, match="written gave"):
        ranking.judge(Broken({}), questions(("1", "query", "a", "x", ["y"])))


def summary(task, value=2.0):
    return ranking.Ranking(pd.DataFrame([{
        "task": task, "view": "test", "benchmark": task, "metric": "", "value": value, "ci_low": 1.0, "ci_high": 3.0,
        "n": 1383, "clusters": 9, "official": True, "data": "nevir test",
    }]), {})  # fmt: skip


def test_results_stand_beside_the_number_weller_printed():
    (row,) = ranking.result_rows(summary("NevIR"), "monot5-base", "official")
    assert (row["paper"], row["exhibit"], row["system"]) == ("weller", "Table 2", "MonoT5 base (default)")
    assert row["published"] == published.value("weller", "Table 2", "MonoT5 base (default)", "pairwise_accuracy")
    results.validate(pd.DataFrame([row]), "here")


def test_a_system_no_paper_ran_stands_where_weller_would_have_it():
    (row,) = ranking.result_rows(summary("NevIR"), "maxsim-all-mpnet-base-v2", "official")
    assert (row["paper"], row["exhibit"], row["system"]) == ("weller", "Table 2", "maxsim-all-mpnet-base-v2")
    assert np.isnan(row["published"])
    (row,) = ranking.result_rows(summary("ExcluIR"), "TF-IDF", "official")
    assert (row["paper"], row["status"]) == ("truong", "partial")


@pytest.mark.official
def test_tf_idf_gets_its_published_score_and_chance_a_quarter(tmp_path):
    values = {}
    for ranker in (rankers.TfIdf(), rankers.Chance()):
        values[ranker.name] = ranking.rank(ranker, ["NevIR"], tmp_path).summary.iloc[0]
    assert round(values["TF-IDF"].value, 1) == published.value("weller", "Table 2", "TF-IDF", "pairwise_accuracy")
    assert values["Random"].ci_low < 25 < values["Random"].ci_high


def test_the_command_leaves_predictions_results_and_what_it_took(tmp_path):
    ranking.main(["TF-IDF", "--scale", "toy", "--run-dir", str(tmp_path)])
    assert len(scores.load_predictions(tmp_path, "TF-IDF", "NevIRMini")) == 100
    table = results.load(tmp_path)
    assert set(table.scale) == {"toy"}
    assert "NevIR" in set(table.benchmark)
    about = json.loads((tmp_path / "results" / "07_TF-IDF.csv.json").read_text())
    assert (about["ranker"], about["pairs"] > 400, about["seconds"] > 0) == ("TF-IDF", True, True)


def test_an_unknown_ranker_ends_the_command_with_one_line(tmp_path):
    with pytest.raises(SystemExit, match=r"error: .*TF-IFD"):
        ranking.main(["TF-IFD", "--run-dir", str(tmp_path)])


def test_alignments_are_of_both_passages(tiny_encoder):
    table = ranking.align(rankers.token_maxsim(tiny_encoder))
    assert table.document.unique().tolist() == ["negated", "edited"]
    assert table[table.document == "negated"].groupby("query_place").greatest.sum().eq(1).all()
