"""Groups, shares and examples of the diagnosis."""

import pandas as pd
import pytest

from nblib.analysis import diagnosis
from nblib.models import encoders


def compared(sim_12, sim_1neg1, groups):
    return pd.DataFrame({"encoder": "e", "group": groups, "sim_12": sim_12, "sim_1neg1": sim_1neg1})


def test_a_tie_counts_for_neither_side_and_an_empty_group_is_no_zero():
    others = [compared([0.1], [0.9], [group]) for group in range(2, 6)]
    table = pd.concat([compared([0.5, 0.5, 0.9, 0.1], [0.5, 0.6, 0.1, 0.2], [1] * 4), *others])
    first = diagnosis.closer_share(table).iloc[0]
    assert (first.n, first.negation_closer, first.paraphrase_closer) == (4, 50.0, 25.0)
    with pytest.raises(KeyError, match="3"):
        diagnosis.closer_share(table[table.group != 3])


def test_negations_that_are_no_output_are_missing_and_a_score_on_a_border_belongs_to_the_group_above():
    first = ["The horse is white.", "Two women in a store.", "Is it white?"]
    pairs = pd.DataFrame({"sentence1": first, "sentence2": "A white horse.", "score": [4.0, 3.99, 5.0]})
    table = diagnosis.with_negations(pairs)
    assert table.negated.isna().tolist() == [False, True, False]
    assert table.group.tolist() == [5, 4, 5]


def test_equation_1_compares_the_first_sentence_with_both_others(tiny_encoder):
    pairs = pd.DataFrame({"sentence1": ["a b"], "sentence2": ["a b"], "negated": ["a not b"], "group": [5]})
    row = diagnosis.compare(pairs, tiny_encoder).iloc[0]
    assert row.sim_12 == pytest.approx(1)
    assert row.sim_1neg1 < 1 - 1e-6


def test_the_papers_examples_show_the_blindness_and_truongs_stand_apart():
    encoder = encoders.load("all-MiniLM-L6-v2")
    cosine = diagnosis.paper_examples([encoder]).set_index("metric").cosine
    assert cosine["cosine_negation"] > cosine["cosine_paraphrase"]
    truong = diagnosis.truongs_figure_1([encoder])
    assert truong.metric.tolist() == ["cosine_hoax", "cosine_not_enough_evidence", "cosine_no_doubt"]
    assert truong[encoder.name].tolist() == cosine[truong.metric].tolist()
