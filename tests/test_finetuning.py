"""Contrastive fine-tuning: what a step sees, what a loss says, and that a killed training ends where it would have."""

import copy
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from encoders import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer

from nblib import finetuning, models, triples
from nblib.finetuning import AnchorBatches, FinetuningError, KeepingLoss, Settings
from nblib.negation_profile import HEDGES, NEGATIONS

TEXTS = ["the dog is red", "the cat is not green", "a woman was never in the house", "no door is open", "it"]


def made(n=6):
    """Triples of n anchors, each with two hedges and four negations."""
    rows = [{"id": f"t-{k}", "anchor": f"the dog {k} is in the {'red ' * (k % 3)}house"} for k in range(n)]
    for row in rows:
        row |= {name: f"{row['anchor']} {name} not" for name in NEGATIONS} | {
            name: f"{name}, {row['anchor']}" for name in HEDGES
        }
    return triples.build(pd.DataFrame(rows))


@pytest.fixture(scope="module")
def toy(tiny_encoder_folder):
    """A training of 12 steps: three epochs of two passes over six anchors, four at a time."""
    return Settings(str(tiny_encoder_folder), learning_rate=1e-2, epochs=3, batch_size=4, bf16=False, rank=4)


@pytest.fixture(scope="module")
def full(toy, tmp_path_factory):
    return finetuning.train(toy, made(), tmp_path_factory.mktemp("full"), checkpoint_steps=100)


@pytest.fixture(scope="module")
def lora(toy, tmp_path_factory):
    return finetuning.train(replace(toy, method="lora"), made(), tmp_path_factory.mktemp("lora"))[0]


@pytest.fixture
def base(tiny_encoder):
    return copy.deepcopy(tiny_encoder.model)


def same_weights(first, second):
    first, second = first.state_dict(), second.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


# --- settings and examples --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "LoRA"}, "Unknown method 'LoRA'; known: full, lora"),
        ({"loss": "triplet"}, "Unknown loss 'triplet'; known: explicit, in-batch, in-batch, hardness-weighted"),
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
    table = made(2)
    grouped = finetuning.examples(table)
    assert grouped.column_names == ["anchor", "positive", "negative_1", "negative_2", "negative_3", "negative_4"]
    assert len(grouped) == 4
    first = table[(table.id == "t-0") & (table.hedge == "word")]
    assert list(grouped[0].values()) == [first.anchor.iloc[0], first.positive.iloc[0], *first.negative]


def test_anchors_with_unequally_many_negatives_are_refused():
    with pytest.raises(triples.TripleError, match="Between 3 and 4 negatives"):
        finetuning.examples(made(2).iloc[1:])
    with pytest.raises(triples.TripleError, match="No triples"):
        finetuning.examples(made(1).head(0))


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


# --- losses -----------------------------------------------------------------------------------------------------------


def random_embeddings(n=3, columns=4):
    """Anchors, positives and two negatives of each, [n, 5]."""
    return [torch.randn(n, 5, generator=torch.Generator().manual_seed(column)) for column in range(columns)]


def by_hand(embeddings, scale=20):
    """Eq. 1, an example at a time."""
    unit = [
        column.numpy().astype(float) / np.linalg.norm(column.numpy(), axis=1, keepdims=True) for column in embeddings
    ]
    losses = []
    for place in range(len(unit[0])):
        to_positive, *to_negatives = [np.exp(scale * unit[0][place] @ column[place]) for column in unit[1:]]
        losses.append(-np.log(to_positive / (to_positive + sum(to_negatives))))
    return np.mean(losses)


def loss_of(name, base, embeddings):
    made = finetuning.make_loss(base, base, name)
    return float(made.compute_loss_from_embeddings(embeddings, torch.empty(0)))


def test_the_explicit_loss_is_equation_1(base):
    embeddings = random_embeddings()
    assert loss_of("explicit", base, embeddings) == pytest.approx(by_hand(embeddings), rel=1e-5)
    features = [base.preprocess([f"{text} {column}" for text in TEXTS]) for column in "abc"]
    encoded = [torch.tensor(base.encode([f"{text} {column}" for text in TEXTS])) for column in "abc"]
    with torch.no_grad():
        whole = finetuning.make_loss(base, base, "explicit")(features, torch.empty(0))
    assert float(whole) == pytest.approx(by_hand(encoded), rel=1e-4)


