"""Scores of a language model: kept, never computed twice, and recorded as what they are."""

import math
from dataclasses import replace

import pandas as pd
import pytest
from language import tiny_llama

from nblib import language_models, llm_benchmarks, llm_scores, results, scores
from nblib.llm_benchmarks import LlmTaskError

RANKED = pd.DataFrame({"id": list("abcd"), "cluster": range(4), "chose_first": [1, 0.5, 0.75, 0.75],
                       "correct_given": [True, True, False, True], "correct_swapped": [True, False, False, True],
                       "correct_summed": [True, True, True, True], "correct": [True, False, False, True]})  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return language_models.load(str(tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama")), device="cpu")


@pytest.fixture
def asked(monkeypatch):
    seen = []

    def ask(model, name, **how):
        seen.append((name, how["limit"], how["seed"]))
        return RANKED

    monkeypatch.setattr(llm_scores, "ask", ask)
    return seen


def test_what_is_there_is_not_asked_again(model, asked, tmp_path):
    names = ["llm_nevir_mini", "llm_excluir_mini"]
    first = llm_scores.score(model, names, tmp_path, limits={"llm_nevir_mini": 4})
    again = llm_scores.score(model, names, tmp_path, limits={"llm_nevir_mini": 4})
    assert asked == [("llm_nevir_mini", 4, 0), ("llm_excluir_mini", 0, 0)]
    pd.testing.assert_frame_equal(first.summary, again.summary)
    pd.testing.assert_frame_equal(again.predictions["llm_nevir_mini"], RANKED)
    pd.testing.assert_frame_equal(scores.load_predictions(tmp_path, "tiny-llama", "llm_nevir_mini"), RANKED)


@pytest.mark.parametrize("change", [{"limits": {"llm_nevir_mini": 5}}, {"seed": 1}, {"model": 3}, {"lost": True}])
def test_what_was_made_otherwise_is_asked_anew(model, asked, tmp_path, change):
    llm_scores.score(model, ["llm_nevir_mini"], tmp_path)
    if change.pop("lost", False):
        (scores.folder_of(tmp_path, "tiny-llama") / "llm_nevir_mini_test.parquet").unlink()
    if seed := change.pop("model", None):  # other weights of the same name
        model = replace(
            model, model=language_models.load(str(tiny_llama(tmp_path / "other", seed=seed)), device="cpu").model
        )
    llm_scores.score(model, ["llm_nevir_mini"], tmp_path, **change)
    assert len(asked) == 2


def test_a_limit_for_a_task_that_is_not_run_is_refused(model, tmp_path):
    with pytest.raises(LlmTaskError, match="Limits for gsm8k, which this run doesn't ask"):
        llm_scores.score(model, ["llm_nevir_mini"], tmp_path, limits={"gsm8k": 3})


def test_a_real_task_from_end_to_end(model, tmp_path):
    found = llm_scores.score(model, ["llm_semantoneg_mini"], tmp_path, limits={"llm_semantoneg_mini": 12})
    (row,) = found.summary.to_dict("records")
    assert (
        row["n"] == 12 and row["ci_low"] <= row["value"] <= row["ci_high"] and row["data"] == "semantoneg_mini, sample"
    )


def test_a_ranking_counts_in_both_orders():
    rows = {row["view"]: row["value"] for row in llm_scores.summarise("llm_nevir_mini", RANKED)}
    assert rows == {"test": 50.0, "given order": 75.0, "swapped order": 50.0, "orders summed": 100.0}


def test_mathematics_is_apart():
    table = pd.DataFrame({"id": list("abc"), "cluster": range(3), "correct": [True, False, True],
                          "subject": ["high_school_statistics", "miscellaneous", "miscellaneous"]})  # fmt: skip
    rows = {row["view"]: (row["value"], row["n"]) for row in llm_scores.summarise("mmlu_mini", table)}
    assert rows["mathematics"] == (100.0, 1) and rows["miscellaneous"] == (50.0, 2) and rows["test"][1] == 3


def test_one_answer_for_everything_correlates_with_nothing():
    table = pd.DataFrame({"id": list("abc"), "cluster": range(3), "part": "CANNOT", "score": [0.0, 1.0, 0.5],
                          "response": ["1.0"] * 3, "similarity": [1.0] * 3, "parsed": True})  # fmt: skip
    (row,) = llm_scores.summarise("llm_cannot_mini", table)
    assert math.isnan(row["value"]) and row["n"] == 3
    assert llm_scores.result_rows(pd.DataFrame([row]), "tiny", "quick") == []


def test_habits_are_counted():
    first, place = llm_scores.habits("llm_nevir_mini", RANKED)
    assert first == {"task": "llm_nevir_mini", "habit": "chose the first document (%)", "value": 75.0, "fair": 50.0}
    assert place["value"] == 100 * RANKED.chose_first.isin([0.0, 1.0]).mean() and math.isnan(place["fair"])
    mixed = llm_scores.habits("llm_nevir_mini", RANKED.assign(chose_first=0.5))
    assert [row["value"] for row in mixed] == [50.0, 0.0]
    chosen = pd.DataFrame({"chosen": [1, 1, 1, 0], "target": [0, 1, 0, 2]})
    (favourite,) = llm_scores.habits("llm_semantoneg_mini", chosen)
    assert (favourite["value"], favourite["fair"]) == (75.0, 25.0)
    assert llm_scores.habits("hellaswag_mini", chosen) == []


def test_a_model_has_rows_of_its_own_and_the_papers_stay_not_run(tmp_path):
    summary = pd.DataFrame(llm_scores.summarise("llm_nevir", RANKED))
    recorded = results.save(llm_scores.result_rows(summary, "gemma", "official"), tmp_path / "r.csv")
    assert set(recorded.system) == {"gemma"} and recorded.published.isna().all()
    table = llm_scores.table_3(recorded)
    absent = table[table.status == "not run"]
    assert len(absent) == 4 * 7 and absent.command.str.contains("nblib.execution 09").all()
    assert absent.command[absent.system == "Only hedging"].str.contains("-p recipe 'only hedging'").all()
    assert table.command[table.system == "gemma"].eq("").all()


def test_the_papers_own_system_gets_its_row(tmp_path):
    summary = pd.DataFrame(llm_scores.summarise("llm_nevir", RANKED))
    rows = llm_scores.result_rows(summary, "Llama-3-8B-Instruct", "paper", "Llama-3-8B-Instruct")
    first = rows[0]
    assert (first["published"], first["status"], first["metric"]) == (74.04, "reproduced", "right_rank")
    sampled = pd.DataFrame(llm_scores.summarise("llm_nevir", RANKED, sampled=True))
    assert llm_scores.result_rows(sampled, "gemma", "official")[0]["status"] == "partial"
    reserved = pd.DataFrame(llm_scores.summarise("llm_excluir", RANKED))
    assert llm_scores.result_rows(reserved, "gemma", "official")[0]["status"] == "partial"


def test_suites_name_known_tasks():
    for suite in llm_benchmarks.SUITES.values():
        assert all(llm_benchmarks.task(name) for name in suite)


def test_only_official_test_scores_have_published_neighbours():
    official = llm_scores.printed_beside(pd.DataFrame(llm_scores.summarise("llm_nevir", RANKED)))
    assert official.value.tolist() == [74.04, 73.13, 68.13, 78.13] and set(official.row) == {0}
    assert llm_scores.printed_beside(pd.DataFrame(llm_scores.summarise("llm_nevir_mini", RANKED))).empty
