"""An exhibit's rows for reading, and its summary in a line: how nearly it was measured, and whether it agrees."""

import math

import pandas as pd
import pytest

from nblib.results import comparison, exhibits
from nblib.results.comparison import INTERVAL, NOTHING, ROUNDING

ROW = {
    "paper": "weller", "exhibit": "Table 2", "system": "TF-IDF", "benchmark": "NevIR", "metric": "pairwise_accuracy",
    "published": 2.0, "value": 1.95, "ci_low": 1.2, "ci_high": 2.7, "difference": -0.05, "measured": "full", "agrees": ROUNDING,
    "measured_system": "TF-IDF", "measured_metric": "right_rank", "trained_on": "", "data": "nevir test", "n": 1383.0,
    "n_printed": 1383.0, "note": "", "scale": "official",
}  # fmt: skip
CHANCE = {"system": "Random", "measured_system": "Random", "published": 25.0, "value": 23.0, "difference": -2.0,
          "agrees": "differs by -2.0"}  # fmt: skip
ABSENT = {"system": "ColBERTv2", "value": math.nan, "difference": math.nan, "measured": "not run", "agrees": ""}
FIGURE = {
    "metric": comparison.SHOWN,
    "published": math.nan,
    "value": math.nan,
    "difference": math.nan,
    "agrees": NOTHING,
}


def board(*rows):
    return pd.DataFrame([{**ROW, **row} for row in rows], columns=comparison.COLUMNS)


def summary(*rows):
    return exhibits.summary(board(*rows))


def test_what_was_measured_in_full_is_compared():
    assert summary({}) == "1 number is measured in full: 1 agrees (within rounding or our interval)."
    assert summary({}, CHANCE, {"agrees": INTERVAL, "value": 7.0, "difference": 5.0}) == (
        "3 numbers are measured in full: 2 agree (within rounding or our interval); the largest difference is +5.00 (TF-IDF, "
        "NevIR, pairwise_accuracy: 7.00 for 2.00)."
    )
    assert "-2.00 (Random, NevIR, pairwise_accuracy: 23.00 for 25.00)" in summary({}, CHANCE)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"measured": "sample"}, "1 number is measured on a sample (other or fewer items, or systems): -0.05."),
        ({"measured": "other protocol"}, "1 number is measured by another protocol: -0.05."),
        (
            {"measured": "stand-in", "difference": math.nan, "agrees": ""},
            "1 number is measured by a stand-in, with which no printed number compares.",
        ),
    ],
)
def test_what_was_not_measured_in_full_says_how(row, said):
    assert summary(row) == said
    assert "agree" not in summary(row)


def test_several_differences_are_a_span():
    assert summary({"measured": "sample"}, {"measured": "sample", "difference": 3.0}) == (
        "2 numbers are measured on a sample (other or fewer items, or systems): -0.05 to +3.00."
    )


def test_what_is_drawn_or_not_run_is_said():
    assert summary(FIGURE, ABSENT) == "Ours is drawn from the same data. 1 number is not run."
    assert summary({**FIGURE, "measured": "not run"}) == "Not run."
    whole = {**FIGURE, "system": "the exhibit", "measured": "stand-in"}
    assert summary(whole) == "The exhibit is measured by a stand-in, with which no printed number compares."
    assert summary({**FIGURE, "measured": "other protocol"}, {**FIGURE, **ABSENT}) == (
        "1 system is measured by another protocol. 1 system is not run."
    )


@pytest.mark.parametrize(("measured", "shown"), [(True, 2), (False, 1)])
def test_an_exhibit_has_its_text_and_where_measured_its_table(measured, shown):
    rows = board({} if measured else ABSENT, {"exhibit": "Table 1", "system": "of another exhibit"})
    covered = pd.Series({"paper": "weller", "exhibit": "Table 2", "title": "All", "command": "make study SCALE=paper"})
    parts = exhibits.exhibit(rows, covered)
    assert len(parts) == shown
    assert parts[0].data.startswith("### Weller, Table 2: All\n\n")
    assert parts[0].data.endswith("In full: `make study SCALE=paper`.")
    assert not measured or "of another exhibit" not in parts[1].to_html()


def test_the_table_has_the_measured_rows_without_empty_columns():
    table = exhibits.table(board({}, ABSENT))
    assert table.to_dict("records") == [{
        "system": "TF-IDF", "benchmark": "NevIR", "metric": "pairwise_accuracy", "published": 2.0, "ours": 1.95,
        "interval": "1.20 – 2.70", "difference": -0.05, "measured": "full", "agrees": ROUNDING, "measured_metric": "right_rank",
        "n": "1,383", "data": "nevir test",
    }]  # fmt: skip


def test_the_table_names_what_stands_in_and_its_training():
    table = exhibits.table(board({"measured_system": "mine", "trained_on": "40 pairs", "note": "a remark"}))
    assert table[["measured_system", "trained_on", "note"]].to_numpy().tolist() == [["mine", "40 pairs", "a remark"]]


@pytest.mark.parametrize(
    ("n", "printed", "text"),
    [(1014, 3452, "1,014; printed: 3,452"), (1383, 1383, "1,383"), (9, math.nan, "9"), (math.nan, 9, "")],
)
def test_both_n_are_said_where_they_differ(n, printed, text):
    assert exhibits.n_text(n, printed) == text


def test_the_headline_counts_a_score_once_however_many_tables_reprint_it():
    text = exhibits.headline(board({}, {"paper": "truong", "exhibit": "Table 1", "metric": "right_rank"}, CHANCE))
    assert text == (
        "Printed scores that agree with ours, each counted once: 1 of 2 measured in full (median difference 1.02, largest "
        "2.00 points)."
    )


def test_the_headline_has_samples_and_other_protocols_apart_and_no_cosines_or_stand_ins():
    other = {"measured": "other protocol", "published": 85.48, "value": 64.4, "difference": -21.08, "benchmark": "STSB",
             "agrees": "differs by -21.08"}  # fmt: skip
    cosine = {
        "metric": "cosine_hoax",
        "published": 0.81,
        "value": 0.5,
        "difference": -0.31,
        "agrees": "differs by -0.31",
    }
    text = exhibits.headline(board({}, other, cosine))
    assert "1 of 1 measured in full (median difference 0.05" in text
    assert "; 0 of 1 measured by another protocol (median difference 21.08, largest 21.08 points)" in text
    assert exhibits.headline(board({"measured": "stand-in", "difference": math.nan})) == ""
