"""LoRAs of one base as one encoder."""

import copy

import pytest
import torch
from sentence_transformers import SentenceTransformer
from support.close import SUM, assert_close
from support.encoders import tiny

from nblib import corpora
from nblib.corpora import triples
from nblib.models import encoders
from nblib.models.folders import FinetuningError
from nblib.training import dev_scores, interpolation, merging, records
from nblib.workflow import cli


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def start(encoder):
    return encoder.model


@pytest.fixture(scope="module")
def loras(encoder, tmp_path_factory):
    """Two LoRAs with random changes, as notebook 04 leaves them."""
    start, folder, made = encoder.model, tmp_path_factory.mktemp("loras"), []
    for seed in (0, 1):
        model = interpolation.add_lora(copy.deepcopy(start), 2, seed)
        with torch.no_grad():
            for name, weights in model.named_parameters():
                if "lora_B" in name:
                    weights.normal_(std=0.1, generator=torch.Generator().manual_seed(seed))
        made.append(interpolation.save_adapter(model, folder / str(seed), "A LoRA.", base="tiny"))
    return made


def changes(model, start):
    before = start.state_dict()
    return {key: value - before[key] for key, value in model.state_dict().items() if value.is_floating_point()}


def alone(start, lora):
    model = copy.deepcopy(start)
    model.load_adapter(str(lora))
    return interpolation.interpolate(start, model, 1.0)


def merged(start, loras, way, weights=None):
    model = copy.deepcopy(start)
    merging.merge(model, loras, way, weights).float().merge_and_unload()
    return model


@pytest.mark.parametrize(
    ("way", "weights", "factors"),
    [("mean", None, (0.5, 0.5)), ("sum", None, (1.0, 1.0)), ("mean", [0.2, 0.8], (0.2, 0.8))],
)
def test_the_changes_are_averaged_added_or_weighted(way, weights, factors, start, loras):
    before = copy.deepcopy(start.state_dict())
    first, second = (changes(alone(start, lora), start) for lora in loras)
    found = changes(merged(start, loras, way, weights), start)
    assert found.keys() == first.keys() and any(change.abs().max() > 0.01 for change in first.values())
    for key, change in found.items():
        expected = factors[0] * first[key] + factors[1] * second[key]
        assert_close(change, expected, times=100)  # half precision
    assert all(torch.equal(value, before[key]) for key, value in start.state_dict().items()), "the base is left alone"


def test_ties_drops_what_has_the_other_sign(start, loras):
    first, second = (changes(alone(start, lora), start) for lora in loras)
    ties, added = (changes(merged(start, loras, way), start) for way in ("ties", "sum"))
    key = max(ties, key=lambda name: float(ties[name].abs().max()))
    opposite = (first[key] * second[key] < 0) & (first[key].abs() > 2 * second[key].abs())
    assert ties[key][opposite].abs().mean() != pytest.approx(float(added[key][opposite].abs().mean()), rel=0.05)
    assert torch.nn.functional.cosine_similarity(ties[key].flatten(), added[key].flatten(), dim=0) > 0.5


@pytest.mark.parametrize(
    ("way", "number", "weights", "message"),
    [
        ("median", 2, None, "Unknown way of merging 'median'; known: mean"),
        ("mean", 1, None, "two LoRAs or more, not 1"),
        ("mean", 2, [0.5], "2 LoRAs take as many weights, not 1"),
    ],
)
def test_what_cant_be_merged_is_refused(way, number, weights, message, start, loras):
    with pytest.raises(FinetuningError, match=message):
        merging.merge(start, loras[:number], way, weights)


def test_a_folder_without_a_lora_is_named(start, loras, tmp_path):
    with pytest.raises(FinetuningError, match=r"There is no LoRA in .*nothing"):
        merging.merge(start, [loras[0], tmp_path / "nothing"], "mean")


def test_the_command_leaves_the_encoder_and_its_record(encoder, loras, tmp_path, monkeypatch, capsys):
    anchors = corpora.load("hedgetriple").head(6).assign(split=["dev"] * 3 + ["train"] * 3)
    monkeypatch.setattr(triples, "load_anchors", lambda file: anchors)
    monkeypatch.setattr(encoders, "load", lambda name: encoder)
    cli.main(["merge", "both", "--loras", *map(str, loras), "--weights", "0.3", "0.7", "--run-dir", str(tmp_path)])
    said = capsys.readouterr().out
    assert "STSB mini dev: " in said and f"{dev_scores.ANCHORS}: " in said
    assert {path.parent.name for path in tmp_path.glob("*/both")} == {"encoders", "trainings"}
    model, texts = copy.deepcopy(encoder.model), ["A dog is red.", "No dog is red."]
    model.load_adapter(str(tmp_path / "encoders" / "both-lora"))
    alone = SentenceTransformer(str(tmp_path / "encoders" / "both"))
    assert_close(model.encode(texts), alone.encode(texts), times=SUM)
    kept = records.load(tmp_path / "trainings" / "both")
    assert kept.about["merged"] == ["0", "1"] and len(kept.table("predictions"))
    assert set(kept.table("alphas").alpha) == {0.0, 1.0}
