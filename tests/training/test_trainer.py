"""Training: what is refused, what is learnt by each architecture, and that a killed training ends where it would have."""

import shutil
from dataclasses import replace
from unittest.mock import create_autospec

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import DatasetDict
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from support.close import TRAINED, assert_close, close
from support.encoders import toy_examples, toy_triples

from nblib.corpora import authored
from nblib.errors import StudyError
from nblib.models import rankers
from nblib.training import batches, records, trainer
from nblib.training.data import Kind
from nblib.training.losses import LOSSES, SymmetricSupConLoss
from nblib.training.trainer import ARCHITECTURES, TrainingSettings

TEXTS = ["the dog is red", "the cat is not green", "a woman was never in the house", "no door is open", "it"]


def same(first, second):
    """Whether two trained models give the same embeddings: single weights may lie a step apart."""
    first, second = (np.concatenate([np.asarray(part) for part in model.encode(TEXTS)]) for model in (first, second))
    return close(first, second, times=TRAINED)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "LoRA"}, "No method called 'LoRA'. Known: full, lora"),
        ({"epochs": 0}, "epochs must be above 0, and is 0"),
        ({"architecture": "cross-encoder"}, "'in-batch' doesn't train a cross-encoder; cross-entropy do"),
        ({"kinds": {"contrast": Kind("cross-entropy")}}, "'cross-entropy' doesn't train a bi-encoder"),
        ({"architecture": "multi-vector", "loss": "in-batch MaxSim", "method": "lora"}, "Only a bi-encoder with"),
        ({"method": "lora", "pooling": "cls"}, "Only a bi-encoder with its own pooling"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong, message):
    with pytest.raises(StudyError, match=message):
        TrainingSettings("any", **wrong)


def test_a_step_has_one_kind_and_all_are_seen(toy, tmp_path, monkeypatch):
    forward = SymmetricSupConLoss.forward
    monkeypatch.setattr(SymmetricSupConLoss, "forward", create_autospec(forward, side_effect=forward))
    data = {"statements": toy_triples(6), "exclusions": authored.exclusions("dev").head(4)}
    data = DatasetDict({kind: batches.lay_out(table, "anchor") for kind, table in data.items()})
    trainer.train(replace(toy, loss="symmetric-supcon", epochs=1), data, tmp_path)
    steps = sorted(call.args[0].positives for call in SymmetricSupConLoss.forward.call_args_list)
    assert steps == [1, 1, 2, 2], "eight exclusions with one positive, six anchors with two, four a step"


def test_lora_trains_the_lora_alone(lora, base):
    assert {name for name, weight in lora.named_parameters() if weight.requires_grad} == {
        name for name, _ in lora.named_parameters() if "lora_" in name
    }
    kept = {key.replace(".base_layer", ""): value for key, value in lora.state_dict().items() if "lora_" not in key}
    assert kept.keys() == base.state_dict().keys()
    assert all(torch.equal(kept[key], value) for key, value in base.state_dict().items())
    assert not any("pooler" in key for key in lora.state_dict() if "lora_" in key)
    assert np.abs(lora.encode(TEXTS) - base.encode(TEXTS)).max() > 1e-3


def test_autocast_leaves_float32_weights_and_no_trace(toy, full, tmp_path):
    model, _ = trainer.train(replace(toy, bf16=True), toy_examples(), tmp_path / "checkpoints")
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert not same(model, full[0]), "the forward pass was computed in bfloat16"
    model.save_pretrained(str(tmp_path / "model"), create_model_card=False)
    plain = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert_close(model.encode(TEXTS), plain.encode(TEXTS))


