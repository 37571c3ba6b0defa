"""What scoring costs and cuts off."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from support.encoders import tiny
from torch import nn

from nblib.benchmarks import efficiency
from nblib.models import embeddings
from nblib.models.systems import BiEncoder


def test_over_long_texts_are_counted(tmp_path):
    encoder = tiny(tmp_path, max_length=8)
    seen = {"Task": {"query": {"a boat"}, "document": {"the red boat is not blue and the night is not day"}}}
    report = efficiency.truncation(encoder, seen).iloc[0]
    assert (report.texts, report.truncated, report.longest, report.share) == (2, 1, 14, 50)
    speed = efficiency.throughput(encoder, ["a boat", "the day", "a boat"])
    assert speed["texts"] == 2 and speed["tokens_per_second"] == pytest.approx(8 / speed["seconds"])
    with pytest.raises(embeddings.EmbeddingError, match="No texts"):
        efficiency.throughput(encoder, [])
    embedding = encoder.model[0].auto_model.get_input_embeddings().weight
    assert efficiency.parameters(BiEncoder(encoder)) * 1e6 > embedding.numel()
    assert efficiency.parameters(SimpleNamespace(model=nn.Linear(1000, 1000))) == 1.001
    assert efficiency.parameters(SimpleNamespace(model=None)) is None


def test_the_workload_in_words(tiny_encoder):
    seen = {"Task": {"query": {"the door is open"}, "document": {"the door is not open"}}}
    read = efficiency.truncation(tiny_encoder, seen)
    speed = {"texts_per_second": 2.0, "tokens_per_second": read.tokens.sum() / 120}
    assert efficiency.sentence(read, speed, 2) == (
        f"2 distinct texts, 0 longer than 64 tokens. 2 texts and {speed['tokens_per_second']:,.0f} tokens a second: "
        "about 2.0 minutes for all."
    )
    # static embeddings have a tokenizer that doesn't say how many tokens are read
    static = StaticEmbedding(tiny_encoder.model.tokenizer.backend_tokenizer, embedding_dim=8)
    encoder = replace(tiny_encoder, model=SentenceTransformer(modules=[static], device="cpu"), fingerprint="static")
    read, speed = efficiency.truncation(encoder, seen), efficiency.throughput(encoder, ["the door is open"])
    assert read[["tokens", "longest", "truncated", "share"]].isna().all(axis=None)
    assert "2 distinct texts, how many are too long is not known" in efficiency.sentence(read, speed, 2)
