"""The losses: what each says of a batch, held against the formula computed by hand."""

import copy

import numpy as np
import pytest
import torch

from nblib import losses
from nblib.losses import KeepingLoss

TEXTS = ["the dog is red", "the cat is not green", "a woman was never in the house", "no door is open", "it"]


def random_embeddings(n=3, columns=4):
    """Anchors, positives and two negatives of each, [n, 5]."""
    return [torch.randn(n, 5, generator=torch.Generator().manual_seed(column)) for column in range(columns)]


def by_hand(embeddings, scale=20):
    """Eq. 1, an example at a time."""
    unit = [
        column.numpy().astype(float) / np.linalg.norm(column.numpy(), axis=1, keepdims=True) for column in embeddings
    ]
    losses = []
    for place in range(len(unit[0])):
        to_positive, *to_negatives = [np.exp(scale * unit[0][place] @ column[place]) for column in unit[1:]]
        losses.append(-np.log(to_positive / (to_positive + sum(to_negatives))))
    return np.mean(losses)


def loss_of(name, base, embeddings):
    made = losses.make_loss(base, base, name)
    return float(made.compute_loss_from_embeddings(embeddings, torch.empty(0)))


def test_the_explicit_loss_is_equation_1(base):
    embeddings = random_embeddings()
    assert loss_of("explicit", base, embeddings) == pytest.approx(by_hand(embeddings), rel=1e-5)
    features = [base.preprocess([f"{text} {column}" for text in TEXTS]) for column in "abc"]
    encoded = [torch.tensor(base.encode([f"{text} {column}" for text in TEXTS])) for column in "abc"]
    with torch.no_grad():
        whole = losses.make_loss(base, base, "explicit")(features, torch.empty(0))
    assert float(whole) == pytest.approx(by_hand(encoded), rel=1e-4)


@pytest.mark.parametrize(("name", "alone"), [("explicit", True), ("in-batch", False)])
def test_only_the_in_batch_loss_of_an_example_depends_on_the_others(name, alone, base):
    embeddings = random_embeddings()
    each = [loss_of(name, base, [column[place : place + 1] for column in embeddings]) for place in range(3)]
    assert np.isclose(loss_of(name, base, embeddings), np.mean(each), rtol=1e-4) == alone


def test_hardness_weighs_near_negatives_more(base):
    anchor, positive, far, _ = random_embeddings()
    near = anchor + 0.3 * far
    plain, weighted = (
        loss_of(name, base, [anchor, positive, near]) for name in ("in-batch", "in-batch, hardness-weighted")
    )
    assert weighted > plain + 1


def keeping(model, base, keep=2.0):
    features = [model.preprocess(texts) for texts in (TEXTS, TEXTS[::-1], [f"not {text}" for text in TEXTS])]
    with torch.no_grad():
        return losses.make_loss(model, base, "in-batch", keep)(features, torch.empty(0))


def test_keeping_costs_nothing_until_a_similarity_changes(base):
    model = copy.deepcopy(base).eval()
    assert float(keeping(model, base)["keeping"]) == pytest.approx(0, abs=1e-10)
    with torch.no_grad():
        model[0].auto_model.encoder.layer[1].output.dense.weight.neg_()
    cosines = []
    for encoder in (model, base):
        vectors = encoder.encode([*TEXTS, *TEXTS[::-1]], normalize_embeddings=True)
        cosines.append(vectors @ vectors.T)
    moved = ((cosines[0] - cosines[1]) ** 2).mean()
    assert moved > 1e-5
    assert float(keeping(model, base, 2.0)["keeping"]) == pytest.approx(2 * moved, rel=1e-3)


def test_what_is_kept_to_is_not_trained_and_not_part_of_the_loss(base):
    model = copy.deepcopy(base)
    loss = losses.make_loss(model, base, "explicit", keep=1.0)
    assert isinstance(loss, KeepingLoss)
    assert {id(weight) for weight in loss.parameters()} == {id(weight) for weight in model.parameters()}
    assert not any(weight.requires_grad for weight in base.parameters())
    assert loss.get_config_dict() == {"scale": 20.0, "keep": 1.0}
