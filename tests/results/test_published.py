"""The papers' printed numbers: all there, none lost in reading, averages that add up."""

import math

import numpy as np
import pytest

from nblib import paths
from nblib.results import published

EXHIBITS = {
    "truong": [f"Figure {n}" for n in (1, 2, 3, 4)]
    + [f"Table {n}" for n in (1, 2, 3, 4, 5)]
    + ["Synthesis", "Contamination"],
    "cao": [f"Figure {n}" for n in (1, 2, 3)] + [f"Table {n}" for n in (1, 2, 3, 4)],
    "vahtola": [f"Table {n}" for n in (1, 3, 4, 5, 6, 7, 8)] + ["Figure 1", "Figure 2", "Error analysis"],
    "weller": ["Table 1", "Table 2"] + [f"Figure {n}" for n in (3, 4, 5, 7, 8, 9, 10, 11)],
}


@pytest.mark.parametrize("paper", published.PAPERS)
def test_a_papers_numbers_load_with_numbers_as_floats_and_texts_as_texts(paper):
    table = published.load(paper)
    assert list(table.columns) == [
        "paper", "exhibit", "system", "benchmark", "metric", "value", "std", "unit", "note", "printed"
    ]  # fmt: skip
    assert (table.paper == paper).all()
    assert table.value.dtype == table["std"].dtype == float
    assert table[["exhibit", "system", "benchmark", "metric", "unit", "note"]].notna().all(axis=None)
    assert (table.metric != "").all()
    numbers = table[table.value.notna()]
    assert (numbers.printed.astype(float) == numbers.value).all()


def test_every_cell_of_the_tables_is_a_number_or_one_line_of_text():
    numbers = {"value", "std", "score", "parameters", "percent"}
    words = {"None", "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj"}  # Truong's Table 4
    for file in (paths.DATA / "published").glob("*.csv"):
        table = published.read(file.name)
        assert len(table) and table.map(str.isprintable).all(axis=None), file
        for column in numbers & {*table.columns}:
            right = table[column].str.fullmatch(r"[+-]?\d+(\.\d+)?(e-?\d+)?") | table[column].isin({"", *words})
            assert right.all(), f"{file}, {column}: {table[column][~right].tolist()}"


def test_a_printed_number_keeps_its_digits():
    table = published.load("truong")
    assert "16.20" in set(table.printed), "of 16.2 one couldn't tell to how many digits it was rounded"


def test_hyperparameters_that_are_the_word_none_survive():
    table = published.load("truong")
    words = table[table.metric.isin(["lora_target_modules", "lora_bias"])]
    assert len(words) == 2
    assert words.value.isna().all()
    assert words.drop(columns=["value", "std"]).notna().all(axis=None)
    assert words.note.str.contains("None").all() or (words.unit != "").all()


def test_numbers_the_study_leans_on_read_as_printed():
    assert published.value("cao", "Table 1", "all-mpnet-base-v2", "pearson") == 86.37
    assert published.value("cao", "Table 1", "all-mpnet-base-v2", "accuracy") == 71.45
    assert published.value("vahtola", "Table 3", "all-mpnet-base-v2", "accuracy") == 31.9
    assert published.value_or_nan("vahtola", "Table 3", "no such system", "accuracy") is math.nan


def test_numbers_by_metric_and_their_spreads_are_in_the_order_asked_for():
    where = ("cao", "Table 3", "all-mpnet-base-v2", ["accuracy_w_anto_200", "no such metric", "accuracy"])
    np.testing.assert_equal(published.values(*where), [45.22, math.nan, 32.1])
    np.testing.assert_equal(published.values(*where, "std"), [0.99, math.nan, 0.52])
    np.testing.assert_equal(published.values("cao", "Table 3", "no such system", ["accuracy"]), [math.nan])


def test_a_number_that_is_not_printed_is_a_key_error_that_says_which():
    with pytest.raises(KeyError, match="no such system"):
        published.value("cao", "Table 1", "no such system", "accuracy")
    with pytest.raises(ValueError, match=r"'smith'.*truong, cao, vahtola, weller"):
        published.load("smith")


def test_a_description_that_fits_several_numbers_is_a_key_error():
    with pytest.raises(KeyError, match="numbers"):
        published.value("truong", "Table 1", "MPNet", "score")


def test_caos_averages_are_the_means_of_their_rows():
    table = published.averages("cao")
    assert set(table.exhibit) == {"Table 1", "Table 2", "Table 3", "Table 4"}
    assert (table.groupby("exhibit").size() >= 2).all()
    off = table[(table.printed - table.recomputed).abs() > 0.011]
    assert off.empty, off.to_string()


def test_an_average_over_a_system_that_is_not_printed_is_refused():
    with pytest.raises(KeyError, match="nothing printed for absent"):
        published.recomputed_average("cao", "Table 1", {"all-mpnet-base-v2", "absent"}, "accuracy")


@pytest.mark.parametrize("paper", published.PAPERS)
def test_a_score_has_one_row_in_the_listed_exhibits(paper):
    table = published.load(paper)
    scores = table[table.exhibit.isin(EXHIBITS[paper]) & table.unit.isin(["percent", "cosine", "pairs", "words"])]
    repeated = scores[scores.duplicated(["exhibit", "system", "benchmark", "metric"], keep=False)]
    assert len(scores)
    assert repeated.empty, repeated.to_string()


def test_the_list_of_exhibits_is_the_38_the_study_answers_for():
    table = published.exhibits()
    wanted = {(paper, exhibit) for paper, names in EXHIBITS.items() for exhibit in names}
    assert len(wanted) == 38
    assert set(zip(table.paper, table.exhibit, strict=True)) == wanted
    assert len(table) == 38
    assert table.notebook.str.fullmatch(r"\d\d").all()
    assert (table.title != "").all()


def test_a_model_is_called_what_the_paper_calls_it():
    assert published.system_name("truong", "all-mpnet-base-v2") == "MPNet"
    assert published.system_name("cao", "all-mpnet-base-v2") == "all-mpnet-base-v2"


def test_a_papers_system_has_the_registrys_names():
    assert published.models_named("truong", "MPNet") == ["all-mpnet-base-v2"]
    assert published.models_named("cao", "all-mpnet-base-v2") == ["all-mpnet-base-v2"]
    assert published.models_named("weller", "TF-IDF") == ["TF-IDF"]
    for paper, model in published.SYSTEM_NAMES:
        assert model in published.models_named(paper, published.system_name(paper, model))
