"""The papers' printed numbers: all there, none lost in reading, averages that add up."""

import math

import pandas as pd
import pytest

from nblib.results import published

EXHIBITS = {
    "truong": "Figure 1,Figure 2,Figure 3,Figure 4,Table 1,Table 2,Table 3,Table 4,Table 5,Synthesis,Contamination",
    "cao": "Figure 1,Figure 2,Figure 3,Table 1,Table 2,Table 3,Table 4",
    "vahtola": "Table 1,Table 3,Table 4,Table 5,Table 6,Table 7,Table 8,Figure 1,Figure 2,Error analysis",
    "weller": "Table 1,Table 2,Figure 3,Figure 4,Figure 5,Figure 7,Figure 8,Figure 9,Figure 10,Figure 11",
}


@pytest.mark.parametrize("paper", published.PAPERS)
def test_a_papers_numbers_load_with_numbers_as_floats_and_a_score_has_one_row_in_the_listed_exhibits(paper):
    table = published.load(paper)
    assert (table.paper == paper).all() and (table.metric != "").all()
    assert table.value.dtype == table["std"].dtype == float
    assert table[["exhibit", "system", "benchmark", "metric", "unit", "note"]].notna().all(axis=None)
    numbers = table[table.value.notna()]
    assert (numbers.printed.astype(float) == numbers.value).all()
    scores = table.unit.isin(["percent", "cosine", "pairs", "words"]) & table.exhibit.isin(EXHIBITS[paper].split(","))
    repeated = table[scores][table[scores].duplicated(["exhibit", "system", "benchmark", "metric"], keep=False)]
    assert scores.any() and repeated.empty, repeated.to_string()


def test_every_cell_of_the_tables_is_a_number_or_one_line_of_text():
    words = {"None", "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj"}  # Truong's Table 4
    for file in published.FOLDER.glob("*.csv"):
        table = published.read(file.name)
        assert len(table) and table.map(str.isprintable).all(axis=None), file
        for column in {"value", "std", "score", "parameters", "percent"} & {*table.columns}:
            right = table[column].str.fullmatch(r"[+-]?\d+(\.\d+)?(e-?\d+)?") | table[column].isin({"", *words})
            assert right.all(), f"{file}, {column}: {table[column][~right].tolist()}"


def test_a_number_keeps_its_digits_and_a_word_its_text():
    table = published.load("truong")
    assert "16.20" in set(table.printed), "of 16.2 one couldn't tell to how many digits it was rounded"
    words = table[table.metric.isin(["lora_target_modules", "lora_bias"])]
    assert len(words) == 2 and words.value.isna().all()
    assert words.drop(columns=["value", "std"]).notna().all(axis=None)


def test_numbers_the_study_leans_on_read_as_printed():
    mpnet = {"system": "all-mpnet-base-v2"}
    assert published.printed("cao", "Table 1", **mpnet, metric="pearson") == 86.37
    assert published.printed("vahtola", "Table 3", **mpnet, metric="accuracy") == 31.9
    assert published.printed("cao", "Table 3", "std", **mpnet, metric="accuracy_w_anto_200") == 0.99
    assert math.isnan(published.printed("vahtola", "Table 3", system="no such system", metric="accuracy"))
    with pytest.raises(KeyError, match="numbers"):
        published.printed("truong", "Table 1", system="MPNet")


def test_caos_averages_are_the_means_of_their_rows():
    table = published.averages()
    assert (table.groupby("exhibit").size() >= 2).all() and table.exhibit.nunique() == 4
    assert ((table.printed - table.recomputed).abs() <= 0.011).all()


def test_the_list_of_exhibits_is_the_38_the_study_answers_for():
    table = published.exhibits()
    wanted = sorted((paper, exhibit) for paper, names in EXHIBITS.items() for exhibit in names.split(","))
    assert len(wanted) == 38 and sorted(zip(table.paper, table.exhibit, strict=True)) == wanted
    assert table.notebook.str.fullmatch(r"\d\d").all() and (table.title != "").all()


def test_a_papers_system_and_our_model_name_each_other():
    assert published.system_name("truong", "all-mpnet-base-v2") == "MPNet"
    assert published.system_name("cao", "all-mpnet-base-v2") == "all-mpnet-base-v2"
    assert published.models_named("weller", "TF-IDF") == ["TF-IDF"]
    for paper, model in published.system_names():
        assert model in published.models_named(paper, published.system_name(paper, model))


def test_mtebs_file_has_one_score_a_model_and_task_and_a_bare_name_is_sentence_transformers_model_first():
    table = published.mteb()
    assert not table.duplicated(["model", "task"]).any() and table.notna().all(axis=None)
    assert set(table.source) == {"run", "restored", "self-reported"}
    assert (table.groupby("model").parameters.nunique() == 1).all() and (table.parameters > 0).all()
    assert table.score.between(-10, 100).all()
    assert published.mteb_scores("all-MiniLM-L6-v2")["STS12"] == pytest.approx(72.369, abs=1e-3)
    assert published.mteb_model("all-mpnet-base-v2") == "sentence-transformers/all-mpnet-base-v2"
    assert published.mteb_model("hedge-mpnet") is None and published.mteb_scores("hedge-mpnet").empty


def test_averages_are_over_the_same_tasks_for_every_model(monkeypatch):
    rows = [("a/x", "STS12", 80.0, "run"), ("a/x", "STS13", 60.0, "self-reported"), ("a/y", "STS12", 90.0, "run")]
    table = pd.DataFrame(rows, columns=["model", "task", "score", "source"]).assign(parameters=22.7, revision="r")
    monkeypatch.setattr(published, "mteb", lambda: table)
    (both,) = published.mteb_averages(["STS12", "STS13"]).itertuples()
    assert (both.model, both.value, both.self_reported) == ("a/x", 70, 1)
    assert published.mteb_averages(["STS12"]).model.tolist() == ["a/y", "a/x"]


def test_nevirs_scores_name_their_source_and_kind():
    table = published.nevir()
    assert table.source.ne("").all() and not table.system.duplicated().any()
    assert set(table.kind) == {"Sparse", "Bi-Encoders", "Late Interaction", "Cross-Encoders"}
    by_system = table.set_index("system")
    assert by_system.value["all-mpnet-base-v2"] == 8.1 and by_system.parameters["MonoT5 3B"] == 2850
