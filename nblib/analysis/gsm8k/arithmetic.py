"""Is the arithmetic of a worked solution right? Its equations are found, read in full and checked with exact fractions.

Two kinds: the calculator marks of GSM8K (`<<12*60=720>>`) and plain equations ("12 hours x 60 minutes = 720 minutes"). A plain
equation is read with its thousands separators, currency signs, units, fractions, mixed numbers, percentages ("20% of 50"),
×, ÷ and −, LaTeX's `\\times` and `\\frac`, and chains (a + b = c + d = e). An equation with a side that can't be read in full
(a variable, a time of day, a word for a number) is skipped: an equation reported as wrong should be wrong.

**When an equation holds.** Its two sides are equal as fractions. A side printed as one number *with decimals* may also be the
other side rounded (half up or half to even) or cut off at that many decimals: 2/3 = 0.67 and 2/3 = 0.66 hold, 20/3 = 7 doesn't.
A percentage may count as hundredths (20% of 50 = 10), as a bare number (1/5 × 100 = 20%), or as a part of what it is added to
($50 + 10% = $55). Sides in units of a known ratio (`data/gsm8k/quantities.csv`) may differ by it: 4 × 50 cents = $2. Dividing
by zero never holds.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import pandas as pd

from nblib import paths

LONGEST = 300  # tokens between two signs that end an equation; longer is no equation, and must not cost time
MOST_WORDS = 6  # behind a number, to count as its unit
DEEPEST = 30  # nested parentheses
LARGEST_POWER = 64
PERCENT_MEANINGS = ("hundredth", "bare", "relative")
MARK = re.compile(r"<<([^<>]*)>>")

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
    text = re.sub(r"[¼-¾⅐-⅞]", lambda sign: " " + unicodedata.normalize("NFKD", sign[0]), text)
    return text.translate(_SIGNS)


# --- signs and words --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operand:
    """A number in an equation; `decimals` as printed, 0 for a whole number or a fraction."""

    value: Fraction
    decimals: int = 0
    percent: bool = False


@dataclass
class Token:
    """A number, a sign or a word, and where it stands."""

    kind: str  # num, op, eq, lp, rp, word, unknown, stop
    text: str
    start: int
    end: int
    operand: Operand | None = None
    part: bool = False  # the last number of a fraction, or a percentage: "of" then multiplies


_TOKEN = re.compile(
    r"(?P<unknown>[\d.,]{40,}|\d+(?::\d+)+|\d+(?:,\d+)*(?:st|nd|rd|th)\b|\d+(?:\.\d+){2,}|(?<![\d.,])0\d+(?![\d.])|√"
    r"|(?!\d{1,3}(?:,\d{3})+(?![\d,]))\d+(?:,\d+)+)"
    r"|(?P<fraction>(?<![\d.*/^)+\-])(?:\d+[ \t]+(?:and[ \t]+)?)?\d+/\d{1,40}(?!\d|\.\d|\s*[*/^]\s*\d|[*^(]|/[^A-Za-z]))"
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


def tokenise(line: str) -> list[Token]:
    """The tokens of one normalised line; percentages belong to their number."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(line):
        kind, text = match.lastgroup, match[0]
        last = tokens[-1] if tokens else None
        touching = last is not None and last.end == match.start()
        token = Token(kind, text, match.start(), match.end())
        if kind == "blank":
            continue
        plain_fraction = kind == "fraction" and text.count("/") == len(text.split())
        if plain_fraction and not (last is not None and last.text in ("/", "^")):
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
                token.kind = "spoken"
            elif touching and last.kind in ("num", "rp") and len(text) == 1:
                token.kind = "unknown"  # 3y is a variable; 3 y, 3 kg and 3kg are units
        elif kind in ("hyphen", "rate"):
            token.kind = "word"
        elif kind == "percent":
            token.kind = "stop"
        tokens.append(token)
    return _resolve(tokens)


def _division(fraction: Token) -> list[Token]:
    top, bottom = fraction.text.split("/")
    middle = fraction.start + len(top)
    return [
        Token("num", top, fraction.start, middle, _number(top)),
        Token("op", "/", middle, middle + 1),
        Token("num", bottom, middle + 1, fraction.end, _number(bottom), part=True),
    ]


