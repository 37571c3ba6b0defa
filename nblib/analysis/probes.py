"""Where does an encoder keep a negation, and where is it lost? Linear probes tell negations from hedges by the states of every
layer: of the words that were changed, of the words around them, and of the whole sentence as it is pooled."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm.auto import tqdm

from nblib import stats
from nblib.corpora.authored import HEDGES, NEGATIONS, VARIANTS
from nblib.errors import StudyError
from nblib.models import embeddings
from nblib.models.encoders import Encoder

POSITIONS = ("cue", "context", "sentence")  # words that the anchor hasn't, words that it has, all tokens
FOLDS, BATCH = 3, 32


def probe(encoder: Encoder, anchors: pd.DataFrame) -> pd.DataFrame:
    """Probes of every layer and position that were trained on three types of negation, and tested on the fourth and on hedges, of
    other anchors.

    Args:
        anchors: id, anchor and `VARIANTS` (`authored.held_out_anchors`: no encoder of the study was trained on them).

    Returns:
        encoder, layer (0: before the first block), position, held_out (the type that the probe hasn't seen; "all": their mean),
        value (balanced accuracy, percent; chance is 50), low, high (95 %, over anchors), n (anchors). A StudyError: the encoder
        is no transformer with a fast tokenizer.
    """
    kinds, rows = np.tile(VARIANTS, len(anchors)), []
    groups = np.repeat(np.arange(len(anchors)), len(VARIANTS))
    by_position = _states(encoder, anchors)
    layers = by_position[POSITIONS[0]].shape[0]
    with tqdm(total=layers * len(POSITIONS), desc=f"{encoder.name}: probes", leave=False) as progress:
        for position, states in by_position.items():
            for layer in range(layers):
                right = {held_out: _right(states[layer], kinds, groups, held_out) for held_out in NEGATIONS}
                right["all"] = np.mean(list(right.values()), axis=0)
                for held_out, values in right.items():
                    low, high = stats.cluster_bootstrap(values)
                    row = (encoder.name, layer, position, held_out, 100 * values.mean(), 100 * low, 100 * high)
                    rows.append((*row, len(values)))
                progress.update()
    return pd.DataFrame(rows, columns="encoder layer position held_out value low high n".split())


def share_along_probe(encoder: Encoder, anchors: pd.DataFrame) -> dict[str, float]:
    """How much of the squared distance between an anchor's embedding and its negation's lies along the direction by which a probe
    tells negations from hedges (of other anchors): value with low and high (percent, 95 % over anchors), n (anchors)."""
    texts = anchors[["anchor", *VARIANTS]].to_numpy().ravel().tolist()
    vectors = embeddings.encode(encoder, texts)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).reshape(len(anchors), 1 + len(VARIANTS), -1)
    negated = np.isin(VARIANTS, NEGATIONS)
    shares = np.empty(len(anchors))
    for train, test in GroupKFold(FOLDS).split(anchors, groups=np.arange(len(anchors))):
        rows = vectors[train, 1:].reshape(-1, vectors.shape[-1])
        # A weak penalty: unit vectors have small numbers
        fitted = LogisticRegression(C=100, class_weight="balanced", max_iter=1000).fit(
            rows, np.tile(negated, len(train))
        )
        direction = fitted.coef_[0] / np.linalg.norm(fitted.coef_[0])
        moved = vectors[test, 1:][:, negated] - vectors[test, :1]
        shares[test] = ((moved @ direction) ** 2 / (moved**2).sum(axis=-1)).mean(axis=1)
    low, high = stats.cluster_bootstrap(shares)
    return {"value": 100 * shares.mean(), "low": 100 * low, "high": 100 * high, "n": len(shares)}


def _right(states: np.ndarray, kinds: np.ndarray, groups: np.ndarray, held_out: str) -> np.ndarray:
    """The share of each anchor's variants that a probe tells right, [anchors]: half its negation of a type, half its hedges."""
    negated, is_hedge = np.isin(kinds, NEGATIONS), np.isin(kinds, HEDGES)
    right = np.zeros(len(kinds))
    for train, test in GroupKFold(FOLDS).split(states, groups=groups):
        train = train[kinds[train] != held_out]
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, class_weight="balanced", max_iter=500))
        right[test] = model.fit(states[train], negated[train]).predict(states[test]) == negated[test]
    by_anchor = [pd.Series(right[rows]).groupby(groups[rows]).mean() for rows in (kinds == held_out, is_hedge)]
    return np.mean(by_anchor, axis=0)


def _states(encoder: Encoder, anchors: pd.DataFrame) -> dict[str, np.ndarray]:
    """The states of the variants, anchor by anchor, by position: each [layers, texts, dimension]."""
    import torch  # takes seconds, which a reader of figures doesn't need

    network, tokenizer = getattr(encoder.model[0], "auto_model", None), encoder.model.tokenizer
    if network is None or not getattr(tokenizer, "is_fast", False):
        raise StudyError(f"{encoder.name} is no transformer with a fast tokenizer: its layers can't be probed.")
    texts = anchors[list(VARIANTS)].to_numpy().ravel().tolist()
    originals = np.repeat(anchors.anchor.to_numpy(), len(VARIANTS))
    found = {position: [] for position in POSITIONS}
    options = {"padding": True, "truncation": True, "max_length": encoder.model.max_seq_length, "return_tensors": "pt"}
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        inputs = tokenizer(batch, return_offsets_mapping=True, **options)
        offsets, mask = inputs.pop("offset_mapping").numpy(), inputs["attention_mask"].numpy().astype(bool)
        with torch.inference_mode():
            layers = network(**inputs.to(encoder.model.device), output_hidden_states=True).hidden_states
        states = torch.stack(layers).float().cpu().numpy()  # [layers, texts, tokens, dimension]
        changed = np.stack([_changed(*pair) for pair in zip(batch, originals[start:], offsets, strict=False)])
        word = mask & (offsets[..., 1] > offsets[..., 0])
        for position, chosen in zip(POSITIONS, (word & changed, word & ~changed, mask), strict=True):
            chosen = np.where(chosen.any(axis=1, keepdims=True), chosen, mask)  # a text without such words: all of it
            weights = chosen / chosen.sum(axis=1, keepdims=True)
            found[position].append(np.einsum("lntd,nt->lnd", states, weights.astype(np.float32)))
    return {position: np.concatenate(parts, axis=1) for position, parts in found.items()}


def _changed(text: str, original: str, offsets: Sequence[Sequence[int]]) -> np.ndarray:
    """Whether each token of a text, by its characters, is of a word that the original hasn't in this place, bool [tokens]."""
    words = list(re.finditer(r"\S+", text))
    plain = [[word.strip(".,;:!?").lower() for word in each.split()] for each in (original, text)]
    kept = np.zeros(len(text) + 1, dtype=bool)
    for block in SequenceMatcher(None, *plain, autojunk=False).get_matching_blocks():
        for word in words[block.b : block.b + block.size]:
            kept[word.start() : word.end()] = True
    return np.array([not kept[start:end].all() for start, end in offsets])
