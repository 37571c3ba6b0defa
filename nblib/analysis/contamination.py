"""Have the training texts leaked into a benchmark? Exact matches and shared n-grams (Truong §5.1, Data contamination).

A field of an item and a training text match when one holds all the other's words in a row (footnote 7: "is included in …, or
vice versa"). Case, punctuation and texts under five words don't count.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher

import pandas as pd

from nblib import corpora
from nblib.errors import one_of

SIZES = (5, 8, 13)
# Trained on or built from
NO_BENCHMARKS = {"authored_triples", "exclusions", "paraphrases_mini", "paraphrases_mini_sets"}
TRAINED_ON = {"contrast_mini", "contrast_more", "exclusions_mini"}  # their split "train"; the others are looked at
FEWEST = 5  # words; "all samples have a minimum length of 5 words"


def benchmarks(form: str) -> list[str]:
    """The corpora to look in: the mini sets ("mini"), or these and the official benchmarks ("official")."""
    one_of(form, ("mini", "official"), "form")
    entries = {name: entry for name, entry in corpora.entries().items() if name not in NO_BENCHMARKS}
    return [name for name, entry in entries.items() if form == "official" or not entry.official]


def held_out(name: str) -> pd.DataFrame:
    """The rows of a corpus that the study doesn't train on."""
    splits = corpora.describe(name).splits
    return corpora.load(name, *(split for split in splits if split != "train" or name not in TRAINED_ON))


def fields(name: str) -> pd.DataFrame:
    """The texts of a corpus that are long enough: item (a number), field (its column), text."""
    columns = [column for column, kind in corpora.describe(name).columns.items() if kind in ("str", "text", "list")]
    table = held_out(name)[columns].rename_axis("item").reset_index()
    long = table.melt("item", var_name="field", value_name="value")  # a corpus may have a column "text"
    long = long.rename(columns={"value": "text"}).explode("text", ignore_index=True)
    return long[long.text.map(lambda text: len(words(text)) >= FEWEST)].reset_index(drop=True)


def words(text: str) -> tuple[str, ...]:
    """The words of a text, in lower case."""
    return tuple(re.findall(r"[^\W_]+", text.lower()))


def check(texts: Iterable[str], names: Collection[str]) -> pd.DataFrame:
    """Look for training texts in benchmarks, by their names in the registry: corpus, title, official, items, exact (items with
    a match), ngram_5, ngram_8, ngram_13 (percent of items that share one), longest (the most words in a row that an item
    shares), example (those words; of the authored sets alone, as the others' texts are not ours to show)."""
    holders = defaultdict(set)  # five words in a row → the training texts that hold them
    for text in set(map(words, texts)):
        for gram in _grams(text):
            holders[gram].add(text)
    return pd.DataFrame([_check_one(name, holders) for name in names])


def _grams(text: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [text[start : start + FEWEST] for start in range(len(text) - FEWEST + 1)]


def _check_one(name: str, holders: dict[tuple[str, ...], set[tuple[str, ...]]]) -> dict:
    described, items = corpora.describe(name), len(held_out(name))
    exact, longest, shared = set(), (), defaultdict(int)  # item → the most words in a row that it shares
    for item, text in fields(name)[["item", "text"]].itertuples(index=False):
        field, matches = words(text), []
        for training in set().union(*(holders.get(gram, ()) for gram in _grams(field))):
            start, _, size = SequenceMatcher(None, field, training, autojunk=False).find_longest_match()
            matches.append((size, -start))
            if size == min(len(field), len(training)):
                exact.add(item)
        if matches:
            size, start = max(matches)
            shared[item] = max(shared[item], size)
            longest = max(longest, field[-start : size - start], key=len)
    share = {f"ngram_{n}": 100 * sum(size >= n for size in shared.values()) / items for n in SIZES}
    about = {"corpus": name, "title": described.title, "official": described.official, "items": items}
    example = "" if described.official else " ".join(longest)
    return {**about, "exact": len(exact), **share, "longest": len(longest), "example": example}
