"""Systems beside each other: who is compared, on what, and how surely."""

import pandas as pd
import pytest

from nblib import artefacts
from nblib.analysis import systems
from nblib.benchmarks import scoring


def predictions(correct, ids=None):
    ids = ids or [f"i-{k}" for k in range(len(correct))]
    return pd.DataFrame({"id": ids, "cluster": ids, "correct": correct})


@pytest.fixture
def run(tmp_path):
    """Two systems scored on nevir_mini, one of them an encoder."""
    for name, correct in {"TF-IDF": [True] * 5 + [False] * 15, "good-encoder": [True] * 18 + [False] * 2}.items():
        scoring.save_predictions(predictions(correct), tmp_path, name, "nevir_mini")
    about = {"name": "TF-IDF", "kind": "tf-idf", "source": "here"}
    artefacts.write_json(scoring.folder_of(tmp_path, "TF-IDF") / "system.json", about)
    artefacts.write_json(tmp_path / "results" / "07_TF-IDF.csv.json", {"seconds": 2.0, "pairs": 400})
    fast = {"throughput": {"texts_per_second": 50.0}, "parameters": 22.7}
    artefacts.write_json(tmp_path / "results" / "07_good-encoder.csv.json", fast)
    return tmp_path


def test_only_what_was_scored_on_the_whole_task_is_compared(run):
    predictions = systems.load_predictions_for(run, ["TF-IDF", "absent", "good-encoder"], "nevir_mini")
    assert list(predictions) == ["TF-IDF", "good-encoder"]
    with pytest.raises(scoring.ScoreError, match=r"No predictions at .*absent"):
        systems.load_predictions_for(run, ["absent"], "nevir_mini")


def test_accuracies_come_with_intervals(run):
    predictions = systems.load_predictions_for(run, ["TF-IDF", "good-encoder"], "nevir_mini")
    table = systems.accuracies(predictions).set_index("system")
    assert table.value.to_dict() == {"TF-IDF": 25.0, "good-encoder": 90.0}
    assert (table.low < table.value).all()
    assert (table.high > table.value).all()
    assert (table.n == 20).all()
