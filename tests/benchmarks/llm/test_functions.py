"""The lm-eval tasks' functions: documents, prompts, what an answer is worth; and that the YAML files load."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nblib import corpora
from nblib.benchmarks.llm import functions


def documents(maker, source, limit=0, seed=0):
    return maker(source, limit, seed)["test"].to_pandas()


def test_every_question_is_asked_in_both_orders():
    table, source = documents(functions.ranking, "nevir_mini"), corpora.load("nevir_mini").set_index("id")
    assert len(table) == 4 * len(source)
    given_order = table[table.order == "given"]
    assert (given_order["first"] == source.doc1.loc[given_order.id].to_numpy()).all()
    assert (given_order["second"] == source.doc2.loc[given_order.id].to_numpy()).all()
    wanted = table.apply(lambda row: row["second"] if row.target else row["first"], axis=1)
    right = np.where(table.question == "q1", source.doc1.loc[table.id], source.doc2.loc[table.id])
    assert (wanted == right).all()
    # whoever always says the same gets half the prompts, and no item
    assert (table.groupby("id").target.sum() == 2).all()
    table = documents(functions.ranking, "excluir_mini")
    assert table.groupby("order").target.unique().explode().to_dict() == {"given": 0, "swapped": 1}


def test_the_prompt_is_the_papers():
    document = {"first": "One.", "second": "Two.", "query": "which?"}
    question = "Which document is more relevant to the query? Please choose 1 or 2."
    ranked = functions.ranking_prompt(document)
    assert ranked == f"Document 1: One.\nDocument 2: Two.\nQuery: which?\n\n{question}\nAnswer:"
    chosen = functions.choice_prompt({"query": "It is hot.", "options": ["cold", "warm", "not hot"]})
    assert chosen.startswith("Sentence: It is hot.\n1. cold\n2. warm\n3. not hot\n\n") and chosen.endswith("\nAnswer:")
    asked = functions.similarity_prompt({"sentence1": "A.", "sentence2": "B."})
    assert asked.endswith("from -1.0 to 1.0, and can be a decimal.\nS1: A.\nS2: B.\nScore:")


@settings(deadline=None, max_examples=5)
@given(st.integers(1, 99), st.integers(0, 5))
def test_a_sample_is_of_whole_items_and_by_seed(limit, seed):
    table = documents(functions.ranking, "nevir_mini", limit, seed)
    assert table.id.nunique() == limit and (table.id.value_counts() == 4).all()
    pd.testing.assert_frame_equal(table, documents(functions.ranking, "nevir_mini", limit, seed))


def test_what_is_a_score_and_what_is_not():
    scores = {"-0.5": -0.5, "− 0.5": -0.5, "–1": -1.0, "+1.0": 1.0, ".25": 0.25, "0,5": 0.5, "1.": 1.0, "0": 0.0}
    assert {answer: functions.parse_score(answer) for answer in scores} == scores
    assert not any(map(functions.parse_score, ["", "none", "10", "7.5", "-3", "similar"]))


def test_options_are_shuffled_by_seed_and_the_target_goes_with_its_text():
    table, source = documents(functions.choice, "semantoneg_mini", seed=3), corpora.load("semantoneg_mini")
    right = [row.sentences[row.label] for row in source.itertuples()]
    assert [row.options[row.target] for row in table.itertuples()] == right
    assert [sorted(row) for row in table.options] == [sorted(row) for row in source.sentences]
    shares = table.target.value_counts(normalize=True)
    assert len(shares) == 3 and shares.between(0.2, 0.47).all()
    whole = table.set_index("id").target
    part = documents(functions.choice, "semantoneg_mini", limit=20, seed=3).set_index("id").target
    assert len(part) == 20 and (whole.loc[part.index] == part).all()
    assert documents(functions.choice, "semantoneg_mini", seed=4).target.tolist() != table.target.tolist()


def test_mmlus_examples_are_not_asked():
    parts = functions.mmlu("mmlu_mini", "world_history")
    asked, shown = (set(parts[split]["question"]) for split in ("test", "dev"))
    assert (len(shown), len(asked), asked & shown) == (5, 8, set())
    assert set(parts["test"]["subject"]) == {"world_history"}


def test_hellaswags_unfinished_sentence_is_parted_from_its_context():
    table = functions.hellaswag("hellaswag_mini")["validation"].to_pandas()
    first = table.iloc[0]
    assert (first.activity_label, first.ctx_b) == ("Juggling", "While it is in the air, he")
    whole = corpora.load("hellaswag_mini").ctx
    assert [f"{row.ctx_a} {row.ctx_b}".strip() for row in table.itertuples()] == whole.tolist()


@pytest.mark.official
def test_the_official_files_read_as_the_harness_wants_them():
    table = functions.hellaswag("hellaswag")["validation"].to_pandas()
    assert len(table) == 10_042 and not table[["activity_label", "ctx_a", "ctx_b"]].isna().any().any()
    first = table.iloc[0]
    texts = ["Roof shingle removal", "A man is sitting on a roof.", "he"]
    assert [first.activity_label, first.ctx_a, first.ctx_b] == texts
    parts = functions.mmlu("mmlu", "abstract_algebra")
    assert {split: len(part) for split, part in parts.items()} == {"test": 100, "dev": 5}
    assert {split: len(part) for split, part in functions.gsm8k("gsm8k").items()} == {"train": 7473, "test": 1319}
