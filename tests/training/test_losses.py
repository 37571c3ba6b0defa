"""The losses: what each says of a batch, held against the formula computed by hand."""

import numpy as np
import pytest
import torch
from support.close import SUM, assert_close

from nblib.training import losses

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
    loss = losses.LOSSES[name].make(base, 1)
    return float(loss.compute_loss_from_embeddings(embeddings, torch.empty(0)))


def test_the_explicit_loss_is_equation_1(base):
    embeddings = random_embeddings()
    assert_close(loss_of("explicit", base, embeddings), by_hand(embeddings), times=SUM)
    features = [base.preprocess([f"{text} {column}" for text in TEXTS]) for column in "abc"]
    encoded = [torch.tensor(base.encode([f"{text} {column}" for text in TEXTS])) for column in "abc"]
    with torch.no_grad():
        whole = losses.LOSSES["explicit"].make(base, 1)(features, torch.empty(0))
    assert_close(whole, by_hand(encoded), times=SUM)


def symmetric_by_hand(embeddings, positives, weight, scale=20):
    """A text at a time: its own side of its own anchor answers, all else is wrong."""
    columns, rows = len(embeddings), len(embeddings[0])
    texts = {(column, row): embeddings[column][row].numpy() for column in range(columns) for row in range(rows)}
    texts = {key: vector / np.linalg.norm(vector) for key, vector in texts.items()}
    total = weighed = 0.0
    for (column, row), asked in texts.items():
        own = [key for key in texts if key[1] == row and (key[0] > positives) == (column > positives)]
        answers = [key for key in own if key != (column, row)]
        if answers:
            wrong = sum(np.exp(scale * asked @ texts[key]) for key in texts if key not in own)
            right = np.array([np.exp(scale * asked @ texts[key]) for key in answers])
            its = weight if column > positives else 1
            total, weighed = total - its * np.log(right / (right + wrong)).mean(), weighed + its
    return total / weighed


@pytest.mark.parametrize(("columns", "positives"), [(7, 2), (3, 1)])
def test_the_symmetric_loss_makes_every_text_a_query(columns, positives, base):
    embeddings = random_embeddings(columns=columns)
    loss = losses.SymmetricSupConLoss(base, positives)
    expected = symmetric_by_hand(embeddings, positives, losses.NEGATED_WEIGHT)
    assert_close(loss.compute_loss_from_embeddings(embeddings, torch.empty(0)), expected, times=SUM)
    columns = [column.requires_grad_() for column in embeddings]
    loss.compute_loss_from_embeddings(columns, torch.empty(0)).backward()
    assert all(torch.isfinite(column.grad).all() for column in columns), "what is masked out leaves no nan behind"


def test_paired_queries_have_every_passage_of_the_batch_as_a_candidate_and_the_others_as_the_hard_one(base):
    queries, twins, passages, others = random_embeddings(3, 4)
    asked, answers = (
        np.concatenate([part.numpy() / np.linalg.norm(part.numpy(), axis=1, keepdims=True) for part in parts])
        for parts in ((queries, twins), (passages, others))
    )
    near = np.exp(20 * asked @ answers.T)
    rows = -np.log(np.diag(near) / near.sum(axis=1))
    embeddings = [queries, twins, passages, others]
    assert_close(loss_of("paired queries", base, embeddings), rows.mean(), times=SUM)
    cosines = asked @ answers.T
    hinge = [max(0, losses.MARGIN - cosines[k, k] + cosines[k, (k + 3) % 6]) for k in range(6)]
    assert_close(loss_of("paired queries, margin", base, embeddings), 20 * np.mean(hinge), times=SUM)


@pytest.mark.parametrize("name", ["paired queries", "paired queries, margin"])
def test_paired_queries_are_learnt_from_texts(name, base):
    features = [base.preprocess([f"{text} {column}" for text in TEXTS]) for column in "abcd"]
    loss = losses.LOSSES[name].make(base, 1)
    encoded = [torch.tensor(base.encode([f"{text} {column}" for text in TEXTS])) for column in "abcd"]
    with torch.no_grad():
        whole = loss(features, torch.empty(0))
    assert_close(whole, float(loss.compute_loss_from_embeddings(encoded, torch.empty(0))), times=SUM)


def test_retention_is_the_mean_squared_difference_of_scaled_cosines(base):
    now, before = random_embeddings(2, 2), [column.flip(0) for column in random_embeddings(2, 2)]
    first, second = (_cosines(torch.cat(columns).numpy()) for columns in (now, before))
    apart = ~np.eye(4, dtype=bool)
    loss = losses.LOSSES["retention"].make(base, 1)

    def against(vectors):
        return float(loss.compute_loss_from_embeddings(now, torch.stack(vectors, dim=1)))

    assert_close(against(before), ((20 * (first - second)[apart]) ** 2).mean(), times=SUM)
    turned = torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(9)))[0]
    assert_close(against([2 * column @ turned for column in now]), 0, times=SUM)


def _cosines(vectors):
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units @ units.T


def test_a_weight_multiplies_a_loss(base):
    features = [base.preprocess([f"{text} {column}" for text in TEXTS]) for column in "abc"]
    plain = losses.LOSSES["explicit"].make(base, 1)
    with torch.no_grad():
        weighted, alone = (loss(features, torch.empty(0)) for loss in (losses.WeightedLoss(plain, 0.3), plain))
    assert_close(weighted, 0.3 * alone, times=SUM)
