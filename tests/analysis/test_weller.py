"""NevIR: how the two texts of a pair differ, which document is preferred, what each architecture scores and learns."""

import numpy as np
import pandas as pd
import pytest

from nblib import artefacts, corpora
from nblib.analysis import weller
from nblib.benchmarks import scoring
from nblib.errors import StudyError
from nblib.results import published
from nblib.training import records

PAIRS = pd.DataFrame({
    "id": ["7-2", "7-3"],
    "q1": ["Who did not sing?", "Who is not here?"],
    "q2": ["Who sang?", "Who is here now, then?"],
    "doc1": ["He did not sing.", "a b c d"],
    "doc2": ["He did sing. He did sing loudly.", "a b c"],
})  # fmt: skip


def test_the_statistics_are_means_over_words():
    table = weller.statistics(PAIRS).set_index("metric").value
    assert table[["pairs", "question_length_difference", "document_length_difference"]].tolist() == [2, 1.5, 2]
    assert table.filter(regex=r"_\d_length").tolist() == [4, 3.5, 4, 5]


def test_different_words_are_those_of_one_text_only():
    table = weller.word_differences(PAIRS).pivot(index="id", columns="text", values="words")
    assert table.question.to_dict() == {"7-2": 4, "7-3": 3}  # did, not, sing / sang; not / now, then
    assert table.document.to_dict() == {"7-2": 2, "7-3": 1}  # not / loudly; d


def predictions(*margins):
    table = pd.DataFrame(margins, columns=["margin_q1", "margin_q2"])
    correct = (table > 0).all(axis=1)
    return table.assign(id=[f"{k}-{2 + k % 2}" for k in range(len(table))], cluster=range(len(table)), correct=correct)


def test_the_preferred_document():
    for margins, expected in {(-1, 1): "edited document", (-1, -1): "reversed", (1, 0): "tie"}.items():
        table = weller.preferences(predictions(margins)).set_index("preference")
        assert table.share[expected] == 100 and table.n[expected] == 1


def test_errors_count_reversals_and_which_document_is_first_for_both():
    margins = [(1, 1), (1, -1), (-1, 1), (-1, 1), (-1, -1)]
    table = weller.errors(predictions(*margins)).set_index("metric")
    assert table.value.to_dict() == {"share_reversed": 20, "lean_to_edited": 20}
    assert (table.ci_low <= table.value).all() and (table.value <= table.ci_high).all()


def test_the_cosine_of_a_pairs_documents_is_that_of_published_encoders(tiny_encoder, monkeypatch):
    monkeypatch.setattr(weller.registry, "find", lambda name: name == "known")
    monkeypatch.setattr(weller.encoders, "load", lambda name: tiny_encoder)
    for pairs, alike in ((PAIRS.assign(doc2=PAIRS.doc1), True), (PAIRS, False)):
        (row,) = weller.document_cosines(["known", "own"], pairs).itertuples()
        assert (row.system, row.n) == ("known", len(PAIRS)) and row.ci_low <= row.value <= row.ci_high
        assert (row.value > 100 - 1e-4) == alike


def test_scores_by_kind_of_edit():
    scored = predictions((1, 1), (1, 1), (1, -1), (1, 1))
    table = weller.by_edit(scored)
    assert table.edit.tolist() == ["negation undone", "scope of the negation changed"]
    assert table.value.tolist() == [100, 50] and table.n.tolist() == [2, 2]
    with pytest.raises(KeyError, match="0001"):
        weller.by_edit(scored.assign(id="nevir-0001"))


def test_wellers_table_has_ours_beside_its_own_and_others_below(tmp_path):
    names, values = ["TF-IDF", "maxsim-tiny", "my-encoder", "Jaccard"], [5.0, 40.0, 30.0, 2.0]
    for name, architecture in zip(names, ["tf-idf", "late-interaction", "bi-encoder", "word overlap"], strict=True):
        about = {"architecture": architecture, "trained_on": "both" * (name == "my-encoder")}
        artefacts.write_json(scoring.folder_of(tmp_path, name) / "system.json", about)
    measured = pd.DataFrame({"system": names, "value": values, "low": 0.0, "high": 50.0, "n": 100})
    table = weller.architectures(tmp_path, measured).set_index("system")
    assert (table.published["TF-IDF"], table.ours["TF-IDF"]) == (2.0, 5.0)
    assert table.architecture[["maxsim-tiny", "my-encoder"]].tolist() == ["Late Interaction", "Bi-Encoders"]
    assert np.isnan(table.published["my-encoder"])
    assert table.index[-1] == "Jaccard" and table.architecture["Jaccard"] == "word overlap", "not in the paper"
    assert table.index[table.trained].tolist() == ["my-encoder"]
    assert table.ours.notna().sum() == 4
    assert len(table) == 24 + 3, "Table 2's systems and three of ours it doesn't have"


def test_epochs_of_every_architecture_stand_in_one_table(tmp_path):
    scores = pd.DataFrame({"epoch": [0, 1], "set": "NevIR mini", "kind": "negation", "value": [10.0, 20.0], "n": 100})
    for name, architecture in {"one": "bi-encoder", "many": "multi-vector"}.items():
        made_from = {"architecture": architecture}
        records.save(tmp_path / "trainings" / name, made_from, {"epochs": scores})
    table = weller.epochs(tmp_path, ["one", "many"])
    assert list(table.columns) == ["architecture", "epoch", "set", "value", "n"]
    assert table.architecture.tolist() == ["bi-encoder"] * 2 + ["multi-vector"] * 2
    assert weller.epochs(tmp_path, []).empty
    records.save(tmp_path / "trainings" / "ends", {"architecture": "bi-encoder"}, {})
    with pytest.raises(StudyError, match="ends was not evaluated after every epoch"):
        weller.epochs(tmp_path, ["ends"])


@pytest.mark.official
def test_the_published_statistics_of_the_test_split():
    table = weller.statistics(corpora.load("nevir", "test"))
    for metric, value in table.itertuples(index=False):
        printed = published.printed("weller", "Table 1", system="NevIR test", metric=metric)
        assert value == pytest.approx(printed, abs=0.0051 if "difference" in metric else 0.051), metric
