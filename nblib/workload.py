"""What scoring an encoder costs and what it cuts off: tokens, truncation, throughput."""

import time
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from nblib.embeddings import EmbeddingError
from nblib.models import Encoder, Role


def token_counts(encoder: Encoder, texts: Sequence[str], role: Role = "symmetric") -> np.ndarray:
    """Tokens of each text with the prompt of its role and the model's special tokens, before any truncation, int [n]."""
    prompt = encoder.spec.prompt(role)
    if not len(texts):
        return np.zeros(0, dtype=int)
    read = encoder.model.tokenizer([prompt + text for text in texts], truncation=False, padding=False, verbose=False)
    return np.array([len(ids) for ids in read["input_ids"]])


def truncation(encoder: Encoder, seen: Mapping[str, Mapping[Role, set[str]]]) -> pd.DataFrame:
    """How much of each task's texts the model doesn't read.

    Args:
        seen: task → role → distinct texts (`MtebEncoder.seen`).

    Returns:
        task, texts (distinct), tokens, longest, max_length, truncated (texts longer than that), share (percent).
    """
    limit = encoder.model.max_seq_length
    rows = []
    for task, by_role in seen.items():
        counts = np.concatenate([token_counts(encoder, sorted(texts), role) for role, texts in by_role.items()])
        cut = int((counts > limit).sum()) if limit else 0
        rows.append((task, len(counts), int(counts.sum()), int(counts.max()), limit, cut, 100 * cut / len(counts)))
    return pd.DataFrame(rows, columns=["task", "texts", "tokens", "longest", "max_length", "truncated", "share"])


def throughput(encoder: Encoder, texts: Sequence[str], *, sample: int = 128, seed: int = 0) -> dict[str, float]:
    """Texts and tokens a second, measured by encoding a random sample anew, past the cache.

    Returns:
        texts (how many were timed), seconds, texts_per_second, tokens_per_second (as read, after truncation).

    Raises:
        EmbeddingError: there is nothing to encode.
    """
    distinct = sorted(set(texts))
    if not distinct:
        raise EmbeddingError("No texts to measure the throughput with.")
    chosen = np.random.default_rng(seed).choice(distinct, min(sample, len(distinct)), replace=False).tolist()
    tokens = np.minimum(token_counts(encoder, chosen), encoder.model.max_seq_length or np.inf).sum()
    started = time.perf_counter()
    encoder.model.encode(chosen, prompt=encoder.spec.symmetric_prompt, batch_size=64, show_progress_bar=False)
    seconds = time.perf_counter() - started
    return {
        "texts": len(chosen), "seconds": seconds, "texts_per_second": len(chosen) / seconds,
        "tokens_per_second": float(tokens) / seconds,
    }  # fmt: skip
