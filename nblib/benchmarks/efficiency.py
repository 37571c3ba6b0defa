"""What a system doesn't read of a benchmark's texts, and how large it is."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nblib.benchmarks import catalogue
from nblib.models import embeddings
from nblib.models.encoders import Encoder
from nblib.models.systems import System


def truncation(encoder: Encoder, names: Sequence[str]) -> pd.DataFrame:
    """How much of a benchmark's texts is cut off: task, texts (distinct), tokens, longest, max_length, truncated (texts
    longer than that), share (percent); NaN where the model has no tokenizer to ask."""
    limit, rows = encoder.model.max_seq_length, []
    for benchmark in map(catalogue.get, names):
        texts = pd.concat(map(pd.Series, benchmark.pairs(benchmark.rows())), keys=benchmark.roles)
        by_role = texts.groupby(level=0, sort=False).unique().items()
        counts = np.concatenate([embeddings.token_counts(encoder, found, role) for role, found in by_role])
        longer = counts > (limit or np.inf)
        rows.append((benchmark.name, len(counts), counts.sum(), counts.max(), limit, longer.sum(), 100 * longer.mean()))
    table = pd.DataFrame(rows, columns="task texts tokens longest max_length truncated share".split())
    return table.assign(**table[["truncated", "share"]].where(table.tokens.notna()))


def parameters(system: System) -> float | None:
    """The size of a system's model in millions of weights; None for a rule."""
    from torch import nn  # who reads scores only doesn't need it

    model = system.model
    return sum(weights.numel() for weights in model.parameters()) / 1e6 if isinstance(model, nn.Module) else None
