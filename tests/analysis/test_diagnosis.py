"""Groups, shares and examples of the diagnosis."""

import numpy as np
import pandas as pd
import pytest

from nblib.analysis import diagnosis
from nblib.models import encoders


def test_a_score_on_a_border_belongs_to_the_group_above():
    assert diagnosis.similarity_group([0, 0.99, 1, 2.5, 3.99, 4, 5]).tolist() == [1, 1, 2, 3, 4, 5, 5]


@pytest.mark.parametrize("score", [-0.1, 5.1, np.nan])
def test_a_score_outside_the_scale_is_refused(score):
    with pytest.raises(ValueError, match="between 0 and 5"):
        diagnosis.similarity_group([score])


def compared(sim_12, sim_1neg1, groups):
    return pd.DataFrame({"encoder": "e", "group": groups, "sim_12": sim_12, "sim_1neg1": sim_1neg1})


def test_a_tie_counts_for_neither_side():
    table = compared([0.5, 0.5, 0.9, 0.1], [0.5, 0.6, 0.1, 0.2], [1] * 4)
    for group in range(2, 6):
        table = pd.concat([table, compared([0.1], [0.9], [group])])
    first = diagnosis.closer_share(table).iloc[0]
    assert (first.n, first.negation_closer, first.paraphrase_closer) == (4, 50.0, 25.0)


def test_an_empty_group_is_named():
    with pytest.raises(ValueError, match=r"group 3 \(e\)"):
        diagnosis.closer_share(compared([0.1] * 4, [0.9] * 4, [1, 2, 4, 5]))


def test_the_histogram_counts_every_pair_once():
    bins = diagnosis.histogram(compared([-0.2, 0.1, 1.0], [0.3, 0.3, 0.99], [1, 1, 1]))
    assert bins.groupby("kind").percent.sum().round(6).tolist() == [100, 100]


def test_negations_that_are_no_output_are_missing_and_others_are_kept():
    first, second = (
        ["The horse is white.", "Two women in a store.", "Is it white?"],
        ["A white horse.", "Women shop.", "White?"],
    )
    pairs = pd.DataFrame({"sentence1": first, "sentence2": second, "score": [4.5, 3.0, 2.0]})
    table = diagnosis.with_negations(pairs)
    assert table.negated.isna().tolist() == [False, True, False]
    assert table.group.tolist() == [5, 4, 3]


def test_equation_1_compares_the_first_sentence_with_both_others(tiny_encoder):
    pairs = pd.DataFrame({"sentence1": ["a b"], "sentence2": ["a b"], "negated": ["a not b"], "group": [5]})
    row = diagnosis.compare(pairs, tiny_encoder).iloc[0]
    assert row.sim_12 == pytest.approx(1)
    assert row.sim_1neg1 < 1 - 1e-6


def test_truong_figure_1_has_its_published_numbers_beside():
    table = diagnosis.paper_examples([encoders.load("all-MiniLM-L6-v2")])
    assert table.published.isna().all()  # nothing is printed for this model
    cosine = table.set_index("metric").cosine
    assert cosine["cosine_negation"] > cosine["cosine_paraphrase"]


def test_the_nearest_sentence_is_that_of_most_encoders():
    rows = [("A", "x", 0.9), ("A", "y", 0.8), ("B", "x", 0.7), ("B", "y", 0.6), ("C", "x", 0.1), ("C", "y", 0.2)]
    cosines = pd.DataFrame(rows, columns=["encoder", "sentence", "cosine"]).assign(anchor="a")
    assert diagnosis.nearest_sentence(cosines) == "Nearest to “a” for 2 of 3 encoders: “x”"