@pytest.mark.parametrize(("name", "alone"), [("explicit", True), ("in-batch", False)])
def test_only_the_in_batch_loss_of_an_example_depends_on_the_others(name, alone, base):
    embeddings = random_embeddings()
    each = [loss_of(name, base, [column[place : place + 1] for column in embeddings]) for place in range(3)]
    assert np.isclose(loss_of(name, base, embeddings), np.mean(each), rtol=1e-4) == alone


def test_hardness_weighs_near_negatives_more(base):
    anchor, positive, far, _ = random_embeddings()
    near = anchor + 0.3 * far
    plain, weighted = (
        loss_of(name, base, [anchor, positive, near]) for name in ("in-batch", "in-batch, hardness-weighted")
    )
    assert weighted > plain + 1


def keeping(model, base, keep=2.0):
    features = [model.preprocess(texts) for texts in (TEXTS, TEXTS[::-1], [f"not {text}" for text in TEXTS])]
    with torch.no_grad():
        return finetuning.make_loss(model, base, "in-batch", keep)(features, torch.empty(0))


def test_keeping_costs_nothing_until_a_similarity_changes(base):
    model = copy.deepcopy(base).eval()
    assert float(keeping(model, base)["keeping"]) == pytest.approx(0, abs=1e-10)
    with torch.no_grad():
        model[0].auto_model.encoder.layer[1].output.dense.weight.neg_()
    cosines = []
    for encoder in (model, base):
        vectors = encoder.encode([*TEXTS, *TEXTS[::-1]], normalize_embeddings=True)
        cosines.append(vectors @ vectors.T)
    moved = ((cosines[0] - cosines[1]) ** 2).mean()
    assert moved > 1e-5
    assert float(keeping(model, base, 2.0)["keeping"]) == pytest.approx(2 * moved, rel=1e-3)


def test_what_is_kept_to_is_not_trained_and_not_part_of_the_loss(base):
    model = copy.deepcopy(base)
    loss = finetuning.make_loss(model, base, "explicit", keep=1.0)
    assert isinstance(loss, KeepingLoss)
    assert {id(weight) for weight in loss.parameters()} == {id(weight) for weight in model.parameters()}
    assert not any(weight.requires_grad for weight in base.parameters())
    assert loss.get_config_dict() == {"scale": 20.0, "keep": 1.0}


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


def test_keeping_holds_the_anchors_similarities(toy, full, base, tmp_path):
    held, _ = finetuning.train(replace(toy, keep=50.0), made(), tmp_path)
    texts = made().anchor.unique().tolist()

    def moved(model):
        near = [encoder.similarity(*[encoder.encode(texts)] * 2) for encoder in (model, base)]
        return float((near[0] - near[1]).abs().mean())

    assert moved(held) < moved(full[0])


def test_autocast_leaves_float32_weights_and_no_trace(toy, full, tmp_path):
    model, _ = finetuning.train(replace(toy, bf16=True), made(), tmp_path / "checkpoints")
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

    model, _ = finetuning.train(toy, made(), tmp_path, evaluate=evaluate)
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
        finetuning.train(of_method, made(), tmp_path, evaluate=kill_after(killed), checkpoint_steps=every)
    assert [file.name for file in tmp_path.glob("checkpoint-*")] == [f"checkpoint-{last}"]
    steps.clear()
    model, history = finetuning.train(of_method, made(), tmp_path, checkpoint_steps=every)
    assert same_weights(model, lora if method == "lora" else full[0])
    assert len(steps) == 12 - last, "what was trained is not trained again"
    assert history.step.tolist() == full[1].step.tolist()
    if method == "full":
        pd.testing.assert_frame_equal(history, full[1])


