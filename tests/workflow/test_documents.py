"""The parts of the README that are made from the record."""

import pandas as pd
import pytest

from nblib.analysis import claims
from nblib.results import comparison, measurements
from nblib.workflow import documents

MARKED = "Before.\n<!-- made: {name} -->\nold\n<!-- end -->\nAfter.\n"


@pytest.fixture
def record(tmp_path):
    """A record of one system and two claims."""
    known = claims.load()[:2]
    about = {name: [getattr(claim, name) for claim in known] for name in claims.COLUMNS if hasattr(known[0], name)}
    table = pd.DataFrame(about).assign(measured="0.5 here.", verdict=["supported", "partly"])
    row = measurements.row("hedge-mpnet", "NevIR", "right_rank", 35.94, data="nevir test", n=1383, scale="toy",
                           interval=(33.0, 38.0), trained_on="authored triples")  # fmt: skip
    tuned = row | {"system": "nevir-mpnet", "trained_on": "NevIR's training pairs (40 pairs)"}
    measured = measurements.validate(pd.DataFrame([row, tuned]), "here")
    board = comparison.scoreboard(measured, tmp_path, "toy")
    (tmp_path / "13_results").mkdir()
    table.to_csv(tmp_path / "13_results" / "tab_claims.csv", index=False)
    measured.to_csv(tmp_path / "measurements.csv", index=False)
    board.to_csv(tmp_path / "scoreboard.csv", index=False)
    return documents.Record(tmp_path)


def test_a_part_is_made_anew_and_the_text_around_it_stays(record):
    text = documents.fill(MARKED.format(name="verdicts"), record)
    assert text.startswith("Before.\n<!-- made: verdicts -->\n") and text.endswith("<!-- end -->\nAfter.\n")
    assert "old" not in text and "1 supported, 1 partly" in text
    assert documents.fill(text, record) == text


def test_the_headline_says_what_a_system_was_trained_on(record):
    table = documents.PARTS["headline"](record)
    assert "| hedge-mpnet (authored triples) | 35.9 ± 2.5 | –" in table
    assert "| nevir-mpnet (40 of NevIR's training pairs) | 35.9 ± 2.5 | –" in table


def test_a_cell_cannot_break_its_table():
    table = pd.DataFrame({"a": ["one | two", "three\nfour"]})
    assert documents.markdown(table) == "| a |\n|---|\n| one \\| two |\n| three four |\n"
