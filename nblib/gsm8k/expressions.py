"""One side of an equation: read from tokens, with a unit behind any number, and evaluated exactly."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from nblib.gsm8k import quantities
from nblib.gsm8k.tokens import Operand, Token

MOST_WORDS = 6  # behind a number, to count as its unit
DEEPEST = 30  # nested parentheses
LARGEST_POWER = 64
READINGS = ("hundredth", "bare", "relative")  # of percentages


@dataclass(frozen=True)
class Expression:
    """One side of an equation.

    Attributes:
        tree: ("num", index of the operand), ("neg", tree) or (operator, tree, tree) with operators + - * / ^.
        operands: in the order in which they are written.
        units: words and currencies after the operands, singular.
    """

    tree: tuple
    operands: tuple[Operand, ...]
    units: frozenset[str] = frozenset()

    @property
    def operators(self) -> str:
        """The operators, in the order of the tree."""
        return "".join(_operators(self.tree))

    @property
    def is_number(self) -> bool:
        """Whether it is a printed number and not a calculation."""
        return not self.operators

    def value(self, operands: Sequence[Fraction] | None = None, percent: str = "hundredth") -> Fraction | None:
        """The exact value; None where it divides by zero or takes too large a power.

        Args:
            operands: values to take in place of the printed ones (percentages as they are printed).
            percent: how to read percentages: "hundredth", "bare" or "relative".
        """
        values = [operand.value for operand in self.operands] if operands is None else list(operands)
        try:
            return _evaluate(self.tree, values, [operand.percent for operand in self.operands], percent)
        except (ZeroDivisionError, OverflowError):
            return None

    def replaced(self, tree: tuple) -> "Expression":
        """The same operands under another tree."""
        return Expression(tree, self.operands, self.units)


def rounded(value: Fraction, decimals: int, mode: str = ROUND_HALF_UP) -> Fraction:
    """A value at so many decimals, by one of `decimal`'s rounding modes."""
    scaled = value * 10**decimals
    whole, rest = divmod(abs(scaled.numerator), scaled.denominator)
    # The quotient's fraction in three cases is all that rounding looks at: below, at and above a half.
    tail = (
        Decimal((2 * rest > scaled.denominator) - (2 * rest < scaled.denominator)) / 4 + Decimal("0.5") if rest else 0
    )
    nearest = (Decimal(whole) + tail).quantize(Decimal(1), rounding=mode, context=Context(prec=len(str(whole)) + 5))
    return Fraction(int(nearest) * (1 if value >= 0 else -1), 10**decimals)


# --- reading ----------------------------------------------------------------------------------------------------------


def suffix(tokens: list[Token]) -> tuple[Expression, int] | None:
    """The expression that ends a side, and where it begins."""
    for begin, token in enumerate(tokens):
        previous = tokens[begin - 1].kind if begin else ""
        if previous in ("op", "unknown", "num", "rp") or (
            previous == "currency" and begin > 1 and tokens[begin - 2].kind == "op"
        ):
            continue
        if token.kind not in ("num", "lp", "op", "currency") or (token.kind == "op" and previous == "word"):
            continue
        reader = _Reader(tokens, begin)
        expression = reader.read()
        if expression is not None and reader.skip_words() == len(tokens):
            return replace(expression, units=frozenset(reader.units)), begin
    return None


def prefix(tokens: list[Token]) -> tuple[Expression, int] | None:
    """The expression that opens a side, and where it stops."""
    reader = _Reader(tokens, 0)
    expression = reader.read()
    if expression is None:
        return None
    stop = reader.place
    rest = reader.skip_words()
    if rest < len(tokens) and tokens[rest].kind in ("op", "unknown", "lp") and not (
        tokens[rest].kind == "lp" and rest > stop
    ):  # fmt: skip
        return None
    if rest == stop and rest < len(tokens) and tokens[rest].kind == "num":
        return None
    return replace(expression, units=frozenset(reader.units)), stop


class _UnreadableError(ValueError):
    """No expression."""


