"""The scoreboard: how nearly a printed number was measured, whether the two agree, and nothing expected silently absent; and
the declared mapping, which names only what is printed."""

import math

import pandas as pd
import pytest

from nblib import artefacts, results
from nblib.analysis import matrix
from nblib.results import published, scoreboard
from nblib.results.scoreboard import CELL, INTERVAL, NOTHING, ROUNDING, agreement

ENCODER = "all-mpnet-base-v2"
WANTED = scoreboard.expected()
EXHIBITS = set(published.exhibits()[["paper", "exhibit"]].itertuples(index=False, name=None))
SEMANTONEG = {"benchmark": "semantoneg", "corpus": "semantoneg", "split": "test", "metric": "accuracy", "n": 3152}
NEVIR = {"benchmark": "nevir", "corpus": "nevir", "split": "test", "metric": "right_rank", "n": 1383}
MINI = {**NEVIR, "corpus": "nevir_mini", "n": 40}
STSB = {"benchmark": "stsb", "corpus": "stsb", "split": "dev+test", "part": "all", "metric": "pearson", "n": 2626}


def row(value, of=SEMANTONEG, system=ENCODER, **about):
    return {"system": system, "value": value, **of, **about}


def board_of(folder, *rows):
    return scoreboard.build(results.record(rows, scale="toy"), folder, "toy")


def cell(board, paper, exhibit, system, benchmark=None, metric=None):
    """One row of a scoreboard."""
    given = {"paper": paper, "exhibit": exhibit, "system": system, "benchmark": benchmark, "metric": metric}
    chosen = pd.concat([board[key] == value for key, value in given.items() if value is not None], axis=1).all(axis=1)
    (found,) = board[chosen].itertuples()
    return found


def reproduced(board):
    return scoreboard.coverage(board).reproduced.sum()


def test_what_is_declared_is_printed_and_no_printed_cell_has_two_mappings():
    taken = []
    for one in scoreboard.cells():
        for metric in one.metrics:
            fits = (WANTED.paper == one.paper) & (WANTED.benchmark == one.benchmark) & (WANTED.metric == metric)
            printed = set(WANTED[fits].exhibit)
            assert printed and set(one.exhibits) <= printed, one
            taken += [(one.paper, exhibit, one.benchmark, metric) for exhibit in one.exhibits or printed]
        assert set(one.ours) <= set(results.COLUMNS)
    assert len(taken) == len(set(taken))
    for entry in scoreboard._declared()["systems"]:
        for exhibit in entry.get("exhibits", [None]):
            fits = (WANTED.paper == entry["paper"]) & (WANTED.exhibit.eq(exhibit) if exhibit else True)
            assert set(entry["printed"]) <= set(WANTED[fits].system), entry
        assert all("system" in columns and set(columns) <= set(results.COLUMNS) for columns in entry["stand_ins"])
    shown, pictures = WANTED[WANTED.metric == scoreboard.SHOWN], scoreboard.pictures()
    with_picture = sorted((one["paper"], one["exhibit"]) for one in pictures)
    assert with_picture == sorted(set(zip(shown.paper, shown.exhibit, strict=True)))
    for one in pictures:
        assert one["measured"] in scoreboard.MEASURED[:-1] and (one["measured"] == "full" or one["note"])
        assert one["file"].startswith(f"{one['notebook']}_")


def test_a_cell_is_answered_by_its_exhibits_entry_or_by_none():
    assert scoreboard.mapping("cao", "Table 1", "STSB", "accuracy").n == 550
    assert scoreboard.mapping("cao", "Table 2", "STSB", "accuracy") is None
    assert {one.paper for one in scoreboard.mappings_of("nevir")} == {"truong", "weller"}
    assert [one.paper for one in scoreboard.mappings_of("semantoneg")] == ["vahtola"]
    assert scoreboard.mappings_of("stsb") == []


def test_a_printed_system_is_sought_under_its_own_name_first_and_by_the_stand_in_of_its_table():
    assert scoreboard.candidates("truong", "Table 1", "MPNet") == [({"system": ENCODER}, False)]
    names = [columns["system"] for columns, _ in scoreboard.candidates("truong", "Figure 1", "H-MPNet")]
    assert names == ["H-MPNet", "hedge-mpnet", "hedge-minilm"]
    in_two = [scoreboard.candidates("truong", table, "Only negation")[1:] for table in ("Table 2", "Table 3")]
    of_encoder = [({"system": "all-MiniLM-L6-v2", "variant": "only-negation"}, True)]
    assert in_two == [of_encoder, [({"system": "hedge-qwen-0.5b-negation"}, True)]]
    assert scoreboard.printed_system("truong", "Table 1", "hedge-mpnet") == "HedgeMPNet"


