"""SemAntoNeg: the items, which candidate is chosen, where all encoders fail, and the families of models."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nblib import artefacts, corpora
from nblib.analysis import vahtola
from nblib.benchmarks import scoring
from nblib.corpora import semantoneg
from nblib.results import measurements, published


def test_the_mini_set_has_60_sets_of_4_with_two_negatives_each():
    items = semantoneg.load("semantoneg_mini")
    assert (len(items), items.sentence_set.nunique()) == (240, 60)
    assert items.negatives.map(len).eq(2).all()
    assert not any(item.positive in item.negatives for item in items.itertuples())


@pytest.mark.official
def test_the_official_rows_come_from_770_sets():
    assert semantoneg.load().sentence_set.nunique() == 770


ITEMS = pd.DataFrame({
    "idx": [0, 1, 2, 3],
    "input": ["That is good.", "That's not the same thing.", "I'm not uncertain.", "That is not bad."],
    "positive": ["", "", "", ""],
    "negatives": [
        ["That is bad.", "That is not good."], ["That's not a different thing.", "That's the same thing."],
        ["I'm not sure.", "I'm uncertain."], ["That is not good.", "That is bad."],
    ],
})  # fmt: skip


def predictions(*correct, nearest=None):
    n = len(correct)
    table = pd.DataFrame({"id": [str(k) for k in range(n)], "cluster": range(n), "correct": correct})
    return table.assign(nearest_negative=nearest or [0] * n)


def test_choices_count_the_paraphrase_where_it_won_and_else_the_nearest_negative():
    table = vahtola.choices(predictions(True, False, False, False, nearest=[1, 1, 1, 0]))
    assert table.option.tolist() == list(vahtola.OPTIONS)
    assert table.n.tolist() == [1, 2, 1] and table.share.tolist() == [25, 50, 25]


def test_antonyms_are_what_the_two_texts_do_not_share():
    pairs = vahtola.antonym_pairs(ITEMS)
    assert pairs.to_dict() == {"0": "bad – good", "1": "different – same", "2": "sure – uncertain", "3": "bad – good"}


def test_errors_are_counted_by_antonyms():
    table = vahtola.errors_by_antonyms(predictions(False, False, True, True), ITEMS)
    assert table.to_dict("list") == {
        "antonyms": ["bad – good", "different – same", "sure – uncertain"], "n": [2, 1, 1], "errors": [1, 1, 0],
        "share": [50, 100, 0],
    }  # fmt: skip


def test_common_errors_are_those_of_every_system():
    systems = {"a": predictions(False, False, True, True), "b": predictions(False, True, False, True)}
    common = vahtola.common_errors(systems)
    assert common.id.tolist() == ["0"] and common.attrs["expected"] == 1
    with pytest.raises(ValueError, match="a, b are not about the same items"):
        vahtola.common_errors({**systems, "b": predictions(True)})


def test_families_are_the_papers_tables_beside_our_scores():
    table = vahtola.families({"all-MiniLM-L6-v2": 1.9}).set_index("system")
    assert table.family.value_counts().to_dict() == {"NLI": 15, "paraphrase": 15, "general purpose": 11, "STSB": 9}
    assert table.published["nli-mpnet-base-v2"] == published.value(
        "vahtola", "Table 5", "nli-mpnet-base-v2", "accuracy"
    )
    assert table.ours["all-MiniLM-L6-v2"] == 1.9 and np.isnan(table.ours["all-mpnet-base-v2"])


@pytest.mark.parametrize(("corpus", "label"), [("semantoneg", ""), ("semantoneg_mini", " (mini)")])
def test_common_errors_are_counts_of_all_encoders_together(corpus, label):
    by_antonyms = pd.DataFrame({"antonyms": ["actual – possible", "bad – good"], "n": [40, 60], "errors": [30, 5]})
    rows = vahtola.common_error_rows(pd.DataFrame({"id": range(35)}), by_antonyms, 3, "official", corpus)
    table = measurements.validate(pd.DataFrame(rows), "here").set_index("metric")
    assert table.value.to_dict() == {
        "shared_errors": 35, "shared_errors_possible_actual": 30, "shared_errors_same_other": 0,
    }  # fmt: skip
    assert set(table.benchmark) == {f"SemAntoNeg errors{label}"} and set(table.n) == {100}
    assert set(table.system) == {"every encoder of this run"} and set(table.data) == {f"{corpus}, 3 encoders"}


def test_a_family_is_compared_with_its_base_item_by_item(tmp_path):
    trained = {"base": None, "family-nli-s1": {"family": "NLI", "seed": 1}, "family-x": {}}
    for name, about in trained.items():
        right = 5 if about is None else 15
        scored = predictions(*[True] * right, *[False] * (20 - right))
        scoring.save_predictions(scored, tmp_path, name, "semantoneg_mini")
        artefacts.write_json(tmp_path / "results" / f"07_{name}.csv.json", about or {})
    (row,) = vahtola.families_on_one_base(tmp_path, ["family-nli-s1"], "base", "semantoneg_mini").to_dict("records")
    assert (row["system"], row["family"], row["seed"], row["value"], row["n"]) == ("family-nli-s1", "NLI", 1, 75.0, 20)
    assert row["difference"] == 50.0, "the base has 25"
    assert row["low"] < 75 < row["high"]
    assert 0 < row["difference_low"] < 50 < row["difference_high"]
    assert vahtola.families_on_one_base(tmp_path, [], "base", "semantoneg_mini").empty
    with pytest.raises(scoring.ScoreError, match="family-x was not trained on a family's pairs"):
        vahtola.families_on_one_base(tmp_path, ["family-x"], "base", "semantoneg_mini")
    with pytest.raises(scoring.ScoreError, match=r"No predictions at .*absent"):
        vahtola.families_on_one_base(tmp_path, ["absent"], "base", "semantoneg_mini")


@pytest.mark.official
def test_the_options_and_antonyms_of_the_official_items():
    items = semantoneg.load()
    assert (corpora.load("semantoneg").label == 2).all()  # the order of the options is the labels' order
    pairs = vahtola.antonym_pairs(items).value_counts()
    assert {pairs["actual – possible"], pairs["bad – good"]} == {86, 340}
    assert pairs[pairs.index.str.startswith(" –")].sum() < 5  # a few items have no antonym to name


def test_the_families_and_choices_are_drawn_with_what_they_show_above_them():
    families = pd.DataFrame(
        {"family": ["NLI", "NLI", "STSB"], "published": [10.0, 20.0, 40.0], "ours": [None, None, 38.0]}
    )
    shares = pd.DataFrame([[50.0, 45.0, 5.0], [40.0, 30.0, 30.0]], index=["A", "B"], columns=vahtola.OPTIONS)
    _, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    vahtola.draw_families(families, left)
    vahtola.draw_choices(shares, right)
    where = plt.rcParams["axes.titlelocation"]
    assert left.get_title(loc=where).replace("\n", " ").endswith("go from 15 % (NLI) to 40 % (STSB)")
    assert left.lines[-1].get_xydata().tolist() == [[38, 1]]
    assert right.get_title(loc=where).replace("\n", " ").endswith("the paraphrase in 5.0 to 30.0 %")
    plt.close("all")
