"""Cao's negation adapter (§4): one weight per embedding dimension, learnt from triplets in closed form.

    v_i^k = u^k(T_i, P_i) − u^k(T_i, N_i)      what dimension k contributes to telling paraphrase from negation (Eqs. 2, 3)
    V̄^k   = mean over i of v_i^k               its mean contribution (Eq. 4), rescaled so that max(V̄) = 1
    w^k   = softmax over k of a · V̄^k          the weights (Eq. 5)

`a` is chosen from a grid on the training data. The paper leaves two things open, and results depend on both:

- How the weights are applied: `WEIGHTINGS` names the three formulas that fit its text.
- How a is chosen: the larger, the better the accuracy and the worse the correlation with human similarity (§5.1.2). By
  accuracy alone the correlation falls by 3 to 22 points (all-mpnet-base-v2, STSB), and the paper prints losses around one
  point: a limit of that size on the loss is ours.
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from safetensors.numpy import save_file
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nblib import artefacts, paths
from nblib.errors import StudyError, one_of, readable
from nblib.models.encoders import Encoder
from nblib.models.identity import fingerprint

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Weighting = Literal["original norms", "weighted cosine", "weighted embeddings"]
WEIGHTINGS: dict[Weighting, str] = {
    "original norms": "Σ w u, the terms of Eq. 2 weighted, divided by the unweighted norms",
    "weighted cosine": "the cosine under the inner product Σ w x y: norms weighted like the product",
    "weighted embeddings": "the cosine of w ⊙ x and w ⊙ y: every embedding multiplied by the weights",
}
ScoredPairs = tuple[np.ndarray, np.ndarray, np.ndarray]
DEFAULT_WEIGHTING: Weighting = "original norms"  # chosen on STSB train: notebook 06 shows the choice
GRID = tuple(float(a) for a in np.arange(0, 5.25, 0.25))  # §5.1.2: 0 to 5 in steps of 0.25
MAX_CORRELATION_LOSS = 1.0  # points of Pearson's r × 100 that a choice of a may cost on scored training pairs


class NoNegationSensitiveDimension(StudyError):
    """No dimension tells paraphrases from negations on average: max(V̄) ≤ 0 (or a rounding error above)."""


class AdapterError(StudyError):
    """Triplets that can't be learnt from, or an adapter that doesn't fit the embeddings."""


class NegationAdapter(TransformerMixin, BaseEstimator):
    """Dimension weights that make an encoder's similarity heed negation.

    Args:
        weighting: one of `WEIGHTINGS`.
        grid: the values of a to choose from by accuracy on the training triplets; ties go to the smallest.

    Attributes (after `fit`):
        weights_: w of Eq. 5, shape [dimension], summing to 1.
        contributions_: V̄ of Eq. 4 before rescaling, shape [dimension].
        a_: the chosen one.
        training_accuracy_: percent of training triplets right, per value of the grid.
    """

    def __init__(self, weighting: Weighting = DEFAULT_WEIGHTING, grid: Sequence[float] = GRID) -> None:
        self.weighting = weighting
        self.grid = grid

    def fit(
        self, anchors: np.ndarray, positives: np.ndarray, negatives: np.ndarray, *, scored: ScoredPairs | None = None
    ) -> "NegationAdapter":
        """Learn the weights from triplets.

        Args:
            anchors, positives: embeddings of T and P, [n, dimension].
            negatives: embeddings of N, [n, dimension], or [n, m, dimension] for m negatives of one anchor.
            scored: pairs with human similarity (first [m, dimension], second [m, dimension], score [m]); only values of a
                that lose at most `MAX_CORRELATION_LOSS` on them are considered.

        Raises:
            AdapterError: no triplets, shapes that differ, NaN or zero vectors.
            NoNegationSensitiveDimension: see there.
        """
        negatives = negatives[:, None, :] if np.ndim(negatives) == 2 else np.asarray(negatives)
        one_of(self.weighting, WEIGHTINGS, "weighting")
        shapes = np.shape(anchors), np.shape(positives), np.shape(negatives)
        if len(anchors) == 0 or not shapes[0] == shapes[1] == shapes[2][::2]:
            raise AdapterError(f"There are no triplets in anchors, positives and negatives of the shapes {shapes}.")
        mean = contributions(anchors, positives, negatives)
        # A dead dimension (about 1e-33 in every text) can make the maximum a positive nothing, and get all the weight
        if mean.max() <= np.finfo(np.float32).eps * np.abs(mean).max():
            raise NoNegationSensitiveDimension(
                f"max(V̄) = {mean.max():.3g} (min {mean.min():.3g}): none of the {len(mean)} dimensions (but dead ones) brings "
                "paraphrases closer than negations on average, so Eq. 5 fails. Use another encoder or other training triplets."
            )
        self.contributions_ = mean
        candidates = softmax_weights(mean, self.grid)
        self.training_accuracy_ = 100 * choices(anchors, positives, negatives, candidates, self.weighting).mean(axis=0)
        eligible = np.ones(len(candidates), dtype=bool)
        if scored is not None:
            plain = np.full((1, len(mean)), 1 / len(mean))
            lost = correlations(*scored, plain, self.weighting) - correlations(*scored, candidates, self.weighting)
            eligible = 100 * lost <= MAX_CORRELATION_LOSS
            if not eligible.any():
                raise AdapterError("Every a of the grid costs too much correlation. Add a = 0.")
        best = int(np.where(eligible, self.training_accuracy_, -np.inf).argmax())
        self.a_ = float(self.grid[best])
        self.weights_ = candidates[best]
        return self

    @property
    def similarity_function(self) -> Literal["dot", "cosine"]:
        return "dot" if self.weighting == "original norms" else "cosine"

    @property
    def scale_(self) -> np.ndarray:
        """What each dimension is multiplied by, float32 [dimension]; a = 0 gives ones."""
        check_is_fitted(self)
        scale = self.weights_ * len(self.weights_)
        return (scale if self.weighting == "weighted embeddings" else np.sqrt(scale)).astype(np.float32)

    def transform(self, embeddings: np.ndarray) -> np.ndarray:
        """Embeddings [n, dimension] whose `similarity_function` is the reweighted similarity (`weighted_similarity`)."""
        if self.weighting == "original norms":
            embeddings = _unit(embeddings)
        return (embeddings * self.scale_).astype(np.float32)

    def save(self, path: str | Path, **about: object) -> Path:
        """Write the adapter; what is known `about` it (encoder, data) goes in its sidecar."""
        check_is_fitted(self)
        tensors = {"weights": self.weights_, "contributions": self.contributions_}
        header = {"weighting": self.weighting, "a": str(self.a_)}
        with artefacts.write(path, about | header | {"a": self.a_}) as draft:
            save_file(tensors, draft, metadata=header)
        return paths.resolve(path)

    @classmethod
    def load(cls, path: str | Path) -> "NegationAdapter":
        """Read what `save` wrote; an AdapterError for what isn't one, a StudyError for what was changed."""
        from safetensors import safe_open

        file = artefacts.check(path)
        remedy = "Make it anew with notebook 06."
        with readable(file, remedy, AdapterError), safe_open(file, framework="numpy") as opened:
            header = opened.metadata() or {}
            adapter = cls(weighting=header["weighting"])
            adapter.a_ = float(header["a"])
            adapter.weights_, adapter.contributions_ = map(opened.get_tensor, ("weights", "contributions"))
        return adapter

    def apply_to(self, model: "SentenceTransformer") -> "SentenceTransformer":
        """The encoder with the adapter as linear layers, which saves and loads without code of ours; its embeddings are
        `transform`ed. AdapterError: another dimension than the adapter was learnt on, or weights that aren't float32."""
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Dense, Normalize

        scale, dimension = torch.from_numpy(self.scale_), model.get_embedding_dimension()
        if dimension != len(scale):
            raise AdapterError(f"The adapter is another encoder's: it has {len(scale)} dimensions, not {dimension}.")
        if others := {str(weight.dtype) for weight in model.parameters()} - {"torch.float32"}:
            raise AdapterError(
                f"The encoder is in {', '.join(others)}. Load it with model_kwargs={{'dtype': 'float32'}}."
            )
        with model.truncate_embeddings(None):
            whole = model.get_embedding_dimension()

        def linear(matrix: torch.Tensor) -> Dense:
            options = {"init_weight": matrix, "activation_function": torch.nn.Identity(), "bias": False}
            return Dense(matrix.shape[1], matrix.shape[0], **options)

        cut = [linear(torch.eye(dimension, whole))] * (whole > dimension)  # `truncate_dim` comes before the weights
        unit = [Normalize()] * (self.weighting == "original norms")
        added = [*cut, *unit, linear(torch.diag(scale))]
        modules = dict(model.named_children()) | {str(len(model) + place): module for place, module in enumerate(added)}
        options = {"device": str(model.device), "similarity_fn_name": self.similarity_function}
        options |= {"prompts": model.prompts, "default_prompt_name": model.default_prompt_name}
        adapted = SentenceTransformer(modules=OrderedDict(modules), **options)
        adapted.module_kwargs = model.module_kwargs
        return adapted


