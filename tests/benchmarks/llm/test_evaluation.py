"""Scores of a language model: kept, never computed twice, and recorded as what they are."""

import math
from dataclasses import replace

import pandas as pd
import pytest
from support.language import tiny_llama

from nblib import results
from nblib.benchmarks import scoring
from nblib.benchmarks.llm import evaluation, harness
from nblib.benchmarks.llm.harness import LlmTaskError
from nblib.models import language_models

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

    monkeypatch.setattr(evaluation, "ask", ask)
    return seen


def test_what_is_there_is_not_asked_again(model, asked, tmp_path):
    names = ["llm_nevir_mini", "llm_excluir_mini"]
    first = evaluation.score(model, names, tmp_path, limits={"llm_nevir_mini": 4})
    again = evaluation.score(model, names, tmp_path, limits={"llm_nevir_mini": 4})
    assert asked == [("llm_nevir_mini", 4, 0), ("llm_excluir_mini", 0, 0)]
    pd.testing.assert_frame_equal(first.summary, again.summary)
    pd.testing.assert_frame_equal(again.predictions["llm_nevir_mini"], RANKED)
    pd.testing.assert_frame_equal(scoring.load_predictions(tmp_path, "tiny-llama", "llm_nevir_mini"), RANKED)


@pytest.mark.parametrize(
    "change",
    [
        {"limits": {"llm_nevir_mini": 5}}, {"seed": 1, "limits": {"llm_nevir_mini": 20}}, {"model": 3}, {"lost": True},
        {"version": True}, {"prompt": True},
    ],
)  # fmt: skip
def test_what_was_made_otherwise_is_asked_anew(model, asked, tmp_path, monkeypatch, change):
    before = {"limits": {"llm_nevir_mini": 20}} if "seed" in change else {}
    evaluation.score(model, ["llm_nevir_mini"], tmp_path, **before)
    if change.pop("lost", False):
        (scoring.folder_of(tmp_path, "tiny-llama") / "llm_nevir_mini_test.parquet").unlink()
    if seed := change.pop("model", None):  # other weights of the same name
        other = language_models.load(str(tiny_llama(tmp_path / "other", seed=seed)), device="cpu")
        model = replace(model, model=other.model)
    if change.pop("version", False):
        monkeypatch.setattr(evaluation, "CODE_VERSION", evaluation.CODE_VERSION + 1)
    if change.pop("prompt", False):
        monkeypatch.setattr(evaluation, "prompts_sha256", lambda *_, **__: "of other words")
    evaluation.score(model, ["llm_nevir_mini"], tmp_path, **change)
    assert len(asked) == 2


def test_a_seed_that_changes_no_prompt_changes_nothing(model, asked, tmp_path):
    for seed in (0, 1):  # of a ranking in full
        evaluation.score(model, ["llm_nevir_mini"], tmp_path, seed=seed)
    assert len(asked) == 1


def test_a_limit_for_a_task_that_is_not_run_is_refused(model, tmp_path):
    with pytest.raises(LlmTaskError, match="Limits for gsm8k, which this run doesn't ask"):
        evaluation.score(model, ["llm_nevir_mini"], tmp_path, limits={"gsm8k": 3})


def test_a_real_task_from_end_to_end(model, tmp_path):
    found = evaluation.score(model, ["llm_semantoneg_mini"], tmp_path, limits={"llm_semantoneg_mini": 12})
    (row,) = found.summary.to_dict("records")
    assert (
        row["n"] == 12 and row["ci_low"] <= row["value"] <= row["ci_high"] and row["data"] == "semantoneg_mini, sample"
    )


def test_a_ranking_counts_in_both_orders():
    rows = {row["view"]: row["value"] for row in evaluation.summarise("llm_nevir_mini", RANKED)}
    assert rows == {"test": 50.0, "given order": 75.0, "swapped order": 50.0, "orders summed": 100.0}


