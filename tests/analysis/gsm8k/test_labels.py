"""Labels and their agreement."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from nblib.analysis.gsm8k import labels
from nblib.analysis.gsm8k.errors import LABELS, UNDECIDED
from nblib.analysis.gsm8k.labels import LabelError

ERRORS = pd.DataFrame(
    {"id": [f"test-{k}" for k in range(6)], "tuned_solution": [f"{k} + 1 = {k + 2}\n#### {k + 2}" for k in range(6)]}
)


def leave(folder, name, *labelled):
    """A label pass: a line for each id, solution and label."""
    lines = [f"{item},{labels.fingerprint(text)},{label},2026-01-01T00:00Z" for item, text, label in labelled]
    (folder / f"gsm8k_{name}.csv").write_text("\n".join(["id,solution,label,minute", *lines]) + "\n")


def test_labels_belong_to_the_labelled_text(tmp_path):
    ours = ("test-0", ERRORS.tuned_solution[0], "repetition")
    leave(tmp_path, "ann_1", ours, ("test-1", "another model's solution", "repetition"))
    leave(tmp_path, "bob_2", ("test-9", "unrelated", "repetition"))
    found = labels.load(tmp_path, ERRORS)
    assert list(found) == ["ann 1"]
    assert found["ann 1"][0] == "repetition" and found["ann 1"][1:].isna().all()


@pytest.mark.parametrize(
    "text, fault",
    [
        ("id,label\na,repetition\n", "no column solution, minute"),
        ("id,solution,label,minute\na,x,nonsense,\n", "unknown label 'nonsense'"),
        ("id,solution,label,minute\na,x,repetition,\na,x,hallucination,\n", "a is labelled twice"),
    ],
)
def test_files_that_cannot_be_used_are_refused(tmp_path, text, fault):
    file = tmp_path / "gsm8k_ann_1.csv"
    file.write_text(text)
    with pytest.raises(LabelError, match=fault):
        labels.load(tmp_path, ERRORS)


def test_the_name_of_a_file_says_who_labelled(tmp_path):
    (tmp_path / "gsm8k_notes.csv").write_text("")
    with pytest.raises(LabelError, match="the annotator is unknown"):
        labels.load(tmp_path, ERRORS)


# --- agreement --------------------------------------------------------------------------------------------------------

label = st.sampled_from(LABELS)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(label, label), min_size=2, max_size=30))
def test_kappa_is_scikit_learns(pairs):
    first, second = zip(*pairs, strict=True)
    row = labels.agreement(pd.DataFrame({"a": first, "b": second})).iloc[0]
    assert row.n == len(pairs)
    assert row.agree == sum(one == other for one, other in pairs)
    if len({*first, *second}) > 1:
        assert row.kappa == pytest.approx(cohen_kappa_score(first, second))
        table = confusion_matrix(first, second, labels=LABELS)
        assert labels._kappas(table[None])[0] == pytest.approx(row.kappa)
    else:
        assert pd.isna(row.kappa)


def test_agreement_of_three_counts_the_items_both_labelled():
    table = pd.DataFrame(
        {
            "judge": ["repetition", "hallucination", UNDECIDED, UNDECIDED, "repetition", "hallucination"] * 5,
            "ann 1": ["repetition", "hallucination", "repetition", UNDECIDED, "repetition", None] * 5,
            "ann 2": ["repetition", "repetition", "repetition", UNDECIDED, "repetition", None] * 5,
        }
    )
    found = labels.agreement(table)
    assert len(found) == 6
    by_judge = found[(found["first"] == "judge") & (found.second == "ann 1")].set_index("items")
    assert by_judge.loc["all", ["n", "agree"]].tolist() == [25, 20]
    assert by_judge.loc["decided", ["n", "agree"]].tolist() == [15, 15]
    assert by_judge.kappa["decided"] == 1
    assert by_judge.low["all"] <= by_judge.kappa["all"] <= by_judge.high["all"]


def test_nobody_to_agree_with_gives_an_empty_table():
    assert labels.agreement(pd.DataFrame({"judge": ["repetition"]})).empty
    nothing = labels.agreement(pd.DataFrame({"judge": ["repetition"], "ann 1": [None]}))
    assert nothing.n.tolist() == [0, 0] and nothing.kappa.isna().all()
