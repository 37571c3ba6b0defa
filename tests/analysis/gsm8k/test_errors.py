"""The types of error: the paper's, and how many of each there are by label pass."""

import pandas as pd
import pytest

from nblib.analysis.gsm8k import errors
from nblib.analysis.gsm8k.errors import CATEGORIES, LABELS, UNDECIDED, count_types, coverage
from nblib.results import measurements


def count(labels):
    """One pass."""
    return count_types(pd.DataFrame({"ann 1": labels}), pd.Series([True, False] * 50)).set_index("category")


def test_the_papers_eight_types_are_the_categories_each_with_an_example():
    table = errors.paper_types()
    assert set(table.category) == set(CATEGORIES) and set(table.type) == set(CATEGORIES.values())
    assert table.notna().all(axis=None)
    assert table.percent.sum() == 100


def test_no_share_below_thirty_errors():
    labels = ["hallucination"] * 20 + [UNDECIDED] * 9
    few = count(labels)
    assert few[["share", "low", "high"]].isna().all(axis=None)
    assert few.errors["hallucination"] == 20
    assert coverage(pd.Series(labels)) == "20 of 29 errors decided"
    labels = ["hallucination"] * 15 + [UNDECIDED] * 15
    many = count(labels)
    assert many.share["hallucination"] == 50
    assert many.low["hallucination"] < 50 < many.high["hallucination"]
    assert many.errors.sum() == 30
    assert many.share["repetition"] == 0 < many.high["repetition"]
    assert coverage(pd.Series(labels)) == "15 of 30 errors decided (50 %)"


def test_types_are_counted_by_pass_with_what_the_base_model_solved():
    labels = pd.DataFrame({"ann 1": ["repetition", "repetition", UNDECIDED], "ann 2": ["repetition", None, None]})
    table = count_types(labels, pd.Series([True, False, True])).set_index(["labelled_by", "category"])
    assert len(table) == 2 * len(LABELS)
    assert table.loc[("ann 1", "repetition"), ["errors", "base_right"]].tolist() == [2, 1]
    assert table.loc[("ann 1", UNDECIDED), ["errors", "base_right"]].tolist() == [1, 1]
    assert table.errors["ann 2"].sum() == 1


def test_published_shares_stand_beside_even_without_labels():
    table = count_types(pd.DataFrame(), pd.Series(dtype=bool)).set_index("category")
    assert table.published["wrong calculation"] == 20
    assert table.published.drop(UNDECIDED).sum() == 100
    assert table.errors.sum() == 0 and table.share.isna().all()


def test_results_have_shares_only_from_thirty_errors_on():
    about = {"scale": "lab", "data": "gsm8k_mini", "trained_on": "20 pairs"}
    assert errors.result_rows(pd.Series([UNDECIDED] * 29), "ann 1", "toy", **about) == []
    rows = errors.result_rows(pd.Series(["repetition"] * 10 + [UNDECIDED] * 30), "ann 1", "toy", **about)
    table = measurements.validate(pd.DataFrame(rows), "here").set_index("metric")
    assert len(table) == 8
    row = table.loc["share_repetition"]
    assert (row.value, row.n, row.benchmark, row.trained_on) == (25, 40, "GSM8K errors", "20 pairs")
    assert (row.ci_low, row.ci_high) == pytest.approx([100 * bound for bound in (0.1419, 0.4019)], abs=0.01), "Wilson's"
    assert row.system == "toy, errors labelled by ann 1"
