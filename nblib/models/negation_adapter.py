"""Cao's negation adapter (§4): one weight per embedding dimension, learnt from triplets in closed form.

    v_i^k = u^k(T_i, P_i) − u^k(T_i, N_i)      what dimension k contributes to telling paraphrase from negation (Eqs. 2, 3)
    V̄^k   = mean over i of v_i^k               its mean contribution (Eq. 4), rescaled so that max(V̄) = 1
    w^k   = softmax over k of a · V̄^k          the weights (Eq. 5)

`a` is chosen from a grid on the training data. The paper leaves two things open, and results depend on both:

- How the weights are applied: by "element-wise multiplication to the original embeddings" and by "a weighted cosine
  similarity" are different formulas. `WEIGHTINGS` names the three that fit the text.
- How a is chosen: the larger, the better the accuracy and the worse the correlation with human similarity (§5.1.2 names
  both). By accuracy alone, a goes to the upper end of the grid and the correlation falls by 3 to 22 points, depending on
  the weighting (all-mpnet-base-v2, STSB); the paper prints losses around one point. A limit of that size on the loss of
  correlation gives numbers near the printed ones. The limit is ours: the paper states none.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from safetensors.numpy import load_file, save_file
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nblib import artefacts, paths
from nblib.errors import StudyError
from nblib.models.encoders import Encoder, fingerprint

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Weighting = Literal["original norms", "weighted cosine", "weighted embeddings"]
WEIGHTINGS: dict[Weighting, str] = {
    "original norms": "Σ w u, the terms of Eq. 2 weighted, divided by the unweighted norms",
    "weighted cosine": "the cosine under the inner product Σ w x y: norms weighted like the product",
    "weighted embeddings": "the cosine of w ⊙ x and w ⊙ y: every embedding multiplied by the weights",
}
DEFAULT_WEIGHTING: Weighting = "original norms"  # chosen on STSB train: notebook 06 shows the choice
GRID = tuple(float(a) for a in np.arange(0, 5.25, 0.25))  # §5.1.2: 0 to 5 in steps of 0.25


class NoNegationSensitiveDimension(StudyError):
    """No dimension tells paraphrases from negations on average: max(V̄) ≤ 0 (or a rounding error above), where Eq. 5 fails."""


class AdapterError(StudyError):
    """Triplets an adapter can't be learnt from, or an adapter that doesn't fit the embeddings."""


class NegationAdapter(TransformerMixin, BaseEstimator):
    """Dimension weights that make an encoder's similarity heed negation.

    Args:
        weighting: how the weights enter the similarity, one of `WEIGHTINGS`.
        grid: the values of a to choose from by accuracy on the training triplets; ties go to the smallest.
        max_correlation_loss: how many points of Pearson correlation (x 100) a choice may cost on scored training pairs,
            where `fit` is given any.

    Attributes (after `fit`):
        weights_: w of Eq. 5, shape [dimension], summing to 1.
        contributions_: V̄ of Eq. 4 before rescaling, shape [dimension].
        a_: the chosen a.
        training_accuracy_: percent of training triplets right, per value of the grid.
    """

    def __init__(
        self, weighting: Weighting = DEFAULT_WEIGHTING, grid: Sequence[float] = GRID, max_correlation_loss: float = 1.0
    ) -> None:
        self.weighting = weighting
        self.grid = grid
        self.max_correlation_loss = max_correlation_loss

    def fit(
        self,
        anchors: np.ndarray,
        positives: np.ndarray,
        negatives: np.ndarray,
        *,
        scored: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    ) -> "NegationAdapter":
        """Learn the weights from triplets.

        Args:
            anchors, positives: embeddings of T and P, shape [n, dimension].
            negatives: embeddings of N, shape [n, dimension], or [n, m, dimension] for m negatives of one anchor.
            scored: pairs with human similarity (first [m, dimension], second [m, dimension], score [m]); only values of a
                that lose at most `max_correlation_loss` on them are considered.

        Raises:
            AdapterError: no triplets, shapes that differ, NaN or zero vectors, an unknown weighting.
            NoNegationSensitiveDimension: max(V̄) ≤ 0, or a rounding error above; names the value.
        """
        negatives = negatives[:, None, :] if np.ndim(negatives) == 2 else np.asarray(negatives)
        _check_triplets(self.weighting, anchors, positives, negatives)
        if not len(self.grid) or not np.isfinite(self.grid).all():
            raise AdapterError(f"The grid of a must have one or more finite numbers, and is {list(self.grid)}.")
        mean = contributions(anchors, positives, negatives)
        # A dead dimension (all-MiniLM-L6-v2 has one, about 1e-33 in every text) can make the maximum a positive nothing;
        # dividing by it would put all the weight there.
        if mean.max() <= np.finfo(np.float32).eps * np.abs(mean).max():
            raise NoNegationSensitiveDimension(
                f"max(V̄) = {mean.max():.3g} (min {mean.min():.3g}): none of the {len(mean)} dimensions brings paraphrases "
                "closer than negations on average, and dividing by it (Eq. 5) would turn the order around or put all the "
                "weight on a dead dimension. Use an encoder or training triplets on which at least one does."
            )
        self.contributions_ = mean
        candidates = softmax_weights(mean, self.grid)
        self.training_accuracy_ = 100 * choices(anchors, positives, negatives, candidates, self.weighting).mean(axis=0)
        eligible = np.ones(len(candidates), dtype=bool)
        if scored is not None:
            if not np.ptp(scored[2]) > 0:
                raise AdapterError("The scored pairs all have one score: their correlation can't be constrained.")
            plain = np.full((1, len(mean)), 1 / len(mean))
            before = correlations(*scored, plain, self.weighting)
            eligible = 100 * (before - correlations(*scored, candidates, self.weighting)) <= self.max_correlation_loss
            if not eligible.any():
                raise AdapterError(
                    f"Every a of the grid costs more than {self.max_correlation_loss} points of correlation: add a = 0."
                )
        best = int(np.where(eligible, self.training_accuracy_, -np.inf).argmax())
        self.a_ = float(self.grid[best])
        self.weights_ = candidates[best]
        return self

    def similarity(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The reweighted similarity of two stacks of embeddings, row by row, shape [n]."""
        check_is_fitted(self)
        self._check_dimension(a)
        return weighted_similarity(a, b, self.weights_[None, :], self.weighting)[:, 0]

    def transform(self, embeddings: np.ndarray) -> np.ndarray:
        """Embeddings [n, dimension] whose plain cosine (dot product for the weighting "original norms") is `similarity`."""
        check_is_fitted(self)
        self._check_dimension(embeddings)
        if self.weighting == "original norms":
            embeddings = _unit(embeddings)
        return (embeddings * self.scale_).astype(np.float32)

    @property
    def scale_(self) -> np.ndarray:
        """What each dimension is multiplied by, float32 [dimension]; a = 0 gives ones."""
        scale = self.weights_ * len(self.weights_)
        return (scale if self.weighting == "weighted embeddings" else np.sqrt(scale)).astype(np.float32)

    def _check_dimension(self, embeddings: np.ndarray) -> None:
        if embeddings.shape[-1] != len(self.weights_):
            raise AdapterError(
                f"This adapter is for embeddings of {len(self.weights_)} dimensions, not {embeddings.shape[-1]}: it was learnt "
                "on another encoder. (Another encoder of the same dimension is not noticed: check which one it is for.)"
            )

    # --- on disk and inside sentence-transformers ---------------------------------------------------------------------

    def save(self, path: str | Path, **about: object) -> Path:
        """Write the adapter as safetensors; weighting and a go in its header, with what is known `about` it (encoder, data), and
        all that in its sidecar as well."""
        check_is_fitted(self)
        tensors = {"weights": self.weights_, "contributions": self.contributions_}
        header = {"weighting": self.weighting, "a": str(self.a_), "about": json.dumps(about, sort_keys=True)}
        with artefacts.write(path, {**about, "weighting": self.weighting, "a": self.a_}) as draft:
            save_file(tensors, draft, metadata=header)
        return paths.resolve(path)

    @classmethod
    def load(cls, path: str | Path) -> "NegationAdapter":
        """Read what `save` wrote.

        Raises:
            AdapterError: no such file, or not an adapter.
            StudyError: it is not as it was written.
        """
        from safetensors import SafetensorError, safe_open

        file = paths.resolve(path)
        if not file.is_file():
            raise AdapterError(f"No adapter at {file}. Notebook 06 makes it: `make study`.")
        artefacts.check(file)
        try:
            with safe_open(file, framework="numpy") as opened:
                header = opened.metadata() or {}
            tensors = load_file(file)
            adapter = cls(weighting=header["weighting"])
            adapter.weights_, adapter.contributions_ = tensors["weights"], tensors["contributions"]
            adapter.a_ = float(header["a"])
        except (SafetensorError, KeyError) as error:
            raise AdapterError(f"{file} is no negation adapter ({error}). Make it anew with notebook 06.") from error
        return adapter

    def apply_to(self, model: "SentenceTransformer") -> "SentenceTransformer":
        """The encoder with the adapter built in: a SentenceTransformer whose embeddings are `transform`ed.

        It saves, loads and encodes like any other, wherever sentence-transformers is installed: the weights are a
        diagonal linear layer, so no code of ours is needed to load them.

        Raises:
            AdapterError: the adapter was learnt on another dimension.
        """
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Dense, Normalize

        check_is_fitted(self)
        dimension = len(self.weights_)
        if model.get_embedding_dimension() != dimension:
            self._check_dimension(np.empty((0, model.get_embedding_dimension())))
        diagonal = Dense(dimension, dimension, bias=False, activation_function=torch.nn.Identity(),
                         init_weight=torch.diag(torch.from_numpy(self.scale_)))  # fmt: skip
        before = [Normalize()] if self.weighting == "original norms" else []
        return SentenceTransformer(
            modules=[*model, *before, diagonal], prompts=model.prompts, device=str(model.device),
            default_prompt_name=model.default_prompt_name,
            similarity_fn_name="dot" if self.weighting == "original norms" else "cosine",
        )  # fmt: skip


