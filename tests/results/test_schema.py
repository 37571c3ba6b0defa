"""The results schema: what may call itself reproduced, and that nothing expected is silently absent."""

import math

import pandas as pd
import pytest

from nblib import results
from nblib.results import ResultsError, schema

NONE = pd.DataFrame(columns=results.COLUMNS)


def one_row(**changes):
    about = {"ours": 31.9, "n": 3152, "scale": "official", "data": "semantoneg", "official": True}
    system = changes.pop("system", "all-mpnet-base-v2")
    return results.row("cao", "Table 2", system, "SemAntoNeg", "accuracy", **about | changes)


def answers_to(paper, exhibit):
    """A reproduced row for every number an exhibit prints."""
    wanted = results.expected()
    return [
        results.row(*(item[key] for key in results.KEY), ours=50.0, n=9, scale="official", data="stsb", official=True)
        for item in wanted[(wanted.paper == paper) & (wanted.exhibit == exhibit)].to_dict("records")
    ]


def table_of(rows):
    return schema.validate(pd.DataFrame(rows), "test")


def test_a_row_looks_up_the_printed_number_and_derives_its_status():
    row = one_row()
    assert list(row) == results.COLUMNS
    assert (row["published"], row["ours"], row["status"], row["model"]) == (
        31.32, 31.9, "reproduced", "all-mpnet-base-v2",
    )  # fmt: skip
    assert one_row(official=False, data="semantoneg_mini")["status"] == "partial"
    assert one_row(stand_in=True, model="gemma")["status"] == "partial"
    assert math.isnan(one_row(system="a newcomer")["published"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "semantoneg_mini (test)"}, "1 'reproduced' rows without a score on official data.*all-mpnet"),
        ({"ours": math.nan}, "'reproduced' rows without a score"),
        ({"ours": math.inf}, "'reproduced' rows without a score"),
        ({"status": "done"}, "unknown status 'done'.*reproduced, partial, not run"),
        ({"n": "many"}, "column n must hold numbers"),
    ],
)
def test_a_row_that_breaks_the_schema_is_refused_with_its_place(change, message):
    with pytest.raises(ResultsError, match=f"(?s)some/file.csv: .*{message}"):
        schema.validate(pd.DataFrame([one_row() | change]), "some/file.csv")


def test_a_repeated_row_is_refused_by_name_and_the_same_score_of_another_model_is_not():
    first, second = one_row(), one_row(model="another")
    assert len(schema.validate(pd.DataFrame([first, second]), "some/file.csv")) == 2
    named = "cao / Table 2 / all-mpnet-base-v2 / SemAntoNeg / accuracy / semantoneg / another / official"
    with pytest.raises(ResultsError, match=rf"some/file.csv: 1 rows are repeated, first: {named}"):
        schema.validate(pd.DataFrame([first, second, second | {"ours": 32.0}]), "some/file.csv")


def test_no_printed_number_compares_with_a_miniature_or_the_authored_anchors():
    data = pd.Series(
        ["nevir test", "nevir_mini (test)", "semantoneg_mini", "mini suite", "authored anchors", "sample suite"]
    )
    assert schema.comparable(data).tolist() == [True, False, False, False, False, True]


@pytest.mark.parametrize("column", results.COLUMNS)
def test_a_missing_column_is_named(column):
    with pytest.raises(ResultsError, match=f"x.csv: no column {column};"):
        schema.validate(pd.DataFrame([one_row()]).drop(columns=column), "x.csv")


def test_a_mini_run_can_report_a_partial_result():
    table = table_of([one_row(official=False, data="semantoneg_mini")])
    assert table.status.tolist() == ["partial"]


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path):
    rows = [
        one_row(ours=1 / 3, interval=(30.123456, 33.5)),
        one_row(official=False, data="mini", ours=math.nan, model='a "quoted", model\nof two lines'),
        results.row("truong", "Table 4", "the exhibit", "", "shown", 1.0, n=1, scale="official", data="x", official=True),
    ]  # fmt: skip
    first = results.save(rows, tmp_path / "results" / "a.csv")
    loaded = results.load(tmp_path)
    pd.testing.assert_frame_equal(first, loaded, check_dtype=False)
    results.save(loaded.to_dict("records"), tmp_path / "results" / "b.csv")
    assert (tmp_path / "results" / "a.csv").read_bytes() == (tmp_path / "results" / "b.csv").read_bytes()
    assert len(results.load(tmp_path)) == 2 * len(rows)


