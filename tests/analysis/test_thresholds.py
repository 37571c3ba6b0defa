"""The threshold of a cosine: the best one, its held-out accuracy, and what the base's costs."""

import numpy as np
import pandas as pd
import pytest
from support.close import assert_close

from nblib.analysis import thresholds
from nblib.benchmarks import scoring

TASK = "cannot_wmt_mini"


def predictions(paraphrases, negations):
    """Predictions with a cluster a pair, and two pairs with a graded score, which don't count."""
    graded = pd.DataFrame({"similarity": [0.1, 0.9], "score": [0.9, 0.1], "part": "WMT"})
    table = pd.concat(
        [
            pd.DataFrame({"similarity": paraphrases, "score": 1.0, "part": "CANNOT"}),
            pd.DataFrame({"similarity": negations, "score": 0.0, "part": "CANNOT"}),
            graded,
        ],
        ignore_index=True,
    )
    return table.assign(id=table.index.astype(str), cluster=table.index)


@pytest.fixture
def run(tmp_path):
    """A base that tells 80 % at a cosine of 0.9, and a tuned encoder that tells all at 0.5."""
    spread = np.linspace(0, 0.02, 20)
    base = predictions(0.93 + spread, np.append(0.85 + spread[:12], 0.93 + spread[12:] / 2))
    tuned = predictions(0.6 + spread, 0.4 + spread)
    for name, table in {"base": base, "tuned": tuned}.items():
        scoring.save_predictions(table, tmp_path, name, TASK)
    return tmp_path


def test_a_tuned_encoder_needs_a_threshold_of_its_own(run):
    table = thresholds.compare(run, {"base": "base", "tuned": "base"}, TASK).set_index("system")
    assert table.n.tolist() == [40, 40]
    assert table.auc["tuned"] == 100
    assert table.accuracy["tuned"] == 97.5  # the lowest paraphrase, by the threshold of the others
    assert 0.42 < table.threshold["tuned"] <= 0.6
    assert 0.87 < table.threshold["base"] <= 0.95
    assert table.accuracy_by_base["tuned"] == 50  # all lie below the base's
    assert table.accuracy["base"] <= table.accuracy_by_base["base"]  # of which the second has seen the pairs
    assert (table.low <= table.auc).all() and (table.auc <= table.high).all()


def test_the_calibration_error_is_the_distance_of_cosine_and_share():
    pairs = pd.DataFrame({"similarity": [0.75, 0.75, 0.35, 0.35, 1.2], "same": [True, False, False, False, True]})
    assert_close(thresholds.calibration_error(pairs), 100 * (2 * 0.25 + 2 * 0.35 + 0) / 5)
