"""The words for people of what measurements hold as keys."""

import math

import pytest

from nblib.results import words

ROW = dict.fromkeys("system base variant adapter corpus split part sample protocol".split(), "")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, "a"),
        ({"variant": "both"}, "a + both"),
        ({"adapter": "weighted_cosine", "variant": "k1000"}, "a + adapter (weighted cosine, K = 1000)"),
        ({"adapter": "original_norms", "variant": "accuracy"}, "a + adapter (original norms, a by accuracy)"),
        ({"system": "a+adapter", "adapter": "weighted_cosine", "variant": "x"}, "a+adapter"),
    ],
)
def test_a_system_is_named_with_its_variant(columns, said):
    assert words.system({**ROW, "system": "a", "base": "a", **columns}) == said


def test_items_are_named_by_corpus_split_part_sample_and_protocol():
    nevir = {**ROW, "corpus": "nevir", "split": "test"}
    assert words.items({**nevir, "sample": "1000"}) == "nevir test, a sample of 1,000 pairs"
    assert words.items({**nevir, "part": "scope_changed"}) == "nevir test, scope changed"
    other = {**ROW, "corpus": "semantoneg", "split": "test", "sample": "2152", "protocol": "splits_by_row"}
    assert words.items(other) == "semantoneg test, a sample of 2,152 rows, splits by row"
    assert words.items(ROW) == ""


@pytest.mark.parametrize(
    ("key", "number", "said"),
    [
        ("both", 1600, "authored negations and hedges, 1,600 anchors"),
        ("snli_classes", 1500, "SNLI's three classes, 1,500 pairs"),
        ("nevir", 40, "40 of NevIR's training pairs"),
        ("mixture", 1600, words.TRAINING["mixture"]),
        ("rule_based", 737, "rule based, 737 anchors"),
        ("", math.nan, ""),
    ],
)
def test_training_data_are_named_with_their_size(key, number, said):
    assert words.training(key, number) == said


def test_a_benchmark_has_its_label_and_a_mini_set_says_so():
    assert words.benchmark("nevir", "nevir") == "NevIR" and words.benchmark("nevir", "nevir_mini") == "NevIR (mini)"
    assert words.benchmark("semantoneg_errors", "semantoneg_mini") == "SemAntoNeg errors (mini)"
    assert words.benchmark("figure_1") == "Figure 1 sentences" and words.benchmark("STS22", "") == "STS22"
    assert words.metric("accuracy_w_anto_200") == "accuracy with weights from 200 items"