def test_no_results_and_a_broken_file_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        results.load(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "bad.csv").write_text("paper,exhibit\ncao,Table 1\n")
    with pytest.raises(ResultsError, match=r"bad\.csv: no column system"):
        results.load(tmp_path)


def test_everything_expected_is_answered_or_not_run():
    rows = answers_to("cao", "Table 4")[:3]
    wanted, board = results.expected(), results.scoreboard(table_of(rows), "official")
    keys = set(board[results.KEY].itertuples(index=False, name=None))
    assert keys == set(wanted[results.KEY].itertuples(index=False, name=None))
    assert len(board) == len(keys) == len(wanted)
    assert board.status.value_counts().to_dict() == {"reproduced": 3, "not run": len(wanted) - 3}
    assert board[board.status == "not run"].ours.isna().all()


def test_an_answer_read_back_from_disk_still_answers(tmp_path):
    rows = answers_to("truong", "Table 4") + answers_to("cao", "Figure 2")
    results.save(rows, tmp_path / "results" / "a.csv")
    board = results.scoreboard(results.load(tmp_path), "official")
    assert len(board) == len(results.expected())
    counted = results.coverage(board).set_index(["paper", "exhibit"]).status
    assert counted["truong", "Table 4"] == counted["cao", "Figure 2"] == "reproduced"


def test_expected_numbers_are_finite_and_no_exhibit_is_left_out():
    wanted = results.expected()
    assert wanted[["paper", "exhibit"]].drop_duplicates().shape[0] == 38
    assert wanted[wanted.metric != "shown"].published.notna().all()
    assert not wanted.duplicated(results.KEY).any()


def test_an_empty_study_has_all_38_exhibits_not_run_and_says_what_would_run_them():
    table = results.coverage(results.scoreboard(NONE, "quick"))
    assert len(table) == 38
    assert set(table.status) == {"not run"}
    assert table.not_run.sum() == len(results.expected())
    assert (table[["reproduced", "partial"]] == 0).all(axis=None)
    assert (table.command != "").all()


def test_a_complete_exhibit_is_reproduced_and_a_gap_makes_it_partial():
    rows = answers_to("cao", "Table 4")
    for given, status, open_rows in [
        (rows, "reproduced", 0),
        (rows[1:], "partial", 1),
        (rows[:1], "partial", len(rows) - 1),
    ]:
        table = results.coverage(results.scoreboard(table_of(given), "official")).set_index(["paper", "exhibit"])
        found = table.loc[("cao", "Table 4")]
        assert (found.status, found.reproduced, found.not_run) == (status, len(given), open_rows)
        assert bool(found.command) == (status != "reproduced")
        assert (table.drop(("cao", "Table 4")).status == "not run").all()


def test_a_stand_in_makes_an_exhibit_partial_without_answering_its_rows():
    row = results.row("cao", "Table 4", "a small LLM", "STSB", "accuracy", 50.0, n=9, scale="official", data="stsb",
                      official=True, stand_in=True)  # fmt: skip
    table = results.coverage(results.scoreboard(table_of([row]), "official")).set_index(["paper", "exhibit"])
    found = table.loc[("cao", "Table 4")]
    assert (found.status, found.reproduced, found.partial) == ("partial", 0, 0)
    assert found.not_run > 0


def test_a_reproduced_answer_outranks_a_partial_one_for_the_same_number():
    wanted = answers_to("cao", "Table 4")
    rows = [row | {"status": "partial", "data": "stsb sample"} for row in wanted] + wanted
    table = results.coverage(results.scoreboard(table_of(rows), "official")).set_index(["paper", "exhibit"])
    assert table.loc[("cao", "Table 4")].status == "reproduced"
