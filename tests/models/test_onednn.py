"""Linear layers by oneDNN: the same embeddings, and the model as it was afterwards."""

import pytest
import torch
from support.close import assert_close

from nblib.models import onednn
from nblib.models.onednn import PackedLinear, linear_by_onednn

with_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN")


@with_onednn
def test_the_embeddings_are_those_of_torch_and_the_layers_the_models_own_afterwards_even_after_an_error(tiny_encoder):
    model, texts = tiny_encoder.model, ["the dog is red", "it is", "the dog is not red"]
    expected, own = model.encode(texts), list(model.modules())
    with pytest.raises(RuntimeError, match="stop"), linear_by_onednn(model):
        assert sum(isinstance(layer, PackedLinear) for layer in model.modules()) == 13  # six a layer, and the pooler
        assert_close(model.encode(texts), expected)
        raise RuntimeError("stop")
    assert all(layer is before for layer, before in zip(model.modules(), own, strict=True))


def test_other_precisions_and_what_is_no_network_stay_as_they_are():
    half = torch.nn.Sequential(torch.nn.Linear(4, 3).bfloat16())
    with linear_by_onednn(half), linear_by_onednn(object()):
        assert type(half[0]) is torch.nn.Linear


@pytest.mark.parametrize(
    ("amx", "maker", "fast"),
    [(True, "GenuineIntel", True), (False, "GenuineIntel", False), (False, "AuthenticAMD", True)],
)
def test_a_processor_computes_in_bfloat16_only_where_that_is_faster(monkeypatch, amx, maker, fast):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(onednn, "_processor", lambda: maker)
    assert onednn.computes_bfloat16.__wrapped__() == fast
