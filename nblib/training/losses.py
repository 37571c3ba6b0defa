"""The losses of training: Eq. 1 of Truong §3.2, its in-batch form, the study's own, and the library's for other data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.cross_encoder import CrossEncoder
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss, CrossEntropyLoss
from sentence_transformers.multi_vector_encoder.losses import MultiVectorMultipleNegativesRankingLoss as MaxSimLoss
from sentence_transformers.sentence_transformer.losses import CoSENTLoss, MultipleNegativesRankingLoss
from torch import Tensor, nn

SCALE = 20.0  # of the cosine: sentence-transformers' default; the paper gives none
NEGATED_WEIGHT = 0.1  # of a negative's query, where an anchor's or a positive's has 1; chosen on dev data
MARGIN = 0.2  # of the cosine, between a query's passage and its twin's
HARDNESS = 9.0  # weight of hard negatives (Lan et al. 2025)


class EmbeddingLoss(nn.Module):
    """A loss of the columns' embeddings, [columns][rows, dimension], which a subclass computes."""

    def __init__(self, model: SentenceTransformer, **options: Any) -> None:
        super().__init__()
        self.model, self.options = model, options

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        return self.compute_loss_from_embeddings(embed_columns(self.model, sentence_features), labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        raise NotImplementedError

    def get_config_dict(self) -> dict[str, Any]:
        return {"scale": SCALE, **self.options}


class ExplicitNegativesLoss(EmbeddingLoss):
    """Eq. 1: cross-entropy of an anchor's positive among that and the anchor's own negatives (not the batch's), by cosine times
    `SCALE`."""

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        anchors, *candidates = embeddings
        near = torch.stack([torch.cosine_similarity(anchors, texts) for texts in candidates], dim=1)
        target = torch.zeros(len(anchors), dtype=torch.long, device=anchors.device)  # the positive is the first
        return nn.functional.cross_entropy(SCALE * near, target)


class SymmetricSupConLoss(EmbeddingLoss):
    """Supervised contrastive loss with two classes an anchor: the anchor and its positives, and its negatives. Every text is a
    query in turn, which moves towards its class and away from all else in the batch. The study's own addition: L_out of Khosla et
    al. (2020), without the query's other positives in the denominator.

    Args:
        positives: how many of the columns after the anchor are positives; the others are negatives.
    """

    def __init__(self, model: SentenceTransformer, positives: int) -> None:
        super().__init__(model, negated_weight=NEGATED_WEIGHT)
        self.positives = positives

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        units = nn.functional.normalize(torch.cat(embeddings), dim=1)
        near = SCALE * units @ units.T
        device, rows = near.device, len(embeddings[0])
        anchor = torch.arange(rows, device=device).repeat(len(embeddings))
        negated = (torch.arange(len(embeddings), device=device) > self.positives).repeat_interleave(rows)
        same = (anchor[:, None] == anchor) & (negated[:, None] == negated)
        targets = same.clone().fill_diagonal_(False)
        others = near.masked_fill(same, -torch.inf).logsumexp(dim=1, keepdim=True)
        count = targets.sum(dim=1)
        losses = (torch.logaddexp(near, others) - near).masked_fill(~targets, 0).sum(dim=1) / count.clamp(min=1)
        weights = torch.where(negated, NEGATED_WEIGHT, 1.0) * (count > 0)
        return (weights * losses).sum() / weights.sum()


class PairedQueriesLoss(EmbeddingLoss):
    """A loss on two contrasting queries and a passage that answers each. The study's own addition.

    Args:
        margin: None: cross-entropy of a query's passage among all of the batch; else a hinge: a query's passage must be nearer
            than the other query's by that much; nothing else of the batch counts.
    """

    def __init__(self, model: SentenceTransformer, margin: float | None = None) -> None:
        super().__init__(model, margin=margin)
        self.margin = margin

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        queries, passages = (list(sentence_features)[side : side + 2] for side in (0, 2))
        # Apart, so that queries aren't padded to the length of passages
        embedded = [*embed_columns(self.model, queries), *embed_columns(self.model, passages)]
        return self.compute_loss_from_embeddings(embedded, labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        queries, passages = (nn.functional.normalize(torch.cat(embeddings[side : side + 2]), dim=1) for side in (0, 2))
        near = queries @ passages.T
        own = torch.arange(len(near), device=near.device)
        if self.margin is None:
            return nn.functional.cross_entropy(SCALE * near, own)
        others = own.roll(len(near) // 2)  # the first queries' half, then that of the paired queries
        return (self.margin - near[own, own] + near[own, others]).clamp(min=0).mean() * SCALE


class RetentionLoss(EmbeddingLoss):
    """Mean squared difference of a batch's scaled cosines from the base's, whose embeddings are the labels, [rows, columns,
    dimension] (`batches.with_base_embeddings`)."""

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        now, before = self._cosines(torch.cat(embeddings)), self._cosines(labels.transpose(0, 1).flatten(0, 1))
        return (SCALE * (now - before)).pow(2).mean()

    @staticmethod
    def _cosines(vectors: Tensor) -> Tensor:
        """Each text's cosines with the others, [texts, texts - 1], in float32."""
        units = nn.functional.normalize(vectors.float(), dim=1)
        with torch.autocast(units.device.type, enabled=False):
            cosines = units @ units.T
        others = ~torch.eye(len(units), dtype=torch.bool, device=units.device)
        return cosines[others].reshape(len(units), -1)


class WeightedLoss(nn.Module):
    """Another loss, times a weight."""

    def __init__(self, loss: nn.Module, weight: float) -> None:
        super().__init__()
        self.loss, self.weight = loss, weight

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        return self.weight * self.loss(sentence_features, labels)

    def get_config_dict(self) -> dict[str, Any]:
        return {"loss": type(self.loss).__name__, "weight": self.weight}


@dataclass(frozen=True)
class Loss:
    """A loss by name."""

    make: Callable[[nn.Module, int], nn.Module]  # gives it for a model and examples with so many positives
    layout: str  # of its examples, one of `batches.LAYOUTS`
    architecture: str = "bi-encoder"  # that it trains, one of `trainer.ARCHITECTURES`


def _ranking(model: SentenceTransformer, _: int, **options: Any) -> nn.Module:
    return MultipleNegativesRankingLoss(model, scale=SCALE, **options)


def _classification(model: CrossEncoder, _: int) -> nn.Module:
    return BinaryCrossEntropyLoss(model) if model.num_labels == 1 else CrossEntropyLoss(model)


LOSSES = {
    "in-batch": Loss(_ranking, "positive"),
    "explicit": Loss(lambda model, _: ExplicitNegativesLoss(model), "positive"),
    "in-batch, hardness-weighted": Loss(
        partial(_ranking, hardness_mode="hard_negatives", hardness_strength=HARDNESS), "positive"
    ),
    "symmetric-supcon": Loss(SymmetricSupConLoss, "anchor"),
    "paired queries": Loss(lambda model, _: PairedQueriesLoss(model), "paired queries"),
    "paired queries, margin": Loss(lambda model, _: PairedQueriesLoss(model, MARGIN), "paired queries"),
    "retention": Loss(lambda model, _: RetentionLoss(model), "texts"),
    "cosent": Loss(lambda model, _: CoSENTLoss(model, scale=SCALE), "scored"),
    "cross-entropy": Loss(_classification, "labelled", "cross-encoder"),
    "in-batch MaxSim": Loss(lambda model, _: MaxSimLoss(model), "positive", "multi-vector"),
}
