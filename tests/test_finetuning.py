"""Contrastive fine-tuning: what a step sees, and that a killed training ends where it would have."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset, DatasetDict
from encoders import toy_triples
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer

from nblib import checkpoints, finetuning, triples
from nblib.checkpoints import FinetuningError
from nblib.finetuning import AnchorBatches, Settings
from nblib.losses import TwoSidedLoss

TEXTS = ["the dog is red", "the cat is not green", "a woman was never in the house", "no door is open", "it"]


def same_weights(first, second):
    first, second = first.state_dict(), second.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


# --- settings and examples --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "LoRA"}, "Unknown method 'LoRA'; known: full, lora"),
        (
            {"loss": "triplet"},
            "Unknown loss 'triplet'; known: explicit, in-batch, in-batch, hardness-weighted, two-sided, graded",
        ),
        ({"pooling": "max"}, "Unknown pooling 'max'; known: base, mean, cls"),
        ({"batch_size": 1}, "'in-batch' needs other anchors in the batch"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong, message):
    with pytest.raises(FinetuningError, match=message):
        Settings("any", **wrong)


def test_the_explicit_loss_can_do_with_one_anchor_a_step():
    assert Settings("any", loss="explicit", batch_size=1).batch_size == 1


def test_an_example_is_an_anchor_and_a_positive_with_all_their_negatives():
    table = toy_triples(2)
    grouped = finetuning.examples(table)
    assert grouped.column_names == ["anchor", "positive_1", "negative_1", "negative_2", "negative_3", "negative_4"]
    assert len(grouped) == 4
    first = table[(table.id == "t-0") & (table.hedge == "word")]
    assert list(grouped[0].values()) == [first.anchor.iloc[0], first.positive.iloc[0], *first.negative]


def test_together_an_example_is_an_anchor_with_all_its_positives_and_negatives():
    table = toy_triples(2)
    grouped = finetuning.examples(table, together=True)
    assert grouped.column_names == ["anchor", "positive_1", "positive_2", *(f"negative_{k}" for k in range(1, 5))]
    assert len(grouped) == 2
    first = table[table.id == "t-0"]
    assert list(grouped[0].values()) == [first.anchor.iloc[0], *first.positive.unique(), *first.negative.unique()]
    with pytest.raises(triples.TripleError, match="Between 1 and 2 positives for an anchor;"):
        finetuning.examples(table[(table.id == "t-0") | (table.hedge == "word")], together=True)


def test_anchors_with_unequally_many_negatives_are_refused():
    with pytest.raises(triples.TripleError, match="Between 3 and 4 negatives"):
        finetuning.examples(toy_triples(2).iloc[1:])
    with pytest.raises(triples.TripleError, match="No triples"):
        finetuning.examples(toy_triples(1).head(0))


def with_exclusions(n=6):
    """Toy triples and the study's first exclusions, query and twin."""
    found = triples.exclusions()
    return pd.concat([toy_triples(n), found[found.id < "ex-004"]], ignore_index=True)


def test_statements_and_exclusions_are_kinds_of_their_own():
    data = finetuning.data_sets(with_exclusions(3), together=True)
    assert {kind: len(part) for kind, part in data.items()} == {"statements": 3, "exclusions": 8}
    assert data["exclusions"].column_names == ["anchor", "positive_1", "negative_1"]
    assert list(finetuning.data_sets(toy_triples(2))) == ["statements"]


def test_a_step_has_one_kind_and_all_are_seen(toy, tmp_path, monkeypatch):
    steps = []
    forward = TwoSidedLoss.forward
    monkeypatch.setattr(
        TwoSidedLoss,
        "forward",
        lambda self, texts, labels: steps.append(self.positives) or forward(self, texts, labels),
    )
    finetuning.train(replace(toy, loss="two-sided", epochs=1), with_exclusions(6), tmp_path)
    assert sorted(steps) == [1, 1, 2, 2], "eight exclusions with one positive, six anchors with two, four a step"


def test_triples_are_nothing_for_a_loss_of_scored_pairs(toy, tmp_path):
    with pytest.raises(FinetuningError, match="'graded' learns from pairs with a score"):
        finetuning.train(replace(toy, loss="graded"), toy_triples(), tmp_path)
    assert not any(tmp_path.iterdir())


def test_scored_pairs_are_put_in_order(toy, tiny_encoder, tmp_path):
    anchors = [f"the dog is in house {k}" for k in range(8)]
    table = pd.DataFrame({
        "anchor": anchors * 2, "other": [*anchors, *(f"the dog is not in house {k}" for k in range(8))],
        "score": [0.0] * 8 + [1.0] * 8,
    })  # fmt: skip
    data = DatasetDict({"pairs": Dataset.from_pandas(table)})
    model, history = finetuning.fit(replace(toy, loss="graded", epochs=6), data, tmp_path)

    def order(encoder):
        near = torch.cosine_similarity(
            *(torch.tensor(encoder.encode(table[side].tolist())) for side in ("anchor", "other"))
        )
        return float((near[8:] - near[:8]).mean())

    assert order(tiny_encoder.model) < 0, "a sentence is nearest to itself"
    assert order(model) > order(tiny_encoder.model)
    assert history.loss.iloc[-1] < history.loss.iloc[0]


# --- batches ----------------------------------------------------------------------------------------------------------


