"""The adapter against the paper's equations written out, and as estimator, file and SentenceTransformer."""

import numpy as np
import pytest
from sklearn.base import clone
from support.close import assert_close

from nblib import artefacts
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


def test_contributions_are_equations_2_to_4_written_out():
    t, p, n = triplets(n=5, dimension=4)
    expected = np.zeros(4)
    for i in range(5):
        for k in range(4):
            u_tp = t[i, k] * p[i, k] / (np.linalg.norm(t[i]) * np.linalg.norm(p[i]))
            u_tn = t[i, k] * n[i, k] / (np.linalg.norm(t[i]) * np.linalg.norm(n[i]))
            expected[k] += (u_tp - u_tn) / 5
    assert_close(contributions(t, p, n[:, None]), expected)


def test_two_negatives_of_an_anchor_count_as_two_triplets():
    t, p, n = triplets()
    other = n[::-1].copy()
    both = contributions(t, p, np.stack([n, other], axis=1))
    apart = contributions(np.tile(t, (2, 1)), np.tile(p, (2, 1)), np.concatenate([n, other])[:, None])
    assert_close(both, apart)


def test_weights_are_equation_5_and_a_zero_is_uniform():
    mean = np.array([0.2, -0.1, 0.4])
    rescaled = mean / 0.4
    for a, weights in zip(GRID, softmax_weights(mean, GRID), strict=True):
        assert_close(weights, np.exp(a * rescaled) / np.exp(a * rescaled).sum())
    assert_close(softmax_weights(mean, [0.0])[0], 1 / 3)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_each_weighting_is_its_formula(weighting):
    x, y, _ = triplets(n=6, dimension=5)
    w = np.random.default_rng(1).dirichlet(np.ones(5))
    weighted = {
        "original norms": lambda a, b: (w * a * b).sum() / (np.linalg.norm(a) * np.linalg.norm(b)) * 5,
        "weighted cosine": lambda a, b: (w * a * b).sum() / np.sqrt((w * a * a).sum() * (w * b * b).sum()),
        "weighted embeddings": lambda a, b: (w * a) @ (w * b) / (np.linalg.norm(w * a) * np.linalg.norm(w * b)),
    }[weighting]
    expected = [weighted(a, b) for a, b in zip(x.astype(float), y.astype(float), strict=True)]
    assert_close(weighted_similarity(x, y, w[None], weighting)[:, 0], expected)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_uniform_weights_are_the_plain_cosine(weighting):
    x, y, _ = triplets()
    uniform = np.full((1, x.shape[1]), 1 / x.shape[1])
    cosine = (x * y).sum(axis=1) / (np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1))
    assert_close(weighted_similarity(x, y, uniform, weighting)[:, 0], cosine)


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
    constrained = NegationAdapter(max_correlation_loss=1.0).fit(t, p, n, scored=(first, second, score))
    correlation = np.corrcoef(constrained.similarity(first, second), score)[0, 1]
    assert constrained.a_ < free.a_
    assert correlation >= 0.99 - 1e-9


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_transformed_embeddings_have_the_reweighted_similarity(weighting):
    t, p, n = triplets()
    adapter = NegationAdapter(weighting).fit(t, p, n)
    x, y = adapter.transform(t), adapter.transform(p)
    similarity = (x * y).sum(axis=1)
    if weighting != "original norms":
        similarity /= np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    assert_close(similarity, adapter.similarity(t, p))


def test_it_is_a_scikit_learn_estimator():
    adapter = NegationAdapter("weighted cosine", max_correlation_loss=2.0)
    assert clone(adapter).get_params() == adapter.get_params()


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_it_saves_loads_and_lives_in_a_sentence_transformer(weighting, tiny_encoder, tmp_path):
    from sentence_transformers import SentenceTransformer

    sentences = ["I go to school.", "I do not go to school.", "A man is eating."]
    plain = tiny_encoder.model.encode(sentences)
    adapter = NegationAdapter(weighting).fit(plain, plain + 0.1 * np.roll(plain, 1, axis=1), np.roll(plain, 1, axis=0))
    again = NegationAdapter.load(adapter.save(tmp_path / "adapter.safetensors", encoder="tiny"))
    assert (again.weighting, again.a_) == (adapter.weighting, adapter.a_)
    np.testing.assert_array_equal(again.weights_, adapter.weights_)

    adapted = again.apply_to(tiny_encoder.model)
    assert_close(adapted.encode(sentences), adapter.transform(plain))
    adapted.save(str(tmp_path / "model"))
    reloaded = SentenceTransformer(str(tmp_path / "model"))
    assert_close(reloaded.encode(sentences), adapted.encode(sentences))
    similarity = reloaded.similarity(reloaded.encode(sentences[:1]), reloaded.encode(sentences[1:2])).item()
    assert_close(similarity, adapter.similarity(plain[:1], plain[1:2])[0])


def test_no_dimension_for_the_paraphrase_is_an_error_that_names_the_value():
    t, _, _ = triplets()
    with pytest.raises(NoNegationSensitiveDimension, match=r"max\(V̄\) = -0\.\d"):
        NegationAdapter().fit(t, -t, t)


def test_a_dead_dimension_is_not_mistaken_for_a_sensitive_one():
    t, _, _ = (part.astype(np.float64) for part in triplets())
    dead = np.full((len(t), 1), 1e-33)
    anchors, positives, negatives = np.hstack([t, dead]), np.hstack([-t, 2 * dead]), np.hstack([t, dead])
    assert contributions(anchors, positives, negatives[:, None]).max() > 0  # a positive nothing
    with pytest.raises(NoNegationSensitiveDimension, match="dead dimension"):
        NegationAdapter().fit(anchors, positives, negatives)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t, p, n: (t[:0], p[:0], n[:0]), "There are no triplets"),
        (lambda t, p, n: (t, p[:, :5], n), "don't belong together"),
        (lambda t, p, n: (t, p, n[:10]), "don't belong together"),
        (
            lambda t, p, n: (np.where(np.arange(len(t))[:, None] == 3, np.nan, t), p, n),
            "The anchors have NaN or infinite values",
        ),
        (lambda t, p, n: (t, p, n * (np.arange(len(n)) != 2)[:, None]), "The negatives have a zero vector"),
    ],
)
def test_unusable_triplets_are_refused(spoil, message):
    with pytest.raises(AdapterError, match=message):
        NegationAdapter().fit(*spoil(*triplets()))


def test_an_unknown_weighting_is_refused():
    with pytest.raises(AdapterError, match="known: original norms"):
        NegationAdapter("sideways").fit(*triplets())


def test_an_adapter_of_another_encoder_is_refused(tiny_encoder):
    adapter = NegationAdapter().fit(*triplets(dimension=12))
    with pytest.raises(AdapterError, match="12 dimensions, not 7"):
        adapter.transform(np.ones((2, 7)))
    with pytest.raises(AdapterError, match="learnt on another encoder"):
        adapter.apply_to(tiny_encoder.model)


def test_a_file_that_is_no_adapter_is_refused(tmp_path):
    with pytest.raises(AdapterError, match="No adapter at"):
        NegationAdapter.load(tmp_path / "absent.safetensors")
    with artefacts.write(tmp_path / "broken.safetensors") as draft:
        draft.write_bytes(b"nothing of the kind")
    with pytest.raises(AdapterError, match="is no negation adapter"):
        NegationAdapter.load(tmp_path / "broken.safetensors")
