"""Have the training texts leaked into a benchmark? Exact matches and shared n-grams (Truong §5.1, Data contamination).

A field of a benchmark's item and a training text *match* when their words are the same or one holds all the other's in a row
(the paper's footnote 7: "is included in …, or vice versa"); they *share an n-gram* when n words in a row are the same. Case and
punctuation don't count, and texts of fewer than five words aren't looked at.
"""

import re
from array import array
from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile

import numpy as np
import pandas as pd

from nblib import corpora, results
from nblib.errors import one_of

SIZES = (5, 8, 13)
NO_BENCHMARKS = {"hedgetriple", "exclusions", "paraphrases_mini", "paraphrases_mini_sets"}  # trained on or built from
FEWEST = 5  # words; "all samples have a minimum length of 5 words"
_WORDS = re.compile(r"[^\W_]+")

TRAINING_TEXTS = "HedgeTriple open (authored)"


def benchmarks(data: str) -> list[str]:
    """The corpora to look in: the mini sets ("mini"), or these and the official benchmarks ("official").

    Raises:
        StudyError: neither of the two.
    """
    one_of(data, ("mini", "official"), "data")
    entries = {name: entry for name, entry in corpora.entries().items() if name not in NO_BENCHMARKS}
    return [name for name, entry in entries.items() if data == "official" or not entry.official]


def fields(name: str) -> pd.DataFrame:
    """Every text of a corpus long enough to look at: item (a number), field (its column), text."""
    table = corpora.load(name)
    columns = [column for column, kind in corpora.describe(name).columns.items() if kind in ("str", "text", "list")]
    long = table[columns].rename_axis("item").reset_index().melt("item", var_name="field", value_name="value")
    long = long.rename(columns={"value": "text"}).explode("text", ignore_index=True)
    return long[long.text.map(lambda text: len(words(text)) >= FEWEST)].reset_index(drop=True)


def words(text: str) -> tuple[str, ...]:
    """The words of a text, lower case, without punctuation."""
    return tuple(_WORDS.findall(text.lower()))


def check(texts: Iterable[str], names: Collection[str]) -> pd.DataFrame:
    """Look for training texts in benchmarks.

    Args:
        names: corpora, by their names in the registry.

    Returns:
        corpus, title, official, items, exact (items with a match), ngram_5, ngram_8, ngram_13 (percent of items that share
        one), longest (the most words in a row that an item shares), example (those words).
    """
    training = sorted({run for text in texts if len(run := words(text)) >= FEWEST})
    index = _Index(training)
    return pd.DataFrame([_check_one(name, index) for name in names])


class _Index:
    """Where runs of `FEWEST` words stand in the training texts; three arrays, so that 250,000 triples need little memory."""

    def __init__(self, training: list[tuple[str, ...]]) -> None:
        self.training = training
        keys, numbers, starts = array("q"), array("q"), array("q")
        for number, text in enumerate(training):
            for start in range(len(text) - FEWEST + 1):
                keys.append(hash(text[start : start + FEWEST]))
                numbers.append(number)
                starts.append(start)
        order = np.argsort(keys, kind="stable")
        self.keys, self.numbers, self.starts = (np.asarray(part)[order] for part in (keys, numbers, starts))

    def runs(self, field: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Every longest run of at least `FEWEST` words that a field shares with a training text, and that text."""
        wanted = [hash(field[place : place + FEWEST]) for place in range(len(field) - FEWEST + 1)]
        first, last = (np.searchsorted(self.keys, wanted, side) for side in ("left", "right"))
        for place in np.flatnonzero(first < last):
            for hit in range(first[place], last[place]):
                text, start = self.training[self.numbers[hit]], int(self.starts[hit])
                if place and start and field[place - 1] == text[start - 1]:
                    continue  # a part of the run that began a word earlier
                pairs = zip(field[place:], text[start:], strict=False)
                size = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
                if size >= FEWEST:  # else two runs have one hash
                    yield field[place : place + size], text


def _check_one(name: str, index: _Index) -> dict:
    described, table = corpora.describe(name), corpora.load(name)
    exact, shared, longest = set(), {n: set() for n in SIZES}, ()
    for item, text in fields(name)[["item", "text"]].itertuples(index=False):
        field = words(text)
        for run, found in index.runs(field):
            for n in SIZES:
                if len(run) >= n:
                    shared[n].add(item)
            if len(run) == min(len(field), len(found)):
                exact.add(item)
            longest = max(longest, run, key=len)
    share = {f"ngram_{n}": 100 * len(items) / len(table) for n, items in shared.items()}
    return {
        "corpus": name, "title": described.title, "official": described.official, "items": len(table), "exact": len(exact),
        **share, "longest": len(longest), "example": " ".join(longest),
    }  # fmt: skip


def result_rows(overlap: pd.DataFrame, scale: str) -> list[dict]:
    """The overlap (from `check`) as measurements: the share of items that match exactly, and by n-gram (percent)."""
    rows = []
    for found in overlap.itertuples():
        measures = {"exact match": 100 * found.exact / found.items}
        measures |= {f"{n}-gram overlap": getattr(found, f"ngram_{n}") for n in SIZES}
        label = corpora.describe(found.corpus).label
        rows += [
            results.row(TRAINING_TEXTS, label, metric, value, data=found.corpus, n=found.items, scale=scale)
            for metric, value in measures.items()
        ]
    return rows
