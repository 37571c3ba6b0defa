"""GSM8K: models' answers, the calculations in them, labels of errors and the paper's types."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from nblib import artefacts, paths
from nblib.analysis import gsm8k
from nblib.analysis.gsm8k import CATEGORIES, LABELS, UNDECIDED, Gsm8kError, calculations, count_types, coverage
from nblib.corpora import registry
from nblib.results import measurements

# --- answers ----------------------------------------------------------------------------------------------------------


def answers(**columns):
    """Three answers as notebook 11 leaves them."""
    table = {
        "id": ["a", "b", "c"], "question": ["A?", "B?", "C?"], "gold": [f"So.\n#### 1,00{k}" for k in range(3)],
        "response": ["#### 1", "#### 2", "#### 3"], "strict": list("123"), "correct": [True, False, False],
        "correct_flexible": [True, False, True],
    }  # fmt: skip
    return pd.DataFrame({**table, **columns})


def loaded(folder, **columns):
    return gsm8k.load(artefacts.write_table(answers(**columns), folder / "gsm8k_test.parquet"))


def test_answers_have_their_gold_number_and_a_missing_file_says_what_makes_it(tmp_path):
    assert loaded(tmp_path).gold.tolist() == ["1000", "1001", "1002"]
    with pytest.raises(Gsm8kError, match="nblib run 11"):
        gsm8k.load(tmp_path / "scores" / "nobody" / "gsm8k_test.parquet")


def test_the_name_says_which_problems_they_are():
    assert gsm8k.data_of("runs/quick/scores/toy/gsm8k_mini_test.parquet", 60) == "gsm8k_mini"
    assert gsm8k.data_of("gsm8k_test.parquet", 1319) == "gsm8k test"
    assert gsm8k.data_of("gsm8k_test.parquet", 200) == "gsm8k test, 200 of 1,319 problems"


def test_two_models_are_joined_on_the_problems_both_were_asked_and_described(tmp_path):
    base = loaded(tmp_path)
    again = ["again and again it goes\n" * 3] * 2 + ["So."]
    tuned = loaded(tmp_path, response=again, strict=["1", gsm8k.INVALID, "3"], id=["x", "b", "c"])
    joined = gsm8k.join(base, tuned)
    assert joined.id.tolist() == ["b", "c"]
    assert joined.base_solution.tolist() == ["#### 2", "#### 3"] and joined.tuned_solution.tolist() == again[1:]
    described = gsm8k.describe(joined).set_index("answers")
    assert described.loc["base model"].tolist() == [2, 0, 0, 1, 0]
    assert described.loc["tuned model"].tolist() == [2, 0, 1, 1, 1]
    with pytest.raises(Gsm8kError, match="no problem in common"):
        gsm8k.join(base, loaded(tmp_path, question=["What?"] * 3))


def test_errors_are_drawn_by_seed_and_all_where_they_are_few():
    joined = pd.DataFrame({"id": range(200), "tuned_correct": [k % 4 == 0 for k in range(200)]})
    drawn = gsm8k.sample_errors(joined, 100, seed=1)
    assert len(drawn) == 100 and not drawn.tuned_correct.any()
    assert drawn.equals(gsm8k.sample_errors(joined, 100, seed=1))
    assert not drawn.equals(gsm8k.sample_errors(joined, 100, seed=2))
    assert len(gsm8k.sample_errors(joined, 1000)) == 150


@pytest.mark.parametrize(
    "solution, passage",
    [
        ("She has eggs in boxes.\n" * 4 + "#### 9", "she has eggs in boxes"),
        ("That costs 300/120 = 300/120 = 300/120 = 300/12", "300 120"),
        ("She has eggs in boxes.\n" * 2 + "#### 9\n" + "She has eggs in boxes.\n" * 2, ""),
        ("No.\nNo.\nNo.\nNo.", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_passage_that_stands_three_times_is_a_repetition(solution, passage):
    assert gsm8k.repeated_passage(solution) == passage


# --- calculations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "3 * 4 = 12", "So $5 x 2 = $10.", "5×2=10", "6 ÷ 2 = 3", "5 – 3 = 2", "1,000 * 2 = 2,000", "(2+3)*4 = 20", "10/3 = 3.33",
        "2/3 = 0.66", "2/3 = 0.67", "6 / 1/2 = 12", "3 times 4 = 12", r"$5 \times 2 = \$10$", "4 + 4 = 8 = 2 * 4", "3 - 5 = -2",
        "6 * 4 = 8 * 3 = 24", "1. 5 - 3 = 2 eggs", "<<3*4=12>>",
    ],
)  # fmt: skip
def test_right_calculations_are_found_and_hold(text):
    assert calculations(text)
    assert all(found.holds for found in calculations(text))


@pytest.mark.parametrize(
    "text",
    ["3 * 4 = 13", "$5 x 2 = $11", "10/3 = 3", "10/3 = 3.35", "1,000 * 2 = 2,001", "So 5 + 3 = 9 eggs.", "<<3*4=13>>"],
)
def test_wrong_calculations_are_found_out(text):
    assert [found.holds for found in calculations(text)] == [False]


@pytest.mark.parametrize(
    "text",
    [
        "3 hours * 2 + 4 = 11", "20% of 50 + 5 = 16", "10 apples - 4 - 2 = 5", "3 + 2 1/2 = 6", "2 + 3 = 8 apples + 2",
        "2 + 3 = 5 * 2", "6 / 2 = 2 dozen", "twice 5 + 2 = 13", "x + 3 = 5", "7:30 + 5 = 36", "2^2 * 3 = 13", "5/0 = 0",
        "1/4 = 15", "05 + 3 = 9", "8,4 + 1 = 3", "3 + 4 = 8%", "5 = 5", "=", "",
    ],
)  # fmt: skip
def test_what_cannot_be_read_in_full_is_left_alone(text):
    assert calculations(text) == []


def test_a_mark_and_the_calculation_around_it_count_once_and_what_follows_the_answer_not_at_all():
    found = calculations("2*12 = $<<2*12=24>>24\n12*2 = 24\n24 + 1 = 26\n#### 26\n1 + 1 = 3")
    assert [(calculation.text, calculation.holds) for calculation in found] == [
        ("2*12=24", True),
        ("24 + 1 = 26", False),
    ]
    table = gsm8k.check_solutions({"one": ["1 + 1 = <<1+1=2>>2\n2 + 2 = 5", "3 = 3"], "none": []}).set_index(
        "solutions"
    )
    assert table.loc["one"].tolist() == [2, 2, 1, 1]
    assert table.loc["none"].tolist() == [0, 0, 0, 0]


@settings(deadline=None)  # a busy machine must not fail it
@given(st.text(alphabet="0123456789+-*/=().,%$xX of<>½×÷−\\\n", max_size=80))
def test_any_text_is_read_without_an_error(text):
    assert all(found.holds in (True, False) for found in calculations(text))


@pytest.mark.parametrize("text", ["(" * 5000 + "1 = 1", "1 + " * 5000 + "1 = 1", "9" * 5000 + " + 1 = 1", "٣ + ٣ = ٦"])
def test_absurd_texts_cost_no_time(text):
    assert calculations(text) == []


@pytest.mark.official
def test_of_the_official_solutions_every_mark_that_is_read_holds():
    rows = [
        row["answer"]
        for split in ("train", "test")
        for row in registry.read_jsonl(paths.official_data() / "gsm8k" / f"gsm8k_{split}.jsonl.gz")
    ]
    marks = [calculations(f"<<{mark}>>") for row in rows for mark in gsm8k.MARK.findall(row)]
    assert (len(marks), sum(map(bool, marks))) == (27_998, 26_561)
    assert all(found.holds for mark in marks for found in mark)
    whole = gsm8k.check_solutions({"data set": rows}).iloc[0]
    assert (whole.calculations, whole.wrong, whole.texts_with_wrong) == (27_857, 20, 20)


# --- labels -----------------------------------------------------------------------------------------------------------

ERRORS = pd.DataFrame(
    {"id": [f"test-{k}" for k in range(6)], "tuned_solution": [f"{k} + 1 = {k + 2}" for k in range(6)]}
)


def leave(folder, name, *labelled):
    """A label pass: a line for each id, solution and label."""
    lines = [f"{item},{gsm8k.fingerprint(text)},{label},2026-01-01T00:00Z" for item, text, label in labelled]
    (folder / f"gsm8k_{name}.csv").write_text("\n".join(["id,solution,label,minute", *lines]) + "\n")


def test_labels_belong_to_the_labelled_text(tmp_path):
    ours = ("test-0", ERRORS.tuned_solution[0], "repetition")
    leave(tmp_path, "ann_1", ours, ("test-1", "another model's solution", "repetition"))
    leave(tmp_path, "bob_2", ("test-9", "unrelated", "repetition"))
    found = gsm8k.load_labels(tmp_path, ERRORS)
    assert list(found) == ["ann 1"]
    assert found["ann 1"][0] == "repetition" and found["ann 1"][1:].isna().all()
    leave(tmp_path, "ann_1", ("test-0", "", "nonsense"))
    with pytest.raises(Gsm8kError, match="nonsense"):
        gsm8k.load_labels(tmp_path, ERRORS)


def test_the_labels_that_are_here_are_one_for_each_solution():
    files = list((paths.DATA / "gsm8k" / "labels").glob("gsm8k_*_*.csv"))
    assert files
    for file in files:
        table = pd.read_csv(file, dtype=str)
        assert set(table.label) <= set(LABELS) and not table.duplicated(["id", "solution"]).any()
        assert table.solution.str.fullmatch("[0-9a-f]{12}").all()


label = st.sampled_from(LABELS)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(label, label), min_size=2, max_size=30))
def test_kappa_is_scikit_learns(pairs):
    first, second = zip(*pairs, strict=True)
    row = gsm8k.agreement(pd.DataFrame({"a": first, "b": second})).iloc[0]
    assert (row.n, row.agree) == (len(pairs), sum(one == other for one, other in pairs))
    if len({*first, *second}) > 1:
        assert row.kappa == pytest.approx(cohen_kappa_score(first, second))
    else:
        assert pd.isna(row.kappa)


def test_agreement_counts_the_items_both_labelled_and_its_interval_holds_kappa():
    table = pd.DataFrame(
        {
            "ann 1": ["repetition", "hallucination", UNDECIDED, UNDECIDED, "repetition", "hallucination"] * 5,
            "ann 2": ["repetition", "hallucination", "repetition", UNDECIDED, "repetition", None] * 5,
        }
    )
    found = gsm8k.agreement(table).set_index("items")
    assert found.loc["all", ["n", "agree"]].tolist() == [25, 20]
    assert found.loc["decided", ["n", "agree"]].tolist() == [15, 15]
    assert found.kappa["decided"] == 1
    assert found.low["all"] < found.kappa["all"] < found.high["all"]
    assert gsm8k.agreement(table[["ann 1"]]).empty
    nothing = gsm8k.agreement(table.assign(**{"ann 2": None}))
    assert nothing.n.tolist() == [0, 0] and nothing.kappa.isna().all()


# --- the types of error -----------------------------------------------------------------------------------------------


def count(labels):
    """One pass."""
    return count_types(pd.DataFrame({"ann 1": labels}), pd.Series([True, False] * 50)).set_index("category")


def test_the_papers_eight_types_are_the_categories_each_with_an_example():
    table = gsm8k.paper_types()
    assert set(table.category) == set(CATEGORIES) and set(table.type) == set(CATEGORIES.values())
    assert table.notna().all(axis=None)
    assert table.percent.sum() == 100


def test_no_share_below_thirty_errors():
    labels = ["hallucination"] * 20 + [UNDECIDED] * 9
    few = count(labels)
    assert few[["share", "low", "high"]].isna().all(axis=None)
    assert few.errors["hallucination"] == 20
    assert coverage(pd.Series(labels)) == "20 of 29 errors decided"
    labels = ["hallucination"] * 15 + [UNDECIDED] * 15
    many = count(labels)
    assert many.share["hallucination"] == 50
    assert many.low["hallucination"] < 50 < many.high["hallucination"]
    assert many.errors.sum() == 30
    assert many.share["repetition"] == 0 < many.high["repetition"]
    assert coverage(pd.Series(labels)) == "15 of 30 errors decided (50 %)"


def test_types_are_counted_by_pass_with_what_the_base_model_solved():
    labels = pd.DataFrame({"ann 1": ["repetition", "repetition", UNDECIDED], "ann 2": ["repetition", None, None]})
    table = count_types(labels, pd.Series([True, False, True])).set_index(["labelled_by", "category"])
    assert len(table) == 2 * len(LABELS)
    assert table.loc[("ann 1", "repetition"), ["errors", "base_right"]].tolist() == [2, 1]
    assert table.loc[("ann 1", UNDECIDED), ["errors", "base_right"]].tolist() == [1, 1]
    assert table.errors["ann 2"].sum() == 1


def test_published_shares_stand_beside_even_without_labels():
    table = count_types(pd.DataFrame(), pd.Series(dtype=bool)).set_index("category")
    assert table.published["wrong calculation"] == 20
    assert table.published.drop(UNDECIDED).sum() == 100
    assert table.errors.sum() == 0 and table.share.isna().all()


def test_results_have_shares_only_from_thirty_errors_on():
    about = {"scale": "lab", "data": "gsm8k_mini", "trained_on": "20 pairs"}
    assert gsm8k.result_rows(pd.Series([UNDECIDED] * 29), "ann 1", "toy", **about) == []
    rows = gsm8k.result_rows(pd.Series(["repetition"] * 10 + [UNDECIDED] * 30), "ann 1", "toy", **about)
    table = measurements.validate(pd.DataFrame(rows), "here").set_index("metric")
    assert len(table) == 8
    row = table.loc["share_repetition"]
    assert (row.value, row.n, row.benchmark, row.trained_on) == (25, 40, "GSM8K errors", "20 pairs")
    assert (row.ci_low, row.ci_high) == pytest.approx([100 * bound for bound in (0.1419, 0.4019)], abs=0.01), "Wilson's"
    assert row.system == "toy, errors labelled by ann 1"
