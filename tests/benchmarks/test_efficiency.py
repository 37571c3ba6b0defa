"""What scoring cuts off, and how large a model is."""

from dataclasses import replace
from types import SimpleNamespace

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from support.encoders import tiny
from torch import nn

from nblib import corpora
from nblib.benchmarks import efficiency
from nblib.models import embeddings
from nblib.models.systems import BiEncoder


def test_over_long_texts_are_counted(tmp_path):
    encoder = tiny(tmp_path, max_length=32)
    table = corpora.load("nevir_mini")
    texts = sorted({*table.q1, *table.q2, *table.doc1, *table.doc2})
    tokens = embeddings.token_counts(encoder, texts)
    report = efficiency.truncation(encoder, ["nevir_mini"]).iloc[0]
    assert (report.task, report.texts, report.tokens) == ("nevir_mini", len(texts), tokens.sum())
    assert (report.truncated, report.longest) == ((tokens > 32).sum(), tokens.max())
    assert 0 < report.share < 100


def test_static_embeddings_do_not_say_how_many_tokens_they_read(tiny_encoder):
    static = StaticEmbedding(tiny_encoder.model.tokenizer.backend_tokenizer, embedding_dim=8)
    encoder = replace(tiny_encoder, model=SentenceTransformer(modules=[static], device="cpu"), fingerprint="static")
    read = efficiency.truncation(encoder, ["stsb_mini"])
    assert read[["tokens", "longest", "truncated", "share"]].isna().all(axis=None) and read.texts.item() > 0


def test_the_size_of_a_model_is_in_millions_of_weights(tiny_encoder):
    embedding = tiny_encoder.model[0].auto_model.get_input_embeddings().weight
    assert efficiency.parameters(BiEncoder(tiny_encoder)) * 1e6 > embedding.numel()
    assert efficiency.parameters(SimpleNamespace(model=nn.Linear(1000, 1000))) == 1.001
    assert efficiency.parameters(SimpleNamespace(model=None)) is None