def sampler(anchors, batch_size, seed=0, epoch=0):
    dataset = Dataset.from_dict({"anchor": anchors})
    batches = AnchorBatches(dataset, batch_size=batch_size, drop_last=False, seed=seed)
    batches.set_epoch(epoch)
    return batches


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40), st.integers(1, 5), st.integers(0, 3))
def test_an_epoch_has_each_example_once_and_a_batch_no_anchor_twice(anchors, batch_size, epoch):
    batches = sampler(anchors, batch_size, epoch=epoch)
    drawn = list(batches)
    assert len(drawn) == len(batches)
    assert sorted(place for batch in drawn for place in batch) == list(range(len(anchors)))
    for batch in drawn:
        assert len(batch) <= batch_size
        assert len({anchors[place] for place in batch}) == len(batch)


def test_the_order_is_the_seeds_and_the_epochs():
    anchors = [f"{'x' * (k % 7)}{k // 2}" for k in range(60)]
    drawn = list(sampler(anchors, 4, seed=1, epoch=2))
    assert list(sampler(anchors, 4, seed=1, epoch=2)) == drawn
    torch.manual_seed(99)  # the global generator has no say
    assert list(sampler(anchors, 4, seed=1, epoch=2)) == drawn
    assert list(sampler(anchors, 4, seed=1, epoch=3)) != drawn
    assert list(sampler(anchors, 4, seed=5, epoch=2)) != drawn


def test_texts_of_similar_length_go_together():
    lengths = np.random.default_rng(0).integers(5, 200, size=400)
    anchors = [f"{k:03}" + "x" * length for k, length in enumerate(lengths)]

    def padding(batches):
        return sum(max(lengths[batch]) * len(batch) - sum(lengths[batch]) for batch in batches)

    at_random = np.random.default_rng(1).permutation(400).reshape(-1, 8)
    assert padding(list(sampler(anchors, 8))) < 0.5 * padding(at_random)


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


def test_two_sides_bring_an_anchors_negations_together(toy, full, tmp_path):
    tuned, _ = finetuning.train(replace(toy, loss="two-sided"), toy_triples(), tmp_path)
    table = finetuning.examples(toy_triples(), together=True).to_pandas()

    def near(model):
        first, second = (model.encode(table[f"negative_{k}"].tolist(), normalize_embeddings=True) for k in (1, 2))
        return float((first * second).sum(axis=1).mean())

    assert 1 - near(tuned) < 0.5 * (1 - near(full[0]))


def test_autocast_leaves_float32_weights_and_no_trace(toy, full, tmp_path):
    model, _ = finetuning.train(replace(toy, bf16=True), toy_triples(), tmp_path / "checkpoints")
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert not same_weights(model, full[0]), "the forward pass was computed in bfloat16"
    model.save_pretrained(str(tmp_path / "model"), create_model_card=False)
    plain = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(model.encode(TEXTS), plain.encode(TEXTS), atol=1e-6)


def test_looking_after_every_epoch_changes_nothing(toy, full, tmp_path):
    seen = []

    def evaluate(model, epoch):
        assert not model.training, "a copy, not what is being trained"
        seen.append((epoch, {weight.dtype for weight in model.parameters()}, model.encode(TEXTS)))
        torch.manual_seed(42)  # as each of mteb's tasks does when it is made

    model, _ = finetuning.train(toy, toy_triples(), tmp_path, evaluate=evaluate)
    assert [(epoch, types) for epoch, types, _ in seen] == [(epoch, {torch.float32}) for epoch in (1, 2, 3)]
    assert same_weights(model, full[0])
    np.testing.assert_allclose(seen[-1][2], model.encode(TEXTS), atol=1e-6)
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
        finetuning.train(of_method, toy_triples(), tmp_path, evaluate=kill_after(killed), checkpoint_steps=every)
    assert [file.name for file in tmp_path.glob("checkpoint-*")] == [f"checkpoint-{last}"]
    steps.clear()
    model, history = finetuning.train(of_method, toy_triples(), tmp_path, checkpoint_steps=every)
    assert same_weights(model, lora if method == "lora" else full[0])
    assert len(steps) == 12 - last, "what was trained is not trained again"
    assert history.step.tolist() == full[1].step.tolist()
    if method == "full":
        pd.testing.assert_frame_equal(history, full[1])


def test_a_checkpoint_that_a_kill_left_half_written_is_passed_over(toy, full, steps, tmp_path):
    with pytest.raises(Killed):
        finetuning.train(toy, toy_triples(), tmp_path, evaluate=kill_after(1), checkpoint_steps=3)
    half = tmp_path / "checkpoint-4"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"only the beg")
    steps.clear()
    model, _ = finetuning.train(toy, toy_triples(), tmp_path, checkpoint_steps=3)
    assert same_weights(model, full[0])
    assert len(steps) == 9, "taken up after the third step"


def test_checkpoints_of_another_training_are_refused(toy, tmp_path):
    with pytest.raises(Killed):
        finetuning.train(toy, toy_triples(), tmp_path, evaluate=kill_after(1), checkpoint_steps=3)
    for other, table in [
        (replace(toy, seed=1), toy_triples()),
        (toy, toy_triples(5)),
        (replace(toy, method="lora"), toy_triples()),
    ]:
        with pytest.raises(FinetuningError, match=r"holds the checkpoints of another training\. Remove the folder"):
            finetuning.train(other, table, tmp_path)
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
            finetuning.train(toy, toy_triples(), tmp_path)
    monkeypatch.setattr(SentenceTransformerTrainer, "train", lambda *_, **__: None)
    finetuning.train(
        replace(toy, batch_size=2), toy_triples(), tmp_path
    )  # no checkpoint was left that it could clash with


def test_another_error_is_not_called_a_lack_of_memory(toy, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(SentenceTransformerTrainer, "train", fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        finetuning.train(toy, toy_triples(), tmp_path)
