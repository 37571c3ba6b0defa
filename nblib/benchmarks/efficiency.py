"""What scoring an encoder costs and what it cuts off: tokens, truncation, throughput."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from nblib.models import embeddings
from nblib.models.embeddings import EmbeddingError
from nblib.models.encoders import Encoder
from nblib.models.registry import Role
from nblib.models.systems import StoredSystem, System


def truncation(encoder: Encoder, seen: Mapping[str, Mapping[Role, set[str]]]) -> pd.DataFrame:
    """How much of each task's texts the model doesn't read.

    Args:
        seen: task → role → distinct texts (`MtebEncoder.seen`).

    Returns:
        task, texts (distinct), tokens, longest, max_length, truncated (texts longer than that), share (percent);
        NaN where it isn't known.
    """
    limit = encoder.model.max_seq_length
    rows = []
    for task, by_role in seen.items():
        counts = np.concatenate(
            [embeddings.token_counts(encoder, sorted(texts), role) for role, texts in by_role.items()]
        )
        if np.isnan(counts).any():
            rows.append((task, len(counts), np.nan, np.nan, limit, np.nan, np.nan))
            continue
        cut = int((counts > limit).sum()) if limit else 0
        rows.append((task, len(counts), int(counts.sum()), int(counts.max()), limit, cut, 100 * cut / len(counts)))
    return pd.DataFrame(rows, columns=["task", "texts", "tokens", "longest", "max_length", "truncated", "share"])


def parameters(system: System) -> float | None:
    """The size of a system's model in millions of weights; None for what has none (a rule)."""
    from torch import nn  # who reads scores only doesn't need it

    if isinstance(system, StoredSystem):
        return system.parameters
    model = system.model
    return sum(weights.numel() for weights in model.parameters()) / 1e6 if isinstance(model, nn.Module) else None


def throughput(encoder: Encoder, texts: Sequence[str], *, sample: int = 64, seed: int = 0) -> dict[str, float | None]:
    """Texts and tokens a second, measured by encoding a random sample anew, past the cache.

    Returns:
        texts (how many were timed), seconds, texts_per_second, tokens_per_second (as read, after truncation; None where it
        isn't known).

    Raises:
        EmbeddingError: there is nothing to encode.
    """
    distinct = sorted(set(texts))
    if not distinct:
        raise EmbeddingError("No texts to measure the throughput with.")
    chosen = np.random.default_rng(seed).choice(distinct, min(sample, len(distinct)), replace=False).tolist()
    tokens = np.minimum(embeddings.token_counts(encoder, chosen), encoder.model.max_seq_length or np.inf).sum()
    seconds = embeddings.seconds_to_encode(encoder, sorted(chosen, key=len))
    return {
        "texts": len(chosen), "seconds": seconds, "texts_per_second": len(chosen) / seconds,
        "tokens_per_second": None if np.isnan(tokens) else float(tokens) / seconds,
    }  # fmt: skip


def sentence(read: pd.DataFrame, speed: Mapping[str, float | None], texts: int) -> str:
    """What `truncation` and `throughput` found, in words.

    Args:
        texts: how many distinct ones there are.
    """
    pace = f"{speed['texts_per_second']:.0f} texts"
    if speed["tokens_per_second"] is None:
        minutes = texts / speed["texts_per_second"] / 60
        cut = "how many are too long is not known (no tokenizer to ask)"
    else:
        pace += f" and {speed['tokens_per_second']:,.0f} tokens"
        minutes = read.tokens.sum() / speed["tokens_per_second"] / 60
        cut = f"{read.truncated.sum()} longer than {read.max_length.iloc[0]} tokens"
    return f"{texts:,} distinct texts, {cut}. {pace} a second: about {minutes:.1f} minutes for all."
