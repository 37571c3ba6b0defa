"""The summary of an exhibit: its counts, differences and gaps."""

import math

import pandas as pd
import pytest

from nblib.results import exhibits, schema

ROW = {
    "paper": "weller", "exhibit": "Table 2", "system": "TF-IDF", "benchmark": "NevIR", "metric": "pairwise_accuracy",
    "published": 2.0, "ours": 1.95, "ci_low": 1.2, "ci_high": 2.7, "n": 1383.0, "scale": "official", "data": "nevir test",
    "model": "TF-IDF", "status": "reproduced",
}  # fmt: skip


def board(*rows):
    return schema.validate(pd.DataFrame([{**ROW, **row} for row in rows]), "test")


def summary(*rows):
    return exhibits.summary(board(*rows), "weller", "Table 2")


def test_what_was_measured_as_printed_is_compared():
    chance = {"system": "Random", "model": "Random", "published": 25.0, "ours": 23.0, "ci_low": 22.0, "ci_high": 24.0}
    text = summary({}, chance)
    assert text == (
        "2 numbers were measured as printed: 1.02 off in the median, at most 2.00 (Random, NevIR, pairwise_accuracy: 23.00 for "
        "25.00); 1 of 2 lie within our interval."
    )


def test_one_number_measured_twice_counts_as_the_papers_own_way():
    text = summary({}, {"data": "nevir test, trusted", "ours": 5.0})
    assert text.startswith("1 number was measured as printed: 0.05 off in the median, at most 0.05")
    assert "1 more of another variant, on other data or by a proxy: +3.00." in text


def test_a_stand_in_is_not_the_system_and_a_miniature_has_no_difference():
    assert summary({"status": "partial", "model": "another"}) == (
        "1 of another variant, on other data or by a proxy: -0.05."
    )
    assert summary({"status": "partial", "data": "nevir_mini"}) == (
        "1 measured on authored data, with which no printed number compares."
    )


def test_what_is_drawn_or_not_run_is_said():
    figure = {"metric": "shown", "published": math.nan, "ours": math.nan, "status": "partial"}
    absent = {"system": "ColBERTv2", "ours": math.nan, "status": "not run"}
    assert summary(figure, absent) == ("The figure shows our own data. 1 of the numbers printed not run.")
    assert summary({**figure, "system": "the exhibit", "status": "not run"}) == "Not run."
    assert (
        summary(figure, {"published": math.nan})
        == "1 measured. The figure shows our own data. The paper prints no score here."
    )
    assert summary({}, {"published": math.nan, "system": "ours"}).endswith("1 measured beyond what is printed.")


def test_a_score_that_is_reprinted_counts_once_and_what_is_no_score_not_at_all():
    rows = board(
        {"status": "partial", "paper": "truong", "exhibit": "Table 1"}, {},
        {"exhibit": "Table 1", "benchmark": "NevIR test", "metric": "pairs", "published": 1383.0, "ours": 1383.0},
        {"paper": "truong", "exhibit": "Figure 1", "metric": "cosine_hoax", "published": 0.81, "ours": 0.81},
        {"system": "Random", "published": 25.0, "ours": 23.9},
    )  # fmt: skip
    found = exhibits.scores(rows)
    assert found.system.tolist() == ["TF-IDF", "Random"]
    assert found.status.tolist() == ["reproduced", "reproduced"], "of reprints the row that counts as reproduced"


@pytest.mark.parametrize(("measured", "shown"), [(True, 2), (False, 1)])
def test_an_exhibit_has_its_text_and_where_measured_its_table(measured, shown):
    rows = board({} if measured else {"ours": math.nan, "status": "not run"})
    covered = pd.Series({"paper": "weller", "exhibit": "Table 2", "title": "All", "command": "make study SCALE=paper"})
    parts = exhibits.exhibit(rows, covered)
    assert len(parts) == shown
    assert parts[0].data.startswith("### Weller, Table 2: All\n\n")
    assert parts[0].data.endswith("In full: `make study SCALE=paper`.")


def test_the_difference_has_the_interval_of_ours():
    table = exhibits.table(board({}), "weller", "Table 2")
    assert table.difference.tolist() == ["-0.05 (-0.80 to +0.70)"]
    assert "ci_low" not in table