def test_a_checkpoint_that_a_kill_left_half_written_is_passed_over(toy, full, steps, tmp_path):
    with pytest.raises(Killed):
        finetuning.train(toy, made(), tmp_path, evaluate=kill_after(1), checkpoint_steps=3)
    half = tmp_path / "checkpoint-4"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"only the beg")
    steps.clear()
    model, _ = finetuning.train(toy, made(), tmp_path, checkpoint_steps=3)
    assert same_weights(model, full[0])
    assert len(steps) == 9, "taken up after the third step"


def test_checkpoints_of_another_training_are_refused(toy, tmp_path):
    with pytest.raises(Killed):
        finetuning.train(toy, made(), tmp_path, evaluate=kill_after(1), checkpoint_steps=3)
    for other, table in [(replace(toy, seed=1), made()), (toy, made(5)), (replace(toy, method="lora"), made())]:
        with pytest.raises(FinetuningError, match=r"holds the checkpoints of another training\. Remove the folder"):
            finetuning.train(other, table, tmp_path)
    finetuning.forget(tmp_path)
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
            finetuning.train(toy, made(), tmp_path)
    monkeypatch.setattr(SentenceTransformerTrainer, "train", lambda *_, **__: None)
    finetuning.train(replace(toy, batch_size=2), made(), tmp_path)  # no checkpoint was left that it could clash with


