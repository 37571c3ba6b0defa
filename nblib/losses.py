"""The losses of contrastive fine-tuning (Truong §3.2): Eq. 1, its usual in-batch form, and what holds the rest in place."""

from collections.abc import Iterable
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor, nn

Loss = Literal["explicit", "in-batch", "in-batch, hardness-weighted"]
SCALE = 20.0  # of the cosine in the softmax: sentence-transformers' default; the paper gives none
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


class KeepingLoss(nn.Module):
    """A contrastive loss plus what holds the rest in place: `keep` times the mean squared difference between the tuned and
    the base's cosines among the batch's anchors and positives (none of them negated). The study's own addition: without
    it, what separates a sentence from its negation also moves unrelated sentences.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        contrastive: nn.Module,
        base: SentenceTransformer,
        keep: float,
        bf16: bool = False,
    ) -> None:
        super().__init__()
        self.model, self.contrastive, self.keep, self.bf16 = model, contrastive, keep, bf16
        self.frozen = [base.eval().requires_grad_(False)]  # in a list: no part of what is trained, moved or saved

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> dict[str, Tensor]:
        features = list(sentence_features)
        with torch.no_grad(), torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.bf16):
            before = _cosines(embed_columns(self.frozen[0], [dict(column) for column in features[:2]]))
        embeddings = embed_columns(self.model, features)
        moved = (_cosines(embeddings[:2]) - before).square().mean()
        return {
            "contrastive": self.contrastive.compute_loss_from_embeddings(embeddings, labels),
            "keeping": self.keep * moved,
        }

    def get_config_dict(self) -> dict[str, Any]:
        return {**self.contrastive.get_config_dict(), "keep": self.keep}


def _cosines(columns: list[Tensor]) -> Tensor:
    units = nn.functional.normalize(torch.cat(columns).float(), dim=1)
    return units @ units.T


def make_loss(
    model: SentenceTransformer, base: SentenceTransformer, loss: Loss, keep: float = 0.0, bf16: bool = False
) -> nn.Module:
    """The loss of that name (see `finetuning.Settings`), with what keeps the base's similarities where that is asked for."""
    if loss == "explicit":
        contrastive: nn.Module = ExplicitNegativesLoss(model)
    else:
        weighting = {} if loss == "in-batch" else {"hardness_mode": "hard_negatives", "hardness_strength": HARDNESS}
        contrastive = MultipleNegativesRankingLoss(model, scale=SCALE, **weighting)
    return KeepingLoss(model, contrastive, base, keep, bf16) if keep else contrastive
