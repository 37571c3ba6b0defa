"""GSM8K: models' answers, the calculations in them, labels of errors and the paper's types."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from nblib import artefacts, corpora, paths
from nblib.analysis import gsm8k
from nblib.analysis.gsm8k import CATEGORIES, LABELS, UNDECIDED, calculations, count_types
from nblib.corpora import files
from nblib.errors import StudyError


def leave_answers(file, **columns):
    """Three answers as notebook 11 leaves them."""
    table = pd.DataFrame({"id": ["0", "1", "2"]}).assign(
        response=["#### 1", "#### 2", "#### 3"], strict=list("123"), correct=[True, False, False]
    )
    return artefacts.write_table(table.assign(correct_flexible=[True, False, True], **columns), file)


def test_two_models_are_joined_on_the_problems_both_were_asked(tmp_path):
    base = leave_answers(tmp_path / "gsm8k_mini_test.parquet")
    tuned = leave_answers(tmp_path / "tuned" / "gsm8k_mini_test.parquet", response=list("xyz"), id=["7", "1", "2"])
    joined = gsm8k.load(base, tuned)
    assert joined.id.tolist() == ["1", "2"]
    assert joined.question.tolist() == corpora.load("gsm8k_mini", "test").question[1:3].tolist()
    assert joined.base_response.tolist() == ["#### 2", "#### 3"] and joined.tuned_response.tolist() == ["y", "z"]
    with pytest.raises(StudyError, match="no problem in common"):
        gsm8k.load(base, leave_answers(tmp_path / "other" / "gsm8k_mini_test.parquet", id=list("789")))
    with pytest.raises(StudyError, match="nblib run 11"):
        gsm8k.load(base, tmp_path / "scores" / "nobody" / "gsm8k_test.parquet")


def test_a_passage_that_stands_three_times_is_a_repetition():
    eggs = "She has eggs in boxes.\n"
    assert gsm8k.repeats(eggs * 4 + "#### 9")
    assert gsm8k.repeats("That costs 300/120 = 300/120 = 300/120 = 300/12")
    assert not any(map(gsm8k.repeats, [eggs * 2 + "#### 9\n" + eggs * 2, "No.\nNo.\nNo.\nNo.", ""]))


RIGHT = r"""3 * 4 = 12; So $5 x 2 = $10.; 5×2=10; 6 ÷ 2 = 3; 5 – 3 = 2; 1,000 * 2 = 2,000; (2+3)*4 = 20; 10/3 = 3.33; 2/3 = 0.66;
2/3 = 0.67; 6 / 1/2 = 12; 3 times 4 = 12; $5 \times 2 = \$10$; 4 + 4 = 8 = 2 * 4; 3 - 5 = -2; 6 * 4 = 8 * 3 = 24;
1. 5 - 3 = 2 eggs; <<3*4=12>>"""
WRONG = "3 * 4 = 13; $5 x 2 = $11; 10/3 = 3; 10/3 = 3.35; 1,000 * 2 = 2,001; So 5 + 3 = 9 eggs.; <<3*4=13>>"
UNREAD = """3 hours * 2 + 4 = 11; 20% of 50 + 5 = 16; 10 apples - 4 - 2 = 5; 3 + 2 1/2 = 6; 2 + 3 = 8 apples + 2; 2 + 3 = 5 * 2;
6 / 2 = 2 dozen; twice 5 + 2 = 13; x + 3 = 5; 7:30 + 5 = 36; 2^2 * 3 = 13; 5/0 = 0; 1/4 = 15; 05 + 3 = 9; 8,4 + 1 = 3; 3 + 4 = 8%;
5 = 5; =; """


@pytest.mark.parametrize(
    "texts, expected", [(RIGHT, {True}), (WRONG, {False}), (UNREAD, set())], ids=["right", "wrong", "unread"]
)
def test_calculations_are_read_in_full_or_left_alone(texts, expected):
    found = {text: {one.holds for one in calculations(text)} for text in texts.replace("\n", " ").split("; ")}
    assert found == dict.fromkeys(found, expected)


def test_a_mark_and_the_calculation_around_it_count_once_and_what_follows_the_answer_not_at_all():
    found = calculations("2*12 = $<<2*12=24>>24\n12*2 = 24\n24 + 1 = 26\n#### 26\n1 + 1 = 3")
    assert found == [("2*12=24", True), ("24 + 1 = 26", False)]
    table = gsm8k.check_solutions({"one": ["1 + 1 = <<1+1=2>>2\n2 + 2 = 5", "3 = 3"], "none": []})
    assert table.to_numpy().tolist() == [["one", 2, 2, 1, 1], ["none", 0, 0, 0, 0]]


@settings(deadline=None)  # a busy machine must not fail it
@given(st.text(alphabet="0123456789+-*/=().,%$xX of<>½×÷−\\\n", max_size=80))
def test_any_text_is_read_without_an_error(text):
    assert all(found.holds in (True, False) for found in calculations(text))


@pytest.mark.official
def test_of_the_official_solutions_every_mark_that_is_read_holds():
    splits = (paths.official_data() / "gsm8k" / f"gsm8k_{split}.jsonl.gz" for split in ("train", "test"))
    rows = [row["answer"] for split in splits for row in files.read(split).values()]
    marks = [calculations(f"<<{mark}>>") for row in rows for mark in gsm8k.MARK.findall(row)]
    assert (len(marks), sum(map(bool, marks))) == (27_998, 26_561)
    assert all(found.holds for mark in marks for found in mark)
    whole = gsm8k.check_solutions({"data set": rows}).iloc[0]
    assert (whole.calculations, whole.wrong, whole.texts_with_wrong) == (27_857, 20, 20)


ERRORS = pd.DataFrame([{"id": f"test-{k}", "tuned_response": f"{k} + 1 = {k + 2}"} for k in range(6)])


def leave(folder, name, *labelled):
    """A label pass: a line for each id, solution and label."""
    lines = [f"{item},{gsm8k.fingerprint(text)},{label},2026-01-01T00:00Z" for item, text, label in labelled]
    (folder / f"gsm8k_{name}.csv").write_text("\n".join(["id,solution,label,minute", *lines]) + "\n")


def test_labels_belong_to_the_labelled_text(tmp_path):
    ours = ("test-0", ERRORS.tuned_response[0], "repetition")
    leave(tmp_path, "ann_1", ours, ("test-1", "another model's solution", "repetition"))
    leave(tmp_path, "bob_2", ("test-9", "unrelated", "repetition"))
    found = gsm8k.load_labels(tmp_path, ERRORS)
    assert list(found) == ["ann 1"]
    assert found["ann 1"][0] == "repetition" and found["ann 1"][1:].isna().all()
    leave(tmp_path, "ann_1", ("test-0", "", "nonsense"))
    with pytest.raises(StudyError, match=r"label \(.*gsm8k_ann_1.csv, line 2\) called 'nonsense'"):
        gsm8k.load_labels(tmp_path, ERRORS)
    leave(tmp_path, "ann_1", ours, ours)
    with pytest.raises(StudyError, match=r"gsm8k_ann_1.csv, line 3 repeats"):
        gsm8k.load_labels(tmp_path, ERRORS)
    leave(tmp_path, "mine", ours)
    for folder, what in ((tmp_path, "gsm8k_mine.csv must be called"), (tmp_path / "other", "no folder .*other")):
        (tmp_path / "gsm8k_ann_1.csv").unlink(missing_ok=True)
        with pytest.raises(StudyError, match=what):
            gsm8k.load_labels(folder, ERRORS)


def test_agreement_counts_the_items_both_labelled_and_its_kappa_is_scikit_learns():
    first = ["repetition", "hallucination", UNDECIDED, UNDECIDED, "repetition", "hallucination"] * 5
    second = ["repetition", "hallucination", "repetition", UNDECIDED, "repetition", None] * 5
    table = pd.DataFrame({"ann 1": first, "ann 2": second})
    found = gsm8k.agreement(table).set_index("items")
    assert found.loc["all", ["n", "agree"]].tolist() == [25, 20]
    assert found.loc["decided", ["n", "agree"]].tolist() == [15, 15]
    assert found.kappa["all"] == pytest.approx(cohen_kappa_score(*table.dropna().to_numpy().T))
    assert found.kappa["decided"] == 1
    assert found.low["all"] < found.kappa["all"] < found.high["all"]
    assert gsm8k.agreement(table[["ann 1"]]).empty
    for labels, n in ((None, 0), ("repetition", 30)):  # of nothing, and of one type alone, there is no κ
        row = gsm8k.agreement(table.assign(**{"ann 1": "repetition", "ann 2": labels})).iloc[0]
        assert row.n == n and pd.isna(row.kappa)


def count(labels):
    return count_types(pd.DataFrame({"ann 1": labels})).set_index("category")


def test_the_papers_eight_types_are_the_categories_each_with_an_example():
    table = gsm8k.paper_types()
    assert set(table.category) == set(CATEGORIES) and set(table.type) == set(CATEGORIES.values())
    assert table.notna().all(axis=None) and table.percent.sum() == 100 and not table.example.str.contains(r"\\").any()
    assert table.example[1].startswith("The doll cost as much as 3 action figures, so the doll costs 3 × $5 = $15 .")


def test_types_are_counted_by_pass_and_no_share_is_given_below_thirty_errors():
    few = count(["hallucination"] * 20 + [UNDECIDED] * 9)
    assert few[["share", "low", "high"]].isna().all(axis=None) and few.errors["hallucination"] == 20
    many = count(["hallucination"] * 15 + [UNDECIDED] * 15)
    assert many.low["hallucination"] < many.share["hallucination"] == 50 < many.high["hallucination"]
    assert many.errors.sum() == 30 and set(many.n) == {30}
    assert many.metric["repetition"] == "share_repetition" and many.metric[UNDECIDED] == ""
    assert many.share["repetition"] == 0 < many.high["repetition"]
    passes = pd.DataFrame({"ann 1": ["repetition"] * 2, "ann 2": ["repetition", None]})
    errors = count_types(passes).set_index(["labelled_by", "category"]).errors
    assert (len(errors), errors["ann 1", "repetition"], errors["ann 2"].sum()) == (2 * len(LABELS), 2, 1)
