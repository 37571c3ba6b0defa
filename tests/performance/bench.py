"""`python tests/performance/bench.py`: ours against the stock way, both measured in this run, as a ratio.

Not a test: a shared machine's times vary, ratios hold better.
"""

import os
import sys
import tempfile
import time

import numpy as np

from nblib import corpora
from nblib.benchmarks import semantoneg
from nblib.models import embeddings, encoders
from nblib.models.negation_adapter import GRID, NegationAdapter, contributions, softmax_weights


def fastest(run, repeats=3):
    """The shortest of a few runs, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def fit_value_by_value(anchors, positives, negatives):
    """The stock way to search a: reweight all embeddings and compute all cosines anew for each value."""
    weights = softmax_weights(contributions(anchors, positives, negatives[:, None]), GRID)
    accuracies = []
    for w in weights:
        t, p, n = anchors * w, positives * w, negatives * w
        near = embeddings.similarity(t, p)
        accuracies.append((near > embeddings.similarity(t, n)).mean())
    return max(accuracies)


def main():
    os.environ["NBLIB_CACHE"] = tempfile.mkdtemp()
    rng = np.random.default_rng(0)
    t = rng.normal(size=(1000, 768)).astype(np.float32)
    p, n = (t + 0.5 * rng.normal(size=t.shape).astype(np.float32) for _ in range(2))
    n[:, :5] *= -1
    ours = fastest(lambda: NegationAdapter("weighted embeddings").fit(t, p, n))
    stock = fastest(lambda: fit_value_by_value(t, p, n))
    say(
        f"adapter fit, 1,000 triplets x 768, 21 values of a: {ours:.3f} s; value by value {stock:.3f} s: {stock / ours:.1f} x"
    )

    encoder = encoders.load("all-MiniLM-L6-v2")
    items = semantoneg.load("semantoneg_mini")
    texts = [*items.input, *items.positive, *(s for pair in items.negatives for s in pair)]
    stock = fastest(lambda: encoder.model.encode(texts, show_progress_bar=False), 1)
    first = fastest(lambda: embeddings.encode(encoder, texts), 1)
    again = fastest(lambda: embeddings.encode(encoder, texts))
    say(
        f"encoding {corpora.describe('semantoneg_mini').label}, {len(texts)} texts, {len(set(texts))} distinct: {first:.2f} s, "
        f"from the cache {again:.3f} s; SentenceTransformer.encode {stock:.2f} s: {stock / first:.1f} x and {stock / again:.0f} x"
    )


def say(line):
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