@pytest.mark.parametrize(
    ("printed", "value", "interval", "said"),
    [
        ("34.91", 34.905, (), ROUNDING),  # a half, rounded up
        ("34.91", 34.915, (), ROUNDING),  # and rounded down
        ("34.91", 34.9161, (), "differs by +0.01"),
        ("34.91", 32.42, (30.26, 34.47), "differs by -2.49"),
        ("34.91", 32.42, (30.26, 34.91), INTERVAL),
        ("25", 23.9, (), "differs by -1.1"),
        ("-4.2", -4.24, (), ROUNDING),
        ("", 34.9, (1.0, 99.0), NOTHING),
    ],
)
def test_a_value_agrees_where_it_rounds_to_what_is_printed_or_has_it_in_its_interval(printed, value, interval, said):
    assert agreement(printed, value, *interval) == said


def test_the_same_system_on_the_same_items_is_full_and_reproduced_where_it_agrees(tmp_path):
    board = board_of(tmp_path, row(31.92, ci_low=30.3, ci_high=33.5), row(2.5, system="all-MiniLM-L6-v2"))
    found = cell(board, "vahtola", "Table 8", ENCODER)
    assert (found.measured, found.agrees, found.n, found.n_printed) == ("full", ROUNDING, 3152, 3152)
    assert (found.published, found.value, found.ci_low, found.ci_high) == (31.9, 31.92, 30.3, 33.5)
    assert found.difference == pytest.approx(0.02) and (found.corpus, found.split) == ("semantoneg", "test")
    other = cell(board, "vahtola", "Table 8", "all-MiniLM-L6-v2")
    assert (other.measured, other.agrees) == ("full", "differs by +0.6")
    assert scoreboard.coverage(board).set_index("exhibit").reproduced["Table 8"] == 1
    board = board_of(tmp_path, row(8.1, NEVIR))
    rows = board[board.measured != "not run"]
    tables = {("truong", "Table 1", "MPNet"), ("truong", "Table 2", "MPNet"), ("weller", "Table 2", ENCODER)}
    assert set(zip(rows.paper, rows.exhibit, rows.system, strict=True)) == tables, "every table that prints it"


def test_of_several_measurements_the_one_on_the_printed_number_of_items_answers_and_fewer_are_a_sample(tmp_path):
    board = board_of(tmp_path, row(31.92), row(31.6, protocol="samples", sample="2152", n=2152))
    assert cell(board, "cao", "Table 2", ENCODER, "SemAntoNeg", "accuracy").value == 31.6
    assert cell(board, "vahtola", "Table 8", ENCODER).value == 31.92
    several = row(1, NEVIR, sample="100", n=100), row(8.1, NEVIR, sample="700", n=700), row(3, NEVIR)
    assert cell(board_of(tmp_path, *several), "weller", "Table 2", ENCODER).value == 3
    board = board_of(tmp_path, *several[:2])
    found = cell(board, "weller", "Table 2", ENCODER)
    assert (found.measured, found.agrees, found.n, found.n_printed) == ("sample", ROUNDING, 700, 1383)
    assert not reproduced(board), "a sample reproduces nothing, however well it agrees"


@pytest.mark.parametrize(
    "other",
    [
        row(70.0, protocol="splits_by_set", sample="2151", n=2151),
        row(78.1, STSB, part="clean", metric="accuracy", n=550),
        row(9.0, NEVIR, base=ENCODER, variant="both"),
    ],
)
def test_a_number_of_the_right_system_on_other_items_or_of_a_variant_is_no_answer(tmp_path, other):
    assert set(board_of(tmp_path, other).measured) == {"not run"}


def test_an_adapter_answers_by_the_papers_procedure_alone(tmp_path):
    ways = [("original_norms", rule) for rule in ("accuracy", "correlation_constrained")]
    ways += [("weighted_cosine", "accuracy")]
    rows = [row(index, STSB, base=ENCODER, adapter=how, variant=rule) for index, (how, rule) in enumerate(ways)]
    answered = board_of(tmp_path, *rows).query("measured != 'not run'")
    assert answered[["metric", "value", "adapter"]].to_numpy().tolist() == [["pearson_w_sts", 0, "original_norms"]]


