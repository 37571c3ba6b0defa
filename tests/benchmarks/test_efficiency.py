"""What scoring costs and cuts off."""

from types import SimpleNamespace

import pytest
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
