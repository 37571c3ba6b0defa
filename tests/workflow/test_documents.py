"""The parts of the README that are made from the record."""

import pandas as pd
import pytest

from nblib import paths, results
from nblib.analysis import claims
from nblib.results import scoreboard
from nblib.workflow import documents

SCORE = {"benchmark": "nevir", "corpus": "nevir", "split": "test", "metric": "right_rank", "value": 35.94, "n": 1383}


@pytest.fixture
def kept(tmp_path):
    """A record of two systems and two claims."""
    known = pd.DataFrame(map(vars, claims.load()[:2])).assign(
        measured="0.5 here.", holds="1 of 2, 1 against", verdict=["supported", "partly"]
    )
    trained = {"hedge-mpnet": ("both", 1600), "nevir-mpnet": ("nevir", 40)}
    rows = [
        {"system": name, **SCORE, "ci_low": 33, "ci_high": 38, "trained_on": key, "training_items": number}
        for name, (key, number) in trained.items()
    ]
    measured = results.record(rows, scale="toy")
    (tmp_path / "13_results").mkdir()
    known[claims.COLUMNS].to_csv(tmp_path / "13_results" / "tab_claims.csv", index=False)
    measured.to_csv(tmp_path / "measurements.csv", index=False)
    scoreboard.build(measured, tmp_path, "toy").to_csv(tmp_path / "scoreboard.csv", index=False)
    return tmp_path


def test_a_part_is_made_anew_and_the_text_around_it_stays(kept, monkeypatch):
    monkeypatch.setattr(paths, "PROJECT_ROOT", kept)
    marked = "Before.\n<!-- made: verdicts -->\nold\n<!-- end -->\nAfter.\n"
    (kept / "README.md").write_text(marked)
    assert documents.update(kept) == ["README.md"] and documents.update(kept) == []
    text = (kept / "README.md").read_text()
    assert text.startswith("Before.\n<!-- made: verdicts -->\n") and text.endswith("<!-- end -->\nAfter.\n")
    assert "old" not in text and "1 supported, 1 partly" in text and "(1 of 2, 1 against)" in text


def test_the_headline_says_what_a_system_was_trained_on(kept):
    table = documents.PARTS["headline"](kept)
    assert "| hedge-mpnet (authored negations and hedges, 1,600 anchors) | 35.9 ± 2.5 | –" in table
    assert "| nevir-mpnet (40 of NevIR's training pairs) | 35.9 ± 2.5 | –" in table
