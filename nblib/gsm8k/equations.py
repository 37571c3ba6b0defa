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
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from itertools import pairwise

from nblib.gsm8k import quantities

ANNOTATION = re.compile(r"<<([^<>]*)>>")
LONGEST = 300  # tokens between two signs that end an equation; longer is no equation, and must not cost time
MOST_WORDS = 6  # behind a number, to count as its unit
DEEPEST = 30  # nested parentheses
LARGEST_POWER = 64
_READINGS = ("hundredth", "bare", "relative")


@dataclass(frozen=True)
class Operand:
    """A number in an equation; `decimals` as printed, 0 for a whole number or a fraction."""

    value: Fraction
    decimals: int = 0
    percent: bool = False


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


def numbers(text: str) -> list[Fraction]:
    """The numbers written in a text with digits, in order; percentages as they are printed."""
    tokens = _tokens(ANNOTATION.sub("", normalise(text)))
    found = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.kind == "num":
            halves = token.part and before is not None and before.text == "/" and token.operand.value
            found.append(found.pop() / token.operand.value if halves else token.operand.value)
    return found


# --- one spelling for each sign ---------------------------------------------------------------------------------------

_SIGNS = str.maketrans({
    "×": "*", "·": "*", "⋅": "*", "∙": "*", "✕": "*", "÷": "/", "−": "-", "–": "-", "‒": "-", "⁄": "/", "∕": "/",
    "\xa0": " ", "\u2009": " ", "\u202f": " ", "\u200b": None, "\ufeff": None, "＝": "=", "’": "'",
    "²": "^2", "³": "^3",
})  # fmt: skip
_LATEX = [
    (re.compile(r"(?<![\d)])\*\*([^*\n]+)\*\*"), r"\1"),  # Markdown's bold
    (re.compile(r"\\langle\s*"), "<<"), (re.compile(r"\s*\\rangle"), ">>"),
    (re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"((\1)/(\2))"),
    (re.compile(r"\\(?:times|cdot|ast)\b"), "*"), (re.compile(r"\\div\b"), "/"),
    (re.compile(r"\\(?:text|mathrm|mathbf|boxed|textbf)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\[,;!:]|\\(?:left|right|quad)\b"), " "), (re.compile(r"\\+([$%#&_\d])"), r"\1"),
]  # fmt: skip


def normalise(text: str) -> str:
    """The text with one sign for each operation, LaTeX's commands replaced and fractions like ½ written out."""
    for pattern, plain in _LATEX:
        text = pattern.sub(plain, text)
    text = re.sub(r"[¼-¾⅐-⅞]", lambda sign: f" {_vulgar(sign[0])}", text)
    return text.translate(_SIGNS)


def _vulgar(sign: str) -> str:
    return unicodedata.normalize("NFKD", sign).replace("⁄", "/")


# --- signs and words --------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"(?P<unknown>\d+(?::\d+)+|\d+(?:,\d+)*(?:st|nd|rd|th)\b|\d+(?:\.\d+){2,}|(?<![\d.,])0\d+(?![\d.])|√"
    r"|(?!\d{1,3}(?:,\d{3})+(?![\d,]))\d+(?:,\d+)+)"
    r"|(?P<fraction>(?<![\d.*/^)+\-])(?:\d+\s+(?:and\s+)?)?\d+/\d+(?!\d|\.\d|\s*[*/^]\s*\d|[*^(]|/[^A-Za-z]))"
    r"|(?P<num>\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+\.\d+|(?<!\d)\.\d+|\d+)"
    r"|(?P<hyphen>(?<=\d)-[A-Za-z]{2,})"
    r"|(?P<rate>/\s*(?:(?:an?|each|per)\s)?[A-Za-z]{2,})"
    r"|(?P<op>\*\*|//|[-+*/^])"
    r"|(?P<eq>=+)|(?P<lp>\()|(?P<rp>\))|(?P<percent>%)|(?P<currency>[$€£¢])"
    r"|(?P<word>[^\W\d_][^\W\d_'-]*(?:['-][^\W\d_]+)*)"
    r"|(?P<blank>[ \t]+)|(?P<stop>.)",
    re.S,
)
_SPOKEN = {"times": "*", "x": "*", "plus": "+", "minus": "-"}
# Words after which a new thought begins, and words for numbers, which aren't read.
_BREAKS = {
    "because", "so", "then", "if", "who", "that", "while", "where", "which", "when", "since", "gives", "give", "gave",
    "was", "were", "has", "had", "have", "are", "costs", "cost", "makes",
}  # fmt: skip
_NUMERALS = {
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "twenty", "thirty",
    "fifty", "half", "quarter", "third", "twice", "thrice", "double", "hundred", "thousand", "million", "billion",
    "dozen",
}  # fmt: skip
_COMPARISONS = {"less", "more", "fewer", "times", "greater", "higher", "lower", "older", "younger", "longer", "shorter",
                "as", "of", "and", "or", "out", "to", "percent", "x", "plus", "minus", "short"}  # fmt: skip


_SIGN = re.compile(r"=|\bis\b|\bequals\b", re.I)