def test_another_metric_or_protocol_is_compared_and_never_reproduced(tmp_path):
    cannot = {**NEVIR, "benchmark": "cannot_wmt", "corpus": "cannot_wmt", "n": 7804}
    rows = row(32.42, cannot, metric="spearman"), row(34.907, cannot, metric="pearson")
    board = board_of(tmp_path, *rows)
    found = cell(board, "truong", "Table 1", "MPNet", "Cannot")
    assert (found.metric, found.measured_metric, found.value) == ("spearman", "pearson", 34.907)
    assert (found.measured, found.agrees) == ("other protocol", ROUNDING) and "fits Pearson" in found.note
    assert not reproduced(board)


def test_a_stand_in_is_named_with_its_training_and_never_compared(tmp_path):
    trained = {"trained_on": "both", "training_items": 1600}
    board = board_of(tmp_path, row(40.56, NEVIR, "hedge-mpnet", ci_low=38.0, ci_high=43.0, **trained))
    rows = board[board.measured != "not run"]
    assert set(rows.system) == {"HedgeMPNet"} and set(rows.measured) == {"stand-in"}
    assert set(rows.measured_system) == {"hedge-mpnet"} and set(rows.trained_on) == {"both"}
    assert rows.value.eq(40.56).all() and rows.difference.isna().all() and rows.agrees.eq("").all()
    both = board_of(tmp_path, row(35.9, NEVIR, "hedge-mpnet"), row(40.6, NEVIR, "HedgeMPNet"))
    found = cell(both, "truong", "Table 1", "HedgeMPNet", "NevIR")
    assert (found.value, found.measured) == (40.6, "full"), "the printed system itself goes first"


def test_a_miniature_and_a_set_of_our_own_are_stand_ins_for_the_papers_items(tmp_path):
    found = cell(board_of(tmp_path, row(8.1, MINI)), "weller", "Table 2", ENCODER)
    assert (found.measured, found.agrees, found.n) == ("stand-in", "", 40)
    assert math.isnan(found.difference) and "a mini set" in found.note
    both = board_of(tmp_path, row(50.0, MINI), row(8.1, NEVIR))
    assert cell(both, "weller", "Table 2", ENCODER).measured == "full", "the official items go first"
    board = board_of(tmp_path, row(16.2, {**NEVIR, "benchmark": "m3", "corpus": "m3"}, metric="spearman"))
    found = cell(board, "truong", "Table 1", "MPNet", "M3-Counterfactual")
    assert (found.measured, found.agrees) == ("stand-in", "") and "isn't published" in found.note


@pytest.mark.parametrize(("value", "agrees"), [(1383.0, ROUNDING), (1375.0, "differs")])
def test_a_count_agrees_or_differs_by_no_number(tmp_path, value, agrees):
    board = board_of(tmp_path, row(value, NEVIR, "nevir", metric="pairs"))
    found = cell(board, "weller", "Table 1", "NevIR test", metric="pairs")
    assert (found.measured, found.agrees) == ("full", agrees) and math.isnan(found.difference)


def test_everything_expected_is_answered_or_not_run_and_read_back_as_written(tmp_path):
    board = board_of(tmp_path, row(31.9))
    assert board.columns.tolist() == scoreboard.COLUMNS and len(board) == len(WANTED)
    assert not WANTED.duplicated(CELL).any() and set(zip(WANTED.paper, WANTED.exhibit, strict=True)) == EXHIBITS
    numbers = WANTED[WANTED.metric != scoreboard.SHOWN]
    assert (numbers.printed.astype(float) == numbers.published).all()
    assert not WANTED.metric.str.endswith("_delta").any(), "derived differences are no numbers to measure"
    absent = board[board.measured == "not run"]
    assert 0 < len(absent) < len(board) and absent.value.isna().all() and absent.agrees.eq("").all()
    board.to_csv(tmp_path / "scoreboard.csv", index=False)
    pd.testing.assert_frame_equal(scoreboard.read(tmp_path / "scoreboard.csv"), board, check_dtype=False)


def draw(run_dir, file, notebook, form):
    """Let a run have drawn a figure."""
    artefacts.write_table(pd.DataFrame({"x": range(3)}), run_dir / "figures" / f"{file}.csv")
    results.save(results.record([]), run_dir / "results" / f"{notebook}_it.csv", form=form)


@pytest.mark.parametrize(("form", "how"), [("official", "full"), ("mini", "stand-in")])
def test_an_exhibit_without_numbers_is_measured_where_its_figure_is_drawn(tmp_path, form, how):
    draw(tmp_path, "09_nevir_architectures/fig_words", "09", form)
    board = board_of(tmp_path)
    found = cell(board, "weller", "Figure 3", "the exhibit")
    assert (found.measured, found.agrees) == (how, NOTHING)
    assert found.figure == "09_nevir_architectures/fig_words"
    assert ("drawn from a mini set" in found.note) == (form == "mini")
    assert board[board.exhibit.ne("Figure 3")].measured.eq("not run").all() and not reproduced(board)


