"""The numbers, signs and words of a line of a worked solution: one spelling for each sign, what "of" and "x"
mean where they stand."""

import re
import unicodedata
from dataclasses import dataclass, replace
from fractions import Fraction

ANNOTATION = re.compile(r"<<([^<>]*)>>")


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


def numbers(text: str) -> list[Fraction]:
    """The numbers written in a text with digits, in order; percentages as they are printed."""
    found: list[Fraction] = []
    for line in ANNOTATION.sub("", normalise(text)).splitlines():
        tokens = tokenise(line)
        for before, token in zip([None, *tokens], tokens, strict=False):
            if token.kind == "num":
                halves = (
                    found and token.part and not token.operand.percent and before.text == "/" and token.operand.value
                )
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
    r"(?P<unknown>[\d.,]{40,}|\d+(?::\d+)+|\d+(?:,\d+)*(?:st|nd|rd|th)\b|\d+(?:\.\d+){2,}|(?<![\d.,])0\d+(?![\d.])|√"
    r"|(?!\d{1,3}(?:,\d{3})+(?![\d,]))\d+(?:,\d+)+)"
    r"|(?P<fraction>(?<![\d.*/^)+\-])(?:\d+[ \t]+(?:and[ \t]+)?)?\d+/\d+(?!\d|\.\d|\s*[*/^]\s*\d|[*^(]|/[^A-Za-z]))"
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
        if (
            kind == "fraction"
            and text.count("/") == len(text.split())
            and not (last is not None and last.text in ("/", "^"))
        ):
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


def _settle(tokens: list[Token]) -> list[Token]:
    """Decide what depends on the neighbours: spoken operators, "of", currencies, remarks in parentheses."""
    settled: list[Token] = []
    for place, token in enumerate(tokens):
        following = next((t for t in tokens[place + 1 :] if t.kind != "currency"), None)
        operand_next = following is not None and following.kind in ("num", "lp")
        last = settled[-1] if settled else None
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
        settled.append(token)
    return settled
