"""The parts of README and docs that are made from the record."""

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


def test_an_unknown_part_is_named_with_the_known_ones(record):
    with pytest.raises(documents.DocumentError, match="README has a part called 'scores'; known: verdicts, headline"):
        documents.fill(MARKED.format(name="scores"), record, "README")


def test_the_headline_says_what_a_system_was_trained_on(record):
    table = documents.PARTS["headline"](record)
    assert "| hedge-mpnet (authored triples) | 35.9 ± 2.5 | –" in table
    assert "| nevir-mpnet (40 of NevIR's training pairs) | 35.9 ± 2.5 | –" in table


def test_truongs_columns_average_what_was_measured_stsb_among_it(record):
    about = {"n": 100, "scale": "toy"}
    rows = [
        measurements.row("all-mpnet-base-v2", "MTEB STS12", "spearman", 72.63, data="STS12 test", **about),
        measurements.row("all-mpnet-base-v2", "STSB", "spearman", 83.42, data="stsb test", **about),
    ]
    record.measured = measurements.validate(pd.DataFrame(rows), "here")
    table = documents.PARTS["general_columns"](record)
    assert "| Table 1 | MTEB-STS | 2 of 10 | 80.28 | 78.03 | 78.03 |" in table


def test_changes_of_general_ability_come_with_their_intervals(record):
    folder = record.folder / "07_encoder_benchmarks"
    folder.mkdir()
    row = {"system": "tuned", "average": "STS", "tasks": 9, "before": 82.0, "after": 80.5, "difference": -1.5, "low": -2.0,
           "high": -1.0}  # fmt: skip
    pd.DataFrame([row]).to_csv(folder / "tab_general_changes_base.csv", index=False)
    assert "| tuned | STS | 9 | 82.00 | 80.50 | -1.50 | -2.00 – -1.00 |" in documents.PARTS["general_changes"](record)


def test_mixtures_stand_with_their_change_from_the_first(record):
    folder = record.folder / "08_hedge_trainings"
    folder.mkdir()
    scores = {"training": ["base", "mix-s0", "other-s0"], "mean of negation": [18.6, 40.9, 45.5],
              "STSB dev": [86.4, 85.7, 84.5], "kept similarities": [100.0, 93.5, 83.3],
              "kept query–passage similarities": [100.0, None, 61.2]}  # fmt: skip
    pd.DataFrame(scores).to_csv(folder / "tab_mixtures.csv", index=False)
    change = {"training": "other-s0", "set": ["mean of negation", "STSB dev"], "difference": [4.6, -1.2],
              "low": [2.2, -2.0], "high": [6.9, -0.6]}  # fmt: skip
    pd.DataFrame(change).to_csv(folder / "tab_mixture_changes.csv", index=False)
    table = documents.PARTS["mixtures"](record)
    assert "| other-s0 | 45.5 | +4.6 (2.2 – 6.9) | 84.5 | -1.2 (-2.0 – -0.6) | 83.3 | 61.2 |" in table
    assert "| mix-s0 | 40.9 | – | 85.7 | – | 93.5 | – |" in table


def test_mixtures_of_a_larger_encoder_stand_with_some_of_their_sets(record):
    folder = record.folder / "08_hedge_trainings"
    folder.mkdir()
    change = ["–", "-1.0 (-2.0 – 0.1)"]
    scores = {"training": ["base", "large"], "mean of negation": [27.2, 61.9], "change of mean of negation": change,
              "STSB dev": [88.3, 87.7],
              "kept query–passage similarities": [100.0, None], "dev anchors": [84.9, 99.9],
              "CANNOT-WMT eval": [28.6, 52.5]}  # fmt: skip
    pd.DataFrame(scores).to_csv(folder / "tab_larger_mixtures.csv", index=False)
    table = documents.PARTS["larger_mixtures"](record)
    assert "| large | 61.9 | -1.0 (-2.0 – 0.1) | 87.7 | – | 52.5 |" in table and "dev anchors" not in table


@pytest.mark.parametrize("name", documents.PARTS)
def test_every_part_can_be_made(record, name):
    assert documents.PARTS[name](record) or name in ("agreement", "figures")


def test_without_a_record_the_command_that_makes_one_is_named(tmp_path):
    with pytest.raises(documents.DocumentError, match="make record SCALE=official"):
        documents.Record(tmp_path)


def test_a_cell_cannot_break_its_table():
    table = pd.DataFrame({"a": ["one | two", "three\nfour"]})
    assert documents.markdown(table) == "| a |\n|---|\n| one \\| two |\n| three four |\n"