def _number(text: str) -> Operand:
    if "/" in text:
        *whole, fraction = text.replace("and", "").split()
        top, bottom = map(int, fraction.split("/"))
        return Operand(Fraction(top, bottom or 1) + sum(map(int, whole)))
    digits = text.replace(",", "")
    return Operand(Fraction(digits), len(digits.partition(".")[2]))


def _resolve(tokens: list[Token]) -> list[Token]:
    """Decide what depends on the neighbours: spoken operators, "of", currencies, remarks in parentheses."""
    resolved: list[Token] = []
    for place, token in enumerate(tokens):
        following = next((t for t in tokens[place + 1 :] if t.kind != "currency"), None)
        operand_next = following is not None and following.kind in ("num", "lp")
        last = resolved[-1] if resolved else None
        if token.kind == "spoken":
            after_operand = last is not None and last.kind in ("num", "rp", "word")
            if operand_next and after_operand:
                token = Token("op", _SPOKEN[token.text.lower()], token.start, token.end)
            else:
                token.kind = "unknown" if token.text.lower() == "x" else "word"
        elif token.kind == "word" and token.text.lower() == "of" and last is not None and last.kind == "num":
            if last.part or 0 < last.operand.value < 1:
                token = Token("op" if operand_next else "unknown", "*", token.start, token.end)
        elif token.kind == "word" and token.text.lower() in ("is", "equals") and operand_next:
            token.kind = "is"
        resolved.append(token)
    return resolved


# --- units ------------------------------------------------------------------------------------------------------------

_IRREGULAR = {
    "feet": "foot", "inches": "inch", "people": "person", "pennies": "penny", "centuries": "century", "cents": "cent",
    "couples": "couple", "octopuses": "octopus", "lbs": "pound", "lb": "pound", "oz": "ounce", "kg": "kilogram",
    "g": "gram", "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "ft": "foot", "hr": "hour",
    "hrs": "hour", "min": "minute", "mins": "minute", "sec": "second", "secs": "second", "ml": "milliliter",
    "metre": "meter", "kilometre": "kilometer", "centimetre": "centimeter", "litre": "liter", "gross": "gross",
}  # fmt: skip


@cache
def _unit_ratios() -> list[tuple[str, Fraction, str]]:
    """Whole, number, part: one whole has so many parts; a part "" stands for things of any kind (a dozen)."""
    table = pd.read_csv(paths.DATA / "gsm8k" / "quantities.csv", dtype=str, keep_default_na=False)
    return [(row.whole, Fraction(row.number), row.part) for row in table.itertuples()]


def singular(word: str) -> str:
    """A unit's name in lower case and singular: "Minutes" → "minute", "kg" → "kilogram"."""
    word = word.lower()
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    plain = word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
    return _IRREGULAR.get(plain, plain)


def conversions(first: Set[str], second: Set[str]) -> set[Fraction]:
    """By what numbers amounts in the units of one set can differ from the same amounts in units of another.

    Args:
        first, second: words in the singular.
    """
    found = set()
    for whole, number, part in _unit_ratios():
        for here, there in ((first, second), (second, first)):
            if whole in here and (part in there if part else whole not in there):
                found |= {number, 1 / number}
    return found


@dataclass(frozen=True)
class Expression:
    """One side of an equation.

    Attributes:
        tree: an operand, ("neg", tree) or (operator, tree, tree).
        operands: in the order in which they are written.
        operators: those of + - * / ^ that join them.
        units: words and currencies after the operands, singular.
    """

    tree: Operand | tuple
    operands: tuple[Operand, ...]
    operators: str
    units: frozenset[str]

    @property
    def is_number(self) -> bool:
        """Whether it is a printed number and not a calculation."""
        return not self.operators

    def value(self, percent: str = "hundredth") -> Fraction | None:
        """The exact value; None where it divides by zero or takes too large a power.

        Args:
            percent: of `PERCENT_MEANINGS`.
        """
        try:
            return _evaluate(self.tree, percent)
        except (ZeroDivisionError, OverflowError):
            return None


