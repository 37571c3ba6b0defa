"""The lm-eval tasks' functions: documents, prompts, what an answer is worth; and that the YAML files load."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nblib import corpora, paths
from nblib.benchmarks.llm import functions


def documents(maker, **options):
    return maker(**options)["test"].to_pandas()


# --- rankings ---------------------------------------------------------------------------------------------------------


def test_every_question_is_asked_in_both_orders():
    table, source = documents(functions.ranking, source="nevir_mini"), corpora.load("nevir_mini").set_index("id")
    assert len(table) == 4 * len(source)
    given_order = table[table.order == "given"]
    assert (given_order["first"] == source.doc1.loc[given_order.id].to_numpy()).all()
    assert (given_order["second"] == source.doc2.loc[given_order.id].to_numpy()).all()
    wanted = table.apply(lambda row: row["second"] if row.target else row["first"], axis=1)
    right = np.where(table.question == "q1", source.doc1.loc[table.id], source.doc2.loc[table.id])
    assert (wanted == right).all()
    assert (
        table.groupby("id").target.sum() == 2
    ).all()  # whoever always says the same gets half the prompts, and no item


def test_excluirs_wanted_document_comes_first_once_and_second_once():
    table = documents(functions.ranking, source="excluir_mini")
    assert table.groupby("order").target.unique().explode().to_dict() == {"given": 0, "swapped": 1}


def test_the_prompt_is_the_papers():
    document = {"first": "One.", "second": "Two.", "query": "which?"}
    assert functions.ranking_prompt(document) == (
        "Document 1: One.\nDocument 2: Two.\nQuery: which?\n\nWhich document is more relevant to the query? Please choose 1 or 2."
        "\nAnswer:"
    )
    asked = functions.similarity_prompt({"sentence1": "A.", "sentence2": "B."})
    assert asked.endswith("from -1.0 to 1.0, and can be a decimal.\nS1: A.\nS2: B.\nScore:")


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 99), st.integers(0, 5))
def test_a_sample_is_of_whole_items_and_by_seed(limit, seed):
    table = documents(functions.ranking, source="nevir_mini", limit=limit, seed=seed)
    assert table.id.nunique() == limit and (table.id.value_counts() == 4).all()
    pd.testing.assert_frame_equal(table, documents(functions.ranking, source="nevir_mini", limit=limit, seed=seed))


# --- similarities -----------------------------------------------------------------------------------------------------


@given(
    st.floats(-1, 1),
    st.sampled_from(["", " ", "Score: ", "**", "\t"]),
    st.sampled_from(["", ".", "\nS1: 3", " (7 of 10)"]),
)
def test_a_score_on_the_scale_is_read_wherever_it_stands(value, before, after):
    assert functions.parse_score(f"{before}{value:.4f}{after}") == pytest.approx(round(value, 4))


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("-0.5", -0.5), ("− 0.5", -0.5), ("–1", -1.0), ("+1.0", 1.0), (".25", 0.25), ("0,5", 0.5), ("1.", 1.0), ("0", 0.0),
        ("", None), ("none", None), ("10", None), ("7.5", None), ("-3", None), ("similar", None),
    ],
)  # fmt: skip
def test_what_is_a_score_and_what_is_not(answer, value):
    assert functions.parse_score(answer) == value


def test_an_unparsable_answer_counts_as_the_middle_and_is_counted():
    assert functions.similarity_results({"score": 0.7}, ["well"]) == {"spearman": (0.7, 0.0), "unparsable": 1.0}
    assert functions.similarity_results({"score": 0.7}, [" 1.0"]) == {"spearman": (0.7, 1.0), "unparsable": 0.0}
    assert functions.spearman([(1, 0.2), (2, 0.4), (3, 0.9)]) == pytest.approx(1.0)
    assert functions.spearman([(1, 0.9), (2, 0.4), (3, 0.2)]) == pytest.approx(-1.0)


# --- choices ----------------------------------------------------------------------------------------------------------


def test_options_are_shuffled_by_seed_and_the_target_goes_with_its_text():
    table, source = documents(functions.choice, source="semantoneg_mini", seed=3), corpora.load("semantoneg_mini")
    right = [row.sentences[row.label] for row in source.itertuples()]
    assert [row.options[row.target] for row in table.itertuples()] == right
    assert [sorted(row) for row in table.options] == [sorted(row) for row in source.sentences]
    shares = table.target.value_counts(normalize=True)
    assert len(shares) == 3 and shares.between(0.2, 0.47).all()
    assert documents(functions.choice, source="semantoneg_mini", seed=3).target.tolist() == table.target.tolist()
    assert documents(functions.choice, source="semantoneg_mini", seed=4).target.tolist() != table.target.tolist()


def test_a_sample_keeps_each_items_order_of_options():
    whole = documents(functions.choice, source="semantoneg_mini").set_index("id").target
    part = documents(functions.choice, source="semantoneg_mini", limit=20).set_index("id").target
    assert len(part) == 20 and (whole.loc[part.index] == part).all()


def test_the_options_are_numbered():
    text = functions.choice_prompt({"query": "It is hot.", "options": ["cold", "warm", "not hot"]})
    assert text.startswith("Sentence: It is hot.\n1. cold\n2. warm\n3. not hot\n\n") and text.endswith("\nAnswer:")


# --- the harness's tasks ----------------------------------------------------------------------------------------------


def test_mmlus_examples_are_not_asked():
    parts = functions.mmlu("mmlu_mini", "world_history")
    asked, shown = (set(parts[split]["question"]) for split in ("test", "dev"))
    assert (len(shown), len(asked), asked & shown) == (5, 8, set())
    assert set(parts["test"]["subject"]) == {"world_history"}


def test_hellaswags_unfinished_sentence_is_parted_from_its_context():
    table = functions.hellaswag("hellaswag_mini")["validation"].to_pandas()
    first = table.iloc[0]
    assert (first.activity_label, first.ctx_b) == ("Juggling", "While it is in the air, he")
    assert first.ctx_a.endswith("He tosses up the first orange.")
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


def test_every_yaml_is_shipped_and_loads():
    from nblib.benchmarks.llm.harness import OURS, OWN_KINDS, _manager

    files = {file.stem for file in OURS.glob("*.yaml")}
    assert files == {f"llm_{kind}" for kind in OWN_KINDS} <= set(_manager().all_subtasks)
    assert {"hellaswag", "gsm8k", "mmlu_high_school_statistics"} <= set(_manager().all_subtasks)
    assert len([name for name in _manager().all_subtasks if name.startswith("mmlu_")]) == 57
    shipped = (paths.PROJECT_ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '"nblib.benchmarks.llm" = ["*.yaml"]' in shipped
