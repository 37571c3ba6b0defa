"""NevIR: how the two texts of a pair differ, which document is preferred, what each architecture scores and learns."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nblib import artefacts, corpora
from nblib.analysis import weller
from nblib.analysis.weller import NevIRError
from nblib.benchmarks import scoring
from nblib.results import plotting, published

PAIRS = pd.DataFrame({
    "id": ["7-2", "7-3"],
    "q1": ["Who did not sing?", "Who is not here?"],
    "q2": ["Who sang?", "Who is here now, then?"],
    "doc1": ["He did not sing.", "a b c d"],
    "doc2": ["He did sing. He did sing loudly.", "a b c"],
})  # fmt: skip


def test_the_statistics_are_means_over_words():
    table = weller.statistics(PAIRS).set_index("metric").value
    assert table.to_dict() == {
        "pairs": 2, "question_1_length": 4, "question_2_length": 3.5, "question_length_difference": 1.5,
        "document_1_length": 4, "document_2_length": 5, "document_length_difference": 2,
    }  # fmt: skip


def test_different_words_are_those_of_one_text_only():
    table = weller.word_differences(PAIRS).pivot(index="id", columns="kind", values="words")
    assert table.question.to_dict() == {"7-2": 4, "7-3": 3}  # did, not, sing / sang; not / now, then
    assert table.document.to_dict() == {"7-2": 2, "7-3": 1}  # not / loudly; d


@settings(deadline=None)
@given(st.lists(st.sampled_from(["not", "a", "dog", "Dog.", "—", ","]), min_size=1).map(" ".join))
def test_a_text_differs_from_itself_in_nothing(text):
    pair = pd.DataFrame({"id": ["1"], "q1": [text], "q2": [text.upper()], "doc1": [text], "doc2": [f"{text} !"]})
    assert weller.word_differences(pair).words.tolist() == [0, 0]


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
    assert weller.preference(predictions((first, second))).tolist() == [expected]


def test_preferences_are_shares_of_all_items():
    table = weller.preferences(predictions((1, 1), (1, -1), (1, -2), (0, 1))).set_index("preference")
    assert table.share.to_dict() == {
        "both right": 25, "negated document": 50, "edited document": 0, "reversed": 0, "tie": 25,
    }  # fmt: skip
    assert table.n.sum() == 4 and (table.low <= table.share).all() and (table.share <= table.high).all()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=30))
def test_both_right_is_the_pairwise_accuracy(margins):
    table = predictions(*margins)
    found = weller.preferences(table).set_index("preference").share
    assert found["both right"] == pytest.approx(100 * table.correct.mean())
    assert found.sum() == pytest.approx(100)


def test_scores_by_kind_of_edit():
    table = weller.by_edit(predictions((1, 1), (1, 1), (1, -1), (1, 1)))
    assert table[["edit", "value", "n"]].to_dict("list") == {
        "edit": ["negation undone", "scope of the negation changed"], "value": [100, 50], "n": [2, 2],
    }  # fmt: skip


def test_what_is_not_nevir_is_refused():
    with pytest.raises(NevIRError, match=r"2 of 3 ids don't end in a kind of edit.*'nevir-0001'"):
        weller.edits(["12-3", "nevir-0001", "7"])
    with pytest.raises(NevIRError, match="they have no margin_q1 and no margin_q2"):
        weller.preferences(pd.DataFrame({"id": ["1"], "cluster": [0], "margin": [1.0]}))


def test_wellers_table_has_ours_beside_its_own_and_others_below(tmp_path):
    for name, kind in [("TF-IDF", "tf-idf"), ("maxsim-tiny", "late-interaction"), ("Jaccard", "word overlap")]:
        file = scoring.folder_of(tmp_path, name) / "system.json"
        artefacts.write_json(file, {"name": name, "kind": kind, "source": "here"})
    measured = pd.DataFrame({
        "system": ["TF-IDF", "maxsim-tiny", "my-encoder", "Jaccard"], "value": [5.0, 40.0, 30.0, 2.0],
        "low": [1.0, 30.0, 20.0, 0.0], "high": [9.0, 50.0, 40.0, 4.0], "n": 100,
    })  # fmt: skip
    table = weller.architectures(tmp_path, measured).set_index("system")
    assert (table.published["TF-IDF"], table.ours["TF-IDF"]) == (2.0, 5.0)
    assert (table.kind["maxsim-tiny"], table.kind["my-encoder"]) == ("Late Interaction", "Bi-Encoders")
    assert np.isnan(table.published["my-encoder"])
    assert table.index[-1] == "Jaccard" and table.kind["Jaccard"] == "word overlap", "a kind the paper doesn't have"
    assert table.ours.notna().sum() == 4
    assert len(table) == 24 + 3, "Table 2's systems and three of ours it doesn't have"


def test_an_alignment_is_of_the_passage_with_the_negation(tmp_path):
    folder = scoring.folder_of(tmp_path, "maxsim-tiny")
    table = pd.DataFrame({"query_token": ["null", "not"], "similarity": [0.5, 1.0], "document": ["negated", "edited"]})
    artefacts.write_table(table, folder / "alignment.csv")
    assert weller.alignment(tmp_path, "maxsim-tiny").query_token.tolist() == ["null"]
    with pytest.raises(scoring.ScoreError, match=r"No token alignment at .*Make it: nblib score TF-IDF"):
        weller.alignment(tmp_path, "TF-IDF")


def test_epochs_of_every_architecture_stand_in_one_table(tmp_path):
    bi = pd.DataFrame({"epoch": [0, 1], "set": "NevIR mini", "kind": "negation", "value": [10.0, 20.0], "n": 100})
    loss = pd.DataFrame({"epoch": [0.5], "set": ["training loss"], "kind": ["loss"], "value": [1.0]})
    many = bi.drop(columns="kind").assign(architecture="multi-vector", metric="pairwise_accuracy", value=[11.0, 20.0])
    curves = {
        "figures/04_encoder_training/fig_training_bi.csv": pd.concat([bi, loss]),
        "scores/nevir-many/epochs.csv": many,
    }
    for file, table in curves.items():
        artefacts.write_table(table, tmp_path / file)
    table = weller.epochs(tmp_path, "bi", ["nevir-many"])
    assert list(table.columns) == ["architecture", "epoch", "set", "value", "n"]
    assert table.architecture.tolist() == ["bi-encoder"] * 2 + ["multi-vector"] * 2
    assert table.value.tolist() == [10, 20, 11, 20], "and no training loss"
    assert weller.epochs(tmp_path, "bi", []).architecture.unique().tolist() == ["bi-encoder"]
    with pytest.raises(
        scoring.ScoreError, match=r"no dev scores by epoch of nevir-cross at .*nblib train nevir-cross --data nevir"
    ):
        weller.epochs(tmp_path, "bi", ["nevir-cross"])
    with pytest.raises(
        scoring.ScoreError, match=r"no dev scores by epoch of absent at .*nblib run 04 .*-p name absent"
    ):
        weller.epochs(tmp_path, "absent", [])


@pytest.mark.official
def test_the_published_statistics_of_the_test_split():
    table = weller.statistics(corpora.load("nevir", "test"))
    for metric, value in table.itertuples(index=False):
        printed = published.value("weller", "Table 1", "NevIR test", metric)
        assert value == pytest.approx(printed, abs=0.0051 if "difference" in metric else 0.051), metric


@pytest.mark.official
def test_the_first_document_is_the_passage_both_edits_start_from():
    pairs = corpora.load("nevir", "test")
    edits, passage = weller.edits(pairs.id), pairs.id.str.rpartition("-")[0]
    assert pd.Series(edits).value_counts().to_dict() == {weller.EDITS["3"]: 694, weller.EDITS["2"]: 689}
    twice = pairs[passage.duplicated(keep=False)].groupby(passage)
    assert len(twice) > 600 and (twice.doc1.nunique() == 1).all() and (twice.doc2.nunique() == 2).all()


def test_the_printed_statistics_are_those_of_the_test_split():
    printed = weller.printed_statistics()
    assert printed["pairs"] == 1383
    assert set(printed) <= set(published.load("weller").query("exhibit == 'Table 1'").metric)


def test_architectures_are_drawn_published_measured_and_trained_each_in_its_own_way():
    lines = pd.Categorical(["Sparse", "Sparse", "plain", "tuned"], ["Sparse", "plain", "tuned"])
    numbers = {"published": [2.0, 7.0, None, 3.0], "ours": [None, None, 5.0, 40.0], "low": [None, None, 4.0, 38.0],
               "high": [None, None, 6.0, 42.0]}  # fmt: skip
    table = pd.DataFrame({"line": lines, **numbers, "trained": [False, False, False, True]})
    _, ax = plt.subplots()
    weller.draw_architectures(table, ax)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["Sparse", "plain", "tuned"]
    points = {line.get_color(): line.get_xydata() for line in ax.lines}
    drawn = {colour: part[~np.isnan(part[:, 0])].tolist() for colour, part in points.items()}
    assert drawn[plotting.PUBLISHED] == [[2, 0], [7, 0], [3, 2]]
    assert (drawn[plotting.OURS], drawn[plotting.TRAINED]) == ([[5, 1]], [[40, 2]])
    plt.close("all")
