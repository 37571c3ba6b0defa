"""The losses of contrastive fine-tuning (Truong §3.2): Eq. 1, its usual in-batch form, and one in which negations ask, too;
and, for pairs with a score, CoSENT."""

from collections.abc import Iterable
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.sentence_transformer.losses import CoSENTLoss, MultipleNegativesRankingLoss
from torch import Tensor, nn

Loss = Literal["explicit", "in-batch", "in-batch, hardness-weighted", "two-sided", "graded"]
SCALE = 20.0  # of the cosine in the softmax: sentence-transformers' default; the paper gives none
NEGATED_WEIGHT = 0.1  # chosen on dev data
HARDNESS = 9.0  # weight of hard negatives; Lan et al. 2025, through MultipleNegativesRankingLoss


class ExplicitNegativesLoss(nn.Module):
    """Eq. 1: cross-entropy of an anchor's positive among that and the anchor's own negatives, cosine times `scale`.

    No option of sentence-transformers' MultipleNegativesRankingLoss takes the other examples of the batch out.
    """

    def __init__(self, model: SentenceTransformer, scale: float = SCALE) -> None:
        super().__init__()
        self.model = model
        self.scale = scale

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        return self.compute_loss_from_embeddings(embed_columns(self.model, sentence_features), labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        anchors, *candidates = embeddings
        near = torch.stack([torch.cosine_similarity(anchors, texts) for texts in candidates], dim=1)
        target = torch.zeros(len(anchors), dtype=torch.long, device=anchors.device)  # the positive comes first
        return nn.functional.cross_entropy(self.scale * near, target)

    def get_config_dict(self) -> dict[str, Any]:
        return {"scale": self.scale}


class TwoSidedLoss(nn.Module):
    """Supervised contrastive loss (Khosla et al. 2020, their L_out) with two classes an anchor: the anchor and its positives,
    and its negatives. The study's own addition.

    Eq. 1 alone teaches that what negates is far from everything, and so that "isn't open" is far from "is closed". Here every
    text asks in turn, each is drawn to those of its own side, and pushed from the other side and from the batch's other
    anchors; every text is encoded once.

    Args:
        positives: how many of the columns after the anchor are positives; the others are negatives.
        scale: of the cosine.
        negated_weight: of a negative's question beside an anchor's or a positive's.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        positives: int,
        scale: float = SCALE,
        negated_weight: float = NEGATED_WEIGHT,
    ) -> None:
        super().__init__()
        self.model, self.positives, self.scale, self.negated_weight = model, positives, scale, negated_weight

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        return self.compute_loss_from_embeddings(embed_columns(self.model, sentence_features), labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        units = nn.functional.normalize(torch.cat(embeddings), dim=1)
        near = self.scale * units @ units.T
        device, rows = near.device, len(embeddings[0])
        anchor = torch.arange(rows, device=device).repeat(len(embeddings))
        negated = (torch.arange(len(embeddings), device=device) > self.positives).repeat_interleave(rows)
        same = (anchor[:, None] == anchor) & (negated[:, None] == negated)
        answers = same.clone().fill_diagonal_(False)
        wrong = near.masked_fill(same, -torch.inf).logsumexp(dim=1, keepdim=True)
        count = answers.sum(dim=1)
        surprise = (torch.logaddexp(near, wrong) - near).masked_fill(~answers, 0).sum(dim=1) / count.clamp(min=1)
        weights = torch.where(negated, self.negated_weight, 1.0) * (count > 0)
        return (weights * surprise).sum() / weights.sum()

    def get_config_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "negated_weight": self.negated_weight}


def make_loss(model: SentenceTransformer, loss: Loss, positives: int = 1) -> nn.Module:
    """The loss of that name (see `finetuning.Settings`), for examples with that many positives."""
    if loss == "explicit":
        return ExplicitNegativesLoss(model)
    if loss == "two-sided":
        return TwoSidedLoss(model, positives)
    if loss == "graded":
        return CoSENTLoss(model, scale=SCALE)
    weighting = {} if loss == "in-batch" else {"hardness_mode": "hard_negatives", "hardness_strength": HARDNESS}
    return MultipleNegativesRankingLoss(model, scale=SCALE, **weighting)