def test_of_an_exhibit_of_systems_those_are_measured_that_this_run_has_with_their_own_figure(tmp_path):
    draw(tmp_path, "01_diagnosis/fig_histograms", "01", "official")
    draw(tmp_path, f"06_negation_adapter/fig_ranks_{ENCODER}", "06", "official")
    board = board_of(tmp_path, row(1.0), row(1.0, system="e5-base-v2"))
    for exhibit, systems in {"Figure 2": {ENCODER, "e5-base-v2"}, "Figure 3": {ENCODER}}.items():
        rows = board[(board.paper == "cao") & (board.exhibit == exhibit) & (board.measured != "not run")]
        assert set(rows.system) == systems


FULL, SAMPLE, STAND_IN, ABSENT = ("full", ROUNDING), ("sample", ROUNDING), ("stand-in", ""), ("not run", "")
DIFFERS = ("full", "differs by +1.0")


def as_measured(board, exhibit, *how):
    """The coverage of an exhibit of Weller's as if its rows had been measured so: how nearly, and whether they agree; the last
    for the rest."""
    board = board.copy()
    indices = board.index[(board.paper == "weller") & (board.exhibit == exhibit)]
    for index, (nearly, agrees) in zip(indices, [*how, *[how[-1]] * len(indices)], strict=False):
        board.loc[index, ["measured", "agrees"]] = nearly, agrees
    return scoreboard.coverage(board).set_index(["paper", "exhibit"]).loc["weller", exhibit]


@pytest.mark.parametrize(
    ("how", "verdict", "reproduced"),
    [
        ([("full", INTERVAL), FULL], "reproduced", 24),
        ([DIFFERS, FULL], "measured in full, 23 of 24 agree", 23),
        ([SAMPLE, FULL], "measured in part", 23),
        ([("other protocol", ROUNDING), ABSENT], "measured in part", 0),
        ([FULL, STAND_IN], "measured in part", 1),
        ([STAND_IN, ABSENT], "stand-ins alone", 0),
        ([ABSENT], "not run", 0),
    ],
)
def test_an_exhibit_is_reproduced_only_where_all_is_measured_in_full_and_agrees(tmp_path, how, verdict, reproduced):
    found = as_measured(board_of(tmp_path), "Table 2", *how)
    assert (found.verdict, found.reproduced, found.rows) == (verdict, reproduced, 24)
    assert bool(found.command) == (not {*how} <= {FULL, DIFFERS, ("full", INTERVAL)})


def test_what_prints_nothing_is_shown_and_an_empty_study_is_not_run(tmp_path):
    found = as_measured(board_of(tmp_path), "Figure 3", ("full", NOTHING))
    assert (found.verdict, found.reproduced, found.full) == ("shown in full", 0, 1)
    table = scoreboard.coverage(board_of(tmp_path))
    assert len(table) == len(EXHIBITS) and set(table.verdict) == {"not run"}
    assert table.not_run.sum() == table.rows.sum() == len(WANTED)
    assert (table.command == "make study SCALE=paper").all()
    quick = scoreboard.coverage(scoreboard.build(results.record([]), tmp_path, "quick"))
    assert set(quick.command) == {"make study SCALE=official; make study SCALE=paper"}


def test_the_matrix_has_each_systems_largest_whole_score_and_the_printed_number_beside_it(tmp_path):
    rows = [row(8.1, NEVIR), row(9.0, NEVIR, sample="100", n=100), row(50.0, NEVIR, part="negation_undone", n=700)]
    rows += [row(1.0, NEVIR, base=ENCODER, variant="both"), row(31.9), row(60.0, MINI, "mine", trained_on="both")]
    measured = results.record(rows, scale="toy")
    table = matrix.matrix(measured, scoreboard.build(measured, tmp_path, "toy"))
    shown = table[["system", "benchmark", "value"]].to_numpy().tolist()
    assert shown == [[ENCODER, "SemAntoNeg", 31.9], [ENCODER, "NevIR", 8.1], ["mine", "NevIR (mini)", 60.0]]
    assert table.published.fillna(0).tolist() == [31.9, 8.1, 0]
    assert matrix.chances(table) == {"NevIR": 25.0, "NevIR (mini)": 25.0, "SemAntoNeg": 100 / 3}
