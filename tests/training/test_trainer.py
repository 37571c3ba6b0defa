"""Training: what is refused, what is learnt by each architecture, and that a killed training ends where it would have."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from support.close import SUM, TRAINED, assert_close, close
from support.encoders import toy_examples, toy_triples, with_exclusions

from nblib.errors import StudyError
from nblib.models import encoders, rankers
from nblib.models.folders import FinetuningError
from nblib.training import batches, checkpoints, trainer
from nblib.training.losses import LOSSES, SymmetricSupConLoss
from nblib.training.trainer import ARCHITECTURES, Settings

TEXTS = ["the dog is red", "the cat is not green", "a woman was never in the house", "no door is open", "it"]


def same(first, second):
    """Whether two trained models give the same embeddings: single weights may lie a step apart."""
    first, second = (np.concatenate([np.asarray(part) for part in model.encode(TEXTS)]) for model in (first, second))
    return close(first, second, times=TRAINED)


# --- settings and examples --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "LoRA"}, "Unknown method 'LoRA'; known: full, lora"),
        (
            {"loss": "triplet"},
            "Unknown loss 'triplet'; known: in-batch, explicit, in-batch, hardness-weighted, symmetric-supcon, twins",
        ),
        ({"pooling": "max"}, "Unknown pooling 'max'; known: base, mean, cls"),
        ({"epochs": 0}, "epochs must be above 0, and is 0"),
        ({"rank": -1}, "rank must be above 0, and is -1"),
        ({"learning_rate": float("nan")}, "learning_rate must be above 0, and is nan"),
        ({"seed": -1}, "seed must be from 0 to 4294967295, and is -1"),
        ({"batch_size": 1}, "'in-batch' needs other anchors in the batch"),
        ({"loss": "in-batch MaxSim", "method": "lora"}, "Only a bi-encoder can be trained as a LoRA"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong, message):
    with pytest.raises(StudyError, match=message):
        Settings("any", **wrong)


def test_the_explicit_loss_can_do_with_one_anchor_a_step():
    assert Settings("any", loss="explicit", batch_size=1).batch_size == 1


def test_a_step_has_one_kind_and_all_are_seen(toy, tmp_path, monkeypatch):
    steps = []
    forward = SymmetricSupConLoss.forward
    monkeypatch.setattr(
        SymmetricSupConLoss,
        "forward",
        lambda self, texts, labels: steps.append(self.positives) or forward(self, texts, labels),
    )
    data = batches.data_sets(with_exclusions(6), "anchor")
    trainer.train("bi-encoder", replace(toy, loss="symmetric-supcon", epochs=1), data, tmp_path)
    assert sorted(steps) == [1, 1, 2, 2], "eight exclusions with one positive, six anchors with two, four a step"


def test_a_loss_of_another_architecture_is_refused(toy, tmp_path):
    with pytest.raises(
        FinetuningError, match=r"'in-batch' doesn't train a cross-encoder\. Losses that do: cross-entropy"
    ):
        trainer.train("cross-encoder", toy, toy_examples(), tmp_path)
    assert not any(tmp_path.iterdir())


def test_scored_pairs_are_put_in_order(toy, tiny_encoder, tmp_path):
    anchors = [f"the dog is in house {k}" for k in range(8)]
    table = pd.DataFrame({
        "anchor": anchors * 2, "other": [*anchors, *(f"the dog is not in house {k}" for k in range(8))],
        "score": [0.0] * 8 + [1.0] * 8,
    })  # fmt: skip
    data = batches.data_sets(table, "scored")
    model, history = trainer.train("bi-encoder", replace(toy, loss="cosent", epochs=6), data, tmp_path)

    def order(encoder):
        near = torch.cosine_similarity(
            *(torch.tensor(encoder.encode(table[side].tolist())) for side in ("anchor", "other"))
        )
        return float((near[8:] - near[:8]).mean())

    assert order(tiny_encoder.model) < 0, "a sentence is nearest to itself"
    assert order(model) > order(tiny_encoder.model)
    assert history.loss.iloc[-1] < history.loss.iloc[0]


# --- training ---------------------------------------------------------------------------------------------------------


def test_full_training_lowers_the_loss_and_moves_the_weights(full, base):
    model, history = full
    assert list(history.columns) == ["step", "epoch", "loss", "learning_rate"]
    assert (history.step.iloc[-1], history.epoch.iloc[-1]) == (12, 3)
    assert history.loss.tail(4).mean() < 0.8 * history.loss.head(4).mean()
    assert not model.training
    before = base.state_dict()
    moved = [key for key, value in model.state_dict().items() if not torch.equal(value, before[key])]
    assert any("word_embeddings" in key for key in moved)
    assert any("layer.1" in key for key in moved)


def test_lora_trains_the_lora_alone(lora, base):
    assert {name for name, weight in lora.named_parameters() if weight.requires_grad} == {
        name for name, _ in lora.named_parameters() if "lora_" in name
    }
    kept = {key.replace(".base_layer", ""): value for key, value in lora.state_dict().items() if "lora_" not in key}
    assert kept.keys() == base.state_dict().keys()
    assert all(torch.equal(kept[key], value) for key, value in base.state_dict().items())
    assert not any("pooler" in key for key in lora.state_dict() if "lora_" in key)
    assert np.abs(lora.encode(TEXTS) - base.encode(TEXTS)).max() > 1e-3


def test_the_symmetric_loss_brings_an_anchors_negations_together(toy, full, tmp_path):
    data = toy_examples(loss="symmetric-supcon")
    tuned, _ = trainer.train("bi-encoder", replace(toy, loss="symmetric-supcon"), data, tmp_path)
    table = data["statements"].to_pandas()

    def near(model):
        first, second = (model.encode(table[f"negative_{k}"].tolist(), normalize_embeddings=True) for k in (1, 2))
        return float((first * second).sum(axis=1).mean())

    assert 1 - near(tuned) < 0.5 * (1 - near(full[0]))


def test_autocast_leaves_float32_weights_and_no_trace(toy, full, tmp_path):
    model, _ = trainer.train("bi-encoder", replace(toy, bf16=True), toy_examples(), tmp_path / "checkpoints")
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert not same(model, full[0]), "the forward pass was computed in bfloat16"
    model.save_pretrained(str(tmp_path / "model"), create_model_card=False)
    plain = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert_close(model.encode(TEXTS), plain.encode(TEXTS))


def test_looking_after_every_epoch_changes_nothing(toy, full, tmp_path):
    seen = []

    def evaluate(model, epoch):
        assert not model.training, "a copy, not what is being trained"
        seen.append((epoch, {weight.dtype for weight in model.parameters()}, model.encode(TEXTS)))
        torch.manual_seed(42)  # as each of mteb's tasks does when it is made

    model, _ = trainer.train("bi-encoder", toy, toy_examples(), tmp_path, evaluate=evaluate)
    assert [(epoch, types) for epoch, types, _ in seen] == [(epoch, {torch.float32}) for epoch in (1, 2, 3)]
    assert same(model, full[0])
    assert_close(seen[-1][2], model.encode(TEXTS))
    assert np.abs(seen[0][2] - seen[-1][2]).max() > 1e-3


class Killed(BaseException):
    """What ends a training at once."""


def kill_after(killed):
    def evaluate(model, epoch):
        if epoch == killed:
            raise Killed

    return evaluate


@pytest.fixture
def steps(monkeypatch):
    """The steps that are trained, one entry each."""
    taken, step = [], SentenceTransformerTrainer.training_step
    monkeypatch.setattr(
        SentenceTransformerTrainer,
        "training_step",
        lambda self, *args, **kw: (taken.append(1), step(self, *args, **kw))[1],
    )
    return taken


@pytest.mark.parametrize(
    ("method", "killed", "every", "last"),
    [
        ("full", 2, 3, 6),  # taken up within the second epoch, whose order is not the first's
        ("full", 2, 4, 8),  # between two
        ("full", 3, 5, 12),  # when all steps are done
        ("lora", 2, 3, 6),
    ],
)
def test_a_killed_training_ends_with_the_weights_of_an_uninterrupted_one(
    method, killed, every, last, toy, full, lora, steps, tmp_path
):
    of_method = replace(toy, method=method)
    with pytest.raises(Killed):
        trainer.train(
            "bi-encoder", of_method, toy_examples(), tmp_path, evaluate=kill_after(killed), checkpoint_steps=every
        )
    assert [file.name for file in tmp_path.glob("checkpoint-*")] == [f"checkpoint-{last}"]
    steps.clear()
    model, history = trainer.train("bi-encoder", of_method, toy_examples(), tmp_path, checkpoint_steps=every)
    assert same(model, lora if method == "lora" else full[0])
    assert len(steps) == 12 - last, "what was trained is not trained again"
    assert history.step.tolist() == full[1].step.tolist()
    if method == "full":
        assert_close(history, full[1], times=TRAINED)


def test_a_checkpoint_that_a_kill_left_half_written_is_passed_over(toy, full, steps, tmp_path):
    with pytest.raises(Killed):
        trainer.train("bi-encoder", toy, toy_examples(), tmp_path, evaluate=kill_after(1), checkpoint_steps=3)
    half = tmp_path / "checkpoint-4"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"only the beg")
    cut = tmp_path / "checkpoint-5"
    cut.mkdir()
    (cut / "trainer_state.json").write_text('{"global_st')  # by a full disk
    steps.clear()
    model, _ = trainer.train("bi-encoder", toy, toy_examples(), tmp_path, checkpoint_steps=3)
    assert same(model, full[0])
    assert len(steps) == 9, "taken up after the third step"


def test_checkpoints_of_another_training_are_refused(toy, tmp_path):
    with pytest.raises(Killed):
        trainer.train("bi-encoder", toy, toy_examples(), tmp_path, evaluate=kill_after(1), checkpoint_steps=3)
    for other, table in [
        (replace(toy, seed=1), toy_examples()),
        (toy, toy_examples(5)),
        (replace(toy, method="lora"), toy_examples()),
    ]:
        with pytest.raises(FinetuningError, match=r"holds the checkpoints of another training\. Remove the folder"):
            trainer.train("bi-encoder", other, table, tmp_path)
    checkpoints.forget(tmp_path)
    assert not tmp_path.exists()


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA"), MemoryError(), RuntimeError("can't allocate memory: you tried")]
)
def test_out_of_memory_says_what_to_lower(error, toy, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(SentenceTransformerTrainer, "train", fail)
        with pytest.raises(FinetuningError, match=r"with 4 anchors a step \(24 texts\). Lower batch_size, or .*'lora'"):
            trainer.train("bi-encoder", toy, toy_examples(), tmp_path)
    monkeypatch.setattr(SentenceTransformerTrainer, "train", lambda *_, **__: None)
    # No checkpoint was left that it could clash with
    trainer.train("bi-encoder", replace(toy, batch_size=2), toy_examples(), tmp_path)


def test_another_error_is_not_called_a_lack_of_memory(toy, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(SentenceTransformerTrainer, "train", fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        trainer.train("bi-encoder", toy, toy_examples(), tmp_path)


# --- every architecture -----------------------------------------------------------------------------------------------


def toy_table(classes):
    """Pairs that differ in one word: green is right, red is wrong (and for classes, a cat is neither)."""
    words = {0: "green", 1: "cat", 2: "red"} if classes else {1.0: "green", 0.0: "red"}
    rows = [(f"the door of house {k}", f"it is {word} {k}", label) for k in range(12) for label, word in words.items()]
    return pd.DataFrame(rows, columns=["query", "document", "label"])


@pytest.fixture
def cross(toy):
    """A training of a cross-encoder of one epoch."""
    return replace(toy, loss="cross-entropy", epochs=1)


def train_cross(settings, table, folder):
    shutil.rmtree(folder, ignore_errors=True)
    return trainer.train("cross-encoder", settings, batches.data_sets(table, "labelled"), folder)[0]


@pytest.fixture(scope="module")
def cross_folder(toy, tmp_path_factory):
    """A cross-encoder that has learnt nothing."""
    folder = tmp_path_factory.mktemp("cross")
    settings = replace(toy, loss="cross-entropy", epochs=1, learning_rate=1e-9)
    model = train_cross(settings, batches.labelled(toy_triples(1)), folder / "scratch")
    model.save_pretrained(str(folder / "tiny-cross"), create_model_card=False)
    return folder / "tiny-cross"


@pytest.mark.parametrize(("classes", "right", "wrong"), [(False, 1.0, 0.0), (True, 0, 2)])
def test_a_cross_encoder_ranks_what_is_called_right_above_what_is_called_wrong(classes, right, wrong, cross, tmp_path):
    table = toy_table(classes)
    scored = {}
    for label in (right, wrong):
        model = train_cross(replace(cross, epochs=4), table.assign(label=label), tmp_path / "scratch")
        scored[label] = rankers.Cross(model, "toy", "here").score(table["query"], table.document)
    assert (scored[right] > scored[wrong]).all()


def test_the_seed_decides_a_cross_encoders_new_layer(cross, tmp_path):
    table = toy_table(classes=False)
    scored = [
        train_cross(replace(cross, seed=seed), table, tmp_path / "scratch").predict([("the door", "not open")])[0]
        for seed in (0, 0, 1)
    ]
    assert close(scored[0], scored[1], times=TRAINED) and not close(scored[0], scored[2], times=TRAINED)


@pytest.mark.parametrize(
    ("architecture", "loss"), [("cross-encoder", "cross-entropy"), ("multi-vector", "in-batch MaxSim")]
)
def test_triples_teach_every_architecture_which_document_is_right(
    architecture, loss, toy, cross_folder, tiny_encoder_folder, tmp_path
):
    base = str(cross_folder if architecture == "cross-encoder" else tiny_encoder_folder)
    settings = replace(toy, base=base, loss=loss, learning_rate=3e-3, epochs=16)
    doors = pd.DataFrame({"id": [f"p-{k}" for k in range(8)], "anchor": [f"how is door {k}" for k in range(8)],
                         "hedge": "q1", "negation": "q1"})  # fmt: skip
    colours = {"positive": "red", "negative": "green"}
    margins = []
    for turn, sides in enumerate((colours, dict(zip(colours, reversed(colours.values()), strict=True)))):
        table = doors.assign(**{side: doors.anchor + f" it is {colour}" for side, colour in sides.items()})
        data = batches.data_sets(table, LOSSES[loss].layout)
        ranker = ARCHITECTURES[architecture].load(settings, data)
        ranker.model = trainer.train(architecture, settings, data, tmp_path / str(turn))[0]
        asked = "how is door 9"
        red, green = ranker.score([asked] * 2, [f"{asked} it is {colour}" for colour in ("red", "green")])
        margins.append(red - green)
    assert margins[0] > 0 > margins[1]


def test_a_killed_training_of_a_multi_vector_model_ends_as_an_uninterrupted_one(toy, tmp_path):
    settings = replace(toy, loss="in-batch MaxSim")
    whole, _ = trainer.train("multi-vector", settings, toy_examples(), tmp_path / "whole")
    with pytest.raises(Killed):
        trainer.train(
            "multi-vector", settings, toy_examples(), tmp_path / "killed", evaluate=kill_after(2), checkpoint_steps=3
        )
    resumed, _ = trainer.train("multi-vector", settings, toy_examples(), tmp_path / "killed", checkpoint_steps=3)
    assert same(whole, resumed)


def test_a_cross_encoder_of_the_other_kind_is_no_base(toy, cross, cross_folder, tmp_path):
    train_cross(cross, toy_table(True), tmp_path / "scratch").save_pretrained(str(tmp_path / "classes"))
    for base, classes, what in [(tmp_path / "classes", False, "one score"), (cross_folder, True, "classes")]:
        with pytest.raises(FinetuningError, match=f"{base} is no cross-encoder that gives {what}"):
            train_cross(replace(cross, base=str(base)), toy_table(classes), tmp_path / "other")


def test_the_mean_over_the_querys_tokens_ranks_as_the_sum_does(toy, tiny_encoder):
    by_mean, by_sum = ARCHITECTURES["multi-vector"].load(toy, None), rankers.token_maxsim(tiny_encoder)
    queries, documents = ["is it red", "is the door of the house red"] * 2, ["it is red", "it is red", "no", "no"]
    tokens = [len(by_sum.model.encode_query(query)) for query in queries]
    assert_close(by_mean.score(queries, documents) * tokens, by_sum.score(queries, documents), times=SUM)


def test_a_base_without_a_transformer_is_refused(cross, tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "load", lambda name: replace(tiny_encoder, model=object()))
    with pytest.raises(FinetuningError, match="no text encoder with trainable transformer weights"):
        train_cross(cross, toy_table(classes=True), tmp_path)
