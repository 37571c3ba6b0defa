"""The losses of training, in one table: what each is, how it wants its examples formed, and which architecture it trains.

Eq. 1 of Truong §3.2, its usual in-batch form, and a symmetric one in which negations are queries too; CoSENT for pairs with a
score; a ranking loss for twins, and retention of what the base knows; and what trains cross-encoders and multi-vector models. A
new loss is one entry of `LOSSES`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.cross_encoder import CrossEncoder
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss, CrossEntropyLoss
from sentence_transformers.multi_vector_encoder.losses import MultiVectorMultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.losses import CoSENTLoss, MultipleNegativesRankingLoss
from torch import Tensor, nn

SCALE = 20.0  # of the cosine in the softmax: sentence-transformers' default; the paper gives none
NEGATED_WEIGHT = 0.1  # chosen on dev data
MARGIN = 0.2  # of the cosine, between a query's passage and its twin's
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
        target = torch.zeros(len(anchors), dtype=torch.long, device=anchors.device)  # the positive is the first
        return nn.functional.cross_entropy(self.scale * near, target)

    def get_config_dict(self) -> dict[str, Any]:
        return {"scale": self.scale}


class SymmetricSupConLoss(nn.Module):
    """Supervised contrastive loss (Khosla et al. 2020, their L_out) with two classes an anchor: the anchor and its positives,
    and its negatives. The study's own addition.

    Eq. 1 alone teaches that what negates is far from everything, and so that "isn't open" is far from "is closed". Here every
    text is a query in turn. It moves towards the texts of its own class and away from those of the other class and from the
    batch's other anchors; every text is encoded once.

    Args:
        positives: how many of the columns after the anchor are positives; the others are negatives.
        scale: of the cosine.
        negated_weight: of a negative's query, where an anchor's or a positive's has 1.
    """

    def __init__(
        self, model: SentenceTransformer, positives: int, scale: float = SCALE, negated_weight: float = NEGATED_WEIGHT
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
        targets = same.clone().fill_diagonal_(False)
        others = near.masked_fill(same, -torch.inf).logsumexp(dim=1, keepdim=True)
        count = targets.sum(dim=1)
        losses = (torch.logaddexp(near, others) - near).masked_fill(~targets, 0).sum(dim=1) / count.clamp(min=1)
        weights = torch.where(negated, self.negated_weight, 1.0) * (count > 0)
        return (weights * losses).sum() / weights.sum()

    def get_config_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "negated_weight": self.negated_weight}


class TwinsLoss(nn.Module):
    """Ranking loss on twins: two contrasting queries and two passages, each of which answers one of them.

    Every passage of the batch is a candidate for every query: the twin's is the hard negative, the others are in-batch
    negatives, and each text is encoded once. The study's own addition, for passages that differ in one polarity.

    Args:
        form: "ranking" (cross-entropy of a query's passage among all of the batch), "two-sided" (the mean of that and of the
            cross-entropy of a passage's query among all), or "margin" (a hinge: a query's passage must be nearer than its
            twin's by `MARGIN`; nothing else of the batch counts).
    """

    def __init__(self, model: SentenceTransformer, form: str = "ranking", scale: float = SCALE) -> None:
        super().__init__()
        self.model, self.form, self.scale = model, form, scale

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        queries, passages = (list(sentence_features)[side : side + 2] for side in (0, 2))
        # Apart, so that queries aren't padded to the length of passages
        embedded = [*embed_columns(self.model, queries), *embed_columns(self.model, passages)]
        return self.compute_loss_from_embeddings(embedded, labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        queries, passages = (nn.functional.normalize(torch.cat(embeddings[side : side + 2]), dim=1) for side in (0, 2))
        near = queries @ passages.T
        own = torch.arange(len(near), device=near.device)
        if self.form == "margin":
            twins = own.roll(len(near) // 2)  # the queries' half, then their twins'
            return (MARGIN - near[own, own] + near[own, twins]).clamp(min=0).mean() * self.scale
        losses = [nn.functional.cross_entropy(self.scale * near, own)]
        if self.form == "two-sided":
            losses.append(nn.functional.cross_entropy(self.scale * near.T, own))
        return torch.stack(losses).mean()

    def get_config_dict(self) -> dict[str, Any]:
        return {"form": self.form, "scale": self.scale}


class RetentionLoss(nn.Module):
    """What the tuned encoder must not forget: the cosines among the texts of a batch, as the base gives them.

    The labels are the base's embeddings, [rows, columns, dimension] (`batches.with_base_embeddings`), as in distillation
    (Reimers and Gurevych 2020); held to them are only the cosines, so the vectors themselves may turn.

    Args:
        form: "cosines" (mean squared difference of the scaled cosines) or "kl" (divergence of each text's softmax over the
            others).
    """

    def __init__(self, model: SentenceTransformer, form: str = "cosines", scale: float = SCALE) -> None:
        super().__init__()
        self.model, self.form, self.scale = model, form, scale

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        return self.compute_loss_from_embeddings(embed_columns(self.model, sentence_features), labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        now, before = (
            self._cosines(vectors) for vectors in (torch.cat(embeddings), labels.transpose(0, 1).flatten(0, 1))
        )
        if self.form == "cosines":
            return (self.scale * (now - before)).pow(2).mean()
        now, before = ((self.scale * cosines).log_softmax(dim=1) for cosines in (now, before))
        return nn.functional.kl_div(now, before, log_target=True, reduction="batchmean")

    @staticmethod
    def _cosines(vectors: Tensor) -> Tensor:
        """Each text's cosines with the others, [texts, texts - 1], in float32."""
        units = nn.functional.normalize(vectors.float(), dim=1)
        with torch.autocast(units.device.type, enabled=False):
            cosines = units @ units.T
        others = ~torch.eye(len(units), dtype=torch.bool, device=units.device)
        return cosines[others].reshape(len(units), -1)

    def get_config_dict(self) -> dict[str, Any]:
        return {"form": self.form, "scale": self.scale}


class WeightedLoss(nn.Module):
    """Another loss, times a weight: what one kind of batch counts in a training on several."""

    def __init__(self, loss: nn.Module, weight: float) -> None:
        super().__init__()
        self.loss, self.weight = loss, weight

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        return self.weight * self.loss(sentence_features, labels)

    def get_config_dict(self) -> dict[str, Any]:
        return {"loss": type(self.loss).__name__, "weight": self.weight}


@dataclass(frozen=True)
class Loss:
    """A loss by name.

    Attributes:
        make: gives it for a model and examples with so many positives.
        layout: how its examples are formed, one of `batches.LAYOUTS`.
        architecture: what it trains, one of `trainer.ARCHITECTURES`.
        in_batch: whether it needs other anchors in the batch.
    """

    make: Callable[[nn.Module, int], nn.Module]
    layout: str
    architecture: str = "bi-encoder"
    in_batch: bool = True


def _ranking(model: SentenceTransformer, positives: int, **options: Any) -> nn.Module:
    return MultipleNegativesRankingLoss(model, scale=SCALE, **options)


def _hardness_weighted(model: SentenceTransformer, positives: int) -> nn.Module:
    return _ranking(model, positives, hardness_mode="hard_negatives", hardness_strength=HARDNESS)


def _classification(model: CrossEncoder, positives: int) -> nn.Module:
    return BinaryCrossEntropyLoss(model) if model.num_labels == 1 else CrossEntropyLoss(model)


# Of several for one architecture and layout, `nblib train` takes the first
LOSSES = {
    "in-batch": Loss(_ranking, "positive"),
    "explicit": Loss(lambda model, _: ExplicitNegativesLoss(model), "positive", in_batch=False),
    "in-batch, hardness-weighted": Loss(_hardness_weighted, "positive"),
    "symmetric-supcon": Loss(SymmetricSupConLoss, "anchor"),
    "twins": Loss(lambda model, _: TwinsLoss(model), "twins"),
    "twins, two-sided": Loss(lambda model, _: TwinsLoss(model, "two-sided"), "twins"),
    "twins, margin": Loss(lambda model, _: TwinsLoss(model, "margin"), "twins", in_batch=False),
    "retention": Loss(lambda model, _: RetentionLoss(model), "texts"),
    "retention, KL": Loss(lambda model, _: RetentionLoss(model, "kl"), "texts"),
    "cosent": Loss(lambda model, _: CoSENTLoss(model, scale=SCALE), "scored"),
    "cross-entropy": Loss(_classification, "labelled", "cross-encoder", in_batch=False),
    "in-batch MaxSim": Loss(
        lambda model, _: MultiVectorMultipleNegativesRankingLoss(model), "positive", "multi-vector"
    ),
}
