"""lm-eval on a toy model, and what becomes of its logged samples."""

import pandas as pd
import pytest
import torch
from support.language import tiny_llama

from nblib.benchmarks.llm import evaluation, functions, harness
from nblib.errors import StudyError
from nblib.models import language_models


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return language_models.load(str(tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama")), device="cpu")


@pytest.fixture(scope="module")
def rankings(model):
    return harness.ask(model, "llm_nevir_mini", limit=4)


def test_answers_are_those_of_the_plain_model(model, rankings):
    """Against the probabilities read off the whole logits, prompt by prompt."""
    documents = functions.ranking("nevir_mini", 4, 0)["test"].to_pandas()
    ends = [model.tokenizer(f" {answer}", add_special_tokens=False)["input_ids"][0] for answer in (1, 2)]
    right = []
    for row in documents.to_dict("records"):
        ids = model.tokenizer(functions.ranking_prompt(row), return_tensors="pt").input_ids
        with torch.inference_mode():
            logits = model.model(ids).logits[0, -1, ends]
        right.append(bool(logits[row["target"]] > logits[1 - row["target"]]))
    wanted = documents.assign(right=right).groupby(["id", "order"]).right.all().unstack()
    found = rankings.set_index("id").loc[wanted.index]
    assert (found.correct_given == wanted.given).all() and (found.correct_swapped == wanted.swapped).all()


def test_several_prompts_at_once_give_the_same(model, rankings):
    pd.testing.assert_frame_equal(harness.ask(model, "llm_nevir_mini", limit=4, batch_size=4), rankings)


@pytest.mark.parametrize(
    ("name", "limit", "n", "columns"),
    [
        ("llm_excluir_mini", 3, 3, {"correct_given", "correct_swapped", "chose_first", "correct"}),
        ("llm_cannot_wmt_mini", 9, 9, {"score", "similarity", "parsed", "response"}),
        ("llm_semantoneg_mini", 7, 7, {"target", "chosen", "margin", "correct"}),
        ("mmlu_mini", 1, 6, {"subject", "chosen", "margin", "correct"}),
        ("hellaswag_mini", 3, 3, {"correct", "correct_raw"}),
        ("gsm8k_mini", 2, 2, {"response", "strict", "flexible", "correct", "correct_flexible"}),
    ],
)
def test_every_task_leaves_predictions_that_can_be_scored(model, name, limit, n, columns):
    table = harness.ask(model, name, limit=limit)
    assert len(table) == n and table.id.is_unique and table.id.map(type).eq(str).all()
    assert {"id", "cluster"} | columns <= set(table.columns)
    first = evaluation.summarise(name, table, sampled=True)[0]
    assert (first["n"], first["sample"], first["part"], first["protocol"]) == (n, str(n), "", "")


def test_what_cannot_be_asked_is_refused(model, monkeypatch, tmp_path):
    with pytest.raises(StudyError, match="No LLM task called 'nevir'"):
        harness.ask(model, "nevir")
    with pytest.raises(StudyError, match=r"tiny-llama has no chat template\. Set chat_template to False"):
        harness.ask(model, "llm_nevir_mini", chat_template=True)
    monkeypatch.setenv("NBLIB_DATA", str(tmp_path))
    for name in ("hellaswag", "gsm8k", "mmlu", "llm_nevir"):
        with pytest.raises(StudyError, match=rf"no file {tmp_path}/.*Set NBLIB_DATA to a folder"):
            harness.ask(model, name)


def test_without_the_official_files_the_harness_reads_the_hub():
    assert harness._specs("gsm8k", 0, 0) == [{"task": "gsm8k"}]
    subjects = harness._specs("mmlu", 0, 0)
    assert len(subjects) == 57 and set(subjects[0]) == {"task", "num_fewshot"}


def test_the_sample_is_by_seed(model):
    first, other = (harness.ask(model, "hellaswag_mini", limit=3, seed=seed) for seed in (0, 1))
    assert first.id.tolist() != other.id.tolist()
    assert first.id.tolist() == harness.ask(model, "hellaswag_mini", limit=3).id.tolist()


def logged(likelihoods, **document):
    answers = [[value, False] for value in likelihoods]
    return {"doc": document, "doc_id": 0, "target": document.get("target"), "filtered_resps": answers}


def test_an_item_is_right_where_every_question_is_in_that_order_and_ties_are_wrong():
    def prompt(likelihoods, question, order, target):
        return logged(likelihoods, id="a", cluster=0, question=question, order=order, target=target)

    prompts = [  # an item of two queries; the last prompt is a tie
        prompt([-1, -2], "q1", "given", 0),
        prompt([-2, -1], "q2", "given", 1),
        prompt([-2, -1], "q1", "swapped", 1),
        prompt([-1, -1], "q2", "swapped", 0),
    ]
    (row,) = harness.score_rankings(prompts).to_dict("records")
    assert row["correct_given"] and not row["correct_swapped"] and not row["correct"]
    assert row["chose_first"] == 0.5


def test_whoever_always_says_one_gets_no_item():
    orders = [("a", "given", 0, -3), ("a", "swapped", 1, -1), ("b", "given", 0, -1), ("b", "swapped", 1, -3)]
    prompts = [
        logged([0, second], id=item, cluster=0, question="query", order=order, target=target)
        for item, order, target, second in orders
    ]
    table = harness.score_rankings(prompts)
    assert table.correct_given.all() and not table.correct_swapped.any() and not table.correct.any()
    assert (table.chose_first == 1).all()
    assert table.correct_summed.tolist() == [True, False]  # it is surer of "1" where that is right: of item a


def test_both_extractions_of_gsm8k_are_kept():
    def sample(how, extracted, right):
        common = {"doc_id": 5, "resps": [["So it is 2."]]}
        return {**common, "filter": how, "filtered_resps": [extracted], "exact_match": right}

    samples = [sample("strict-match", "[invalid]", 0.0), sample("flexible-extract", "2", 1.0)]
    (row,) = harness.score_gsm8k(samples).to_dict("records")
    assert (row["strict"], row["flexible"], row["correct"], row["correct_flexible"]) == ("[invalid]", "2", False, True)
    assert (row["id"], row["response"]) == ("5", "So it is 2.")
