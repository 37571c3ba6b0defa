"""Tables for people: reproducible and harmless."""

import pandas as pd
import pytest

from nblib import results
from nblib.results import tables
from nblib.results.outputs import Outputs

TABLE = pd.DataFrame({"system": ["<script>alert(1)</script>", "a_b & 50 %"], "ours": [1 / 3, None], "n": [3152, 240]})
TABLE["mini"] = [True, False]


def test_a_table_of_a_notebook_is_saved_as_csv_and_shown_with_digits_and_a_dash_for_what_is_missing(tmp_path):
    page = Outputs("09_x", tmp_path, "a").table(TABLE, "x", "Share", digits=1).to_html()
    saved = (tmp_path / "figures" / "09_x" / "tab_x_a.csv").read_text()
    assert saved.splitlines()[1:] == ["<script>alert(1)</script>,0.3333,3152,True", "a_b & 50 %,,240,False"]
    assert all(cell in page for cell in (">0.3<", ">–<", ">3152<", "<caption>")) and "nan" not in page.lower()
    assert page == tables.show(TABLE, "Share", digits=1).to_html(), "not random: pages are compared"
    assert "<script" not in page and all(mark in page for mark in ("&lt;script&gt;alert(1)", "mathjax_ignore"))


@pytest.mark.parametrize("table", [TABLE[:0], TABLE[["system"]], TABLE[["ours"]], TABLE[1:], TABLE.loc[[0] * 41]])
def test_empty_one_column_and_long_tables_are_shown_too(table):
    assert ("overflow: auto" in tables.show(table, "Share").to_html()) == (len(table) > 40), "a long one scrolls"


def test_measurements_are_shown_in_words_without_what_is_the_same_in_a_run():
    about = {"benchmark": "stsb", "corpus": "stsb", "split": "test", "metric": "pearson", "n": 9, "fingerprint": "abc"}
    mine = {"system": "mine", "value": 86.5, "ci_low": 85, "ci_high": 88, "trained_on": "nevir", "training_items": 40}
    rows = [{**mine, **about}, {"system": "base", "value": 80.0, **about}]
    page = tables.measured(results.record(rows, scale="official")).to_html()
    assert all(text in page for text in ("85.00 – 88.00", "40 of NevIR", "STSB", "stsb test"))
    assert "abc" not in page and "official" not in page
    plain = tables.measured(results.record(rows[1:]))
    assert list(plain.data.columns) == ["system", "benchmark", "metric", "value", "n", "items"], "without empty columns"


def test_edits_are_marked_and_only_the_columns_named_are_markup():
    marked = tables.edits("The <b>plane</b> is flying low", "The <b>plane</b> is not flying")
    assert marked == "The &lt;b&gt;plane&lt;/b&gt; is <ins>not</ins> flying <del>low</del>"
    table = pd.DataFrame({"text": ["<i>x</i>"], "edits": [tables.edits("a", "b")]})
    page = tables.show(table, "Edits", html=["edits"]).to_html()
    assert "&lt;i&gt;x&lt;/i&gt;" in page and "<del>a</del> <ins>b</ins>" in page


def test_findings_are_bullets():
    assert tables.findings("one.", "two.").data == "- one.\n- two."
