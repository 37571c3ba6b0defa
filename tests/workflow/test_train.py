"""The command `nblib train`: what each architecture and each kind of data leaves."""

import argparse
import dataclasses
import json

import pandas as pd
import pytest
from support.benchmarks import doors
from support.close import TRAINED, assert_close, close

from nblib import artefacts, corpora, results
from nblib.analysis import vahtola
from nblib.benchmarks import scoring
from nblib.benchmarks.base import DevSet
from nblib.benchmarks.nevir import NevIR
from nblib.benchmarks.stsb import STSB
from nblib.corpora import hedgetriple, pairs, triples, twins
from nblib.corpora.pairs import PairError
from nblib.errors import StudyError
from nblib.models import rankers, systems
from nblib.models.folders import FinetuningError
from nblib.models.systems import BiEncoder
from nblib.training import data, dev_scores
from nblib.training.trainer import ARCHITECTURES
from nblib.workflow.commands import train

FAMILIES = {name: entry.family for name, entry in data.DATA.items() if entry.family}
MINI = "semantoneg_mini"
PLACES = [f"house {k}" for k in range(12)]


def command(*words):
    parser = argparse.ArgumentParser()
    train.add_arguments(parser)
    train.run(parser.parse_args([str(word) for word in words]))


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def anchors():
    table = corpora.load("hedgetriple").head(6)
    return table.assign(split=["dev"] * 3 + ["train"] * 3)


@pytest.fixture
def toys(anchors, monkeypatch):
    """Four toy pairs of NevIR to train on, and the miniatures for dev data."""
    load = corpora.load
    monkeypatch.setattr(
        corpora, "load", lambda name, *split: doors(10, "m") if name == "nevir_mini" else load(name, *split)
    )
    monkeypatch.setattr(STSB, "dev_sets", (DevSet("stsb_mini", "dev", ("nevir",), 20),))
    monkeypatch.setattr(NevIR, "dev_sets", (DevSet("nevir_mini", "test", ("nevir",)),))
    monkeypatch.setattr(triples, "load_anchors", lambda file: anchors)
    monkeypatch.setattr(triples, "training_set", lambda apart, name, size=0: triples.nevir(doors(4)))


def test_the_choices_are_the_tables():
    parser = argparse.ArgumentParser()
    train.add_arguments(parser)
    choices = {action.dest: action.choices for action in parser._actions if action.choices}
    assert choices["architecture"] == list(ARCHITECTURES)
    assert choices["data"] == list(data.DATA)


def test_the_defaults_are_those_of_the_record():
    chosen = {name: (entry.size, entry.epochs, entry.learning_rate) for name, entry in data.DATA.items()}
    assert chosen == {
        "nevir": (0, 20, 2e-5), "triples": (1500, 1, 5e-5), "snli": (1500, 1, 5e-5), "nli": (2000, 1, 5e-5),
        "stsb": (2000, 1, 5e-5), "paraphrases": (2000, 1, 5e-5), "mixture": (0, 1, 5e-5),
    }  # fmt: skip
    assert data.default_loss("nli", "bi-encoder") == "in-batch"
    assert data.default_loss("stsb", "bi-encoder") == "cosent"
    with pytest.raises(FinetuningError, match="No loss trains a bi-encoder on snli"):
        data.default_loss("snli", "bi-encoder")


