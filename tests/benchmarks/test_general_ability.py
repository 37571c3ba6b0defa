"""General ability: what is planned, measured, resumed, averaged and compared."""

import numpy as np
import pandas as pd
import pytest
from support import mteb_rows
from support.encoders import fitted_adapter, tiny

from nblib.benchmarks import general_ability, mteb_catalogue, mteb_tasks, scoring
from nblib.models import embeddings, negation_adapter, rankers
from nblib.models.systems import BiEncoder

THREE = ("STS12", "EmotionClassification", "SciFact")


@pytest.fixture(autouse=True)
def three_tasks(monkeypatch):
    """Three tasks on written-down rows, whatever the choice."""
    monkeypatch.setattr(mteb_tasks.corpora, "load", mteb_rows.load)
    monkeypatch.setattr(mteb_tasks.LocalClassification, "n_experiments", 2)
    monkeypatch.setattr(mteb_catalogue, "names", lambda choice: THREE[: {"short": 2, "all": 3}[choice]])


@pytest.fixture
def system(tmp_path):
    return BiEncoder(tiny(tmp_path))


def test_a_plan_counts_what_is_not_encoded_yet_and_a_run_leaves_nothing(system, tmp_path):
    planned = general_ability.plan(system, "all", tmp_path)
    assert planned.table.task.tolist() == list(THREE)
    assert planned.table.new.sum() == len({*mteb_rows.WORDS, "boat is not blue", "day is the night", "night"})
    assert planned.seconds > 0 and "texts to encode: about" in planned.sentence
    general_ability.score(system, "short", tmp_path)
    rest = general_ability.plan(system, "all", tmp_path)
    assert rest.table.set_index("task").new.to_dict() == {"STS12": 0, "EmotionClassification": 0, "SciFact": 3}
    general_ability.score(system, "all", tmp_path)
    assert general_ability.plan(system, "all", tmp_path).sentence.startswith("3 tasks, 0 texts: all encoded before")


def test_the_expected_time_is_of_the_lengths_that_there_are(system, monkeypatch):
    """Half a second a token of short texts and one of long ones: thirds of all tokens, each at its own speed."""
    texts = [("a" * 10, 10.0)] * 600 + [("b" * 1000, 1000.0)] * 12
    asked = []

    def seconds(encoder, given, **_):
        asked.append(given)
        return sum(len(text) * (0.5 if text[0] == "a" else 1.0) for text in given)

    monkeypatch.setattr(embeddings, "seconds_to_encode", seconds)
    expected = general_ability._expected_seconds(system.encoder, "symmetric", texts)
    assert expected == pytest.approx(18_000 * (0.5 + 1 + 1) / 3)
    assert [len(given) for given in asked] == [1, 64, 2, 2]


def test_scores_are_tidy_and_kept(system, tmp_path):
    table = general_ability.score(system, "all", tmp_path)
    assert table.columns.tolist() == general_ability.COLUMNS and table.task.tolist() == list(THREE)
    assert table.n.tolist() == [6, 4, 2] and (table.seconds > 0).all()
    assert ((table.ci_low <= table.value) & (table.value <= table.ci_high)).all()
    pd.testing.assert_frame_equal(general_ability.load(tmp_path, "tiny"), table, check_dtype=False)
    assert general_ability.systems(tmp_path) == ["tiny"]
    assert scoring.about(tmp_path, "tiny")["kind"] == "bi-encoder"


def test_a_stopped_run_goes_on_where_it_was(system, tmp_path, monkeypatch):
    general_ability.score(system, "short", tmp_path)
    evaluated, evaluate = [], scoring.evaluate

    def remember(encoder, task, folder):
        evaluated.append(task.metadata.name)
        evaluate(encoder, task, folder)

    monkeypatch.setattr(scoring, "evaluate", remember)
    first = general_ability.load(tmp_path, "tiny")
    table = general_ability.score(system, "all", tmp_path)
    assert evaluated == ["SciFact"]
    assert table.seconds[:2].tolist() == first.seconds.tolist() and table.value[:2].tolist() == first.value.tolist()
    # a shorter choice afterwards forgets nothing
    general_ability.score(system, "short", tmp_path)
    assert evaluated == ["SciFact"] and len(general_ability.load(tmp_path, "tiny")) == 3


def test_other_weights_under_the_same_name_are_another_model(system, tmp_path, monkeypatch):
    general_ability.score(system, "short", tmp_path)
    other = BiEncoder(tiny(tmp_path / "other", max_length=4))
    assert general_ability._finished(other, mteb_tasks.get("STS12"), tmp_path) is None
    general_ability.score(other, "short", tmp_path)
    # the first one's result file is still there, but the predictions are the second's
    assert general_ability._finished(system, mteb_tasks.get("STS12"), tmp_path) is None


def test_averages_are_of_tasks_and_of_categories():
    measured = pd.DataFrame({"task": list("abc"), "category": ["STS", "STS", "Retrieval"], "value": [80.0, 60.0, 40.0]})
    found = general_ability.averages(measured).set_index("average")
    assert found["value"].to_dict() == {"STS": 70, "Retrieval": 40, "mean of tasks": 60, "mean of categories": 55}
    assert found.tasks.to_dict() == {"STS": 2, "Retrieval": 1, "mean of tasks": 3, "mean of categories": 3}


def test_an_adapter_is_compared_with_its_base_and_encodes_nothing(system, tmp_path, monkeypatch):
    before = general_ability.score(system, "all", tmp_path)
    adapted = BiEncoder(negation_adapter.adapt(system.encoder, fitted_adapter()))
    monkeypatch.setattr(embeddings, "_run", lambda *given: pytest.fail("encoded anew"))
    after = general_ability.score(adapted, "all", tmp_path)
    changes = general_ability.changes(tmp_path, "tiny", adapted.name).set_index("average")
    assert changes.loc["STS", "difference"] == pytest.approx(after["value"][0] - before["value"][0])
    assert changes.loc["mean of tasks", "after"] == pytest.approx(after["value"].mean())
    assert (changes.low <= changes.high).all()


def test_no_change_has_no_width(system, tmp_path):
    general_ability.score(system, "short", tmp_path)
    changes = general_ability.changes(tmp_path, "tiny", "tiny")
    assert np.allclose(changes[["difference", "low", "high"]], 0)


def test_what_cant_be_measured_says_so(tmp_path):
    with pytest.raises(mteb_catalogue.GeneralError, match=r"Random .* has no embeddings"):
        general_ability.score(rankers.Chance(), "short", tmp_path)
    with pytest.raises(scoring.ScoreError, match="nblib score nobody --general short"):
        general_ability.load(tmp_path, "nobody")
