"""The scoreboard: how nearly a printed number was measured, whether the two agree, and nothing expected silently absent."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from nblib import artefacts, results
from nblib.results import answers, comparison, measurements
from nblib.results.comparison import CELL, INTERVAL, NOTHING, ROUNDING, agreement

ENCODER = "all-mpnet-base-v2"


def measured(*rows):
    """Measurements, each `row`'s arguments."""
    made = [results.row(*row[:4], **{"n": 9, "scale": "toy", "data": "x"} | row[4]) for row in rows]
    return measurements.validate(pd.DataFrame(made, columns=results.COLUMNS), "here")


def semantoneg(value=31.9, system=ENCODER, benchmark="SemAntoNeg", **about):
    return (system, benchmark, "accuracy", value, {"data": "semantoneg test", "n": 3152} | about)


def nevir(value, system, benchmark="NevIR", **about):
    return (system, benchmark, "right_rank", value, {"data": "nevir test", "n": 1383} | about)


def board_of(folder, *rows):
    return results.scoreboard(measured(*rows), folder, "toy")


def cell(board, paper, exhibit, system, benchmark=None, metric=None):
    """One row of a scoreboard."""
    given = {"paper": paper, "exhibit": exhibit, "system": system, "benchmark": benchmark, "metric": metric}
    chosen = pd.concat([board[key] == value for key, value in given.items() if value is not None], axis=1).all(axis=1)
    (row,) = board[chosen].itertuples()
    return row


@pytest.mark.parametrize(
    ("printed", "value", "interval", "said"),
    [
        ("34.91", 34.907, (), ROUNDING),
        ("34.91", 34.905, (), ROUNDING),  # a half, rounded up
        ("34.91", 34.915, (), ROUNDING),  # and rounded down
        ("34.91", 34.9161, (), "differs by +0.01"),
        ("34.91", 32.42, (), "differs by -2.49"),
        ("34.91", 32.42, (30.26, 34.47), "differs by -2.49"),
        ("34.91", 32.42, (30.26, 34.91), INTERVAL),
        ("34.91", 34.91, (34.9, 35.0), ROUNDING),
        ("31.9", 31.94, (), ROUNDING),
        ("31.9", 31.96, (), "differs by +0.1"),
        ("25", 25.4, (), ROUNDING),
        ("25", 23.9, (), "differs by -1.1"),
        ("25", 23.9, (21.8, 26.1), INTERVAL),
        ("0.81", 0.8149, (), ROUNDING),
        ("-4.2", -4.24, (), ROUNDING),
        ("", 34.9, (1.0, 99.0), NOTHING),
    ],
)
def test_a_value_agrees_where_it_rounds_to_what_is_printed_or_has_it_in_its_interval(printed, value, interval, said):
    assert agreement(printed, value, *interval) == said


def test_the_same_system_on_the_same_items_is_full_and_reproduced_where_it_agrees(tmp_path):
    board = board_of(tmp_path, semantoneg(31.92, interval=(30.3, 33.5)), semantoneg(2.5, "all-MiniLM-L6-v2"))
    row = cell(board, "vahtola", "Table 8", ENCODER)
    assert (row.measured, row.agrees, row.n, row.n_printed) == ("full", ROUNDING, 3152, 3152)
    assert (row.published, row.value, row.ci_low, row.ci_high) == (31.9, 31.92, 30.3, 33.5)
    assert row.difference == pytest.approx(0.02)
    other = cell(board, "vahtola", "Table 8", "all-MiniLM-L6-v2")
    assert (other.measured, other.agrees) == ("full", "differs by +0.6")
    assert results.reproduced(board)[row.Index] and not results.reproduced(board)[other.Index]


def test_one_measurement_answers_every_table_that_prints_it(tmp_path):
    board = board_of(tmp_path, nevir(8.1, ENCODER))
    rows = board[board.measured != "not run"]
    assert set(zip(rows.paper, rows.exhibit, rows.system, strict=True)) == {
        ("truong", "Table 1", "MPNet"), ("truong", "Table 2", "MPNet"), ("weller", "Table 2", ENCODER),
    }  # fmt: skip
    assert set(rows.measured_system) == {ENCODER}


def test_fewer_items_than_printed_are_a_sample_with_both_n(tmp_path):
    board = board_of(tmp_path, (ENCODER, "ExcluIR", "right_rank", 69.29, {"data": "excluir test", "n": 1014}))
    row = cell(board, "truong", "Table 1", "MPNet", "ExcluIR")
    assert (row.measured, row.agrees, row.n, row.n_printed) == ("sample", ROUNDING, 1014, 3452)
    assert not results.reproduced(board).any(), "a sample reproduces nothing, however well it agrees"


