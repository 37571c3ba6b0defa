"""Training texts in benchmarks: what is planted is found, what is counted can be counted by hand."""

from dataclasses import replace

import pandas as pd
import pytest

from nblib import corpora
from nblib.analysis import contamination
from nblib.corpora import registry

QUERIES = [
    "One two three four five six seven eight nine.",
    "Alpha beta gamma delta epsilon zeta.",
    "Too short here.",
    "Red orange yellow green blue indigo violet.",
]
OPTIONS = [["north south east west up", "no"], ["no"], ["no"], ["spring summer autumn winter rain", "no"]]
ITEMS = pd.DataFrame({"id": list("1234"), "score": 1.0, "text": QUERIES, "options": OPTIONS})


@pytest.fixture
def check(monkeypatch):
    """A toy benchmark of four items, and a function that looks for texts in it."""
    columns = {"id": "str", "score": "float", "text": "str", "options": "list"}
    entry = replace(corpora.entries()["stsb_mini"], name="toy", columns=columns)
    monkeypatch.setattr(registry, "entries", lambda: {"toy": entry})
    monkeypatch.setattr(corpora, "load", lambda name, *splits: ITEMS)
    return lambda *texts: contamination.check(texts, ["toy"]).iloc[0]


@pytest.mark.parametrize(
    "planted",
    [
        "ALPHA, beta: gamma – delta (epsilon) “zeta”!",
        "It read: alpha beta gamma delta epsilon zeta, and so on.",  # the training text contains the item's
        "beta gamma delta epsilon zeta",  # and the other way round
        "Spring, summer, autumn, winter, rain",  # an element of a list
    ],
)
def test_a_planted_text_is_found(check, planted):
    overlap = check("Nothing of this stands in any benchmark.", planted)
    assert (overlap.exact, overlap["items"], overlap.ngram_5) == (1, 4, 25)


@pytest.mark.parametrize(
    "text", ["alpha beta gamma delta", "alpha beta gamma delta zeta epsilon", "alphabeta gamma delta epsilon zetas", ""]
)
def test_what_is_short_in_another_order_or_in_other_words_is_no_match(check, text):
    overlap = check(text, "This text is too short here, and it says no more than that.")
    assert (overlap.exact, overlap.ngram_5, overlap.longest, overlap.example) == (0, 0, 0, "")


def test_ngrams_are_counted_by_item(check):
    overlap = check(
        "He said one two three four five six seven eight, then nothing.",  # eight words of the first item
        "And north south east west up again.",  # five more of the same item: an exact match
        "Orange yellow green blue indigo, she said.",  # five words of the fourth
    )
    assert overlap[["ngram_5", "ngram_8", "ngram_13"]].tolist() == [50, 25, 0]
    assert overlap.exact == 1
    assert (overlap.longest, overlap.example) == (8, "one two three four five six seven eight")


def test_the_benchmarks_are_the_miniatures_or_all_and_never_the_material():
    mini, official = contamination.benchmarks("mini"), contamination.benchmarks("official")
    assert set(corpora.entries()) > contamination.NO_BENCHMARKS and not contamination.NO_BENCHMARKS & set(official)
    assert {"stsb_mini", "nevir_mini"} <= set(mini) < set(official)
    assert set(official) - set(mini) == {name for name, corpus in corpora.entries().items() if corpus.official}


def test_of_a_collection_that_is_trained_on_only_what_is_held_out_is_looked_at():
    for name in contamination.TRAINED_ON:
        trained = set(corpora.load(name, "train").id)
        assert len(contamination.held_out(name)) and trained.isdisjoint(contamination.held_out(name).id)
    assert len(contamination.held_out("stsb_mini")) == len(corpora.load("stsb_mini"))
