"""Scores of a language model: kept, never computed twice, and recorded as what they are."""

import math
from dataclasses import replace

import pandas as pd
import pytest
from support.language import tiny_llama

from nblib import artefacts, results
from nblib.benchmarks import scoring
from nblib.benchmarks.llm import evaluation
from nblib.errors import StudyError
from nblib.models import language_models

RANKED = pd.DataFrame({"id": list("abcd"), "cluster": range(4), "chose_first": [1, 0.5, 0.75, 0.75]})
RANKED["correct_summed"] = True
RANKED["correct_given"], RANKED["correct_swapped"] = [True, True, False, True], [True, False, False, True]
RANKED["correct"] = RANKED.correct_given & RANKED.correct_swapped


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return language_models.load(str(tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama")), device="cpu")


@pytest.fixture
def asked(monkeypatch):
    """Each task that is asked, with limit and seed."""
    seen = []
    monkeypatch.setattr(
        evaluation, "ask", lambda _, name, **how: seen.append((name, how["limit"], how["seed"])) or RANKED
    )
    return seen


def test_what_is_there_is_not_asked_again(model, asked, tmp_path):
    names = ["llm_nevir_mini", "llm_excluir_mini"]
    first, _ = evaluation.score(model, names, tmp_path, limits={"llm_nevir_mini": 4})
    again, predictions = evaluation.score(model, names, tmp_path, limits={"llm_nevir_mini": 4})
    assert asked == [("llm_nevir_mini", 4, 0), ("llm_excluir_mini", 0, 0)]
    assert set(zip(first.task, first["sample"], strict=True)) == {("llm_nevir_mini", "4"), ("llm_excluir_mini", "")}
    pd.testing.assert_frame_equal(first, again)
    pd.testing.assert_frame_equal(predictions["llm_nevir_mini"], RANKED)
    pd.testing.assert_frame_equal(scoring.load_predictions(tmp_path, "tiny-llama", "llm_nevir_mini"), RANKED)
    with pytest.raises(StudyError, match="Limits for gsm8k, which this run doesn't ask"):
        evaluation.score(model, names, tmp_path, limits={"gsm8k": 3})


def test_a_lora_that_is_gone_is_known_by_its_answers(model, asked, tmp_path):
    lora = replace(model, name="hedge", folder=tmp_path / "llms" / "hedge")
    first, _ = evaluation.score(lora, ["llm_nevir_mini"], tmp_path, limits={})
    artefacts.write_json(tmp_path / "trainings" / "hedge" / "training.json", {"finished": "2026-01-01T00:00:00Z"})
    gone = evaluation.load(str(model.folder), lora.folder, tmp_path, "float32")
    assert (gone.name, evaluation.fingerprint(gone, tmp_path)) == ("hedge", language_models.fingerprint(model))
    pd.testing.assert_frame_equal(first, evaluation.score(gone, ["llm_nevir_mini"], tmp_path, limits={})[0])
    with pytest.raises(StudyError, match=r"hedge is gone, and has no answers to llm_excluir_mini as it is asked now"):
        evaluation.score(gone, ["llm_excluir_mini"], tmp_path, limits={})


@pytest.mark.parametrize("change", ["limit", "seed", "chat template", "model", "data"])
def test_what_was_made_otherwise_is_asked_anew(model, asked, tmp_path, monkeypatch, change):
    options = {"limits": {"llm_nevir_mini": 20}}
    evaluation.score(model, ["llm_nevir_mini"], tmp_path, **options)
    if change == "model":  # other weights of the same name
        other = language_models.load(str(tiny_llama(tmp_path / "other", seed=3)), device="cpu")
        model = replace(model, model=other.model)
    elif change == "data":
        described = evaluation.corpora.describe("nevir_mini")
        splits = {name: replace(split, sha256="0" * 64) for name, split in described.splits.items()}
        monkeypatch.setattr(evaluation.corpora, "describe", lambda _: replace(described, splits=splits))
    else:
        changes = {"limit": {"limits": {}}, "seed": {"seed": 1}, "chat template": {"chat_template": True}}
        options |= changes[change]
    evaluation.score(model, ["llm_nevir_mini"], tmp_path, **options)
    assert len(asked) == 2


def test_a_real_task_from_end_to_end(model, tmp_path):
    summary, _ = evaluation.score(model, ["llm_semantoneg_mini"], tmp_path, limits={"llm_semantoneg_mini": 12})
    (row,) = summary.to_dict("records")
    assert (row["n"], row["sample"], row["corpus"]) == (12, "12", "semantoneg_mini")
    assert row["ci_low"] <= row["value"] <= row["ci_high"]
    measured = results.record(summary, system=model.name, scale="lab")
    assert (measured.benchmark[0], measured.split[0], measured.metric[0]) == ("semantoneg", "test", "accuracy")


def test_a_ranking_counts_in_both_orders():
    rows = {row["protocol"]: row["value"] for row in evaluation.summarise("llm_nevir_mini", RANKED)}
    assert rows == {"": 50.0, "given_order": 75.0, "swapped_order": 50.0, "orders_summed": 100.0}


def test_mathematics_and_the_groups_of_subjects_are_apart():
    subjects = ["high_school_statistics", "miscellaneous", "miscellaneous", "world_history"]
    table = pd.DataFrame({"id": list("abcd"), "cluster": range(4), "subject": subjects})
    table["correct"] = [True, False, True, True]
    rows = {row["part"]: (row["value"], row["n"]) for row in evaluation.summarise("mmlu_mini", table)}
    whole, one = (75.0, 4), (100.0, 1)
    assert rows == {"": whole, "mathematics": one, "stem": one, "other": (50.0, 2), "humanities": one}


def test_a_correlation_is_measured_both_ways_and_one_answer_correlates_with_nothing():
    table = pd.DataFrame({"id": list("abc"), "cluster": range(3), "score": [0.0, 1.0, 2.0]})
    table["similarity"] = [0.0, 1.0, 9.0]
    rows = {row["metric"]: row["value"] for row in evaluation.summarise("llm_cannot_wmt", table)}
    assert rows["spearman"] == pytest.approx(100) and 90 < rows["pearson"] < 95
    rows = evaluation.summarise("llm_cannot_wmt_mini", table.assign(similarity=1.0))
    assert all(math.isnan(row["value"]) and row["n"] == 3 for row in rows)


def test_response_biases_are_counted():
    first, position = evaluation.response_biases("llm_nevir_mini", RANKED)
    assert first == {"task": "llm_nevir_mini", "bias": "chose the first document (%)", "value": 75.0, "fair": 50.0}
    assert position["value"] == 25.0 and math.isnan(position["fair"])
    chosen = pd.DataFrame({"chosen": [1, 1, 1, 0], "target": [0, 1, 0, 2]})
    (favourite,) = evaluation.response_biases("llm_semantoneg_mini", chosen)
    assert (favourite["value"], favourite["fair"]) == (75.0, 25.0)
    assert evaluation.response_biases("hellaswag_mini", chosen) == []
