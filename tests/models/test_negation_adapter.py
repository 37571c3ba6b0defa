"""The adapter against the paper's equations written out, and as estimator, file and SentenceTransformer."""

import numpy as np
import pytest
from support.close import assert_close

from nblib.models import embeddings
from nblib.models.negation_adapter import (
    GRID,
    WEIGHTINGS,
    AdapterError,
    NegationAdapter,
    NoNegationSensitiveDimension,
    choices,
    contributions,
    softmax_weights,
    weighted_similarity,
)


def triplets(n=40, dimension=12, seed=0):
    """Triplets whose first dimension tells the positive from the negative."""
    rng = np.random.default_rng(seed)
    anchors = rng.normal(size=(n, dimension)).astype(np.float32)
    positives = anchors + 0.5 * rng.normal(size=(n, dimension)).astype(np.float32)
    negatives = anchors + 0.3 * rng.normal(size=(n, dimension)).astype(np.float32)
    negatives[:, 0] *= -1
    return anchors, positives, negatives


def similarity(adapter, a, b):
    return weighted_similarity(a, b, adapter.weights_[None, :], adapter.weighting)[:, 0]


def test_contributions_are_equations_2_to_4_written_out():
    t, p, n = triplets(n=5, dimension=4)
    expected = np.zeros(4)
    for i in range(5):
        for k in range(4):
            u_tp = t[i, k] * p[i, k] / (np.linalg.norm(t[i]) * np.linalg.norm(p[i]))
            u_tn = t[i, k] * n[i, k] / (np.linalg.norm(t[i]) * np.linalg.norm(n[i]))
            expected[k] += (u_tp - u_tn) / 5
    assert_close(contributions(t, p, n[:, None]), expected)


def test_weights_are_equation_5_and_a_zero_is_uniform():
    mean = np.array([0.2, -0.1, 0.4])
    rescaled = mean / 0.4
    for a, weights in zip(GRID, softmax_weights(mean, GRID), strict=True):
        assert_close(weights, np.exp(a * rescaled) / np.exp(a * rescaled).sum())
    assert_close(softmax_weights(mean, [0.0])[0], 1 / 3)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_each_weighting_is_its_formula_and_with_uniform_weights_the_plain_cosine(weighting):
    x, y, _ = triplets(n=6, dimension=5)
    formula = {
        "original norms": lambda w, a, b: (w * a * b).sum() / (np.linalg.norm(a) * np.linalg.norm(b)) * 5,
        "weighted cosine": lambda w, a, b: (w * a * b).sum() / np.sqrt((w * a * a).sum() * (w * b * b).sum()),
        "weighted embeddings": lambda w, a, b: (w * a) @ (w * b) / (np.linalg.norm(w * a) * np.linalg.norm(w * b)),
    }[weighting]
    weights = np.random.default_rng(1).dirichlet(np.ones(5)), np.full(5, 1 / 5)
    expected = [[formula(w, a, b) for w in weights] for a, b in zip(x.astype(float), y.astype(float), strict=True)]
    similarities = weighted_similarity(x, y, np.stack(weights), weighting)
    assert_close(similarities, expected)
    assert_close(similarities[:, 1], embeddings.similarity(x, y))


def test_fitting_finds_the_dimension_that_tells_negations_apart():
    adapter = NegationAdapter().fit(*triplets())
    assert adapter.weights_.argmax() == 0
    assert adapter.weights_.sum() == pytest.approx(1)
    assert adapter.training_accuracy_.max() >= adapter.training_accuracy_[0]
    assert adapter.a_ == GRID[int(adapter.training_accuracy_.argmax())]


def test_a_tie_is_wrong():
    t, p, _ = triplets(n=3)
    uniform = np.full((1, t.shape[1]), 1 / t.shape[1])
    assert not choices(t, p, p[:, None], uniform, "weighted cosine").any()


def test_the_constraint_keeps_the_correlation():
    t, p, n = triplets(n=200)
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(2, 300, 12))
    score = np.einsum("nd,nd->n", first, second) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    free = NegationAdapter().fit(t, p, n)
    constrained = NegationAdapter().fit(t, p, n, scored=(first, second, score))
    correlation = np.corrcoef(similarity(constrained, first, second), score)[0, 1]
    assert constrained.a_ < free.a_
    assert correlation >= 0.99 - 1e-9


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_it_transforms_saves_loads_and_lives_in_a_sentence_transformer(weighting, tiny_encoder, tmp_path):
    from sentence_transformers import SentenceTransformer

    sentences = ["I go to school.", "I do not go to school.", "A man is eating."]
    plain = tiny_encoder.model.encode(sentences)
    adapter = NegationAdapter(weighting).fit(plain, plain + 0.1 * np.roll(plain, 1, axis=1), np.roll(plain, 1, axis=0))
    again = NegationAdapter.load(adapter.save(tmp_path / "adapter.safetensors", encoder="tiny"))
    assert (again.weighting, again.a_) == (adapter.weighting, adapter.a_)
    np.testing.assert_array_equal(again.weights_, adapter.weights_)

    again.apply_to(tiny_encoder.model).save(str(tmp_path / "model"))
    model = SentenceTransformer(str(tmp_path / "model"))
    vectors = model.encode(sentences)
    assert_close(vectors, adapter.transform(plain))
    assert_close(model.similarity_pairwise(vectors[:2], vectors[1:]), similarity(adapter, plain[:2], plain[1:]))


def test_no_dimension_for_the_paraphrase_is_an_error_that_names_the_value():
    t, _, _ = (part.astype(np.float64) for part in triplets())
    with pytest.raises(NoNegationSensitiveDimension, match=r"max\(V̄\) = -0\.\d"):
        NegationAdapter().fit(t, -t, t)
    dead = np.full((len(t), 1), 1e-33)
    anchors, positives, negatives = np.hstack([t, dead]), np.hstack([-t, 2 * dead]), np.hstack([t, dead])
    assert contributions(anchors, positives, negatives[:, None]).max() > 0  # a positive nothing
    with pytest.raises(NoNegationSensitiveDimension, match="dead ones"):
        NegationAdapter().fit(anchors, positives, negatives)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t, p, n: (t[:0], p[:0], n[:0]), "There are no triplets"),
        (lambda t, p, n: (t, p, n * (np.arange(len(n)) != 2)[:, None]), "The negatives have a vector without"),
    ],
)
def test_unusable_triplets_are_refused(spoil, message):
    with pytest.raises(AdapterError, match=message):
        NegationAdapter().fit(*spoil(*triplets()))


def test_an_adapter_of_another_encoder_and_a_file_that_is_no_adapter_are_refused(tiny_encoder, tmp_path):
    with pytest.raises(AdapterError, match="12 dimensions, not 32"):
        NegationAdapter().fit(*triplets(dimension=12)).apply_to(tiny_encoder.model)
    (tmp_path / "broken.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(AdapterError, match="can't be read"):
        NegationAdapter.load(tmp_path / "broken.safetensors")
