"""Labels, agreement, the side-by-side view and the panel."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from nblib.analysis.gsm8k import labels
from nblib.analysis.gsm8k.errors import LABELS, UNDECIDED
from nblib.analysis.gsm8k.labels import LabelError
from nblib.analysis.gsm8k.panel import Panel, first_difference, side_by_side
from nblib.results.report import markup

ERRORS = pd.DataFrame(
    {
        "id": [f"test-{k}" for k in range(6)], "question": [f"What is <b>{k}</b> + 1?" for k in range(6)],
        "reference": [f"{k} + 1 = {k + 1}\n#### {k + 1}" for k in range(6)], "gold": [str(k + 1) for k in range(6)],
        "base_solution": [f"{k} + 1 = {k + 1}\n#### {k + 1}" for k in range(6)], "base_prediction": list("123456"),
        "base_correct": [True] * 6, "tuned_solution": [f"{k} + 1 = <i>{k + 2}</i>\n#### {k + 2}" for k in range(6)],
        "tuned_prediction": list("234567"), "tuned_correct": [False] * 6,
    }
)  # fmt: skip


def test_a_label_is_kept_and_replaced(tmp_path):
    file = labels.file_of(tmp_path, "ann", 1)
    assert labels.read(file).empty
    labels.put(file, "test-1", "a solution", "repetition")
    labels.put(file, "test-2", "another", "hallucination")
    labels.put(file, "test-1", "a solution", UNDECIDED)
    table = labels.read(file)
    assert table[["id", "label"]].values.tolist() == [["test-2", "hallucination"], ["test-1", UNDECIDED]]
    assert file.name == "gsm8k_ann_1.csv"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_labels_belong_to_the_labelled_text(tmp_path):
    labels.put(labels.file_of(tmp_path, "ann", 1), "test-0", ERRORS.tuned_solution[0], "repetition")
    labels.put(labels.file_of(tmp_path, "ann", 1), "test-1", "another model's solution", "repetition")
    labels.put(labels.file_of(tmp_path, "bob", 2), "test-9", "unrelated", "repetition")
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


def test_names_and_labels_are_checked(tmp_path):
    with pytest.raises(LabelError, match="letters, digits"):
        labels.file_of(tmp_path, "../ann", 1)
    with pytest.raises(LabelError, match="is unknown"):
        labels.put(labels.file_of(tmp_path, "ann", 1), "a", "x", "nonsense")
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


# --- the view ---------------------------------------------------------------------------------------------------------


def test_the_first_differing_step_is_found_whatever_the_spelling():
    first = "Ann has 3 × 4 = 12 eggs. She sells 2.\nSo 12 - 2 = 10.\n#### 10"
    second = "Ann has 3*4 = <<3*4=12>>12 eggs.\nShe sells 2.\nSo 12 - 2 = 11.\n#### 11"
    assert first_difference(first, second) == (2, 2)
    assert first_difference(first, first) == (None, None)
    assert first_difference("a\nb", "a\nb\nc") == (None, 2)
    assert first_difference("", "a") == (None, 0)


def test_the_view_marks_one_step_each_and_escapes_all_text():
    html = side_by_side("<script>1</script>", "<2>", {"base": "a\nb <c>", "tuned": "a\nd & e"}, "r < s")
    assert html.count("<mark>") == 2
    assert "<mark>b &lt;c&gt;</mark>" in html and "<mark>d &amp; e</mark>" in html
    assert "<script>" not in html and "r &lt; s" in html


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_can_be_shown(first, second):
    html = side_by_side("q", "1", {"base": first, "tuned": second})
    assert html.count("<mark>") <= 2


# --- the panel --------------------------------------------------------------------------------------------------------


def click(widget, name):
    _, buttons, _ = widget.children
    next(button for button in buttons.children if button.description == name).click()


def test_a_click_writes_a_label_and_goes_on(tmp_path):
    panel = Panel(ERRORS, tmp_path, "ann")
    widget = panel._widget()
    first = panel.errors.id[0]
    click(widget, "hallucination")
    assert labels.read(tmp_path / "gsm8k_ann_1.csv")[["id", "label"]].values.tolist() == [[first, "hallucination"]]
    assert widget.children[0].value.startswith("1 of 6 labelled")
    assert panel.errors.id[1] in widget.children[2].value


def test_it_goes_on_where_it_stopped_and_back(tmp_path):
    panel = Panel(ERRORS, tmp_path, "ann")
    panel.label("repetition")
    again = Panel(ERRORS, tmp_path, "ann")
    assert again.place == 1
    again.back()
    again.label(UNDECIDED)
    assert labels.read(again.file).label.tolist() == [UNDECIDED]
    for _ in range(5):
        again.label("repetition")
    assert "has its label" in again.html()
    assert Panel(ERRORS, tmp_path, "ann").place == 6


def test_passes_have_orders_of_their_own_and_dont_see_each_other(tmp_path):
    first, second = Panel(ERRORS, tmp_path, "ann", 1, seed=3), Panel(ERRORS, tmp_path, "ann", 2, seed=3)
    assert first.errors.id.tolist() != second.errors.id.tolist()
    assert sorted(first.errors.id) == sorted(second.errors.id)
    assert first.errors.equals(Panel(ERRORS, tmp_path, "ann", 1, seed=3).errors)
    first.label("repetition")
    assert Panel(ERRORS, tmp_path, "ann", 2, seed=3).done() == set()


def test_it_is_blind_and_escapes(tmp_path):
    shown = Panel(ERRORS.assign(category="SECRET", reason="SECRET"), tmp_path, "ann")._widget().children[2].value
    assert "SECRET" not in shown
    assert "<b>" not in shown.replace("<b>Problem.</b>", "").replace("<b>Answer:</b>", "") and "&lt;i&gt;" in shown


def test_without_a_name_there_is_nothing_to_click(tmp_path):
    widget = Panel(ERRORS, tmp_path, "none")._widget()
    assert all(button.disabled for button in widget.children[1].children)
    assert "set annotator" in widget.children[0].value


def test_a_rendered_page_keeps_a_table_and_loses_the_widget(tmp_path):
    bundle = Panel(ERRORS, tmp_path, "ann")._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "test-3" in markup.clean(bundle["text/html"]), "what the report takes of an output that is a widget, too"


def test_no_errors_are_no_trouble(tmp_path):
    panel = Panel(ERRORS.head(0), tmp_path, "ann")
    assert "no errors" in panel._widget().children[2].value
    assert panel.table().empty


def test_a_spoilt_file_is_told_in_the_panel(tmp_path):
    panel = Panel(ERRORS, tmp_path, "ann")
    widget = panel._widget()
    (tmp_path / "gsm8k_ann_1.csv").write_text("nonsense")
    click(widget, "repetition")
    assert "no column" in widget.children[0].value
