"""lm-eval on a toy model, and what becomes of its logged samples."""

import numpy as np
import pandas as pd
import pytest
import torch
from lm_eval.models.huggingface import HFLM
from support.language import tiny_llama

from nblib.benchmarks.llm import evaluation, functions, harness
from nblib.benchmarks.llm.harness import LlmTaskError
from nblib.corpora import CorpusError
from nblib.models import language_models


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return language_models.load(str(tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama")), device="cpu")


@pytest.fixture(scope="module")
def rankings(model):
    return harness.ask(model, "llm_nevir_mini", limit=4)


# --- asking -----------------------------------------------------------------------------------------------------------


def test_answers_are_those_of_the_plain_model(model, rankings):
    """Against the probabilities read off the whole logits, prompt by prompt."""
    documents = functions.ranking("nevir_mini", 4)["test"].to_pandas()
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
        ("llm_m3_mini", 9, 9, {"score", "similarity", "parsed", "response"}),
        ("llm_semantoneg_mini", 7, 7, {"target", "chosen", "margin", "correct"}),
        ("mmlu_mini", 1, 6, {"subject", "chosen", "margin", "correct"}),
        ("hellaswag_mini", 3, 3, {"correct", "correct_raw"}),
        ("gsm8k_mini", 2, 2, {"gold", "response", "strict", "flexible", "correct", "correct_flexible"}),
    ],
)
def test_every_task_leaves_predictions_that_can_be_scored(model, name, limit, n, columns):
    table = harness.ask(model, name, limit=limit)
    assert len(table) == n and table.id.is_unique and table.id.map(type).eq(str).all()
    assert {"id", "cluster"} | columns <= set(table.columns)
    views = {row["view"]: row for row in evaluation.summarise(name, table, sampled=True)}
    assert views["test"]["n"] == n and not views["test"]["official"]


def test_what_cannot_be_asked_is_refused(model, monkeypatch, tmp_path):
    with pytest.raises(LlmTaskError, match=r"No LLM task called 'nevir'\. Known: llm_nevir, "):
        harness.ask(model, "nevir")
    with pytest.raises(LlmTaskError, match=r"tiny-llama has no chat template\. Set chat_template to False"):
        harness.ask(model, "llm_nevir_mini", chat_template=True)
    monkeypatch.setenv("NBLIB_DATA", str(tmp_path))
    for name in ("hellaswag", "gsm8k", "mmlu", "llm_nevir"):
        with pytest.raises(CorpusError, match=rf"no file {tmp_path}/.*Complete NBLIB_DATA, or unset it"):
            harness.ask(model, name)


def test_without_the_official_files_the_harness_reads_the_hub():
    (spec,) = harness._specs("gsm8k", 0, 0)
    assert spec == {"task": "gsm8k"}
    subjects = harness._specs("mmlu", 0, 0)
    assert len(subjects) == 57 and set(subjects[0]) == {"task", "num_fewshot"}


@pytest.mark.parametrize("name", ["llm_semantoneg_mini", "llm_m3_mini", "mmlu_mini", "hellaswag_mini", "gsm8k_mini"])
def test_prompts_are_hashed_without_the_model(model, monkeypatch, name):
    def used(*_, **__):
        raise AssertionError("the model was asked")

    with monkeypatch.context() as patch:
        patch.setattr(type(model.model), "forward", used)
        first = harness.prompts_sha256(model, name, limit=3)
        assert harness.prompts_sha256(model, name, limit=3) == first
        others = {harness.prompts_sha256(model, name, limit=2), harness.prompts_sha256(model, name, limit=3, seed=5)}
        assert len({first, *others}) == 3


@pytest.mark.parametrize("name", ["llm_nevir_mini", "gsm8k_mini"])
def test_the_hashed_prompts_are_those_that_are_asked(model, monkeypatch, name):
    """Prompts, answers or decoding settings, in order."""
    hashed, asked = [], []

    def record(self, requests):
        hashed.extend(request.args for request in requests)

    def listening(method):
        def listen(self, requests, *rest):
            asked.extend(request.args for request in requests)
            return getattr(HFLM, method)(self, requests, *rest)

        return listen

    monkeypatch.setattr(harness._PromptRecorder, "_record", record)
    harness.prompts_sha256(model, name, limit=2)
    for method in ("loglikelihood", "generate_until"):
        monkeypatch.setattr(harness.Reader, method, listening(method), raising=False)
    harness.ask(model, name, limit=2)
    assert hashed == asked and len(asked) >= 2


# --- scoring items ----------------------------------------------------------------------------------------------------


def logged(likelihoods, **document):
    answers = [[value, False] for value in likelihoods]
    return {"doc": document, "doc_id": 0, "target": document.get("target"), "filtered_resps": answers}


def test_an_item_is_right_where_every_question_is_in_that_order_and_ties_are_wrong():
    prompts = [  # an item of two queries; the last prompt is a tie
        logged([-1, -2], id="a", cluster=0, question="q1", order="given", target=0),
        logged([-2, -1], id="a", cluster=0, question="q2", order="given", target=1),
        logged([-2, -1], id="a", cluster=0, question="q1", order="swapped", target=1),
        logged([-1, -1], id="a", cluster=0, question="q2", order="swapped", target=0),
    ]
    (row,) = harness.score_rankings({"task": prompts}).to_dict("records")
    assert row["correct_given"] and not row["correct_swapped"] and not row["correct"]
    assert row["chose_first"] == 0.5


def test_whoever_always_says_one_gets_no_item():
    prompts = [
        logged([0, likelihood], id=item, cluster=0, question="query", order=order, target=target)
        for item, gap in [("a", 1), ("b", -1)] for order, target, likelihood in [("given", 0, -2 - gap), ("swapped", 1, -2 + gap)]
    ]  # fmt: skip
    table = harness.score_rankings({"task": prompts})
    assert table.correct_given.all() and not table.correct_swapped.any() and not table.correct.any()
    assert (table.chose_first == 1).all()
    assert table.correct_summed.tolist() == [True, False]  # it is surer of "1" where that is right: of item a


def test_both_extractions_of_gsm8k_are_kept():
    document = {"question": "How many?", "answer": "1+1=2\n#### 2"}

    def sample(how, extracted, right):
        common = {"doc": document, "doc_id": 5, "resps": [["So it is 2."]]}
        return {**common, "filter": how, "filtered_resps": [extracted], "exact_match": right}

    samples = {"gsm8k": [sample("strict-match", "[invalid]", 0.0), sample("flexible-extract", "2", 1.0)]}
    (row,) = harness.score_gsm8k(samples).to_dict("records")
    assert (row["strict"], row["flexible"], row["correct"], row["correct_flexible"]) == ("[invalid]", "2", False, True)
    assert (row["id"], row["response"]) == ("5", "So it is 2.")


def test_the_likeliest_answer_is_chosen():
    answers = [[-3, -2, -1], [-1, -2, -1]]
    samples = {"t": [logged(one, id=str(k), cluster=k, target=2) for k, one in enumerate(answers)]}
    table = harness.score_choices(samples)
    assert table.correct.tolist() == [True, False]
    assert np.isclose(table.margin, [1, 0]).all() and table.chosen.tolist() == [2, 0]
