"""Prepared bases, weights between two encoders, and the folders they are kept in."""

import copy
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support.close import SUM, assert_close
from support.encoders import tiny, toy_examples

from nblib.models import encoders
from nblib.models.folders import FinetuningError
from nblib.training import interpolation, trainer, tuning

TEXTS = ["the dog is red", "the cat is not green", "a woman was never in the house", "no door is open", "it"]


# --- bases ------------------------------------------------------------------------------------------------------------


def test_pooling_is_set_as_asked(base):
    mean = base.encode(TEXTS)
    assert_close(interpolation.prepare(base, "base").encode(TEXTS), mean)
    assert_close(interpolation.prepare(copy.deepcopy(base), "mean").encode(TEXTS), mean)
    cls = interpolation.prepare(base, "cls")
    with torch.no_grad():
        tokens = base[0](base.preprocess(TEXTS))["token_embeddings"]
    assert_close(cls.encode(TEXTS), tokens[:, 0])
    assert np.abs(cls.encode(TEXTS) - mean).max() > 1e-2


def test_a_base_that_cannot_be_trained_is_refused(base, tiny_encoder, tmp_path, toy, monkeypatch):
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    static = StaticEmbedding(base.tokenizer.backend_tokenizer, embedding_dim=8)
    for wrong in (object(), SentenceTransformer(modules=[static], device="cpu")):
        with pytest.raises(FinetuningError, match="no text encoder with trainable transformer weights"):
            interpolation.prepare(wrong)
    monkeypatch.setattr(encoders, "load", lambda name: replace(tiny_encoder, model=object()))
    with pytest.raises(FinetuningError, match="no text encoder"):
        trainer.train("bi-encoder", toy, toy_examples(), tmp_path)


def test_a_base_without_pooling_keeps_what_it_has(base):
    bare = SentenceTransformer(modules=[base[0]], device="cpu")
    with pytest.raises(FinetuningError, match="no pooling to change"):
        interpolation.prepare(bare, "cls")
    assert interpolation.prepare(bare) is bare


# --- the result -------------------------------------------------------------------------------------------------------


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


def test_encoders_of_different_shapes_have_nothing_between_them(base, tmp_path):
    with pytest.raises(FinetuningError, match="different shapes"):
        interpolation.interpolate(base, tiny(tmp_path).model, 0.5)


def test_a_saved_encoder_loads_as_any_other(full, base, toy, tmp_path):
    blend = interpolation.interpolate(base, full[0], 0.5)
    curve = pd.DataFrame({"set": ["STS"] * 2, "alpha": [0.0, 0.5], "value": [80.04, 79.0]})
    card = tuning.model_card("hedge", "bi-encoder", toy, 0.5, "Six anchors.", curve, 2.4)
    folder = interpolation.save(blend, tmp_path / "hedge", card, alpha=0.5)
    assert folder == tmp_path / "hedge"
    assert_close(SentenceTransformer(str(folder)).encode(TEXTS), blend.encode(TEXTS))
    written = (folder / "README.md").read_text()
    assert "# hedge\n" in written and "α = 0.5" in written and "| STS | 80.0 | 79.0 |" in written
    assert "| learning_rate | 0.01 |" in written
    assert json.loads((tmp_path / "hedge.json").read_text())["alpha"] == 0.5
    assert sorted(file.name for file in tmp_path.iterdir()) == ["hedge", "hedge.json"]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_a_saved_adapter_on_the_base_is_the_blend(alpha, lora, base, tiny_encoder_folder, tmp_path):
    about = {"base": str(tiny_encoder_folder)}
    folder = interpolation.save_adapter(lora, tmp_path / "hedge-lora", "card", alpha, **about)
    loaded = SentenceTransformer(str(tiny_encoder_folder), device="cpu")
    loaded.load_adapter(str(folder))
    blend = interpolation.interpolate(base, lora, alpha)
    assert_close(loaded.encode(TEXTS), blend.encode(TEXTS), times=SUM)
    assert json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"] == about["base"]
    assert not (folder / "model.safetensors").exists(), "the adapter alone"
    assert (folder / "README.md").read_text() == "card"


def test_a_full_training_has_no_adapter_to_save(full, tmp_path):
    with pytest.raises(FinetuningError, match=r"no LoRA in this model\. Train with method 'lora'"):
        interpolation.save_adapter(full[0], tmp_path / "adapter", "card")
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_fails_leaves_what_was_there_and_nothing_for_the_next(base, tmp_path, monkeypatch):
    target = tmp_path / "hedge"

    def full_disk(self, folder, **_):
        with open(f"{folder}/half-written", "w") as file:
            file.write("x")
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(SentenceTransformer, "save_pretrained", full_disk)
        with pytest.raises(OSError, match="No space left"):
            interpolation.save(base, target, "first")
        assert list(tmp_path.iterdir()) == []
    interpolation.save(base, target, "second")
    assert not (target / "half-written").exists()
    with monkeypatch.context() as patch:
        patch.setattr(SentenceTransformer, "save_pretrained", full_disk)
        with pytest.raises(OSError, match="No space left"):
            interpolation.save(base, target, "third")
    assert (target / "README.md").read_text() == "second"
    assert_close(SentenceTransformer(str(target)).encode(TEXTS), base.encode(TEXTS))
