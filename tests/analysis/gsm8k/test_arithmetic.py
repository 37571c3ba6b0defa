"""The arithmetic check: what it reads, when an equation holds, and that it agrees with the official solutions."""

from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nblib import paths
from nblib.analysis.gsm8k.arithmetic import calculations, check_solutions, conversions, find, wrong
from nblib.corpora import registry


@pytest.mark.parametrize(
    "text",
    [
        "3 * 4 = 12", "$5 x 2 = $10", "5×2=10", "6 ÷ 2 = 3", "5 – 3 = 2", "5 − 3 = 2", "1/2 of 10 = 5", "20% of 50 = 10",
        "20% of 50 is 10", "5 + 3 = 8 = 2 * 4", "1,000 * 2 = 2,000", "60 students x 2/3 = 40 students", "2 1/2 + 1½ = 4",
        "5 kg * $2/kg = $10", "12 hours * 60 minutes = 720 minutes", "(2+3)*4 = 20", "2(3+4) = 14", "6 / 1/2 = 12",
        "2^10 = 1024", "$480 - $520 = -$40", "100 - 20% = 80", "1/5 * 100 = 20%", "50 cents * 4 = $2", "10/3 = 3.33",
        "2/3 = 0.66", "2/3 = 0.67", "12/5 = 2.4", "12 = 3 * 4", "23 - 15 is 8.", "3 times 4 = 12", "4 (apples) * 2 = 8",
        r"$5 \times 2 = \$10$", r"\frac{1}{2} \times 10 = 5", r"20 - 10 = \mathbf{\$10}", "5 * 2 = **10**", ".5 * 4 = 2",
        "a 10-minute walk twice: 10 * 2 = 20", "4 / 3 = 1 and 1/3", "-36 + 13 + -15 = -38", "$1.50 * 2 = $3.00",
    ],
)  # fmt: skip
def test_right_equations_are_found_and_hold(text):
    assert find(text)
    assert wrong(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "3 * 4 = 13", "$5 x 2 = $11", "6 ÷ 2 = 4", "1/2 of 10 = 6", "20% of 50 = 11", "5 + 3 = 8 = 2 * 5", "10/3 = 3",
        "1,000 * 2 = 2,001", "10/3 = 3.34", "2/3 = 0.6677", "12 hours * 60 minutes = 721 minutes", "5/0 = 0", "2(3+4) = 13",
        "$480 - $520 = $40", "23 - 15 is 9.", "50 cents * 4 = $3", "13 = 3 * 4", "<<3*4=13>>", "<<12=13>>", "8 - 3 = 11",
        r"$5 \times 2 = \$11$", "4 / 3 = 1 and 1/2", "6 / 1/2 = 3", "100 - 20% = 70",
    ],
)  # fmt: skip
def test_wrong_equations_are_found_out(text):
    assert len(wrong(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "x + 3 = 5", "3x = 15", "x = 15", "2x + 7 = 20", "5 - y = 9", "Sheila + 3 = 5", "7:30 - 6:30 = 2", "1 week = 7 days",
        "2 kg = 2 * 1000", "1/2 of his apples = 5", "1/4 = 15", "two boxes + 3 = 5", "3 bags / 15 minutes = 8 bags / Y",
        "the 5th + 3 = 9", "4 pounds - 6 ounces = 58", "5 + 3 = x", "a = b", "= 5", "5 =", "=", "",
        "The sum of 3 + 2 is 10 less.", "3 + 2 apples because he had 5 and 1 = 1", "8,4 + 1 = 3",
    ],
)  # fmt: skip
def test_what_cannot_be_read_in_full_is_left_alone(text):
    assert wrong(text) == []


def test_a_chain_gives_one_equation_for_each_sign():
    (first, second, third) = find("5 + 3 = 8 = 4 * 2 = 9")
    assert (first.holds, second.holds, third.holds) == (True, True, False)
    assert (first.text, third.text) == ("5 + 3 = 8", "4 * 2 = 9")
    assert third.calculation.value() == 8
    assert second.calculation.operators == "*"


def test_a_mark_is_told_from_the_equation_around_it():
    both = find("So 2*12 = $<<2*12=24>>24.")
    assert [(equation.annotated, equation.holds) for equation in both] == [(True, True), (False, True)]


def test_a_mark_and_the_equation_around_it_are_one_calculation_of_a_solution():
    (first, second) = calculations("2*12 = <<2*12=24>>24\n24 is 24\n3 dozen = 36\n24 + 1 = 26\n#### 26\n1 + 1 = 3")
    assert (first.text, first.holds) == ("2*12=24", True)
    assert (second.text, second.holds) == ("24 + 1 = 26", False)


def test_arithmetic_is_counted_by_writer():
    table = check_solutions(
        {"one": ["1 + 1 = <<1+1=2>>2\n2 + 2 = 5", "3 = 3", "#### 4\n1 + 1 = 3"], "none": []}
    ).set_index("solutions")
    assert table.loc["one"].tolist() == [3, 2, 1, 1]
    assert table.loc["none"].tolist() == [0, 0, 0, 0]


