"""Granularity: which n a printed percentage can have, and what that tells of the papers."""

import pytest

from nblib.results import granularity


@pytest.mark.parametrize(
    ("n", "fitting", "others"),
    [
        (3, ["33.33", "66.67", "33"], ["33.34", "66.66", "50"]),
        (7, ["0.00", "100.00"], ["100.01", "-1.00"]),
        (800, ["0.12", "0.13"], []),  # 1 of 800 is 0.125 %: a half may be rounded either way
    ],
)
def test_a_percentage_fits_n_items_where_some_share_of_them_rounds_to_it(n, fitting, others):
    assert all(granularity.fits(printed, n) for printed in fitting)
    assert not any(granularity.fits(printed, n) for printed in others)


@pytest.mark.parametrize(
    ("printed", "n"), [(["33.33", "50.00"], 6), (["73.13", "68.13", "78.13"], 160), (["0.00"], 1), (["0.0001"], None)]
)
def test_the_smallest_n_fits_all_of_several_numbers(printed, n):
    assert granularity.smallest_n(printed) == n


@pytest.mark.parametrize(
    ("group", "numbers", "smallest", "fitting"),
    [
        ("Table 1, accuracies", 20, 550, {550: 20}),
        ("Table 2, accuracies", 20, 2152, {2152: 20, 3152: 4}),
        ("ExcluIR", 10, 3452, {3452: 10, 1014: 1}),
        ("NevIR, encoders", 6, 1383, {1383: 6}),
        ("NevIR, the tuned Llamas", 3, 160, {1383: 0, 160: 3}),
    ],
)
def test_what_the_papers_percentages_were_taken_over(group, numbers, smallest, fitting):
    table = granularity.table()
    assert (table.numbers > 0).all()
    table = table[table.group == group].set_index("n")
    assert set(table.numbers) == {numbers} and set(table.smallest) == {smallest}
    assert {n: table.fitting[n] for n in fitting} == fitting
