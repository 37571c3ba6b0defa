"""Tables for people: reproducible and harmless."""

import pandas as pd
import pytest

from nblib import results
from nblib.results import measurements, tables

TABLE = pd.DataFrame({"system": ["<script>alert(1)</script>", "a_b & 50 %"], "ours": [1 / 3, None], "n": [3152, 240]})
TABLE["mini"] = [True, False]


def test_a_saved_table_is_its_csv_the_same_bytes_each_time(tmp_path):
    for name in ("one", "two"):
        tables.save_table(TABLE, tmp_path / name / "tab_x", "Share")
    assert {file.name for file in (tmp_path / "one").iterdir()} == {"tab_x.csv"}
    first, second = ((tmp_path / name / "tab_x.csv").read_text() for name in ("one", "two"))
    assert first == second
    assert first.splitlines()[1:] == ["<script>alert(1)</script>,0.3333,3152,True", "a_b & 50 %,,240,False"]


def test_a_reader_sees_digits_whole_numbers_and_a_dash_for_what_is_missing(tmp_path):
    page = tables.save_table(TABLE, tmp_path / "tab_x", "Share", digits=1).to_html()
    for cell in (">0.3<", ">–<", ">3152<", "<caption>"):
        assert cell in page
    assert "nan" not in page.lower()
    assert page == tables.show(TABLE, "Share", digits=1).to_html(), "not random: pages are compared"


def test_a_text_in_a_table_is_no_markup():
    page = tables.show(TABLE, "Share").to_html()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("table", [TABLE.iloc[:0], TABLE[["system"]], TABLE[["ours"]], TABLE.assign(ours=float("nan"))])
def test_empty_and_one_column_tables_are_saved_too(tmp_path, table):
    tables.save_table(table, tmp_path / "tab_x", "Share").to_html()
    assert (tmp_path / "tab_x.csv").is_file()


def test_findings_are_bullets():
    assert tables.findings("one.", "two.").data == "- one.\n- two."


def test_measurements_are_shown_without_what_is_the_same_in_a_run():
    about = {"n": 9, "scale": "official", "data": "stsb test", "fingerprint": "abc"}
    rows = [
        results.row("mine", "STSB", "pearson", 86.5, interval=(85, 88), trained_on="40 pairs", **about),
        results.row("base", "STSB", "pearson", 80.0, **about),
    ]
    page = tables.measured(measurements.validate(pd.DataFrame(rows), "here")).to_html()
    assert "85.00 – 88.00" in page and "40 pairs" in page
    assert "abc" not in page and "official" not in page
    plain = tables.measured(measurements.validate(pd.DataFrame(rows[1:]), "here"))
    assert list(plain.data.columns) == ["system", "benchmark", "metric", "value", "n", "data"], "without empty columns"


def test_an_interval_that_is_not_there_is_no_text():
    low, high = pd.Series([1.234, float("nan")]), pd.Series([2.0, float("nan")])
    assert tables.interval_text(low, high, digits=1) == ["1.2 – 2.0", ""]


def test_edits_are_marked_and_their_text_is_no_markup():
    marked = tables.edits("The <b>plane</b> is flying low", "The <b>plane</b> is not flying")
    assert marked == "The &lt;b&gt;plane&lt;/b&gt; is <ins>not</ins> flying <del>low</del>"
    assert tables.edits("a b", "a b") == "a b"


def test_only_the_columns_named_are_markup():
    table = pd.DataFrame({"text": ["<i>x</i>"], "edits": [tables.edits("a", "b")]})
    page = tables.show(table, "Edits", html=["edits"]).to_html()
    assert "&lt;i&gt;x&lt;/i&gt;" in page
    assert "<del>a</del> <ins>b</ins>" in page
