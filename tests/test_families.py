"""One base trained on each family's data: what a training leaves, and that it learns from its pairs."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from nblib import families, results, scores, semantoneg, systems

PLACES = [f"house {k}" for k in range(12)]


def pairs_of(kind):
    anchors = [f"the door is open in {place}" for place in PLACES]
    closed, shut = (f"the door is {word} in {{}}" for word in ("closed", "not open"))
    if kind == "STSB":
        return pd.DataFrame({"anchor": anchors, "other": [shut.format(place) for place in PLACES],
                             "score": [0.2, 0.8] * 6, "source": "toy"})  # fmt: skip
    table = pd.DataFrame({"anchor": [shut.format(place) for place in PLACES],
                          "positive_1": [closed.format(place) for place in PLACES], "source": "toy"})  # fmt: skip
    return table.assign(negative_1=anchors) if kind == "NLI" else table


@pytest.fixture
def toy_families(monkeypatch):
    toys = {name: replace(family, pairs=lambda name=name: pairs_of(name)) for name, family in families.FAMILIES.items()}
    monkeypatch.setattr(families, "FAMILIES", toys)


def settings_of(family, toy, seed=0):
    return replace(toy, loss=families.FAMILIES[family].loss, epochs=1, seed=seed)


def test_the_families_are_the_papers():
    assert {*families.FAMILIES, "general purpose"} == set(semantoneg.FAMILIES.values())


@pytest.mark.parametrize("family", list(families.FAMILIES))
def test_a_training_leaves_predictions_and_a_partial_result(family, toy, toy_families, tmp_path):
    recorded = families.run(family, settings_of(family, toy, 3), tmp_path, size=8, scale="toy", task="SemAntoNegMini")
    name = families.name_of(family, 3)
    kept = scores.load_predictions(tmp_path, name, "SemAntoNegMini")
    (row,) = recorded.to_dict("records")
    assert row["ours"] == pytest.approx(100 * kept.correct.mean(), abs=1e-3)
    assert (row["exhibit"], row["system"], row["status"], row["scale"]) == ("Figure 1", family, "partial", "toy")
    assert "(8 pairs), seed 3" in row["model"]
    about = json.loads((tmp_path / "results" / f"07_{name}.csv.json").read_text())
    assert (about["family"], about["seed"], about["pairs_used"]) == (family, 3, 8)
    assert not (tmp_path / "checkpoints" / name).exists()
    assert len(results.load(tmp_path)) == 1


def test_the_base_and_a_family_are_compared(toy, toy_families, tiny_encoder, tmp_path):
    families.run("NLI", settings_of("NLI", toy), tmp_path, size=8, task="SemAntoNegMini")
    scores.score(tiny_encoder, ["SemAntoNegMini"], tmp_path)
    (row,) = systems.claim(tmp_path, ["family-nli-s0"], tiny_encoder.name, "SemAntoNegMini").to_dict("records")
    assert (row["family"], row["seed"]) == ("NLI", 0)
    assert row["difference_low"] <= row["difference"] <= row["difference_high"]


def test_the_same_seed_gives_the_same_predictions_and_another_others(toy, toy_families, tmp_path):
    margins = []
    for seed, folder in [(0, "a"), (0, "b"), (1, "c")]:
        families.run("NLI", settings_of("NLI", toy, seed), tmp_path / folder, size=8, task="SemAntoNegMini")
        margins.append(
            scores.load_predictions(tmp_path / folder, families.name_of("NLI", seed), "SemAntoNegMini").margin
        )
    assert margins[0].equals(margins[1])
    assert not margins[0].equals(margins[2])


def test_too_many_pairs_are_refused_before_anything_is_written(toy, toy_families, tmp_path):
    with pytest.raises(families.pairs.PairError, match="13 pairs, 13 for each source, can't be drawn"):
        families.run("NLI", settings_of("NLI", toy), tmp_path, size=13)
    assert not any(tmp_path.iterdir())


def test_without_the_official_data_the_command_ends_with_one_line(tmp_path, tiny_encoder_folder):
    with pytest.raises(SystemExit, match="error: No anchors: set NBLIB_DATA"):
        families.main(["NLI", "--base", str(tiny_encoder_folder), "--run-dir", str(tmp_path)])


@pytest.mark.official
def test_examples_of_every_family_are_drawn_by_seed():
    for family in ("NLI", "STSB"):
        first, again, other = (families.examples(family, 50, seed)[family]["anchor"] for seed in (0, 0, 1))
        assert list(first) == list(again) != list(other)