def test_mathematics_is_apart():
    table = pd.DataFrame({"id": list("abc"), "cluster": range(3), "correct": [True, False, True],
                          "subject": ["high_school_statistics", "miscellaneous", "miscellaneous"]})  # fmt: skip
    rows = {row["view"]: (row["value"], row["n"]) for row in evaluation.summarise("mmlu_mini", table)}
    assert rows["mathematics"] == (100.0, 1) and rows["miscellaneous"] == (50.0, 2) and rows["test"][1] == 3


def test_one_answer_for_everything_correlates_with_nothing():
    table = pd.DataFrame({"id": list("abc"), "cluster": range(3), "part": "CANNOT", "score": [0.0, 1.0, 0.5],
                          "response": ["1.0"] * 3, "similarity": [1.0] * 3, "parsed": True})  # fmt: skip
    (row,) = evaluation.summarise("llm_cannot_wmt_mini", table)
    assert math.isnan(row["value"]) and row["n"] == 3
    assert evaluation.result_rows(pd.DataFrame([row]), "tiny", "quick") == []


def test_response_biases_are_counted():
    first, place = evaluation.response_biases("llm_nevir_mini", RANKED)
    assert first == {"task": "llm_nevir_mini", "bias": "chose the first document (%)", "value": 75.0, "fair": 50.0}
    assert place["value"] == 100 * RANKED.chose_first.isin([0.0, 1.0]).mean() and math.isnan(place["fair"])
    mixed = evaluation.response_biases("llm_nevir_mini", RANKED.assign(chose_first=0.5))
    assert [row["value"] for row in mixed] == [50.0, 0.0]
    chosen = pd.DataFrame({"chosen": [1, 1, 1, 0], "target": [0, 1, 0, 2]})
    (favourite,) = evaluation.response_biases("llm_semantoneg_mini", chosen)
    assert (favourite["value"], favourite["fair"]) == (75.0, 25.0)
    assert evaluation.response_biases("hellaswag_mini", chosen) == []


def test_a_model_has_rows_of_its_own_and_the_papers_stay_not_run(tmp_path):
    summary = pd.DataFrame(evaluation.summarise("llm_nevir", RANKED))
    recorded = results.save(evaluation.result_rows(summary, "gemma", "official"), tmp_path / "r.csv")
    assert set(recorded.system) == {"gemma"} and recorded.published.isna().all()
    table = evaluation.table_3(recorded)
    absent = table[table.status == "not run"]
    assert len(absent) == 4 * 7 and absent.command.str.contains("nblib run 11 out.ipynb").all()
    assert absent.command[absent.system == "Only hedging"].str.contains("-p training_data 'only hedging'").all()
    assert table.command[table.system == "gemma"].eq("").all()


def test_the_papers_own_system_gets_its_row(tmp_path):
    summary = pd.DataFrame(evaluation.summarise("llm_nevir", RANKED))
    rows = evaluation.result_rows(summary, "Llama-3-8B-Instruct", "paper", "Llama-3-8B-Instruct")
    first = rows[0]
    assert (first["published"], first["status"], first["metric"]) == (74.04, "reproduced", "right_rank")
    sampled = pd.DataFrame(evaluation.summarise("llm_nevir", RANKED, sampled=True))
    assert evaluation.result_rows(sampled, "gemma", "official")[0]["status"] == "partial"
    with_caveat = pd.DataFrame(evaluation.summarise("llm_excluir", RANKED))
    assert evaluation.result_rows(with_caveat, "gemma", "official")[0]["status"] == "partial"


def test_every_form_names_known_tasks():
    for data in ("mini", "official"):
        assert len({harness.task(name).benchmark for name in harness.names(data)}) == 8


def test_only_official_test_scores_have_published_neighbours():
    official = evaluation.published_scores(pd.DataFrame(evaluation.summarise("llm_nevir", RANKED)))
    assert official.value.tolist() == [74.04, 73.13, 68.13, 78.13] and set(official.row) == {0}
    assert evaluation.published_scores(pd.DataFrame(evaluation.summarise("llm_nevir_mini", RANKED))).empty