def test_another_error_is_not_called_a_lack_of_memory(toy, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(SentenceTransformerTrainer, "train", fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        finetuning.train(toy, made(), tmp_path)


# --- bases ------------------------------------------------------------------------------------------------------------


def test_pooling_is_set_as_asked(base):
    mean = base.encode(TEXTS)
    np.testing.assert_array_equal(finetuning.prepare(base, "base").encode(TEXTS), mean)
    np.testing.assert_allclose(finetuning.prepare(copy.deepcopy(base), "mean").encode(TEXTS), mean, atol=1e-6)
    cls = finetuning.prepare(base, "cls")
    with torch.no_grad():
        tokens = base[0](base.preprocess(TEXTS))["token_embeddings"]
    np.testing.assert_allclose(cls.encode(TEXTS), tokens[:, 0], atol=1e-5)
    assert np.abs(cls.encode(TEXTS) - mean).max() > 1e-2


def test_a_base_that_cannot_be_trained_is_refused(base, tiny_encoder, tmp_path, toy, monkeypatch):
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    static = StaticEmbedding(base.tokenizer.backend_tokenizer, embedding_dim=8)
    for wrong in (object(), SentenceTransformer(modules=[static], device="cpu")):
        with pytest.raises(FinetuningError, match="no text encoder with trainable transformer weights"):
            finetuning.prepare(wrong)
    monkeypatch.setattr(models, "load", lambda name: replace(tiny_encoder, model=object()))
    with pytest.raises(FinetuningError, match="no text encoder"):
        finetuning.train(toy, made(), tmp_path)


def test_a_base_without_pooling_keeps_what_it_has(base):
    bare = SentenceTransformer(modules=[base[0]], device="cpu")
    with pytest.raises(FinetuningError, match="no pooling to change"):
        finetuning.prepare(bare, "cls")
    assert finetuning.prepare(bare) is bare


# --- what comes out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["full", "lora"])
def test_interpolation_goes_from_the_base_to_the_tuned_encoder(method, full, lora, base):
    tuned = lora if method == "lora" else full[0]
    before = copy.deepcopy(tuned.state_dict())
    ends = [finetuning.interpolate(base, tuned, alpha) for alpha in (0.0, 1.0)]
    np.testing.assert_array_equal(ends[0].encode(TEXTS), base.encode(TEXTS))
    np.testing.assert_allclose(ends[1].encode(TEXTS), tuned.encode(TEXTS), atol=1e-5)
    part = finetuning.interpolate(base, tuned, 0.25).state_dict()
    for key, value in part.items():
        start, end = ends[0].state_dict()[key], ends[1].state_dict()[key]
        torch.testing.assert_close(value, start + (end - start) * 0.25 if value.is_floating_point() else start)
    assert all(torch.equal(value, before[key]) for key, value in tuned.state_dict().items()), (
        "the tuned one is left alone"
    )


def test_encoders_of_different_shapes_have_nothing_between_them(base, tmp_path):
    with pytest.raises(FinetuningError, match="different shapes"):
        finetuning.interpolate(base, tiny(tmp_path).model, 0.5)


def test_a_saved_encoder_loads_as_any_other(full, base, toy, tmp_path):
    blend = finetuning.interpolate(base, full[0], 0.5)
    scored = pd.DataFrame({"set": ["STS"], "base": [80.04], "tuned": [79.0]})
    card = finetuning.model_card("hedge", toy, 0.5, "Six anchors.", scored, 2.4)
    folder = finetuning.save(blend, tmp_path / "hedge", card, alpha=0.5)
    assert folder == tmp_path / "hedge"
    np.testing.assert_allclose(SentenceTransformer(str(folder)).encode(TEXTS), blend.encode(TEXTS), atol=1e-6)
    written = (folder / "README.md").read_text()
    assert "# hedge\n" in written and "α = 0.5" in written and "| STS | 80.0 | 79.0 |" in written
    assert "| learning_rate | 0.01 |" in written
    assert json.loads((tmp_path / "hedge.json").read_text())["alpha"] == 0.5
    assert sorted(file.name for file in tmp_path.iterdir()) == ["hedge", "hedge.json"]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_a_saved_adapter_on_the_base_is_the_blend(alpha, lora, base, tiny_encoder_folder, tmp_path):
    about = {"base": str(tiny_encoder_folder)}
    folder = finetuning.save_adapter(lora, tmp_path / "hedge-lora", "card", alpha, **about)
    loaded = SentenceTransformer(str(tiny_encoder_folder), device="cpu")
    loaded.load_adapter(str(folder))
    blend = finetuning.interpolate(base, lora, alpha)
    np.testing.assert_allclose(loaded.encode(TEXTS), blend.encode(TEXTS), atol=1e-5)
    assert json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"] == about["base"]
    assert not (folder / "model.safetensors").exists(), "the adapter alone"
    assert (folder / "README.md").read_text() == "card"


def test_a_full_training_has_no_adapter_to_save(full, tmp_path):
    with pytest.raises(FinetuningError, match=r"no LoRA in this model\. Train with method 'lora'"):
        finetuning.save_adapter(full[0], tmp_path / "adapter", "card")
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
            finetuning.save(base, target, "first")
        assert list(tmp_path.iterdir()) == []
    (tmp_path / ".hedge.saving").mkdir()
    (tmp_path / ".hedge.saving" / "half-written").write_text("by a process that was killed")
    finetuning.save(base, target, "second")
    assert not (target / "half-written").exists()
    with monkeypatch.context() as patch:
        patch.setattr(SentenceTransformer, "save_pretrained", full_disk)
        with pytest.raises(OSError, match="No space left"):
            finetuning.save(base, target, "third")
    assert (target / "README.md").read_text() == "second"
    np.testing.assert_allclose(SentenceTransformer(str(target)).encode(TEXTS), base.encode(TEXTS), atol=1e-6)


def test_a_full_training_compressed_at_full_rank_loses_only_what_is_not_linear(full, base):
    tuned = copy.deepcopy(full[0])
    linear = {
        name for name, layer in base.named_modules() if isinstance(layer, torch.nn.Linear) and "pooler" not in name
    }
    start = base.state_dict()
    state = {
        key: value if key.removesuffix(".weight") in linear else start[key] for key, value in tuned.state_dict().items()
    }
    tuned.load_state_dict(state)  # only the linear weights differ from the base's
    whole, kept = finetuning.compress(base, tuned, rank=32)
    assert kept == pytest.approx(1)
    assert np.abs(whole.encode(TEXTS) - tuned.encode(TEXTS)).max() < 1e-4
    assert np.abs(whole.encode(TEXTS) - base.encode(TEXTS)).max() > 1e-3


def test_a_lower_rank_keeps_less_of_the_change_but_more_than_its_share(full, base):
    shares = [finetuning.compress(base, full[0], rank)[1] for rank in (1, 8, 32)]
    assert 0 < shares[0] < shares[1] < shares[2]
    assert shares[1] > 8 / 32
