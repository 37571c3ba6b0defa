"""Choices and correlations: strict, by the right similarity and prompts, and only of usable scores."""

import numpy as np
import pandas as pd
import pytest
from support.benchmarks import Written, question
from support.encoders import written

from nblib.benchmarks import base
from nblib.benchmarks.excluir import ExcluIR
from nblib.benchmarks.nevir import NevIR
from nblib.benchmarks.semantoneg import SemAntoNeg
from nblib.benchmarks.stsb import STSB
from nblib.models.systems import BiEncoder

NEAR, FAR = [1.0, 0.0], [0.0, 1.0]


def predict(benchmark, rows, vectors, **spec):
    """Predictions of an encoder that gives these vectors."""
    return benchmark("mini").predict(BiEncoder(written(vectors, **spec)), pd.DataFrame(rows))


def test_nevir_needs_both_queries():
    rows = [question(), question(ask="q2", query="r", positive="n", negatives=["p"])]
    both = {"q": NEAR, "p": NEAR, "r": FAR, "n": FAR}
    found = predict(NevIR, rows, both)
    assert found.correct.tolist() == [True] and found.margin_q2.item() == pytest.approx(1)
    found = predict(NevIR, rows, {**both, "r": NEAR})
    assert found.correct.tolist() == [False] and found.margin.item() == pytest.approx(-1)


def test_a_tie_is_wrong():
    found = predict(ExcluIR, [question(ask="query")], {"q": NEAR, "p": FAR, "n": FAR})
    assert found.correct.tolist() == [False] and found.margin.item() == 0


def test_of_several_negatives_the_nearest_counts_and_is_named():
    rows = [question(item, "input", query, "x", ["y", "z"]) for item, query in [("1", "a"), ("2", "b")]]
    given = {("a", "x"): 1.0, ("a", "z"): 2.0, ("b", "x"): 5.0, ("b", "y"): 4.0}
    found = SemAntoNeg().predict(Written(given), pd.DataFrame(rows))
    assert found.nearest_negative.tolist() == [1, 0]
    assert found.margin.tolist() == [-1, 1] and found.correct.tolist() == [False, True]


def test_the_models_own_similarity_is_used_but_semantoneg_forces_cosine():
    long_negative = {"q": NEAR, "p": NEAR, "n": [5.0, 5.0]}  # cosine prefers p, the dot product n
    for similarity, right in [("cosine", True), ("dot", False)]:
        found = predict(ExcluIR, [question(ask="query")], long_negative, similarity=similarity)
        assert found.correct.tolist() == [right]
    assert predict(SemAntoNeg, [question(ask="input")], long_negative, similarity="dot").correct.all()
    adapted = BiEncoder(written(long_negative, similarity="dot"))
    adapted.adapter = "original_norms"  # whose similarity is the dot product of the weighted vectors
    assert not SemAntoNeg("mini").predict(adapted, pd.DataFrame([question(ask="input")])).correct.any()


@pytest.mark.parametrize("benchmark", [NevIR, SemAntoNeg])
def test_each_text_gets_the_prompt_of_its_role(benchmark):
    prompts = {"query": "Q: ", "document": "D: ", "symmetric": "S: "}
    encoder = written({"q": NEAR, "p": NEAR, "n": FAR}, **prompts)
    benchmark("mini").predict(BiEncoder(encoder), pd.DataFrame([question()]))
    first, second = (prompts[role] for role in benchmark.roles)
    assert set(encoder.model.asked) == {(first, "q"), (second, "p"), (second, "n")}


def test_a_correlation_keeps_the_score_beside_the_similarity():
    rows = [{"id": "1", "cluster": 0, "part": "STSB", "score": 3.0, "sentence1": "a", "sentence2": "b"}]
    found = predict(STSB, rows, {"a": NEAR, "b": [1.0, 1.0]})
    assert found[["id", "part", "score"]].to_numpy().tolist() == [["1", "STSB", 3.0]]
    assert found.similarity.item() == pytest.approx(0.5**0.5)


@pytest.mark.parametrize("nonsense", [[1.0], [1.0, np.nan], [[1.0], [2.0]]])
def test_scores_no_ranking_can_be_made_of_are_refused(nonsense):
    class Broken(Written):
        def score(self, queries, documents, **_):
            return np.array(nonsense)

    with pytest.raises(base.ScoreError, match="written gave"):
        NevIR("mini").predict(Broken(), pd.DataFrame([question()]))


def test_rows_that_share_a_text_are_one_cluster():
    assert base.shared_text_clusters(["a", "b", "c", "x"], ["b", "d", "e", "y"]) == [0, 0, 1, 2]
