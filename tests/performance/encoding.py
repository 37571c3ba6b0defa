"""Encoding the official benchmarks: ours cold and from the cache, `SentenceTransformer.encode` on the rows in order, and what the
machine's matrix units could do at most."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from unittest.mock import patch

import numpy as np
import torch
from measure import STOCK, Case, peak
from torch.profiler import ProfilerActivity, profile

from nblib import corpora
from nblib.models import embeddings, encoders
from nblib.models.encoders import Encoder, with_precision
from nblib.models.onednn import PackedLinear

ENCODERS = ("all-MiniLM-L6-v2", "all-mpnet-base-v2")
# Benchmark: corpus, columns of texts, pairs of columns to compare, rows by default
BENCHMARKS = {
    "NevIR": ("nevir", ("q1", "q2", "doc1", "doc2"), ((0, 2), (0, 3), (1, 2), (1, 3)), 64),
    "SemAntoNeg": ("semantoneg", ("input", "option_0", "option_1", "option_2"), ((0, 1), (0, 2), (0, 3)), 400),
    "CANNOT-WMT": ("cannot_wmt", ("candidate", "reference"), ((0, 1),), 400),
    "STS": ("stsb", ("sentence1", "sentence2"), ((0, 1),), 400),
}
# PyTorch's names for the work of linear layers
LINEAR = ("mkldnn::_linear_pointwise", "aten::addmm", "aten::mkldnn_linear")
COLD, WARM, HALF = "ours", "ours, from the cache", "ours, bfloat16"


def cases(sample: int | None) -> Iterator[Case]:
    """A case for each encoder and benchmark.

    Args:
        sample: the first so many rows of each; None: enough for a few seconds.
    """
    for name in ENCODERS:
        encoder = encoders.load(name)
        for benchmark, (corpus, columns, pairs, rows) in BENCHMARKS.items():
            table = corpora.load(corpus, "test").head(sample or rows)
            if "sentences" in table:
                table = table.assign(**{f"option_{k}": table.sentences.str[k] for k in range(3)})
            yield _case(encoder, benchmark, [table[column].tolist() for column in columns], pairs)


def _case(encoder: Encoder, benchmark: str, columns: Sequence[list[str]], pairs: Sequence[tuple[int, int]]) -> Case:
    texts, half, peaks = [text for column in columns for text in column], with_precision(encoder, "bfloat16"), matmul()
    distinct = sorted(set(texts))
    bounds = {COLD: (distinct, "oneDNN float32"), STOCK: (texts, "MKL float32"), HALF: (distinct, "bfloat16")}

    def cosines(vectors: np.ndarray) -> np.ndarray:
        parts = np.split(vectors, len(columns))
        return np.concatenate([embeddings.similarity(parts[a], parts[b]) for a, b in pairs])

    def cached(cache: str | None, one: Encoder = encoder) -> np.ndarray:
        with patch.dict(os.environ, NBLIB_CACHE=cache or tempfile.mkdtemp()):
            return cosines(embeddings.encode(one, texts))

    def remark(way: str, seconds: float) -> str:
        if way not in bounds:
            return ""
        given, kind = bounds[way]
        linear, attention = work(encoder, given)
        share, most = time_in_linear_layers(ways[way]), peaks[kind]
        whole, inside = (linear + attention) / seconds / 1e9, linear / (share * seconds) / 1e9
        return (
            f"{whole:.0f} GFLOP/s, {100 * whole / most:.0f} % of what {kind} gives here ({most:.0f}); {100 * share:.0f} % of the "
            f"time is in linear layers, at {100 * inside / most:.0f} %"
        )

    cached(filled := tempfile.mkdtemp())
    ways = {
        COLD: lambda: cached(None), WARM: lambda: cached(filled), HALF: lambda: cached(None, half),
        STOCK: lambda: cosines(encoder.model.encode(texts, show_progress_bar=False)),
    }  # fmt: skip
    label, n = f"encoding {benchmark}, {encoder.name}", f"{len(texts):,} texts, {len(set(texts)):,} distinct"
    return Case(label, n, ways, allowed=1e-5, by_way={HALF: 0.05}, remark=remark)  # 0.05: a cosine in bfloat16


def time_in_linear_layers(run: Callable[[], object]) -> float:
    """The share of a run's time that PyTorch's profiler finds in linear layers."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        started = time.perf_counter()
        run()
        seconds = time.perf_counter() - started
    return sum(op.self_cpu_time_total for op in seen.key_averages() if op.key in LINEAR) / 1e6 / seconds


def work(encoder: Encoder, texts: Sequence[str]) -> tuple[float, float]:
    """Floating-point operations that encoding takes in linear layers and in attention's products, without padding."""
    model = encoder.model[0].auto_model
    layers = [
        layer for name, layer in model.named_modules() if isinstance(layer, torch.nn.Linear) and "pooler" not in name
    ]
    lengths = np.minimum(embeddings.token_counts(encoder, texts), encoder.model.max_seq_length).astype(float)
    attention = 4 * model.config.num_hidden_layers * model.config.hidden_size * (lengths**2).sum()
    return 2 * sum(layer.weight.numel() for layer in layers) * lengths.sum(), attention


def matmul(rows: int = 1024, width: int = 768, inner: int = 3072) -> dict[str, float]:
    """What the machine's matrix products give at most, by library and precision, in GFLOP/s: the fastest of ten, of the size that
    a batch meets in a feed-forward layer of all-mpnet-base-v2. Ours computes on packed weights."""
    layer, batch = torch.nn.Linear(width, inner), torch.randn(rows, width)
    kinds = {"MKL float32": (layer, batch), "oneDNN float32": (PackedLinear(layer.weight, layer.bias), batch)}
    kinds["bfloat16"] = (torch.nn.Linear(width, inner, dtype=torch.bfloat16), batch.bfloat16())
    found = {}
    with torch.inference_mode():
        for kind, (multiply, given) in kinds.items():
            seconds = min(peak(lambda m=multiply, x=given: m(x))[1] for _ in range(10))
            found[kind] = 2 * rows * width * inner / seconds / 1e9
    return found
