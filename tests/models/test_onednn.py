"""Linear layers by oneDNN: the same embeddings, and the model as it was afterwards."""

import pytest
import torch
from support.close import assert_close

from nblib.models.onednn import linear_by_onednn

TEXTS = ["the dog is red", "it is", "the dog is not red"]
onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN")


@onednn
def test_the_embeddings_are_those_of_torch_to_float32_rounding(tiny_encoder):
    expected = tiny_encoder.model.encode(TEXTS)
    with linear_by_onednn(tiny_encoder.model):
        got = tiny_encoder.model.encode(TEXTS)
    assert_close(got, expected)


@onednn
def test_the_layers_are_onednns_inside_and_the_models_own_afterwards_even_after_an_error():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    own = list(model)
    with pytest.raises(RuntimeError, match="stop"), linear_by_onednn(model):
        assert not any(isinstance(layer, torch.nn.Linear) for layer in model)
        raise RuntimeError("stop")
    assert all(layer is before for layer, before in zip(model, own, strict=True))


def test_other_precisions_and_what_is_no_network_stay_as_they_are():
    half = torch.nn.Sequential(torch.nn.Linear(4, 3).bfloat16())
    with linear_by_onednn(half), linear_by_onednn(object()):
        assert type(half[0]) is torch.nn.Linear


def test_a_layer_with_a_forward_of_its_own_stays_as_it_is():
    layer = torch.nn.Linear(4, 3)
    layer.forward = lambda inputs: inputs
    model = torch.nn.Sequential(layer)
    with linear_by_onednn(model):
        assert model[0] is layer