def test_conversions_need_both_units():
    assert Fraction(100) in conversions({"cent"}, {"dollar"})
    assert conversions({"cent"}, {"apple"}) == set()
    assert Fraction(12) in conversions({"dozen"}, {"egg"})


@settings(deadline=None)  # a busy machine must not fail it
@given(st.text(alphabet="0123456789+-*/=().,%$xX ofis^<>½×÷−{}\\frac\n", max_size=80))
def test_any_text_is_read_without_an_error(text):
    for equation in find(text):
        assert equation.holds in (True, False)


def test_an_endless_line_costs_no_time():
    assert find("(" * 5000 + "1 = 1") == []
    assert find("1 + " * 5000 + "1 = 1") == []
    assert find("9" * 5000 + " + 1 = 1") == []
    assert wrong("9 ^ 9 ^ 9 ^ 9 = 1") in ([], find("9 ^ 9 ^ 9 ^ 9 = 1"))


whole = st.integers(1, 10_000)


@st.composite
def solutions(draw):
    """A correct solution: a number of steps, each calculating with the last result."""
    value = Fraction(draw(whole))
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        sign, other = draw(st.sampled_from("+-*/")), draw(whole)
        result = {"+": value + other, "-": value - other, "*": value * other, "/": value / other}[sign]
        if result.denominator != 1:
            sign, result = "*", value * other
        shown = draw(
            st.sampled_from(["{a} {s} {b} = {r}", "${a:,} {s} {b:,} = ${r:,}", "{a}{s}{b}=<<{a}{s}{b}={r}>>{r}"])
        )
        steps.append((shown, int(value), sign, other, int(result)))
        value = result
    return steps


def write(steps):
    return "\n".join(
        f"Then {shown.format(a=a, s=sign, b=b, r=r)} of them.".replace("$-", "-$") for shown, a, sign, b, r in steps
    )


@settings(deadline=None)  # a busy machine must not fail it
@given(solutions())
def test_a_correct_chain_has_nothing_wrong(steps):
    assert len(find(write(steps))) >= len(steps)
    assert wrong(write(steps)) == []


@settings(deadline=None)  # a busy machine must not fail it
@given(solutions(), st.data())
def test_a_planted_error_is_found(steps, data):
    place = data.draw(st.integers(0, len(steps) - 1))
    k = data.draw(st.integers(-50, 50).filter(bool))
    shown, a, sign, b, r = steps[place]
    found = wrong(write([*steps[:place], (shown, a, sign, b, r + k), *steps[place + 1 :]]))
    assert found
    assert {equation.calculation.value() for equation in found} == {Fraction(r)}


@settings(deadline=None)  # a busy machine must not fail it
@given(st.fractions(0, 1000, max_denominator=997), st.integers(1, 6))
def test_rounding_and_cutting_off_at_the_printed_decimals_hold(value, decimals):
    shown = f"{float(round(value, decimals)):.{decimals}f}"
    assert wrong(f"{value.numerator} / {value.denominator} = {shown}") == []
    further = Fraction(shown) + Fraction(3, 2 * 10**decimals)
    assert wrong(f"{value.numerator} / {value.denominator} = {float(further):.{decimals + 1}f}")


@pytest.mark.official
def test_it_agrees_with_every_annotation_of_the_official_solutions_and_the_exceptions_are_listed():
    folder = paths.official_data() / "gsm8k"
    annotated, exceptions = 0, {}
    for split, size in (("train", 7473), ("test", 1319)):
        rows = registry.read_jsonl(folder / f"gsm8k_{split}.jsonl.gz")
        assert len(rows) == size
        for number, row in enumerate(rows):
            found = find(row["answer"])
            marks = [equation for equation in found if equation.annotated]
            assert len(marks) == row["answer"].count("<<"), (split, number)
            assert all(equation.holds for equation in marks), (split, number)
            annotated += len(marks)
            if failing := sum(not equation.holds for equation in found):
                exceptions[f"{split}-{number}"] = failing
    assert annotated == 27_998
    listed = pd.read_csv(paths.DATA / "gsm8k" / "exceptions.csv")
    assert exceptions == dict(zip(listed.id, listed.equations, strict=True))
    assert set(listed.reason) == {"arithmetic", "rounding", "notation"}


def test_the_mini_set_has_no_exceptions():
    rows = registry.read_jsonl(paths.DATA / "mini" / "gsm8k_mini.jsonl")
    assert [equation.text for row in rows for equation in wrong(row["answer"])] == []


@pytest.mark.parametrize(
    "text",
    [
        "She works 8 hours.\n3 1/2 of them at night.", "12 eggs\n1½ dozen = 18", "Total: 4\n2 1/2 cups", f"1/{'3' * 5000} = 2",
        f"1 5/{'0' * 5000} = 3", "(" * 10_000 + "1 = 2", "9^64^64 = 1", "0^-1 = 2", "5½½ = 3", "٣ + ٣ = ٦", "\ud800 1/2 = \x00",
    ],
)  # fmt: skip
def test_a_line_that_begins_with_a_mixed_number_or_is_absurd_is_read(text):
    assert all(equation.holds in (True, False) for equation in find(text))
    assert isinstance(calculations(text), list)