def adapt(encoder: Encoder, adapter: NegationAdapter) -> Encoder:
    """The encoder with a fitted adapter, `<encoder>+adapter`, computed from the encoder's cached embeddings; see `apply_to`."""
    model, key = adapter.apply_to(encoder.model).eval(), adapter.weighting.replace(" ", "_")
    options = {"source": encoder.source, "base": encoder, "transform": adapter.transform, "adapter": key}
    return Encoder(f"{encoder.name}+adapter", model, fingerprint(model), **options)


def contributions(anchors: np.ndarray, positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
    """V̄ (Eqs. 2–4), float64 [dimension]: the mean over triplets (one per negative) of u(T, P) − u(T, N)."""
    t, p, n = (_unit(x, name) for x, name in [(anchors, "anchors"), (positives, "positives"), (negatives, "negatives")])
    return (t * (p - n.mean(axis=1))).mean(axis=0)


def softmax_weights(mean_contributions: np.ndarray, grid: Sequence[float]) -> np.ndarray:
    """w (Eq. 5) for each a of the grid, shape [len(grid), dimension]; V̄ is divided by its maximum first."""
    logits = np.asarray(grid)[:, None] * (mean_contributions / mean_contributions.max())[None, :]
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def weighted_similarity(a: np.ndarray, b: np.ndarray, weights: np.ndarray, weighting: Weighting) -> np.ndarray:
    """Similarity of row i of a and b under each row of weights, shape [n, len(weights)]."""
    a, b = _unit(a), _unit(b)
    columns = (weights**2 if weighting == "weighted embeddings" else weights).T
    product = (a * b) @ columns
    if weighting == "original norms":
        return product * weights.shape[1]  # the softmax's 1/D undone: a = 0 is the plain cosine
    return product / np.sqrt((a**2 @ columns) * (b**2 @ columns))


def choices(
    anchors: np.ndarray, positives: np.ndarray, negatives: np.ndarray, weights: np.ndarray, weighting: Weighting
) -> np.ndarray:
    """Whether the positive is strictly closer to the anchor than every negative ([n, m, dimension]), bool [n, len(weights)]."""
    positive = weighted_similarity(anchors, positives, weights, weighting)
    right = np.ones(positive.shape, dtype=bool)
    for k in range(negatives.shape[1]):
        right &= positive > weighted_similarity(anchors, negatives[:, k], weights, weighting)
    return right


def correlations(
    first: np.ndarray, second: np.ndarray, score: np.ndarray, weights: np.ndarray, weighting: Weighting
) -> np.ndarray:
    """Pearson correlation of the weighted similarity with human scores, shape [len(weights)]."""
    similarity = weighted_similarity(first, second, weights, weighting)
    return np.array([np.corrcoef(column, score)[0, 1] for column in similarity.T])


def _unit(x: np.ndarray, name: str = "embeddings") -> np.ndarray:
    x = np.asarray(x, dtype=np.float64)
    norms = np.linalg.norm(x, axis=-1, keepdims=True)
    if not (np.isfinite(norms) & (norms > 0)).all():
        raise AdapterError(f"The {name} have a vector without a direction: zero, NaN or infinite.")
    return x / norms