def test_of_several_measurements_the_one_on_the_printed_number_of_items_answers(tmp_path):
    split = "semantoneg, 10 samples"
    board = board_of(tmp_path, semantoneg(31.92), semantoneg(31.6, data=split, n=2152))
    assert cell(board, "cao", "Table 2", ENCODER, "SemAntoNeg", "accuracy").value == 31.6
    assert cell(board, "vahtola", "Table 8", ENCODER).value == 31.92
    parts = {"nevir test, negation undone": 700, "nevir test, a sample of 100 pairs": 100, "nevir test": 1383}
    rows = [nevir(place, ENCODER, data=data, n=n) for place, (data, n) in enumerate(parts.items(), start=1)]
    assert cell(board_of(tmp_path, *rows), "weller", "Table 2", ENCODER).value == 3
    assert cell(board_of(tmp_path, *rows[:2]), "weller", "Table 2", ENCODER).n == 700, "else the one on most items"


def test_a_number_of_the_right_system_on_other_data_is_no_answer(tmp_path):
    board = board_of(
        tmp_path, semantoneg(70.0, data="semantoneg, 10 splits by sentence set", n=2152),
        (ENCODER, "STSB", "accuracy", 78.1, {"data": "stsb dev+test, trusted negations", "n": 550}),
        (ENCODER, "CANNOT-WMT", "spearman", 32.42, {"data": "cannot_wmt test", "n": 7804}),
    )  # fmt: skip
    assert set(board.measured) == {"not run"}


def test_an_adapter_answers_by_the_papers_procedure_alone(tmp_path):
    about = {"data": "stsb dev+test, all negations", "n": 2626}
    names = [
        "original norms, a by accuracy",
        "original norms, a by correlation-constrained",
        "weighted cosine, a by accuracy",
    ]
    rows = [
        (f"{ENCODER} + adapter ({name})", "STSB", "pearson", 64.4 + place, about) for place, name in enumerate(names)
    ]
    board = board_of(tmp_path, *rows)
    answered = board[board.measured != "not run"]
    assert answered.metric.tolist() == ["pearson_w_sts"] and answered.value.tolist() == [64.4]
    assert answered.measured_system.tolist() == [f"{ENCODER} + adapter ({names[0]})"]


def test_truongs_cannot_stands_beside_pearsons_r(tmp_path):
    where = {"data": "cannot_wmt test", "n": 7804}
    rows = [(ENCODER, "CANNOT-WMT", name, value, where) for name, value in [("spearman", 32.42), ("pearson", 34.907)]]
    row = cell(board_of(tmp_path, *rows), "truong", "Table 1", "MPNet", "Cannot")
    assert (row.metric, row.measured_metric, row.value) == ("spearman", "pearson", 34.907)
    assert (row.measured, row.agrees) == ("other protocol", ROUNDING)
    assert "fits Pearson" in row.note


def test_a_stand_in_is_named_with_its_training_and_never_compared(tmp_path):
    board = board_of(tmp_path, nevir(40.56, "hedge-mpnet", interval=(38.0, 43.0), trained_on="authored (1,600)"))
    rows = board[board.measured != "not run"]
    assert set(rows.system) == {"HedgeMPNet"} and set(rows.measured) == {"stand-in"}
    assert set(rows.measured_system) == {"hedge-mpnet"} and set(rows.trained_on) == {"authored (1,600)"}
    assert rows.value.eq(40.56).all() and rows.difference.isna().all() and rows.agrees.eq("").all()
    assert not results.reproduced(board).any()


def test_the_printed_system_itself_goes_before_its_stand_in(tmp_path):
    board = board_of(tmp_path, nevir(35.9, "hedge-mpnet"), nevir(40.6, "HedgeMPNet"))
    row = cell(board, "truong", "Table 1", "HedgeMPNet", "NevIR")
    assert (row.value, row.measured) == (40.6, "full")
    minilm = board_of(tmp_path, nevir(20.0, "hedge-minilm"))
    assert cell(minilm, "truong", "Table 1", "HedgeMPNet", "NevIR").value == 20.0, (
        "the next stand-in, where that is all"
    )


def test_the_negation_aware_encoder_of_figure_1_has_a_stand_in_too(tmp_path):
    board = board_of(tmp_path, ("hedge-mpnet", "Figure 1 sentences", "cosine_hoax", 0.49, {"n": 1}))
    assert cell(board, "truong", "Figure 1", "H-MPNet", metric="cosine_hoax").measured == "stand-in"


