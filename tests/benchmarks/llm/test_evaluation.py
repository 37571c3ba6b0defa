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
from nblib.results import measurements

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


def test_without_its_lora_a_models_answers_are_shown_and_other_scores_taken_from_the_results(model, asked, tmp_path):
    lora, base = tmp_path / "llms" / "hedge", str(model.folder)
    tuned = replace(model, name="hedge")
    first = evaluation.score(tuned, ["llm_nevir_mini"], tmp_path)
    stored = evaluation.find_model(base, lora, tmp_path, dtype="float32")
    assert (stored.name, evaluation.fingerprint(stored)) == ("hedge", evaluation.fingerprint(tuned))
    again = evaluation.score(stored, ["llm_nevir_mini"], tmp_path)
    pd.testing.assert_frame_equal(first.summary, again.summary)
    with pytest.raises(LlmTaskError, match="Neither the LoRA hedge is here nor its answers to llm_excluir_mini"):
        evaluation.score(stored, ["llm_excluir_mini"], tmp_path)
    rows = evaluation.result_rows(evaluation.score(tuned, ["llm_excluir_mini"], tmp_path).summary, "hedge", "lab")
    results.save(rows, tmp_path / "results" / "11_hedge.csv")
    (scoring.folder_of(tmp_path, "hedge") / "llm_excluir_mini_test.parquet").unlink()
    found = evaluation.score(stored, ["llm_excluir_mini"], tmp_path)
    taken = pd.DataFrame(evaluation.result_rows(found.summary, "hedge", "lab"))
    pd.testing.assert_frame_equal(taken, pd.DataFrame(rows), atol=1e-4)
    assert not found.predictions
    assert len(asked) == 2, "nothing was asked of the base under the LoRA's name"


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


def test_mathematics_and_the_groups_of_subjects_are_apart():
    subjects = ["high_school_statistics", "miscellaneous", "miscellaneous", "virology"]
    table = pd.DataFrame(
        {"id": list("abcd"), "cluster": range(4), "correct": [True, False, True, True], "subject": subjects}
    )
    rows = {row["view"]: (row["value"], row["n"]) for row in evaluation.summarise("mmlu_mini", table)}
    assert rows["test"] == (75.0, 4)
    assert rows["mathematics"] == rows["stem"] == (100.0, 1)
    assert rows["other"] == (pytest.approx(100 * 2 / 3), 3)
    assert set(rows) == {"test", "mathematics", "stem", "other"}, "no group without an item, and no subject alone"


def test_every_subject_is_in_one_group():
    groups = harness.mmlu_groups()
    assert list(groups) and set(groups) == {"stem", "humanities", "social sciences", "other"}
    members = [subject for subjects in groups.values() for subject in subjects]
    assert len(members) == len(set(members)) and set(harness.MATHEMATICS) <= set(members)


def test_a_correlation_is_measured_both_ways():
    table = pd.DataFrame({"id": list("abc"), "cluster": range(3), "part": "CANNOT", "score": [0.0, 1.0, 2.0],
                          "response": ["x"] * 3, "similarity": [0.0, 1.0, 9.0], "parsed": True})  # fmt: skip
    rows = {row["metric"]: row["value"] for row in evaluation.summarise("llm_cannot_wmt", table)}
    assert rows["spearman"] == pytest.approx(100) and 90 < rows["pearson"] < 95


def test_one_answer_for_everything_correlates_with_nothing():
    table = pd.DataFrame({"id": list("abc"), "cluster": range(3), "part": "CANNOT", "score": [0.0, 1.0, 0.5],
                          "response": ["1.0"] * 3, "similarity": [1.0] * 3, "parsed": True})  # fmt: skip
    rows = evaluation.summarise("llm_cannot_wmt_mini", table)
    assert [row["metric"] for row in rows] == ["spearman", "pearson"]
    assert all(math.isnan(row["value"]) and row["n"] == 3 for row in rows)
    assert evaluation.result_rows(pd.DataFrame(rows), "tiny", "quick") == []


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


def recorded_of(*rows, system="gemma"):
    summary = pd.DataFrame([row for part in rows for row in part])
    made = evaluation.result_rows(summary, system, "official", trained_on="20 pairs", fingerprint="abc")
    return measurements.validate(pd.DataFrame(made), "here")


def test_a_model_is_measured_by_its_own_name_and_a_view_says_what_it_is():
    table = recorded_of(evaluation.summarise("llm_nevir", RANKED))
    assert (
        set(table.system) == {"gemma"} and set(table.trained_on) == {"20 pairs"} and set(table.metric) == {"right_rank"}
    )
    assert table.set_index("data").value.to_dict() == {
        "nevir": 50, "nevir, given order": 75, "nevir, swapped order": 50, "nevir, orders summed": 100,
    }  # fmt: skip
    sampled = recorded_of(evaluation.summarise("llm_nevir", RANKED, sampled=True))
    assert sampled.data[0] == "nevir, sample"


def test_table_3_has_every_printed_score_beside_this_models():
    table = evaluation.table_3(recorded_of(evaluation.summarise("llm_nevir", RANKED)))
    assert len(table) == 4 * 7 and table.published.notna().all(), "four systems on seven benchmarks, averages aside"
    nevir = table[table.benchmark == "NevIR"]
    assert nevir.published.tolist() == [74.04, 73.13, 68.13, 78.13]
    assert set(nevir.this_model) == {50.0} and set(nevir.n) == {4.0} and set(nevir.data) == {"nevir"}
    assert nevir.interval.str.contains("–").all()
    rest = table[table.benchmark != "NevIR"]
    assert rest.this_model.isna().all() and set(rest.interval) == {""}
    assert table.command.str.contains("nblib run 11 out.ipynb").all()
    assert table.command[table.system == "Only hedging"].str.contains("-p training_data 'only hedging'").all()


def test_table_3_has_cannots_pearson_beside_the_printed_number():
    pairs = pd.DataFrame({"id": list("abc"), "cluster": range(3), "part": "CANNOT", "score": [0.0, 1.0, 2.0],
                          "response": ["x"] * 3, "similarity": [0.0, 1.0, 9.0], "parsed": True})  # fmt: skip
    table = evaluation.table_3(recorded_of(evaluation.summarise("llm_cannot_wmt", pairs)))
    rows = table[table.benchmark == "CANNOT-WMT"]
    assert set(rows.metric) == {"pearson"} and rows.this_model.between(90, 95).all()


def test_the_papers_own_model_stands_beside_its_printed_score(tmp_path):
    recorded = recorded_of(evaluation.summarise("llm_nevir", RANKED), system="Llama-3-8B-Instruct")
    board = results.scoreboard(recorded, tmp_path, "official").set_index(["paper", "exhibit", "system", "benchmark"])
    row = board.loc[("truong", "Table 3", "Llama-3-8B-Instruct", "NevIR")]
    assert (row.published, row.value, row.measured, row.n_printed) == (74.04, 50, "sample", 1383)
    assert row.data == "nevir", "both orders count, not a view"


def test_every_form_names_known_tasks():
    for data in ("mini", "official"):
        assert len({harness.task(name).benchmark for name in harness.names(data)}) == 8


def test_only_official_test_scores_have_published_neighbours():
    official = evaluation.published_scores(pd.DataFrame(evaluation.summarise("llm_nevir", RANKED)))
    assert official.value.tolist() == [74.04, 73.13, 68.13, 78.13] and set(official.row) == {0}
    assert evaluation.published_scores(pd.DataFrame(evaluation.summarise("llm_nevir_mini", RANKED))).empty