class _Reader:
    """Reads one expression from `place` on: sums of products of powers of numbers, with units behind any operand."""

    def __init__(self, tokens: list[Token], place: int) -> None:
        self.tokens, self.place = tokens, place
        self.operands: list[Operand] = []
        self.units: set[str] = set()
        self.depth = 0

    def read(self) -> Expression | None:
        try:
            tree = self.sum()
        except _UnreadableError:
            return None
        return Expression(tree, tuple(self.operands), frozenset(self.units))

    def kind(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.tokens[place].kind if place < len(self.tokens) else "end"

    def skip_words(self) -> int:
        """The place after the words that follow (units, kept as such)."""
        for _ in range(MOST_WORDS):
            if self.kind() != "word":
                break
            self.units |= {quantities.singular(word) for word in re.findall(r"[A-Za-z]+", self.tokens[self.place].text)}
            self.place += 1
        return self.place

    def operator(self, wanted: str) -> str | None:
        """The next operator if it is wanted, past a unit and past a remark in parentheses; else nothing is read."""
        before = self.place, set(self.units)
        self.skip_words()
        self.skip_remark()
        if self.kind() == "op" and self.tokens[self.place].text in wanted.split():
            self.place += 1
            return self.tokens[self.place - 1].text
        self.place, self.units = before
        return None

    def skip_remark(self) -> None:
        if self.kind() == "lp":
            ahead = 1
            while self.kind(ahead) == "word":
                ahead += 1
            if ahead > 1 and self.kind(ahead) == "rp":
                self.place += ahead + 1

    def sum(self) -> tuple:
        tree = self.product()
        while sign := self.operator("+ -"):
            tree = (sign, tree, self.product())
        return tree

    def product(self) -> tuple:
        tree = self.signed()
        while True:
            if sign := self.operator("* / //"):
                tree = (sign[0], tree, self.signed())
            elif self.kind() == "lp" and self.touching() and self.kind(1) in ("num", "op", "currency", "lp"):
                tree = ("*", tree, self.power())  # 4(2+1)
            else:
                return tree

    def touching(self) -> bool:
        return self.tokens[self.place - 1].end == self.tokens[self.place].start

    def signed(self) -> tuple:
        if self.kind() == "currency" and self.kind(1) == "op":
            self.place += 1  # $-5
        if self.kind() == "op" and (sign := self.tokens[self.place].text) in "+-":
            self.place += 1
            return ("neg", self.power()) if sign == "-" else self.power()
        return self.power()

    def power(self) -> tuple:
        tree = self.atom()
        if self.kind() == "op" and self.tokens[self.place].text in ("^", "**"):
            self.place += 1
            tree = ("^", tree, self.signed())
        return tree

    def atom(self) -> tuple:
        if self.kind() == "currency":
            self.units.add({"$": "dollar", "€": "euro", "£": "pound"}[self.tokens[self.place].text])
            self.place += 1
        if self.kind() == "num":
            self.operands.append(self.tokens[self.place].operand)
            self.place += 1
            if self.kind() == "currency" and self.kind(1) != "num":
                self.place += 1  # 5$, and the sign that ends LaTeX
            return ("num", len(self.operands) - 1)
        if self.kind() == "lp" and self.depth < DEEPEST:
            self.place += 1
            self.depth += 1
            tree = self.sum()
            self.skip_words()
            if self.kind() == "rp":
                self.place += 1
                self.depth -= 1
                return tree
        raise _UnreadableError


# --- values -----------------------------------------------------------------------------------------------------------


def _operators(tree: tuple) -> Iterator[str]:
    for branch in tree[1:]:
        if isinstance(branch, tuple):
            yield from _operators(branch)
    if tree[0] not in ("num", "neg"):
        yield tree[0]


def _evaluate(tree: tuple, values: Sequence[Fraction], percent: Sequence[bool], reading: str) -> Fraction:
    if tree[0] == "num":
        return values[tree[1]] / 100 if percent[tree[1]] and reading != "bare" else values[tree[1]]
    first, *rest = (_evaluate(branch, values, percent, reading) for branch in tree[1:])
    if tree[0] == "neg":
        return -first
    (second,) = rest
    if tree[0] in "+-" and reading == "relative" and tree[2][0] == "num" and percent[tree[2][1]]:
        second *= first
    match tree[0]:
        case "+":
            return first + second
        case "-":
            return first - second
        case "*":
            return first * second
        case "/":
            return first / second
    if second.denominator != 1 or abs(second) > LARGEST_POWER or max(abs(first.numerator), first.denominator) > 10**9:
        raise OverflowError
    return first ** int(second)