@pytest.mark.parametrize("system", [ENCODER, "TF-IDF"])
def test_a_miniature_is_a_stand_in_for_the_official_items(tmp_path, system):
    board = board_of(tmp_path, nevir(8.1, system, "NevIR (mini)", data="nevir_mini", n=40))
    row = cell(board, "weller", "Table 2", system)
    assert (row.measured, row.agrees, row.n) == ("stand-in", "", 40)
    assert math.isnan(row.difference) and "a mini set" in row.note
    both = board_of(tmp_path, nevir(50.0, system, "NevIR (mini)", data="nevir_mini", n=40), nevir(8.1, system))
    assert cell(both, "weller", "Table 2", system).measured == "full", "the official items go first"


def test_a_set_of_our_own_is_a_stand_in_for_the_papers(tmp_path):
    row = (ENCODER, "M3-derived", "spearman", 16.2, {"data": "m3 test", "n": 2000})
    found = cell(board_of(tmp_path, row), "truong", "Table 1", "MPNet", "M3-Counterfactual")
    assert (found.measured, found.agrees) == ("stand-in", "") and math.isnan(found.difference)
    assert "isn't published" in found.note


def test_another_protocol_is_compared_and_never_reproduced(tmp_path, monkeypatch):
    ours = replace(answers.of("weller", "Table 2", "NevIR", "pairwise_accuracy"), protocol="the worse of two orders")
    known = answers.of
    monkeypatch.setattr(answers, "of", lambda paper, *cell: ours if paper == "weller" else known(paper, *cell))
    board = board_of(tmp_path, nevir(8.1, ENCODER))
    row = cell(board, "weller", "Table 2", ENCODER)
    assert (row.measured, row.agrees, row.note) == ("other protocol", ROUNDING, "the worse of two orders")
    assert not results.reproduced(board)[row.Index]


@pytest.mark.parametrize(("value", "agrees"), [(1383.0, ROUNDING), (1375.0, "differs")])
def test_a_count_agrees_or_differs_by_no_number(tmp_path, value, agrees):
    board = board_of(tmp_path, ("NevIR test", "NevIR", "pairs", value, {"data": "nevir test", "n": 1383}))
    row = cell(board, "weller", "Table 1", "NevIR test", metric="pairs")
    assert (row.measured, row.agrees) == ("full", agrees)
    assert math.isnan(row.difference)


@pytest.mark.parametrize(
    ("data", "n", "how"), [("nevir", 1383, "full"), ("nevir, sample", 200, "sample"), ("nevir_mini", 12, "not run")]
)
def test_the_papers_own_llm_answers_for_itself(tmp_path, data, n, how):
    board = board_of(
        tmp_path, nevir(74.04, "Llama-3-8B-Instruct", data=data, n=n) if how != "not run" else semantoneg()
    )
    assert cell(board, "truong", "Table 3", "Llama-3-8B-Instruct", "NevIR").measured == how


def test_everything_expected_is_answered_or_not_run(tmp_path):
    wanted, board = results.expected(), board_of(tmp_path, semantoneg())
    assert board.columns.tolist() == comparison.COLUMNS
    keys = set(board[CELL].itertuples(index=False, name=None))
    assert keys == set(wanted[CELL].itertuples(index=False, name=None))
    assert len(board) == len(keys) == len(wanted)
    absent = board[board.measured == "not run"]
    assert 0 < len(absent) < len(board)
    assert absent.value.isna().all() and absent.agrees.eq("").all() and absent.measured_system.eq("").all()


def test_expected_numbers_are_finite_and_no_exhibit_is_left_out():
    wanted = results.expected()
    assert wanted[["paper", "exhibit"]].drop_duplicates().shape[0] == 38
    numbers = wanted[wanted.metric != comparison.SHOWN]
    assert numbers.published.notna().all()
    assert (numbers.printed.astype(float) == numbers.published).all()
    assert not wanted.duplicated(CELL).any()
    assert not wanted.metric.str.endswith("_delta").any(), "derived differences are no numbers to measure"


def drawn(run_dir, file, notebook, data, rows=3):
    """A run that has drawn a figure."""
    target = run_dir / "figures" / f"{file}.csv"
    artefacts.write_table(pd.DataFrame({"x": range(rows)}), target)
    results.save([], run_dir / "results" / f"{notebook}_it.csv", data=data)


@pytest.mark.parametrize(("data", "how"), [("official", "full"), ("mini", "stand-in")])
def test_an_exhibit_without_numbers_is_measured_where_its_figure_is_drawn(tmp_path, data, how):
    drawn(tmp_path, "09_nevir_architectures/fig_words", "09", data)
    board = board_of(tmp_path)
    row = cell(board, "weller", "Figure 3", "the exhibit")
    assert (row.measured, row.agrees, row.n, row.data) == (how, NOTHING, 3, "09_nevir_architectures/fig_words")
    assert ("drawn from a mini set" in row.note) == (data == "mini")
    assert board[board.exhibit.ne("Figure 3")].measured.eq("not run").all()
    assert not results.reproduced(board).any(), "nothing printed can't be reproduced"


