"""NevIR's pairs: how the two texts differ, which document is preferred."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nblib import corpora, nevir, published
from nblib.nevir import NevIRError

PAIRS = pd.DataFrame({
    "id": ["7-2", "7-3"],
    "q1": ["Who did not sing?", "Who is not here?"],
    "q2": ["Who sang?", "Who is here now, then?"],
    "doc1": ["He did not sing.", "a b c d"],
    "doc2": ["He did sing. He did sing loudly.", "a b c"],
})  # fmt: skip


def test_the_statistics_are_means_over_words():
    table = nevir.statistics(PAIRS).set_index("metric").value
    assert table.to_dict() == {
        "pairs": 2, "question_1_length": 4, "question_2_length": 3.5, "question_length_difference": 1.5,
        "document_1_length": 4, "document_2_length": 5, "document_length_difference": 2,
    }  # fmt: skip


def test_different_words_are_those_of_one_text_only():
    table = nevir.word_differences(PAIRS).pivot(index="id", columns="kind", values="words")
    assert table.question.to_dict() == {"7-2": 4, "7-3": 3}  # did, not, sing / sang; not / now, then
    assert table.document.to_dict() == {"7-2": 2, "7-3": 1}  # not / loudly; d


@settings(deadline=None)
@given(st.lists(st.sampled_from(["not", "a", "dog", "Dog.", "—", ","]), min_size=1).map(" ".join))
def test_a_text_differs_from_itself_in_nothing(text):
    pair = pd.DataFrame({"id": ["1"], "q1": [text], "q2": [text.upper()], "doc1": [text], "doc2": [f"{text} !"]})
    assert nevir.word_differences(pair).words.tolist() == [0, 0]


def predictions(*margins):
    table = pd.DataFrame(margins, columns=["margin_q1", "margin_q2"])
    correct = (table > 0).all(axis=1)
    return table.assign(id=[f"{k}-{2 + k % 2}" for k in range(len(table))], cluster=range(len(table)), correct=correct)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (1, 1, "both right"), (1, -1, "negated document"), (-1, 1, "edited document"), (-1, -1, "reversed"), (0, 1, "tie"),
        (1, 0, "tie"), (0, 0, "tie"),
    ],
)  # fmt: skip
def test_the_preferred_document(first, second, expected):
    assert nevir.preference(predictions((first, second))).tolist() == [expected]


def test_preferences_are_shares_of_all_items():
    table = nevir.preferences(predictions((1, 1), (1, -1), (1, -2), (0, 1))).set_index("preference")
    assert table.share.to_dict() == {
        "both right": 25, "negated document": 50, "edited document": 0, "reversed": 0, "tie": 25,
    }  # fmt: skip
    assert table.n.sum() == 4 and (table.low <= table.share).all() and (table.share <= table.high).all()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=30))
def test_both_right_is_the_pairwise_accuracy(margins):
    table = predictions(*margins)
    found = nevir.preferences(table).set_index("preference").share
    assert found["both right"] == pytest.approx(100 * table.correct.mean())
    assert found.sum() == pytest.approx(100)


def test_scores_by_kind_of_edit():
    table = nevir.by_edit(predictions((1, 1), (1, 1), (1, -1), (1, 1)))
    assert table[["edit", "value", "n"]].to_dict("list") == {
        "edit": ["negation undone", "scope of the negation changed"], "value": [100, 50], "n": [2, 2],
    }  # fmt: skip


def test_what_is_not_nevir_is_refused():
    with pytest.raises(NevIRError, match=r"2 of 3 ids end in no kind of edit.*'nevir-0001'"):
        nevir.edits(["12-3", "nevir-0001", "7"])
    with pytest.raises(NevIRError, match="No margin_q1 and no margin_q2"):
        nevir.preferences(pd.DataFrame({"id": ["1"], "cluster": [0], "margin": [1.0]}))


@pytest.mark.official
def test_the_published_statistics_of_the_test_split():
    table = nevir.statistics(corpora.load("nevir", "test"))
    for metric, value in table.itertuples(index=False):
        printed = published.value("weller", "Table 1", "NevIR test", metric)
        assert value == pytest.approx(printed, abs=0.0051 if "difference" in metric else 0.051), metric


@pytest.mark.official
def test_the_first_document_is_the_passage_both_edits_start_from():
    pairs = corpora.load("nevir", "test")
    edits, passage = nevir.edits(pairs.id), pairs.id.str.rpartition("-")[0]
    assert pd.Series(edits).value_counts().to_dict() == {nevir.EDITS["3"]: 694, nevir.EDITS["2"]: 689}
    twice = pairs[passage.duplicated(keep=False)].groupby(passage)
    assert len(twice) > 600 and (twice.doc1.nunique() == 1).all() and (twice.doc2.nunique() == 2).all()