def test_looking_after_every_epoch_changes_nothing(toy, full, base, tmp_path):
    seen = []

    def evaluate(model, epoch):
        assert not model.training, "a copy, not what is being trained"
        seen.append((epoch, {weight.dtype for weight in model.parameters()}, model.encode(TEXTS)))
        torch.manual_seed(42)  # as each of mteb's tasks does when it is made

    model, history = trainer.train(toy, toy_examples(), tmp_path, after_epoch=evaluate)
    assert [(epoch, types) for epoch, types, _ in seen] == [(epoch, {torch.float32}) for epoch in (1, 2, 3)]
    assert same(model, full[0])
    assert_close(seen[-1][2], model.encode(TEXTS))
    assert np.abs(seen[0][2] - seen[-1][2]).max() > 1e-3
    assert not model.training and history.loss.tail(4).mean() < 0.8 * history.loss.head(4).mean()
    assert list(history.columns) == ["step", "epoch", "loss", "learning_rate"] and history.step.iloc[-1] == 12
    before = base.state_dict()
    moved = [key for key, value in model.state_dict().items() if not torch.equal(value, before[key])]
    assert any("word_embeddings" in key for key in moved) and any("layer.1" in key for key in moved)


def test_retention_holds_the_cosines_to_the_bases(toy, tiny_encoder, tmp_path, monkeypatch):
    """Trained on triples alone the cosines move; with retention beside it they move less."""
    # Dropout is noise to so small a model
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda values, *_, **__: values)
    things, states = ("dog", "cat", "house", "door"), ("red", "green", "open")
    texts = [f"the {thing} is {state}" for thing in things for state in states]
    kept = batches.lay_out(pd.DataFrame({"anchor": texts, "related": texts[1:] + texts[:1]}), "texts")
    alone = toy_examples(loss="symmetric-supcon")
    settings = replace(toy, method="lora", loss="symmetric-supcon", learning_rate=2e-3, epochs=12)
    kinds = {"statements": Kind("symmetric-supcon"), "retention": Kind("retention", weight=3.0)}
    without, _ = trainer.train(settings, alone, tmp_path / "without")
    both = DatasetDict(**alone, retention=kept)
    model, history = trainer.train(replace(settings, kinds=kinds), both, tmp_path / "with")

    def moved(model):
        now, before = (torch.tensor(one.encode(texts)) for one in (model, tiny_encoder.model))
        cosines = [torch.cosine_similarity(side[:, None], side[None], dim=2) for side in (now, before)]
        return float((cosines[0] - cosines[1]).abs().mean())

    assert moved(model) < moved(without)
    assert np.isfinite(history.loss).all()


def kill_after(killed):
    def evaluate(model, epoch):
        if epoch == killed:
            raise KeyboardInterrupt

    return evaluate


@pytest.fixture
def steps(monkeypatch):
    """Counts the steps that are trained."""
    step = SentenceTransformerTrainer.training_step
    monkeypatch.setattr(SentenceTransformerTrainer, "training_step", create_autospec(step, side_effect=step))
    return SentenceTransformerTrainer.training_step