def _evaluate(tree: Operand | tuple, percent: str) -> Fraction:
    if isinstance(tree, Operand):
        return tree.value / 100 if tree.percent and percent != "bare" else tree.value
    sign, *branches = tree
    first, *rest = (_evaluate(branch, percent) for branch in branches)
    if sign == "neg":
        return -first
    (second,) = rest
    if sign in "+-" and percent == "relative" and isinstance(branches[1], Operand) and branches[1].percent:
        second *= first
    match sign:
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
        parser = _Parser(tokens, begin)
        tree = parser.parse()
        if tree is not None and parser.skip_words() == len(tokens):
            return parser.expression(tree), begin
    return None


def prefix(tokens: list[Token]) -> tuple[Expression, int] | None:
    """The expression that opens a side, and where it stops."""
    parser = _Parser(tokens, 0)
    tree = parser.parse()
    if tree is None:
        return None
    stop = parser.place
    rest = parser.skip_words()
    following = parser.kind()
    if following in ("op", "unknown") or (rest == stop and following in ("lp", "num")):
        return None
    return parser.expression(tree), stop


class _UnreadableError(ValueError):
    """No expression."""


class _Parser:
    """Parses one expression from `place` on: sums of products of powers of numbers, with units behind any operand."""

    def __init__(self, tokens: list[Token], place: int) -> None:
        self.tokens, self.place = tokens, place
        self.operands: list[Operand] = []
        self.operators = ""
        self.units: set[str] = set()
        self.depth = 0

    def parse(self) -> Operand | tuple | None:
        try:
            return self.sum()
        except _UnreadableError:
            return None

    def expression(self, tree: Operand | tuple) -> Expression:
        return Expression(tree, tuple(self.operands), self.operators, frozenset(self.units))

    def join(self, sign: str, first: Operand | tuple, second: Operand | tuple) -> tuple:
        self.operators += sign
        return sign, first, second

    def kind(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.tokens[place].kind if place < len(self.tokens) else "end"

    def skip_words(self) -> int:
        """The place after the words that follow (units, kept as such)."""
        for _ in range(MOST_WORDS):
            if self.kind() != "word":
                break
            self.units |= {singular(word) for word in re.findall(r"[A-Za-z]+", self.tokens[self.place].text)}
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

    def sum(self) -> Operand | tuple:
        tree = self.product()
        while sign := self.operator("+ -"):
            tree = self.join(sign, tree, self.product())
        return tree

    def product(self) -> Operand | tuple:
        tree = self.signed()
        while True:
            if sign := self.operator("* / //"):
                tree = self.join(sign[0], tree, self.signed())
            elif self.kind() == "lp" and self.touching() and self.kind(1) in ("num", "op", "currency", "lp"):
                tree = self.join("*", tree, self.power())  # 4(2+1)
            else:
                return tree

    def touching(self) -> bool:
        return self.tokens[self.place - 1].end == self.tokens[self.place].start

    def signed(self) -> Operand | tuple:
        if self.kind() == "currency" and self.kind(1) == "op":
            self.place += 1  # $-5
        if self.kind() == "op" and (sign := self.tokens[self.place].text) in "+-":
            self.place += 1
            return ("neg", self.power()) if sign == "-" else self.power()
        return self.power()

    def power(self) -> Operand | tuple:
        tree = self.atom()
        if self.kind() == "op" and self.tokens[self.place].text in ("^", "**"):
            self.place += 1
            tree = self.join("^", tree, self.signed())
        return tree

    def atom(self) -> Operand | tuple:
        if self.kind() == "currency":
            self.units.add({"$": "dollar", "€": "euro", "£": "pound"}[self.tokens[self.place].text])
            self.place += 1
        if self.kind() == "num":
            self.operands.append(self.tokens[self.place].operand)
            self.place += 1
            if self.kind() == "currency" and self.kind(1) != "num":
                self.place += 1  # 5$, and the sign that ends LaTeX
            return self.operands[-1]
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


# --- equations --------------------------------------------------------------------------------------------------------

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
        values = product(_values(self.left), _values(self.right))
        return any(_match(left, self.left, right, self.right) for left, right in values)

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
        for mark in MARK.finditer(line):
            found += [*_plain(mark[1], annotated=True)]
        found += [*_plain(MARK.sub("", line), annotated=False)]
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
        if not annotated and _states_a_share(before[begin:], right):
            continue
        equation = Equation(left, right, " ".join(line[before[begin].start : after[stop - 1].end].split()), annotated)
        if equation.holds or not (_mixed(left) or _mixed(right)):
            yield equation


def _states_a_share(tokens: list[Token], right: Expression) -> bool:
    """Whether a lone fraction below one "equals" more than one: "1/4 = 15" says what a quarter of something is."""
    share = [token.kind for token in tokens[:3]] == ["num", "op", "num"] and tokens[2].part
    if not share or {token.kind for token in tokens[3:]} - {"word"} or not right.is_number:
        return False
    return tokens[0].operand.value < tokens[2].operand.value and right.operands[0].value > 1


def _mixed(side: Expression) -> bool:
    """Whether it adds amounts in units that convert into each other (4 pounds - 6 ounces), or percentages alone."""
    if all(operand.percent for operand in side.operands):
        return True
    return bool(set("+-") & set(side.operators)) and bool(conversions(side.units, side.units))


def _values(expression: Expression) -> list[Fraction]:
    meanings = PERCENT_MEANINGS if any(operand.percent for operand in expression.operands) else PERCENT_MEANINGS[:1]
    values = (expression.value(percent) for percent in meanings)
    return [value for value in values if value is not None]


def _match(left: Fraction, left_side: Expression, right: Fraction, right_side: Expression) -> bool:
    if left == right or _rounds_to(left, right, right_side) or _rounds_to(right, left, left_side):
        return True
    factors = conversions(left_side.units, right_side.units)
    return any(left * factor == right for factor in factors)


def _rounds_to(exact: Fraction, printed: Fraction, side: Expression) -> bool:
    """Whether a printed number with decimals is the exact value rounded or cut off there."""
    if not side.is_number or not (decimals := side.operands[0].decimals):
        return False
    if side.operands[0].percent and abs(printed) != side.operands[0].value:
        decimals += 2  # read as hundredths
    scaled = exact * 10**decimals
    half_up = math.floor(abs(scaled) + Fraction(1, 2)) * (1 if scaled >= 0 else -1)
    return printed * 10**decimals in (half_up, round(scaled), math.trunc(scaled))  # round: half to even


# --- solutions --------------------------------------------------------------------------------------------------------


def check_solutions(solutions: Mapping[str, Iterable[str]]) -> pd.DataFrame:
    """How reliable the arithmetic in solutions is, by who wrote them.

    Args:
        solutions: name → texts.

    Returns:
        solutions (the name), texts, calculations, wrong, texts_with_wrong.
    """
    rows = []
    for name, texts in solutions.items():
        wrong = [[not equation.holds for equation in calculations(text)] for text in texts]
        rows.append((name, len(wrong), sum(map(len, wrong)), sum(map(sum, wrong)), sum(map(any, wrong))))
    return pd.DataFrame(rows, columns=["solutions", "texts", "calculations", "wrong", "texts_with_wrong"])


def calculations(solution: str) -> list[Equation]:
    """The calculations of a solution with a number as their result, in order, up to its marked answer (what a model goes on to
    write behind that isn't part of it). A calculator mark and the equation it stands in count once."""
    found: list[Equation] = []
    for equation in find(without_answer(solution)):
        if equation.calculation.is_number or not equation.result.is_number:
            continue
        if not found or _numbers(found[-1]) != _numbers(equation):
            found.append(equation)
    return found


def without_answer(solution: str) -> str:
    """A solution up to its first marked answer."""
    return solution.partition("####")[0]


def _numbers(equation: Equation) -> tuple:
    """What two spellings of one calculation have in common: its result, and its operands in whatever order."""
    return equation.result.value("bare"), sorted(operand.value for operand in equation.calculation.operands)
