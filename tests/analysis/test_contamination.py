"""Training texts in benchmarks: what is planted is found, what is counted can be counted by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.language import ngrams

from nblib import corpora
from nblib.analysis import contamination
from nblib.analysis.contamination import words
from nblib.corpora import registry
from nblib.results import measurements

ITEMS = pd.DataFrame({
    "id": ["1", "2", "3", "4"],
    "score": [1.0, 2.0, 3.0, 4.0],
    "query": ["One two three four five six seven eight nine.", "Alpha beta gamma delta epsilon zeta.", "Too short here.",
              "Red orange yellow green blue indigo violet."],
    "options": [["north south east west up", "no"], ["no"], ["no"], ["spring summer autumn winter rain", "no"]],
})  # fmt: skip


@pytest.fixture
def found(monkeypatch):
    """A toy benchmark of four items, and a function that looks for texts in it."""
    columns = {"id": "str", "score": "float", "query": "str", "options": "list"}
    entry = replace(corpora.entries()["stsb_mini"], name="toy", title="Toy", benchmark="Toy", columns=columns)
    monkeypatch.setattr(registry, "entries", lambda: {"toy": entry})
    monkeypatch.setattr(corpora, "load", lambda name, *splits: ITEMS)
    return lambda *texts: contamination.check(texts, ["toy"]).iloc[0]


@pytest.mark.parametrize(
    "planted",
    [
        "Alpha beta gamma delta epsilon zeta.",
        "ALPHA, beta: gamma – delta (epsilon) “zeta”!",
        "It read: alpha beta gamma delta epsilon zeta, and so on.",  # the training text contains the item's
        "beta gamma delta epsilon zeta",  # and the other way round
        "Spring, summer, autumn, winter, rain",  # an element of a list
    ],
)
def test_a_planted_text_is_found(found, planted):
    overlap = found("Nothing of this stands in any benchmark.", planted)
    assert (overlap.exact, overlap["items"], overlap.ngram_5) == (1, 4, 25)


@pytest.mark.parametrize(
    "text", ["alpha beta gamma delta", "alpha beta gamma delta zeta epsilon", "alphabeta gamma delta epsilon zetas", ""]
)
def test_what_is_short_in_another_order_or_in_other_words_is_no_match(found, text):
    overlap = found(text)
    assert (overlap.exact, overlap.ngram_5, overlap.longest, overlap.example) == (0, 0, 0, "")


def test_benchmark_texts_of_fewer_than_five_words_are_not_looked_at(found):
    assert found("This text is too short here, and it says no more than that.").exact == 0
    assert sorted(contamination.fields("toy").text) == sorted(
        [*ITEMS["query"][[0, 1, 3]], ITEMS.options[0][0], ITEMS.options[3][0]]
    )


def test_ngrams_are_counted_by_item(found):
    overlap = found(
        "He said one two three four five six seven eight, then nothing.",  # eight words of the first item
        "And north south east west up again.",  # five more of the same item: an exact match
        "Orange yellow green blue indigo, she said.",  # five words of the fourth
    )
    assert overlap[["ngram_5", "ngram_8", "ngram_13"]].tolist() == [50, 25, 0]
    assert overlap.exact == 1
    assert (overlap.longest, overlap.example) == (8, "one two three four five six seven eight")


def test_every_longest_run_is_found():
    rng = np.random.default_rng(0)
    field, *training = (tuple(rng.choice(list("ab"), 30)) for _ in range(20))
    expected = {size: {run for text in training for run in ngrams(text, size)} for size in range(5, 31)}
    expected = {size: runs & ngrams(field, size) for size, runs in expected.items()}
    found = {run for run, _ in contamination._Index(training).runs(field)}
    for size, runs in expected.items():
        assert {part for run in found for part in ngrams(run, size)} == runs


def test_case_and_punctuation_are_no_words():
    assert " ".join(words("It’s a well-known “T-shirt”, n° 5_b")) == "it s a well known t shirt n 5 b"


def test_the_overlap_is_a_measurement_of_the_training_texts(found):
    overlap = found("Alpha beta gamma delta epsilon zeta.").to_frame().T
    rows = contamination.result_rows(overlap, "quick")
    table = measurements.validate(pd.DataFrame(rows), "here").set_index("metric")
    assert table.value.to_dict() == {
        "exact match": 25, "5-gram overlap": 25, "8-gram overlap": 0, "13-gram overlap": 0,
    }  # fmt: skip
    assert table.n.eq(4).all()
    assert table.system.eq(contamination.TRAINING_TEXTS).all(), "not the paper's own texts"
    assert table.data.eq("toy").all()
    assert table.scale.eq("quick").all()


def test_the_benchmarks_are_the_miniatures_or_all_and_never_the_material():
    mini, official = contamination.benchmarks("mini"), contamination.benchmarks("official")
    assert not contamination.NO_BENCHMARKS & set(official)
    assert set(corpora.entries()) >= contamination.NO_BENCHMARKS
    assert {"stsb_mini", "nevir_mini"} <= set(mini) < set(official)
    assert set(official) - set(mini) == {name for name, corpus in corpora.entries().items() if corpus.official}


def test_a_mini_benchmarks_own_texts_are_found_in_it():
    pairs = corpora.load("cannot_wmt_mini")
    overlap = contamination.check(pairs.candidate, ["cannot_wmt_mini"]).iloc[0]
    long = pairs.candidate.map(lambda text: len(words(text)) >= 5)
    assert overlap.exact >= long.sum() > 0