def test_of_an_exhibit_of_systems_those_are_measured_that_this_run_has(tmp_path):
    drawn(tmp_path, "01_diagnosis/fig_histograms", "01", "official")
    board = board_of(tmp_path, (ENCODER, "STSB", "negation_closer", 99.87, {"data": "stsb train, group 1"}))
    rows = board[(board.paper == "cao") & (board.exhibit == "Figure 2")]
    assert rows[rows.measured == "full"].system.tolist() == [ENCODER] and len(rows) == 10


def test_a_figure_of_each_system_is_sought_by_its_name(tmp_path):
    drawn(tmp_path, f"06_negation_adapter/fig_ranks_{ENCODER}", "06", "official")
    other = (ENCODER, "STSB", "x", 1.0, {}), ("e5-base-v2", "STSB", "x", 1.0, {})
    board = board_of(tmp_path, *other)
    rows = board[(board.paper == "cao") & (board.exhibit == "Figure 3")]
    assert rows[rows.measured != "not run"].system.tolist() == [ENCODER]
    assert cell(rows, "cao", "Figure 3", ENCODER).measured == "other protocol"


def covered(board, paper, exhibit):
    return results.coverage(board).set_index(["paper", "exhibit"]).loc[(paper, exhibit)]


def as_measured(board, paper, exhibit, *how):
    """The scoreboard with the rows of an exhibit as if they had been measured: how nearly, and whether they agree; the last
    for the rest."""
    board = board.copy()
    places = board.index[(board.paper == paper) & (board.exhibit == exhibit)]
    for place, (nearly, agrees) in zip(places, [*how, *[how[-1]] * len(places)], strict=False):
        board.loc[place, ["measured", "agrees"]] = nearly, agrees
    return board


def test_an_empty_study_has_all_38_exhibits_not_run_and_says_what_would_run_them(tmp_path):
    table = results.coverage(board_of(tmp_path))
    assert len(table) == 38
    assert set(table.verdict) == {"not run"}
    assert table.not_run.sum() == table.rows.sum() == len(results.expected())
    assert (table[["full", "sample", "other_protocol", "stand_in", "reproduced"]] == 0).all(axis=None)
    assert (table.command == "make study SCALE=paper").all()


def test_a_quick_run_is_pointed_to_the_official_scale_first(tmp_path):
    board = results.scoreboard(measured(), tmp_path, "quick")
    assert set(results.coverage(board).command) == {"make study SCALE=official; make study SCALE=paper"}


FULL, SAMPLE, STAND_IN, ABSENT = ("full", ROUNDING), ("sample", ROUNDING), ("stand-in", ""), ("not run", "")
DIFFERS = ("full", "differs by +1.0")


@pytest.mark.parametrize(
    ("how", "verdict", "reproduced"),
    [
        ([FULL], "reproduced", 24),
        ([("full", INTERVAL), FULL], "reproduced", 24),
        ([DIFFERS, FULL], "measured in full, 23 of 24 agree", 23),
        ([DIFFERS], "measured in full, 0 of 24 agree", 0),
        ([SAMPLE], "measured in part", 0),
        ([SAMPLE, FULL], "measured in part", 23),
        ([("other protocol", ROUNDING), ABSENT], "measured in part", 0),
        ([FULL, STAND_IN], "measured in part", 1),
        ([STAND_IN], "stand-ins alone", 0),
        ([STAND_IN, ABSENT], "stand-ins alone", 0),
        ([ABSENT], "not run", 0),
    ],
)
def test_an_exhibit_is_reproduced_only_where_all_is_measured_in_full_and_agrees(tmp_path, how, verdict, reproduced):
    board = as_measured(board_of(tmp_path), "weller", "Table 2", *how)
    found = covered(board, "weller", "Table 2")
    assert (found.verdict, found.reproduced, found.rows) == (verdict, reproduced, 24)
    assert bool(found.command) == (not {*how} <= {FULL, DIFFERS, ("full", INTERVAL)})
    assert set(results.coverage(board).verdict) - {verdict} <= {"not run"}


def test_what_prints_nothing_is_shown_and_not_reproduced(tmp_path):
    board = as_measured(board_of(tmp_path), "weller", "Figure 3", ("full", NOTHING))
    found = covered(board, "weller", "Figure 3")
    assert (found.verdict, found.reproduced, found.full) == ("shown in full", 0, 1)
