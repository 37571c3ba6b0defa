"""An exhibit's rows for reading, and its summary in a sentence: how nearly it was measured, and whether it agrees."""

import math

import pandas as pd
import pytest

from nblib.results import exhibits, scoreboard
from nblib.results.scoreboard import NOTHING, ROUNDING

ROW = dict.fromkeys(scoreboard.TEXTS, "")
ROW |= {"paper": "weller", "exhibit": "Table 2", "system": "TF-IDF"}
ROW |= {"benchmark": "NevIR", "metric": "pairwise_accuracy"}
ROW |= {"published": 2.0, "value": 1.95, "ci_low": 1.2, "ci_high": 2.7, "difference": -0.05, "n": 1383.0}
ROW |= {"measured": "full", "agrees": ROUNDING, "measured_system": "TF-IDF", "measured_metric": "right_rank"}
ROW |= {"corpus": "nevir", "split": "test", "n_printed": 1383.0, "scale": "official"}
CHANCE = {"system": "Random", "published": 25.0, "value": 23.0, "difference": -2.0, "agrees": "differs by -2.0"}
NAN = dict.fromkeys(["value", "difference"], math.nan)
ABSENT = {"system": "ColBERTv2", **NAN, "measured": "not run", "agrees": ""}
FIGURE = {"metric": scoreboard.SHOWN, "published": math.nan, **NAN, "agrees": NOTHING}


def board(*rows):
    return pd.DataFrame([{**ROW, **row} for row in rows], columns=scoreboard.COLUMNS)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{}], "1 measured in full, of which 1 agrees (within rounding or our interval), off by -0.05 to -0.05."),
        ([{}, CHANCE], "in full, of which 1 agrees (within rounding or our interval), off by -2.00 to -0.05."),
        ([{"measured": "sample"}, ABSENT], "1 measured on a sample (other or fewer items, or systems), off by -0.05"),
        ([{**FIGURE, "measured": "full"}, {**FIGURE, **ABSENT}], "Of 2 systems: 1 measured in full; 1 not run."),
    ],
)
def test_the_summary_says_how_nearly_and_how_far(rows, said):
    assert said in exhibits.describe_exhibit(board(*rows))


@pytest.mark.parametrize(("measured", "shown"), [(True, 2), (False, 1)])
def test_an_exhibit_has_its_text_and_where_measured_its_table(measured, shown):
    rows = board({} if measured else ABSENT, {"exhibit": "Table 1", "system": "of another exhibit"})
    covered = pd.Series({"paper": "weller", "exhibit": "Table 2", "title": "All", "command": "make study SCALE=paper"})
    parts = exhibits.exhibit(rows, covered)
    assert len(parts) == shown and parts[0].data.startswith("### Weller, Table 2: All\n\n")
    assert parts[0].data.endswith("In full: `make study SCALE=paper`.")
    assert not measured or "of another exhibit" not in parts[1].to_html()


def test_the_table_has_the_measured_rows_without_empty_columns_what_stands_in_and_both_n():
    (row,) = exhibits.table(board({}, ABSENT)).to_dict("records")
    assert row.keys().isdisjoint(["trained_on", "note", "measured_system"])
    assert (row["ours"], row["interval"], row["n"], row["items"]) == (1.95, "1.20 – 2.70", "1,383", "nevir test")
    mine = {"measured_system": "mine", "trained_on": "nevir", "training_items": 40.0, "note": "a remark", "n": 1014.0}
    shown = exhibits.table(board(mine))[["measured_system", "trained_on", "note", "n"]].to_numpy().tolist()
    assert shown == [["mine", "40 of NevIR's training pairs", "a remark", "1,014; printed: 1,383"]]


def test_the_agreement_counts_a_score_once_and_has_samples_and_other_protocols_apart():
    other = {"measured": "other protocol", "published": 85.48, "value": 64.4, "difference": -21.08, "agrees": "differs"}
    cosine = {"metric": "cosine_hoax", "published": 0.81, "value": 0.5, "difference": -0.31, "agrees": "differs"}
    reprinted = {"paper": "truong", "exhibit": "Table 1", "metric": "right_rank"}
    assert exhibits.describe_agreement(board({}, reprinted, CHANCE, other, cosine, {**ABSENT, "published": 9.0})) == (
        "Of 6 distinct printed numbers 5 are compared with ours, 0 have a stand-in, 1 were not run. Scores that agree (cosines, "
        "chance levels and counts aside): 1 of 1 measured in full (median difference 0.05, largest 0.05 points); 0 of 1 measured "
        "by another protocol (median difference 21.08, largest 21.08 points)."
    )
    assert exhibits.describe_agreement(board({"measured": "stand-in", "difference": math.nan})) == ""