@pytest.mark.parametrize(
    ("method", "killed", "every", "last"),
    [
        ("full", 2, 3, 6),  # taken up within the second epoch, whose order is not the first's
        ("full", 3, 5, 12),  # when all steps are done
        ("lora", 2, 3, 6),
    ],
)
def test_a_killed_training_ends_with_the_weights_of_an_uninterrupted_one(
    method, killed, every, last, toy, full, lora, steps, tmp_path, monkeypatch
):
    of_method = replace(toy, method=method)
    monkeypatch.setattr(records, "CHECKPOINT_STEPS", every)
    with pytest.raises(KeyboardInterrupt):
        trainer.train(of_method, toy_examples(), tmp_path, after_epoch=kill_after(killed))
    assert [file.name for file in tmp_path.glob("checkpoint-*")] == [f"checkpoint-{last}"]
    steps.reset_mock()
    model, history = trainer.train(of_method, toy_examples(), tmp_path)
    assert same(model, lora if method == "lora" else full[0])
    assert steps.call_count == 12 - last, "what was trained is not trained again"
    assert history.step.tolist() == full[1].step.tolist()
    if method == "full":
        assert_close(history, full[1], times=TRAINED)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (torch.OutOfMemoryError("CUDA"), r"Lower batch_size \(4\), or choose method 'lora'"),
        (RuntimeError("can't allocate memory: you tried"), "Lower batch_size"),
        (RuntimeError("shapes do not match"), "shapes do not match"),
    ],
)
def test_out_of_memory_says_what_to_lower_and_another_error_is_not_called_so(error, said, toy, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(SentenceTransformerTrainer, "train", fail)
    with pytest.raises((StudyError, RuntimeError), match=said):
        trainer.train(toy, toy_examples(), tmp_path)


def toy_table(classes):
    """Pairs that differ in one word: green is right, red is wrong (and for classes, a cat is neither)."""
    words = {0: "green", 1: "cat", 2: "red"} if classes else {1.0: "green", 0.0: "red"}
    rows = [(f"the door of house {k}", f"it is {word} {k}", label) for k in range(12) for label, word in words.items()]
    return pd.DataFrame(rows, columns=["query", "document", "label"])


@pytest.fixture
def cross(toy):
    """A training of a cross-encoder of one epoch."""
    return replace(toy, architecture="cross-encoder", loss="cross-entropy", epochs=1)


def train_cross(settings, table, folder):
    shutil.rmtree(folder, ignore_errors=True)
    return trainer.train(settings, DatasetDict(pairs=batches.lay_out(table, "labelled")), folder)[0]


@pytest.fixture(scope="module")
def cross_folder(toy, tmp_path_factory):
    """A cross-encoder that has learnt nothing."""
    folder = tmp_path_factory.mktemp("cross")
    settings = replace(toy, architecture="cross-encoder", loss="cross-entropy", epochs=1, learning_rate=1e-9)
    model = train_cross(settings, batches.labelled(toy_triples(1)), folder / "scratch")
    model.save_pretrained(str(folder / "tiny-cross"), create_model_card=False)
    return folder / "tiny-cross"


@pytest.mark.parametrize(("classes", "right", "wrong"), [(False, 1.0, 0.0), (True, 0, 2)])
def test_a_cross_encoder_ranks_what_is_called_right_above_what_is_called_wrong(classes, right, wrong, cross, tmp_path):
    table = toy_table(classes)
    scored = {}
    for label in (right, wrong):
        model = train_cross(replace(cross, epochs=4), table.assign(label=label), tmp_path / "scratch")
        scored[label] = rankers.CrossEncoder(model, "toy", "here").score(table["query"], table.document)
    assert (scored[right] > scored[wrong]).all()


@pytest.mark.parametrize(
    ("architecture", "loss"), [("cross-encoder", "cross-entropy"), ("multi-vector", "in-batch MaxSim")]
)
def test_triples_teach_every_architecture_which_document_is_right(
    architecture, loss, toy, cross_folder, tiny_encoder_folder, tmp_path
):
    base = str(cross_folder if architecture == "cross-encoder" else tiny_encoder_folder)
    settings = replace(toy, base=base, architecture=architecture, loss=loss, learning_rate=3e-3, epochs=16)
    doors = pd.DataFrame({"id": [f"p-{k}" for k in range(8)], "anchor": [f"how is door {k}" for k in range(8)]})
    colours = {"positive": "red", "negative": "green"}
    margins = []
    for turn, sides in enumerate((colours, dict(zip(colours, reversed(colours.values()), strict=True)))):
        table = doors.assign(**{side: doors.anchor + f" it is {colour}" for side, colour in sides.items()})
        data = DatasetDict(triples=batches.lay_out(table, LOSSES[loss].layout))
        ranker = ARCHITECTURES[architecture].load(settings, data)
        ranker.model = trainer.train(settings, data, tmp_path / str(turn))[0]
        asked = "how is door 9"
        red, green = ranker.score([asked] * 2, [f"{asked} it is {colour}" for colour in ("red", "green")])
        margins.append(red - green)
    assert margins[0] > 0 > margins[1]


def test_a_cross_encoder_of_the_other_kind_is_no_base(toy, cross, cross_folder, tmp_path):
    train_cross(cross, toy_table(True), tmp_path / "scratch").save_pretrained(str(tmp_path / "classes"))
    for base, classes, what in [(tmp_path / "classes", False, "one score"), (cross_folder, True, "classes")]:
        with pytest.raises(StudyError, match=f"{base} is no cross-encoder that gives {what}"):
            train_cross(replace(cross, base=str(base)), toy_table(classes), tmp_path / "other")
