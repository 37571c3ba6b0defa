"""Measurements: each once, with a finite value, in a file that reads back as it was written."""

import math

import pandas as pd
import pytest

from nblib import artefacts, results
from nblib.results import ResultsError, measurements


def one_row(system="all-mpnet-base-v2", benchmark="SemAntoNeg", metric="accuracy", value=31.9, **changes):
    about = {"n": 3152, "scale": "official", "data": "semantoneg test"}
    return results.row(system, benchmark, metric, value, **about | changes)


def test_a_measurement_has_its_columns_and_no_printed_number():
    row = one_row(interval=(30.3, 33.5), trained_on="40 pairs", fingerprint="abc")
    assert list(row) == results.COLUMNS
    assert not {"paper", "exhibit", "published", "status"} & set(row)
    assert (row["value"], row["ci_low"], row["ci_high"], row["trained_on"]) == (31.9, 30.3, 33.5, "40 pairs")
    bare = one_row()
    assert math.isnan(bare["ci_low"]) and math.isnan(bare["ci_high"])
    assert bare["trained_on"] == bare["fingerprint"] == ""


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_a_measurement_without_a_finite_value_is_refused_with_its_place(value):
    rows = [one_row("another"), one_row(value=value)]
    named = "all-mpnet-base-v2 / SemAntoNeg / accuracy / semantoneg test / official"
    with pytest.raises(ResultsError, match=f"some/file.csv: 1 measurements have no finite value, first: {named}"):
        measurements.validate(pd.DataFrame(rows), "some/file.csv")


@pytest.mark.parametrize("column", measurements.NUMBERS)
def test_a_number_that_is_a_word_is_refused_by_its_column(column):
    with pytest.raises(ResultsError, match=f"some/file.csv: column {column} must hold numbers"):
        measurements.validate(pd.DataFrame([one_row() | {column: "many"}]), "some/file.csv")


@pytest.mark.parametrize("column", results.COLUMNS)
def test_a_missing_column_is_named(column):
    with pytest.raises(ResultsError, match=f"x.csv: no column {column};"):
        measurements.validate(pd.DataFrame([one_row()]).drop(columns=column), "x.csv")


def test_a_repeated_measurement_is_refused_by_name_even_with_another_value():
    row = one_row()
    named = "all-mpnet-base-v2 / SemAntoNeg / accuracy / semantoneg test / official"
    with pytest.raises(ResultsError, match=rf"some/file.csv: 1 measurements are repeated, first: {named}"):
        measurements.validate(pd.DataFrame([row, row | {"value": 32.0, "n": 9, "trained_on": "x"}]), "some/file.csv")


@pytest.mark.parametrize("column", results.KEY)
def test_what_differs_in_one_part_of_the_key_is_another_measurement(column):
    table = pd.DataFrame([one_row(), one_row() | {column: "another"}])
    assert len(measurements.validate(table, "some/file.csv")) == 2


def test_two_files_that_measure_the_same_are_refused(tmp_path):
    for name, system in [("07_a", "a"), ("07_b", "b"), ("09_b", "b")]:
        results.save([one_row(system)], tmp_path / "results" / f"{name}.csv")
    with pytest.raises(ResultsError, match="1 measurements are repeated, first: b / SemAntoNeg"):
        results.load(tmp_path)
    (tmp_path / "results" / "09_b.csv").unlink()
    assert results.load(tmp_path).system.tolist() == ["a", "b"], "in the order of the files' names"


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path):
    rows = [
        one_row(value=1 / 3, interval=(30.123456, 33.5)),
        one_row('a "quoted", model\nof two lines', trained_on="NA", fingerprint="007"),
        one_row("None", benchmark="nan", data="stsb dev+test, all negations"),
    ]
    first = results.save(rows, tmp_path / "results" / "a.csv")
    loaded = results.load(tmp_path)
    pd.testing.assert_frame_equal(first, loaded, check_dtype=False)
    assert loaded.value[0] == 0.3333, "as many digits as don't depend on the number of threads"
    results.save(loaded.to_dict("records"), tmp_path / "again.csv")
    assert (tmp_path / "results" / "a.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()


def test_what_is_added_stands_beside_the_others_and_replaces_its_own_benchmarks(tmp_path):
    file = tmp_path / "results" / "a.csv"
    measurements.add([one_row(), one_row(benchmark="NevIR", value=8.0)], file, encoder="a")
    measurements.add([one_row(benchmark="NevIR", value=9.0), one_row(benchmark="MTEB STS12")], file, task="more")
    loaded = results.load(tmp_path)
    assert loaded[["benchmark", "value"]].to_numpy().tolist() == [
        ["SemAntoNeg", 31.9],
        ["NevIR", 9.0],
        ["MTEB STS12", 31.9],
    ]
    about = artefacts.about(file)
    assert (about["encoder"], about["task"]) == ("a", "more") and about["others_by"] == about["commit"]


def test_a_notebook_that_measured_nothing_leaves_an_empty_table(tmp_path):
    assert results.save([], tmp_path / "results" / "a.csv").empty
    assert results.load(tmp_path).columns.tolist() == results.COLUMNS


def test_no_results_and_a_broken_file_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        results.load(tmp_path)
    artefacts.write_table(pd.DataFrame({"paper": ["cao"]}), tmp_path / "results" / "bad.csv")
    with pytest.raises(ResultsError, match=r"bad\.csv: no column system"):
        results.load(tmp_path)


def test_the_miniatures_and_the_authored_anchors_are_told_from_official_data():
    data = [
        "nevir test",
        "nevir_mini",
        "Mini suite",
        "authored anchors",
        "sample test, one seed",
        "nevir test, trusted",
    ]
    mini = measurements.is_mini(pd.DataFrame({"data": data}))
    assert mini.tolist() == [False, True, True, True, False, False]
