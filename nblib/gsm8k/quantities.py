"""Quantities everybody is taken to know (a week has 7 days, a cow has 4 legs), from `data/quantities.csv`."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import pandas as pd

from nblib import paths

_IRREGULAR = {
    "feet": "foot", "inches": "inch", "people": "person", "pennies": "penny", "centuries": "century", "cents": "cent",
    "couples": "couple", "octopuses": "octopus", "lbs": "pound", "lb": "pound", "oz": "ounce", "kg": "kilogram",
    "g": "gram", "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "ft": "foot", "hr": "hour",
    "hrs": "hour", "min": "minute", "mins": "minute", "sec": "second", "secs": "second", "ml": "milliliter",
    "metre": "meter", "kilometre": "kilometer", "centimetre": "centimeter", "litre": "liter", "gross": "gross",
}  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """One `whole` has `number` of `part`; a part "" stands for things of any kind (a dozen)."""

    whole: str
    number: Fraction
    part: str

    def __str__(self) -> str:
        article = "an" if self.whole[0] in "aeio" or self.whole == "hour" else "a"
        return (
            f"{article} {self.whole} has {self.number} {self.part}s"
            if self.part
            else f"{article} {self.whole} is {self.number}"
        )


@cache
def facts() -> tuple[Fact, ...]:
    """All of them."""
    table = pd.read_csv(paths.DATA / "quantities.csv", dtype=str, keep_default_na=False)
    return tuple(Fact(row.whole, Fraction(row.number), row.part) for row in table.itertuples())


def singular(word: str) -> str:
    """A unit's name in lower case and singular: "Minutes" → "minute", "kg" → "kilogram"."""
    word = word.lower()
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    plain = word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
    return _IRREGULAR.get(plain, plain)


def words(text: str) -> set[str]:
    """The words of a text, singular."""
    return {singular(word) for word in re.findall(r"[A-Za-z]+", text)}


def conversions(first: set[str], second: set[str]) -> set[Fraction]:
    """By what numbers amounts in the units of one set can differ from the same amounts in units of another.

    Args:
        first, second: words in the singular.
    """
    found = set()
    for fact in facts():
        for here, there in ((first, second), (second, first)):
            if fact.whole in here and (fact.part in there if fact.part else fact.whole not in there):
                found |= {fact.number, 1 / fact.number}
    return found


def applicable(text: str) -> list[Fact]:
    """The facts a text may call for: it names the whole, and the part where that has a name."""
    said = words(text)
    return [fact for fact in facts() if fact.whole in said and (not fact.part or fact.part in said)]
