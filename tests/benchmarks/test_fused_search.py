"""Search in two stages: the scores over the weight of the second encoder."""

import pandas as pd
import pytest

from nblib.benchmarks import fused_search, scoring
from nblib.errors import StudyError


@pytest.mark.parametrize(("weight", "right"), [(0, [True, False]), (0.5, [True, True]), (1, [False, True])])
def test_an_item_is_right_where_both_fused_margins_are(weight, right):
    def predicted(q1, q2):
        return pd.DataFrame({"id": ["a", "b"], "cluster": [0, 1], "margin_q1": q1, "margin_q2": q2})

    first, second = predicted([0.3, 0.1], [0.2, -0.1]), predicted([-0.2, 0.1], [0.1, 0.4])
    assert fused_search.fused(first, second, weight).correct.tolist() == right


def test_a_scored_pair_is_read_from_what_was_kept(tmp_path, monkeypatch):
    found = pd.DataFrame({"id": ["q"] * 2, "document": ["x", "y"], "first": [0.9, 0.8], "second": [0.1, 0.7]})
    judged = pd.DataFrame({"query_id": ["q"], "doc_id": ["y"], "relevance": [1]})
    monkeypatch.setattr(fused_search.corpora, "load", lambda *_: judged)
    gains = [fused_search.ndcg(found, "SciFact", weight).correct[0] for weight in (0, 1)]
    assert gains == pytest.approx([0.6309, 1], abs=1e-4)
    with pytest.raises(StudyError, match="Score both"):
        fused_search.candidates("one", "another", "SciFact", tmp_path)
    for name in ("one", "another"):
        about = {"name": name, "fingerprint": name, "source": "gone"}
        fused_search.artefacts.write_json(scoring.folder_of(tmp_path, name) / "system.json", about)
    kept = scoring.folder_of(tmp_path, "another") / "SciFact_after_one.parquet"
    fused_search.artefacts.write_table(found, kept, about={"made_from": {"first": "one", "second": "another"}})
    assert fused_search.candidates("one", "another", "SciFact", tmp_path).equals(found)
