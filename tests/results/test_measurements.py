"""Measurements: each once, with a finite value, in a file that reads back as it was written."""

import math

import pandas as pd
import pytest

from nblib import artefacts, results
from nblib.results import ResultsError, measurements

WHERE = {"corpus": "semantoneg", "split": "test", "scale": "official", "n": 3152}


def one_row(system="all-mpnet-base-v2", value=31.9, **changes):
    return {"system": system, "benchmark": "semantoneg", "metric": "accuracy", "value": value, **WHERE, **changes}


def record(*rows):
    return results.record(rows)


def test_a_table_becomes_measurements_by_its_columns_and_constants():
    table = pd.DataFrame([{"benchmark": "nevir", "metric": "right_rank", "value": 8.1, "seconds": 3}])
    (row,) = results.record(table, system="a", base=None, trained_on="nevir", training_items=40).to_dict("records")
    assert list(row) == results.COLUMNS
    assert (row["system"], row["benchmark"], row["value"], row["training_items"]) == ("a", "nevir", 8.1, 40)
    assert math.isnan(row["ci_low"]) and row["base"] == row["part"] == "", "what neither names is empty"
    with pytest.raises(ResultsError, match="no column seconds"):
        results.record(table, seconds=3)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([one_row("b"), one_row(value=math.nan)], "1 measurements have no finite value, first: all-mpnet"),
        ([one_row(value=math.inf)], "no finite value"),
        ([one_row(n="many")], "must hold numbers"),
        ([one_row(), one_row(value=32.0, n=9, trained_on="nevir")], "1 measurements are repeated.*first: all-mpnet"),
    ],
)
def test_what_is_no_measurement_or_is_taken_twice_is_refused(rows, message):
    with pytest.raises(ResultsError, match=message):
        record(*rows)


@pytest.mark.parametrize("column", results.KEY)
def test_what_differs_in_one_part_of_the_key_is_another_measurement(column):
    assert len(record(one_row(), one_row() | {column: "another"})) == 2


def test_two_files_that_measure_the_same_are_refused(tmp_path):
    for name, system in [("07_a", "a"), ("07_b", "b"), ("09_b", "b")]:
        results.save(record(one_row(system)), tmp_path / "results" / f"{name}.csv")
    with pytest.raises(ResultsError, match=r"1 measurements are repeated.*first: b / semantoneg"):
        results.load(tmp_path)
    (tmp_path / "results" / "09_b.csv").unlink()
    assert results.load(tmp_path).system.tolist() == ["a", "b"], "in the order of the files' names"


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path):
    named = one_row('a "quoted", model\nof two lines', trained_on="NA", fingerprint="007")
    rows = [one_row(value=1 / 3, ci_low=30.123456, ci_high=33.5), named, one_row("None", sample="0100", seed="0+1")]
    first = results.save(record(*rows), tmp_path / "results" / "a.csv")
    loaded = results.load(tmp_path)
    pd.testing.assert_frame_equal(first, loaded, check_dtype=False)
    assert loaded.value[0] == 0.3333, "as many digits as don't depend on the number of threads"
    assert loaded["sample"][2] == "0100" and loaded.fingerprint[1] == "007", "keys stay texts"
    results.save(loaded, tmp_path / "again.csv")
    assert (tmp_path / "results" / "a.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()


def test_an_empty_table_is_one_and_no_results_and_a_broken_file_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        results.load(tmp_path)
    assert results.save(record(), tmp_path / "results" / "a.csv").empty
    assert results.load(tmp_path).columns.tolist() == results.COLUMNS
    artefacts.write_table(pd.DataFrame({"paper": ["cao"]}), tmp_path / "results" / "bad.csv")
    with pytest.raises(ResultsError, match=r"bad\.csv: no column system"):
        results.load(tmp_path)


def test_the_miniatures_are_told_from_official_data_and_from_what_has_no_corpus():
    table = pd.DataFrame({"corpus": ["nevir", "nevir_mini", "authored_triples", "", "stsb"]})
    assert measurements.is_mini(table).tolist() == [False, True, True, False, False]
