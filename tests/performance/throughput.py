"""How fast this machine does the three kinds of work of the papers' scale, and which share of its matrix products that is.

Operations are counted as the table of costs counts them (`paper_scale`): without padding. A training is timed twice, and the
difference counts: the longer without what both take to begin.
"""

import tempfile
import time
from collections.abc import Callable

import pandas as pd
from encoding import matmul

from nblib import corpora
from nblib.corpora import triples
from nblib.models import embeddings, encoders, language_models
from nblib.models import registry as models
from nblib.training import batches, llm_cost, llm_lora, trainer

ENCODE, TRAIN = 2, 6  # operations a parameter and token
TEXTS = 12  # of an anchor in an epoch of Eq. 1: with each of its two hedges, itself and its four negations
ENCODER, LANGUAGE_MODEL = "all-mpnet-base-v2", "gemma-3-270m-q4"
SIZES = 8, 32  # anchors of the shorter and the longer training


def measure() -> pd.DataFrame:
    """One row for each kind of work: kind, what, seconds, tokens_per_second, gflops (10⁹ operations a second), peak (likewise, of
    the fastest bfloat16 product), share (of the peak, percent)."""
    peak = matmul()["bfloat16"]
    rows = []
    for kind, run in {"encode": _encode, "train": _train, "LoRA": _lora}.items():
        what, tokens, operations, seconds = run()
        gflops = operations / seconds / 1e9
        rows.append((kind, what, seconds, tokens / seconds, gflops, peak, 100 * gflops / peak))
    columns = ["kind", "what", "seconds", "tokens_per_second", "gflops", "peak", "share"]
    return pd.DataFrame(rows, columns=columns)


def _encode() -> tuple[str, float, float, float]:
    encoder = encoders.with_precision(encoders.load(ENCODER), "bfloat16")
    texts = sorted({*corpora.load("stsb", "test").sentence1, *corpora.load("nevir", "test").doc1[:100]})
    tokens = float(embeddings.token_counts(encoder, texts).clip(max=encoder.model.max_seq_length).sum())
    seconds = embeddings.seconds_to_encode(encoder, texts)
    return f"{ENCODER} encodes {len(texts):,} texts of STSB and NevIR", tokens, _parameters() * ENCODE * tokens, seconds


def _train() -> tuple[str, float, float, float]:
    settings = trainer.Settings(ENCODER, loss="explicit", pooling="cls")
    tokenizer = encoders.load(ENCODER).model.tokenizer
    anchors = corpora.load("hedgetriple").head(SIZES[1])
    longer = anchors.iloc[SIZES[0] :]
    texts = [text for column in ("anchor", *triples.VARIANTS) for text in longer[column]]
    tokens = TEXTS * len(longer) * sum(map(len, tokenizer(texts)["input_ids"])) / len(texts)

    def run(size: int) -> None:
        data = batches.data_sets(triples.build(anchors.head(size)), "positive")
        trainer.train("bi-encoder", settings, data, tempfile.mkdtemp())

    what = f"all weights of {ENCODER} learn from {len(longer)} anchors (Eq. 1)"
    return what, tokens, _parameters() * TRAIN * tokens, _difference(run)


def _lora() -> tuple[str, float, float, float]:
    settings = llm_lora.Settings(LANGUAGE_MODEL, epochs=1)
    anchors = corpora.load("hedgetriple").head(SIZES[1])
    pairs = [llm_lora.pairs(triples.build(anchors.head(size))) for size in SIZES]
    base = language_models.load(LANGUAGE_MODEL)
    longer = pairs[1].iloc[len(pairs[0]) :]
    tokens = float(sum(
        len(llm_lora.tokens(base.tokenizer, row.sentence_1, row.sentence_2, False)) for row in longer.itertuples()
    ))  # fmt: skip
    operations = llm_cost.operations(base.model.config, settings, len(longer), tokens / len(longer))
    seconds = _difference(lambda size: llm_lora.train(settings, pairs[SIZES.index(size)], tempfile.mkdtemp()))
    return f"a LoRA of {LANGUAGE_MODEL} learns from {len(longer)} pairs", tokens, operations, seconds


def _parameters() -> float:
    return models.entries()[ENCODER].parameters * 1e6


def _difference(run: Callable[[int], object]) -> float:
    """The seconds of the longer run less those of the shorter."""
    taken = []
    for size in SIZES:
        started = time.perf_counter()
        run(size)
        taken.append(time.perf_counter() - started)
    return taken[1] - taken[0]