@pytest.mark.parametrize(("architecture", "layout"), [("cross-encoder", "labelled"), ("multi-vector", "positive")])
def test_every_architecture_takes_the_mixture(architecture, layout, toys, tiny_encoder_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(twins, "contrast", lambda split, whole=twins.contrast: whole(split).head(4))
    monkeypatch.setattr(twins, "exclusions", lambda split, whole=twins.exclusions: whole(split).head(3))
    loss = data.default_loss("mixture", architecture)
    examples = data.examples("mixture", loss, "", 0, 0)
    queries = {"labelled": 4, "positive": 2}[layout]  # with each of two passages, or with both
    assert {kind: len(part) for kind, part in examples.items() if kind != "statements"} == {
        "contrast": 4 * queries, "exclusions": 3 * queries,
    }  # fmt: skip
    command(
        "all", "--architecture", architecture, "--data", "mixture", "--base", tiny_encoder_folder, "--run-dir", tmp_path
    )
    assert rankers.load(str(tmp_path / "encoders" / "all")).name == "all"
    with pytest.raises(FinetuningError, match="taken whole"):
        data.examples("mixture", loss, "", 10, 0)


@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_a_training_on_nevir_leaves_its_curve_and_what_was_trained(architecture, toys, tiny_encoder_folder, tmp_path):
    options = ["--architecture", architecture, "--data", "nevir", "--base", tiny_encoder_folder, "--epochs", 2,
               "--learning-rate", 1e-2, "--run-dir", tmp_path]  # fmt: skip
    command("each", *options)
    file = tmp_path / "scores" / "each" / "epochs.csv"
    curve = pd.read_csv(file)
    assert curve.columns.drop("kind", errors="ignore").tolist()[:3] == ["architecture", "epoch", "set"]
    assert curve.epoch.unique().tolist() == [0, 1, 2]
    assert set(curve.architecture) == {architecture}
    last = curve[curve.epoch == 2].set_index("set")
    could = set() if architecture == "cross-encoder" else {"STSB mini dev"}
    assert set(last.index) - {"NevIR mini: document cosine"} == {*could, "NevIR mini", "dev anchors"}
    assert last.n["NevIR mini"] == 10 and last.n["dev anchors"] == 24
    assert not close(curve[curve.epoch == 0].value, last.value), "what was trained is what was measured"
    about = json.loads(file.with_name("epochs.csv.json").read_text())
    assert (about["architecture"], about["data"], about["epochs"]) == (architecture, "nevir", 2)
    assert not any((tmp_path / "checkpoints").iterdir())
    left = contents(tmp_path / "encoders")
    command("each", *options)
    assert contents(tmp_path / "encoders") == left, "found again"
    command("ends", *options, "--curve", "ends")
    ends = pd.read_csv(tmp_path / "scores" / "ends" / "epochs.csv")
    expected = curve[curve.epoch != 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(ends.drop(columns="value"), expected.drop(columns="value"))
    assert_close(ends.value[ends.epoch == 0], expected.value[ends.epoch == 0], times=100)
    if architecture != "cross-encoder":  # whose new layer makes much of a rounding error; measuring changes nothing
        asked = ["is door 1 red"] * 2, ["door 1 is red", "door 1 is green"]
        trained = [systems.load(str(tmp_path / "encoders" / name)) for name in ("each", "ends")]
        assert_close(*(system.score(*asked) for system in trained), times=10 * TRAINED)
    if architecture != "bi-encoder":
        kind = {"cross-encoder": "cross-encoder", "multi-vector": "late-interaction"}[architecture]
        tuned = rankers.load(str(tmp_path / "encoders" / "each"))
        assert (tuned.name, tuned.kind) == ("each", kind)
        dev = triples.load_anchors("")[lambda table: table.split == "dev"]
        evaluator = dev_scores.DevEvaluator(tuned, dev, [], "nevir", architecture == "multi-vector")
        assert_close(evaluator.measure(tuned.model).value, last.value, times=100)  # as many digits as the CSV has


@pytest.mark.parametrize("source", ["snli", "triples"])
def test_a_cross_encoder_leaves_a_folder_that_ranks(source, tiny_encoder_folder, tmp_path, monkeypatch):
    words = {0: "green", 1: "cat", 2: "red"} if source == "snli" else {1.0: "green", 0.0: "red"}
    table = pd.DataFrame(
        [(f"the door {k}", f"it is {word} {k}", label) for k in range(12) for label, word in words.items()],
        columns=["query", "document", "label"],
    )
    monkeypatch.setattr(pairs, "snli", lambda: table.rename(columns={"query": "premise", "document": "hypothesis"}))
    monkeypatch.setattr(data, "labelled", lambda table: table)
    monkeypatch.setattr(triples, "load_anchors", lambda file: None)
    monkeypatch.setattr(triples, "training_set", lambda apart, name: table)
    options = ["--data", source, "--base", tiny_encoder_folder, "--size", 6, "--run-dir", tmp_path]
    command("cross", "--architecture", "cross-encoder", *options)
    ranker = rankers.load(str(tmp_path / "encoders" / "cross"))
    assert (type(ranker), ranker.name) == (rankers.Cross, "cross")
    assert ranker.score(["the door"] * 2, ["it is green", "it is red"]).shape == (2,)
    about = json.loads((tmp_path / "encoders" / "cross.json").read_text())
    assert (about["base"], about["examples"], about["seed"]) == (str(tiny_encoder_folder), 6, 0)
    assert {path.name for path in tmp_path.iterdir()} == {"encoders", "trainings", "checkpoints"}, (
        "no curve unless asked for"
    )


def test_held_out_anchors_are_refused(tmp_path):
    columns = ["anchor", "entailment", *hedgetriple.NEGATIONS, *hedgetriple.HEDGES]
    held_out = sorted(hedgetriple.held_out())[0]
    file = tmp_path / "anchors.parquet"
    artefacts.write_table(pd.DataFrame([{"id": held_out, "split": "train", **dict.fromkeys(columns, "a text")}]), file)
    with pytest.raises(triples.TripleError, match="would use 1 held-out anchors"):
        data.load("triples", "labelled", file, 10, 0)


def test_a_questions_own_document_is_right_and_the_pairs_other_one_wrong(toys):
    table = data.load("nevir", "labelled", "unread", 0, 0)
    right, wrong = (table[table.label == label].set_index("query").document.to_dict() for label in (1.0, 0.0))
    assert (right["is door 3 red"], right["is door 3 green"]) == ("door 3 is red", "door 3 is green")
    assert (wrong["is door 3 red"], wrong["is door 3 green"]) == ("door 3 is green", "door 3 is red")


# --- Vahtola's families -----------------------------------------------------------------------------------------------


def pairs_of(family):
    anchors = [f"the door is open in {place}" for place in PLACES]
    closed, shut = (f"the door is {word} in {{}}" for word in ("closed", "not open"))
    if family == "STSB":
        return pd.DataFrame({"anchor": anchors, "other": [shut.format(place) for place in PLACES],
                             "score": [0.2, 0.8] * 6, "source": "toy"})  # fmt: skip
    table = pd.DataFrame({"anchor": [shut.format(place) for place in PLACES],
                          "positive_1": [closed.format(place) for place in PLACES], "source": "toy"})  # fmt: skip
    return table.assign(negative_1=anchors) if family == "NLI" else table


@pytest.fixture
def family(tiny_encoder_folder, tmp_path, monkeypatch):
    """Trains on toy pairs of a family's data: data, seed, folder of the run."""
    for name, title in FAMILIES.items():
        toy = dataclasses.replace(data.DATA[name], read=lambda title=title: pairs_of(title))
        monkeypatch.setitem(data.DATA, name, toy)
    monkeypatch.setattr(train, "TASK", MINI)
    return lambda name, seed, folder=tmp_path, size=8: command(
        f"family-{name}-s{seed}", "--architecture", "bi-encoder", "--data", name, "--base", tiny_encoder_folder, "--size",
        size, "--seed", seed, "--epochs", 3, "--learning-rate", 1e-2, "--scale", "toy", "--run-dir", folder,
    )  # fmt: skip


def test_the_families_are_the_papers():
    assert {*FAMILIES.values(), "general purpose"} == set(vahtola.FAMILIES.values())


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_family_leaves_predictions_and_a_measurement_that_names_its_training(name, family, tmp_path):
    family(name, 3)
    kept = scoring.load_predictions(tmp_path, f"family-{name}-s3", MINI)
    (row,) = results.load(tmp_path).to_dict("records")
    assert row["value"] == pytest.approx(100 * kept.correct.mean(), abs=1e-3)
    assert (row["system"], row["benchmark"]) == (f"family-{name}-s3", "SemAntoNeg (mini)")
    assert (row["metric"], row["scale"], row["n"]) == ("accuracy", "toy", len(kept))
    assert "(8 pairs), seed 3" in row["trained_on"] and row["fingerprint"]
    about = json.loads((tmp_path / "results" / f"07_family-{name}-s3.csv.json").read_text())
    assert (about["family"], about["seed"], about["pairs_used"]) == (FAMILIES[name], 3, 8)
    recorded = (tmp_path / "results" / f"07_family-{name}-s3.csv").read_bytes()
    family(name, 3)
    assert (tmp_path / "results" / f"07_family-{name}-s3.csv").read_bytes() == recorded


def test_the_base_and_a_family_are_compared(family, tiny_encoder, tmp_path):
    family("nli", 0)
    scoring.score(BiEncoder(tiny_encoder), [MINI], tmp_path)
    (row,) = vahtola.families_on_one_base(tmp_path, ["family-nli-s0"], tiny_encoder.name, MINI).to_dict("records")
    assert (row["family"], row["seed"]) == ("NLI", 0)
    assert row["difference_low"] <= row["difference"] <= row["difference_high"]


def test_the_same_seed_gives_the_same_predictions_and_another_others(family, tmp_path):
    margins = []
    for seed, folder in [(0, "a"), (0, "b"), (1, "c")]:
        family("nli", seed, tmp_path / folder)
        margins.append(scoring.load_predictions(tmp_path / folder, f"family-nli-s{seed}", MINI).margin)
    again, other = ((margins[0] - another).abs().max() for another in margins[1:])
    assert again < 0.2 * other


def test_too_many_pairs_are_refused_before_anything_is_written(family, tmp_path):
    with pytest.raises(PairError, match="13 pairs takes 13 of each source"):
        family("nli", 0, size=13)
    assert not any(tmp_path.iterdir())


# --- what is missing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "source", "message"),
    [
        ("cross-encoder", "snli", "There are no anchors, because NBLIB_DATA isn't set"),
        ("bi-encoder", "nli", "There are no anchors, because NBLIB_DATA isn't set"),
        ("cross-encoder", "triples", "There are no anchors at .*triples/anchors.parquet"),
        ("multi-vector", "nevir", "There are no anchors at .*triples/anchors.parquet"),
    ],
)
def test_without_data_the_message_says_what_is_missing(architecture, source, message, tmp_path):
    with pytest.raises(StudyError, match=message):
        command("mine", "--architecture", architecture, "--data", source, "--run-dir", tmp_path)
    assert not any(tmp_path.iterdir())


def test_without_a_cross_encoder_the_message_says_how_to_train_one(toys, tmp_path):
    with pytest.raises(FinetuningError, match=r"No cross-encoder at .*cross-triples\. Train one first: nblib train"):
        command("mine", "--architecture", "cross-encoder", "--data", "nevir", "--run-dir", tmp_path)


@pytest.mark.official
def test_examples_of_a_family_are_drawn_by_seed():
    for name, layout in (("nli", "positive"), ("stsb", "scored")):
        first, again, other = (data.load(name, layout, "unread", 50, seed).anchor.tolist() for seed in (0, 0, 1))
        assert first == again != other


@pytest.mark.official
def test_nevirs_dev_items_are_not_trained_on_and_no_test_set_is_read(
    anchors, tiny_encoder_folder, tmp_path, monkeypatch
):
    read, load = [], corpora.load
    monkeypatch.setattr(corpora, "load", lambda name, split="test": read.append((name, split)) or load(name, split))
    monkeypatch.setattr(triples, "load_anchors", lambda file: anchors)
    options = ["--architecture", "multi-vector", "--data", "nevir", "--base", tiny_encoder_folder, "--epochs", 1]
    command("mine", *options, "--run-dir", tmp_path)
    curve = pd.read_csv(tmp_path / "scores" / "mine" / "epochs.csv")
    assert curve[curve.epoch == 0].set_index("set").n.to_dict() == {
        "STSB dev": 750, "NevIR train sample": 10, "NevIR mini": 100, "dev anchors": 24,
    }  # fmt: skip
    assert {name for name, split in read if split == "test"} == {"nevir_mini"}, "a miniature, which is dev data here"
    assert json.loads((tmp_path / "encoders" / "mine.json").read_text())["examples"] == 80
