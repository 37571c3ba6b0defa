"""Granularity: which n a printed percentage can have, and what that tells of the papers."""

import numpy as np
import pytest
import yaml

from nblib.results import ResultsError, granularity


def found(group):
    table = granularity.table()
    return table[table.group == group].set_index("n")


@pytest.mark.parametrize(
    ("printed", "n", "fits"),
    [
        ("33.33", 3, True), ("33.34", 3, False), ("66.67", 3, True), ("66.66", 3, False), ("0.00", 7, True),
        ("100.00", 7, True), ("100.01", 7, False), ("50", 3, False), ("33", 3, True), ("31.32", 3152, False),
        ("31.32", 2152, True), ("73.13", 160, True), ("73.13", 1383, False), ("-1.00", 100, False),
    ],
)  # fmt: skip
def test_a_percentage_fits_n_items_where_some_share_of_them_rounds_to_it(printed, n, fits):
    assert granularity.fits(printed, n) is fits


@pytest.mark.parametrize("printed", ["0.12", "0.13"])
def test_a_half_may_be_rounded_either_way(printed):
    assert granularity.fits(printed, 800)  # 1 of 800 is 0.125 %


def test_every_share_of_n_items_fits_them():
    for n in (7, 160, 1383):
        assert all(granularity.fits(f"{100 * k / n:.2f}", n) for k in range(n + 1))


def test_most_percentages_are_impossible_over_few_items():
    assert np.mean([granularity.fits(f"{value / 100:.2f}", 100) for value in range(10_000)]) == pytest.approx(0.01)


@pytest.mark.parametrize("n", [0, -3])
def test_a_share_of_nothing_is_refused(n):
    with pytest.raises(ValueError, match=f"n = {n}"):
        granularity.fits("50.00", n)


def test_the_smallest_n_fits_all_of_several_numbers():
    assert granularity.smallest_n(["33.33", "50.00"]) == 6
    assert granularity.smallest_n(["73.13", "68.13", "78.13"]) == 160
    assert granularity.smallest_n(["0.00"]) == 1


def test_where_no_n_is_large_enough_or_nothing_is_printed_there_is_none():
    assert granularity.smallest_n(["0.0001"]) is None
    assert granularity.smallest_n([]) is None


@pytest.mark.parametrize(
    ("group", "numbers", "fitting"),
    [
        ("Table 1, accuracies", 20, {550: 20}),
        ("Table 2, accuracies", 20, {2152: 20, 3152: 4}),
        ("ExcluIR", 10, {3452: 10, 1014: 1}),
        ("NevIR, encoders", 6, {1383: 6}),
        ("NevIR, the untuned Llama", 1, {1383: 1}),
        ("NevIR, the tuned Llamas", 3, {1383: 0, 160: 3}),
    ],
)
def test_what_the_papers_percentages_were_taken_over(group, numbers, fitting):
    table = found(group)
    assert set(table.numbers) == {numbers}
    assert {n: table.fitting[n] for n in fitting} == fitting


def test_the_smallest_n_of_each_group_is_the_papers_own_but_for_the_tuned_llamas():
    smallest = granularity.table().groupby("group").smallest.first()
    assert smallest["Table 1, accuracies"] == 550
    assert smallest["Table 2, accuracies"] == 2152
    assert smallest["ExcluIR"] == 3452
    assert smallest["NevIR, encoders"] == 1383
    assert smallest["NevIR, the tuned Llamas"] == 160


def test_a_group_that_names_nothing_printed_is_refused(tmp_path, monkeypatch):
    group = {"paper": "cao", "group": "gone", "exhibits": ["Table 9"], "metrics": ["accuracy"], "n": [1]}
    file = tmp_path / "granularity.yaml"
    file.write_text(yaml.safe_dump([group]), encoding="utf-8")
    monkeypatch.setattr(granularity, "FILE", file)
    with pytest.raises(ResultsError, match=r"granularity\.yaml: group 'gone' names no printed number"):
        granularity.table()
