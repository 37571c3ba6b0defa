"""Prepared bases, weights between two encoders, and the folders they are kept in."""

import copy
import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support.close import SUM, assert_close

from nblib.errors import StudyError
from nblib.training import interpolation

TEXTS = ["the dog is red", "the cat is not green", "a woman was never in the house", "no door is open", "it"]


def test_pooling_is_set_as_asked(base):
    mean = base.encode(TEXTS)
    assert_close(interpolation.prepare(base, "base").encode(TEXTS), mean)
    assert_close(interpolation.prepare(copy.deepcopy(base), "mean").encode(TEXTS), mean)
    cls = interpolation.prepare(base, "cls")
    with torch.no_grad():
        tokens = base[0](base.preprocess(TEXTS))["token_embeddings"]
    assert_close(cls.encode(TEXTS), tokens[:, 0])
    assert np.abs(cls.encode(TEXTS) - mean).max() > 1e-2


def test_a_base_that_cannot_be_trained_is_refused(base):
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    static = StaticEmbedding(base.tokenizer.backend_tokenizer, embedding_dim=8)
    for wrong in (object(), SentenceTransformer(modules=[static], device="cpu")):
        with pytest.raises(StudyError, match="no text encoder with trainable transformer weights"):
            interpolation.prepare(wrong)
    with pytest.raises(StudyError, match="no pooling to change"):
        interpolation.prepare(SentenceTransformer(modules=[base[0]], device="cpu"), "cls")


@pytest.mark.parametrize("method", ["full", "lora"])
def test_interpolation_goes_from_the_base_to_the_tuned_encoder(method, full, lora, base):
    trained = lora if method == "lora" else full[0]
    before = copy.deepcopy(trained.state_dict())
    ends = [interpolation.interpolate(base, trained, alpha) for alpha in (0.0, 1.0)]
    assert_close(ends[0].encode(TEXTS), base.encode(TEXTS))
    assert_close(ends[1].encode(TEXTS), trained.encode(TEXTS), times=SUM)
    part = interpolation.interpolate(base, trained, 0.25).state_dict()
    for key, value in part.items():
        start, end = ends[0].state_dict()[key], ends[1].state_dict()[key]
        assert_close(value, start + (end - start) * 0.25 if value.is_floating_point() else start)
    assert all(torch.equal(value, before[key]) for key, value in trained.state_dict().items()), (
        "the trained one is left alone"
    )


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_a_saved_adapter_on_the_base_is_the_blend(alpha, lora, base, tiny_encoder_folder, tmp_path):
    folder = tmp_path / "hedge-lora"
    interpolation.save_lora(lora, folder, str(tiny_encoder_folder), alpha)
    loaded = SentenceTransformer(str(tiny_encoder_folder), device="cpu")
    loaded.load_adapter(str(folder))
    blend = interpolation.interpolate(base, lora, alpha)
    assert_close(loaded.encode(TEXTS), blend.encode(TEXTS), times=SUM)
    assert json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"] == str(
        tiny_encoder_folder
    )
    assert not (folder / "model.safetensors").exists(), "the adapter alone"
