"""A solution as a chain of calculations, what it comes to, and what it would have come to had one step been another."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import pandas as pd

from nblib.gsm8k import equations
from nblib.gsm8k.equations import Equation
from nblib.gsm8k.expressions import READINGS, Expression
from nblib.gsm8k.predictions import FLEXIBLE, INVALID, extract, value
from nblib.gsm8k.tokens import numbers

_NUMERALS = {
    word: Fraction(number)
    for number, word in enumerate(
        [
            "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
            "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
        ]
    )
} | {
    word: Fraction(number)
    for word, number in {
        "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
        "thousand": 1000, "million": 10**6, "half": "1/2", "third": "1/3", "quarter": "1/4", "thirds": "1/3",
        "quarters": "1/4", "fourth": "1/4", "fourths": "1/4", "fifth": "1/5", "fifths": "1/5", "twice": 2, "double": 2,
        "doubled": 2, "thrice": 3, "triple": 3, "tripled": 3, "dozen": 12,
    }.items()
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A calculation and the number printed as its result."""

    calculation: Expression
    result: Fraction
    holds: bool
    reading: str  # of percentages, under which it holds

    @property
    def operands(self) -> tuple[Fraction, ...]:
        """The numbers calculated with, percentages as printed."""
        return tuple(operand.value for operand in self.calculation.operands)

    @property
    def exact(self) -> Fraction | None:
        """What the calculation gives."""
        return self.calculation.value(percent=self.reading)

    def with_operands(self, operands: tuple[Fraction, ...]) -> Fraction | None:
        """What it would give with other numbers."""
        return self.calculation.value(operands, self.reading)

    def same_as(self, other: "Step") -> bool:
        """Whether both get the same result from the same numbers, in whatever order."""
        return self.result == other.result and sorted(self.operands) == sorted(other.operands)


def worked(solution: str) -> str:
    """A solution up to its first marked answer; what a model goes on to write behind that isn't part of it."""
    return solution.partition("####")[0]


def chain(solution: str) -> list[Step]:
    """The calculations of a solution with a number as their result, in order; a calculator mark and the equation it stands in
    give one step."""
    steps: list[Step] = []
    for equation in equations.find(worked(solution)):
        step = _step(equation)
        if step and not (steps and steps[-1].same_as(step)):
            steps.append(step)
    return steps


def _step(equation: Equation) -> Step | None:
    calculation, result = equation.calculation, equation.result
    if calculation.is_number or not result.is_number:
        return None
    printed = result.value(percent="bare")
    readings = {reading: calculation.value(percent=reading) for reading in READINGS}
    fitting = [reading for reading, exact in readings.items() if exact == printed]
    return Step(calculation, printed, equation.holds, (fitting or ["hundredth"])[0])


def conclusion(solution: str) -> Fraction | None:
    """The number a solution arrives at: its marked answer, else its last result, else its last number."""
    marked = value(solution.partition("####")[2].strip().split("\n")[0])
    if marked is not None:
        return marked
    if (strict := extract(solution)) != INVALID:
        return value(strict)
    if steps := chain(solution):
        return steps[-1].result
    return value(extract(solution, FLEXIBLE))


def replay(steps: list[Step], answer: Fraction | None, changed: Mapping[int, Fraction]) -> Fraction | None:
    """The answer a chain would have led to, had every calculation been right and some steps had other results: what comes out
    takes the printed result's place wherever a later step (or the answer) uses it.

    Args:
        answer: the solution's conclusion.
        changed: index of a step → its result instead.
    """
    instead: dict[Fraction, Fraction] = {}
    for place, step in enumerate(steps):
        operands = tuple(instead.get(operand, operand) for operand in step.operands)
        result: Fraction | None = step.result  # rounded as printed, where nothing is to be changed
        if place in changed:
            result = changed[place]
        elif operands != step.operands or not step.holds:
            result = step.with_operands(operands)
        if result is None:
            return None
        instead[step.result] = result
    return None if answer is None else instead.get(answer, answer)


def given(question: str) -> set[Fraction]:
    """The numbers a problem states, in digits or in words."""
    words = re.findall(r"[a-z]+", question.lower())
    return {*numbers(question), *(_NUMERALS[word] for word in words if word in _NUMERALS)}


def arithmetic(solutions: Mapping[str, Iterable[str]]) -> pd.DataFrame:
    """How reliable the arithmetic in solutions is, by who wrote them.

    Args:
        solutions: name → texts.

    Returns:
        solutions (the name), texts, calculations, wrong, texts_with_wrong.
    """
    rows = []
    for name, texts in solutions.items():
        checked = [[step.holds for step in chain(text)] for text in texts]
        wrong = [found.count(False) for found in checked]
        rows.append((name, len(checked), sum(map(len, checked)), sum(wrong), sum(count > 0 for count in wrong)))
    return pd.DataFrame(rows, columns=["solutions", "texts", "calculations", "wrong", "texts_with_wrong"])
