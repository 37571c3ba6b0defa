"""Equations in a worked solution, found and checked by exact arithmetic.

Two kinds: the calculator marks of GSM8K (`<<12*60=720>>`) and plain equations ("12 hours x 60 minutes = 720 minutes"). A plain
equation is read with its thousands separators, currency signs, units, fractions, mixed numbers, percentages ("20% of 50"),
×, ÷ and −, LaTeX's `\\times` and `\\frac`, and chains (a + b = c + d = e). Where a side can't be read in full (it has a
variable, a time of day, a word for a number), nothing is said about it: an equation found wrong should be wrong.

**When an equation holds.** Its two sides are equal as fractions. A side printed as one number *with decimals* may also be the
other side rounded (half up or half to even) or cut off at that many decimals: 2/3 = 0.67 and 2/3 = 0.66 hold, 20/3 = 7 doesn't.
A percentage may count as hundredths (20% of 50 = 10), as a bare number (1/5 × 100 = 20%), or as a part of what it is added to
($50 + 10% = $55). Sides in units of a known ratio may differ by it (4 × 50 cents = $2; `quantities`). Dividing by zero never
holds.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP
from fractions import Fraction
from itertools import pairwise

from nblib.gsm8k import quantities
from nblib.gsm8k.expressions import READINGS, Expression, prefix, rounded, suffix
from nblib.gsm8k.tokens import ANNOTATION, Token, normalise, tokenise

LONGEST = 300  # tokens between two signs that end an equation; longer is no equation, and must not cost time
_COMPARISONS = {"less", "more", "fewer", "times", "greater", "higher", "lower", "older", "younger", "longer", "shorter",
                "as", "of", "and", "or", "out", "to", "percent", "x", "plus", "minus", "short"}  # fmt: skip
_SIGN = re.compile(r"=|\bis\b|\bequals\b", re.I)


@dataclass(frozen=True)
class Equation:
    """Two neighbouring sides of an equation.

    Attributes:
        text: as written, blanks apart.
        annotated: whether it stands in a calculator mark.
    """

    left: Expression
    right: Expression
    text: str = field(compare=False)
    annotated: bool = field(default=False, compare=False)

    @property
    def holds(self) -> bool:
        """Whether it is right (see the module's text)."""
        return any(
            _match(left, self.left, right, self.right)
            for left in _values(self.left)
            for right in _values(self.right)
        )  # fmt: skip

    @property
    def calculation(self) -> Expression:
        """The side that is calculated: the left one, unless that is only a number."""
        return self.right if self.left.is_number else self.left

    @property
    def result(self) -> Expression:
        """The other side."""
        return self.left if self.left.is_number else self.right


def find(text: str) -> list[Equation]:
    """The equations of a text in order, those in calculator marks first within their line. Never raises."""
    found = []
    for line in normalise(text).splitlines():
        if not _SIGN.search(line):
            continue
        for mark in ANNOTATION.finditer(line):
            found += [*_plain(mark[1], annotated=True)]
        found += [*_plain(ANNOTATION.sub("", line), annotated=False)]
    return found


def wrong(text: str) -> list[Equation]:
    """The equations of a text that don't hold."""
    return [equation for equation in find(text) if not equation.holds]


def _plain(line: str, annotated: bool) -> Iterator[Equation]:
    """The equations of a line without calculator marks (or of what stands in one)."""
    segment: list[Token] = []
    for token in [*tokenise(line), Token("stop", "", len(line), len(line))]:
        if token.kind != "stop":
            segment.append(token)
            continue
        yield from _segment(segment, line, annotated)
        segment = []


def _segment(tokens: list[Token], line: str, annotated: bool) -> Iterator[Equation]:
    if len(tokens) > LONGEST:
        return
    signs = [place for place, token in enumerate(tokens) if token.kind in ("eq", "is")]
    edges = [-1, *signs, len(tokens)]
    sides = [tokens[a + 1 : b] for a, b in pairwise(edges)]
    for sign, before, after in zip(signs, sides, sides[1:], strict=False):
        first, last = suffix(before), prefix(after)
        if first is None or last is None:
            continue
        (left, begin), (right, stop) = first, last
        spoken = tokens[sign].kind == "is"
        if spoken and (
            left.is_number or not right.is_number or (stop < len(after) and after[stop].text.lower() in _COMPARISONS)
        ):
            continue
        if left.is_number and not annotated and (right.is_number or left.units - {"dollar", "euro", "pound"}):
            continue  # 2 weeks = 14 days; 5 friends = 75 + 5: a conversion, or a name for what follows
        if not annotated and _names_a_share(before[begin:], right):
            continue
        equation = Equation(left, right, " ".join(line[before[begin].start : after[stop - 1].end].split()), annotated)
        if equation.holds or not (_mixed(left) or _mixed(right)):
            yield equation


def _names_a_share(tokens: list[Token], right: Expression) -> bool:
    """Whether a lone fraction below one is said to be more than one: "1/4 = 15" says what a quarter of something is."""
    share = [token.kind for token in tokens[:3]] == ["num", "op", "num"] and tokens[2].part
    if not share or {token.kind for token in tokens[3:]} - {"word"} or not right.is_number:
        return False
    return tokens[0].operand.value < tokens[2].operand.value and right.operands[0].value > 1


def _mixed(side: Expression) -> bool:
    """Whether it adds amounts in units that convert into each other (4 pounds - 6 ounces), or percentages alone."""
    if all(operand.percent for operand in side.operands):
        return True
    return bool(set("+-") & set(side.operators)) and bool(quantities.conversions(set(side.units), set(side.units)))


# --- when an equation holds -------------------------------------------------------------------------------------------


def _values(expression: Expression) -> list[Fraction]:
    readings = READINGS if any(operand.percent for operand in expression.operands) else READINGS[:1]
    values = (expression.value(percent=reading) for reading in readings)
    return [value for value in values if value is not None]


def _match(left: Fraction, left_side: Expression, right: Fraction, right_side: Expression) -> bool:
    if left == right or _rounds_to(left, right, right_side) or _rounds_to(right, left, left_side):
        return True
    factors = quantities.conversions(set(left_side.units), set(right_side.units))
    return any(left * factor == right for factor in factors)


def _rounds_to(exact: Fraction, printed: Fraction, side: Expression) -> bool:
    """Whether a printed number with decimals is the exact value rounded or cut off there."""
    if not side.is_number or not (decimals := side.operands[0].decimals):
        return False
    if side.operands[0].percent and abs(printed) != side.operands[0].value:
        decimals += 2  # read as hundredths
    return printed in {rounded(exact, decimals, mode) for mode in (ROUND_HALF_UP, ROUND_HALF_EVEN, ROUND_DOWN)}