def adapt(encoder: Encoder, adapter: NegationAdapter) -> Encoder:
    """The encoder with a fitted adapter: named `<encoder>+adapter`, with a fingerprint and a similarity of its own, computed
    from the encoder's cached embeddings.

    Raises:
        AdapterError: the adapter was learnt on embeddings of another dimension.
    """
    similarity = "dot" if adapter.weighting == "original norms" else "cosine"
    spec = replace(encoder.spec, name=f"{encoder.name}+adapter", similarity=similarity)
    model = adapter.apply_to(encoder.model).eval()
    return Encoder(spec, model, fingerprint(model), base=encoder, transform=adapter.transform)


def contributions(anchors: np.ndarray, positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
    """V̄ (Eqs. 2–4), float64 [dimension]: the mean over triplets of u(T, P) − u(T, N); a second negative of an anchor is
    a second triplet."""
    t, p, n = (_unit(x, name) for x, name in [(anchors, "anchors"), (positives, "positives"), (negatives, "negatives")])
    return (t * (p - n.mean(axis=1))).mean(axis=0)


def softmax_weights(mean_contributions: np.ndarray, grid: Sequence[float]) -> np.ndarray:
    """w (Eq. 5) for each a of the grid, shape [len(grid), dimension]; V̄ is divided by its maximum first."""
    logits = np.asarray(grid)[:, None] * (mean_contributions / mean_contributions.max())[None, :]
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def weighted_similarity(a: np.ndarray, b: np.ndarray, weights: np.ndarray, weighting: Weighting) -> np.ndarray:
    """Similarity of row i of a and b under each row of weights, shape [n, len(weights)]: three matrix products instead of
    one pass over the data per row of weights."""
    a, b = _unit(a), _unit(b)
    columns = (weights**2 if weighting == "weighted embeddings" else weights).T
    product = (a * b) @ columns
    if weighting == "original norms":
        return product * weights.shape[1]  # the softmax's 1/D undone: a = 0 is the plain cosine
    return product / np.sqrt((a**2 @ columns) * (b**2 @ columns))


def choices(
    anchors: np.ndarray, positives: np.ndarray, negatives: np.ndarray, weights: np.ndarray, weighting: Weighting
) -> np.ndarray:
    """Whether the positive is strictly closer to the anchor than every negative (a tie is wrong), bool [n, len(weights)].

    Args:
        negatives: shape [n, m, dimension].
    """
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
    if not np.isfinite(norms).all():
        raise AdapterError(f"The {name} have NaN or infinite values. Encode these texts again, or leave them out.")
    if not (norms > 0).all():
        raise AdapterError(f"The {name} have a zero vector, which has no direction and so no similarity. Leave it out.")
    return x / norms


def _check_triplets(weighting: str, anchors: np.ndarray, positives: np.ndarray, negatives: np.ndarray) -> None:
    if weighting not in WEIGHTINGS:
        raise AdapterError(f"Unknown weighting {weighting!r}; known: {', '.join(WEIGHTINGS)}.")
    shapes = f"anchors {np.shape(anchors)}, positives {np.shape(positives)}, negatives {np.shape(negatives)}"
    if len(anchors) == 0:
        raise AdapterError(f"There are no triplets to learn from: {shapes}.")
    if not np.shape(anchors) == np.shape(positives) == np.shape(negatives)[::2]:
        raise AdapterError(f"The shapes don't belong together: {shapes}.")