@dataclass
class _Token:
    kind: str  # num, op, eq, lp, rp, word, unknown, stop
    text: str
    start: int
    end: int
    operand: Operand | None = None
    part: bool = False  # the last number of a fraction, or a percentage: "of" then multiplies


def _tokens(line: str) -> list[_Token]:
    tokens: list[_Token] = []
    for match in _TOKEN.finditer(line):
        kind, text = match.lastgroup, match[0]
        last = tokens[-1] if tokens else None
        touching = last is not None and last.end == match.start()
        token = _Token(kind, text, match.start(), match.end())
        if kind == "blank":
            continue
        if kind == "fraction" and " " not in text and not (last is not None and last.text in ("/", "^")):
            tokens += _division(token)  # only 6 / 1/2 needs the fraction as one number
            continue
        if kind in ("num", "fraction"):
            token.kind, token.operand, token.part = "num", _number(text), kind == "fraction"
        elif kind == "percent" and last is not None and last.kind == "num":
            last.operand, last.end, last.part = replace(last.operand, percent=True), match.end(), True
            continue
        elif kind == "currency":
            if text == "¢":
                token.kind, token.text = "word", "cents"
            else:
                token.kind = "currency"
        elif kind == "word":
            if text.lower() in _BREAKS:
                token.kind = "stop"
            elif text.lower() in _NUMERALS:
                token.kind = "unknown"
            elif text.lower() in _SPOKEN and (text.lower() != "x" or last is not None):
                token.kind, token.operand = "spoken", None
            elif touching and last.kind in ("num", "rp") and len(text) == 1:
                token.kind = "unknown"  # 3y is a variable; 3 y, 3 kg and 3kg are units
        elif kind in ("hyphen", "rate"):
            token.kind = "word"
        elif kind == "percent":
            token.kind = "stop"
        tokens.append(token)
    return _settle(tokens)


def _division(fraction: _Token) -> list[_Token]:
    top, bottom = fraction.text.split("/")
    middle = fraction.start + len(top)
    return [
        _Token("num", top, fraction.start, middle, _number(top)),
        _Token("op", "/", middle, middle + 1),
        _Token("num", bottom, middle + 1, fraction.end, _number(bottom), part=True),
    ]


def _number(text: str) -> Operand:
    if "/" in text:
        *whole, fraction = text.replace("and", "").split()
        top, bottom = map(int, fraction.split("/"))
        return Operand(Fraction(top, bottom or 1) + sum(map(int, whole)))
    digits = text.replace(",", "")
    return Operand(Fraction(digits), len(digits.partition(".")[2]))


def _settle(tokens: list[_Token]) -> list[_Token]:
    """Decide what depends on the neighbours: spoken operators, "of", currencies, remarks in parentheses."""
    settled: list[_Token] = []
    for place, token in enumerate(tokens):
        following = next((t for t in tokens[place + 1 :] if t.kind != "currency"), None)
        operand_next = following is not None and following.kind in ("num", "lp")
        last = settled[-1] if settled else None
        if token.kind == "spoken":
            after_operand = last is not None and last.kind in ("num", "rp", "word")
            if operand_next and after_operand:
                token = _Token("op", _SPOKEN[token.text.lower()], token.start, token.end)
            else:
                token.kind = "unknown" if token.text.lower() == "x" else "word"
        elif token.kind == "word" and token.text.lower() == "of" and last is not None and last.kind == "num":
            if last.part or 0 < last.operand.value < 1:
                token = _Token("op" if operand_next else "unknown", "*", token.start, token.end)
        elif token.kind == "word" and token.text.lower() in ("is", "equals") and operand_next:
            token.kind = "is"
        settled.append(token)
    return settled


# --- sides ------------------------------------------------------------------------------------------------------------


def _plain(line: str, annotated: bool) -> Iterator[Equation]:
    """The equations of a line without calculator marks (or of what stands in one)."""
    segment: list[_Token] = []
    for token in [*_tokens(line), _Token("stop", "", len(line), len(line))]:
        if token.kind != "stop":
            segment.append(token)
            continue
        yield from _segment(segment, line, annotated)
        segment = []


def _segment(tokens: list[_Token], line: str, annotated: bool) -> Iterator[Equation]:
    if len(tokens) > LONGEST:
        return
    signs = [place for place, token in enumerate(tokens) if token.kind in ("eq", "is")]
    edges = [-1, *signs, len(tokens)]
    sides = [tokens[a + 1 : b] for a, b in pairwise(edges)]
    for sign, before, after in zip(signs, sides, sides[1:], strict=False):
        first, last = _suffix(before), _prefix(after)
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


def _suffix(tokens: list[_Token]) -> tuple[Expression, int] | None:
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


def _prefix(tokens: list[_Token]) -> tuple[Expression, int] | None:
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


def _names_a_share(tokens: list[_Token], right: Expression) -> bool:
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


class _UnreadableError(ValueError):
    """No expression."""


class _Reader:
    """Reads one expression from `place` on: sums of products of powers of numbers, with units behind any operand."""

    def __init__(self, tokens: list[_Token], place: int) -> None:
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


def _values(expression: Expression) -> list[Fraction]:
    readings = _READINGS if any(operand.percent for operand in expression.operands) else _READINGS[:1]
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
