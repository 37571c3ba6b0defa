"""Fine-tuning on NevIR by epoch: the curve that is left, on which items, and that it is measured as an encoder's is."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from encoders import toy_triples

from nblib import corpora, cross_training, dev, embeddings, models, nevir_training, rankers, scores, triples
from nblib.checkpoints import FinetuningError
from nblib.nevir_training import ARCHITECTURES, COLUMNS
from nblib.rankers import RankerError

TOY_SETS = {"STSB mini dev": ("STSBMini", "dev", 20), "NevIR mini": ("NevIRMini", "test", None)}


def toy_pairs(numbers):
    """Pairs whose documents differ in one word, which the questions name."""
    return pd.DataFrame([
        {"id": f"p-{k}", "q1": f"is door {k} red", "q2": f"is door {k} green", "doc1": f"door {k} is red",
         "doc2": f"door {k} is green"} for k in numbers
    ])  # fmt: skip


@pytest.fixture
def anchors():
    table = corpora.load("hedgetriple").head(6)
    return table.assign(split=["dev"] * 3 + ["train"] * 3)


@pytest.fixture
def toys(anchors, monkeypatch):
    """Four toy pairs to train on, and the miniatures for dev data."""
    monkeypatch.setitem(dev.SETS, "nevir", TOY_SETS)
    monkeypatch.setattr(triples, "load_anchors", lambda file: anchors)
    monkeypatch.setattr(triples, "training_set", lambda apart, recipe: triples.nevir(toy_pairs(range(4))))


@pytest.fixture(scope="module")
def cross_folder(toy, tmp_path_factory):
    """A cross-encoder with random weights."""
    folder = tmp_path_factory.mktemp("cross") / "tiny-cross"
    nothing_learnt = replace(toy, epochs=1, learning_rate=1e-9)
    model = cross_training.train(nothing_learnt, cross_training.labelled(toy_triples(1)), folder.parent / "scratch")
    model.save_pretrained(str(folder), create_model_card=False)
    return folder


@pytest.fixture
def bases(tiny_encoder_folder, cross_folder):
    return {"cross-encoder": str(cross_folder), "multi-vector": str(tiny_encoder_folder)}


@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_a_training_leaves_its_curve_and_what_was_trained(architecture, toy, bases, toys, anchors, tmp_path):
    base = bases[architecture]
    untouched = ARCHITECTURES[architecture].load(base)
    curve = nevir_training.run(architecture, replace(toy, base=base), tmp_path, "unread")
    assert list(curve.columns) == COLUMNS
    assert curve.epoch.unique().tolist() == [0, 1, 2, 3]
    assert set(curve.architecture) == {architecture}
    each = curve[curve.epoch == 3].set_index("set")
    could = {"STSB mini dev": (20, "spearman")} if architecture == "multi-vector" else {}
    expected = {**could, "NevIR mini": (100, "pairwise_accuracy"), "dev anchors": (24, "accuracy")}
    assert dict(zip(each.index, zip(each.n, each.metric, strict=True), strict=True)) == expected
    items = {name: entry for name, entry in dev.items("nevir", set()).items() if name in expected}
    before = nevir_training.measure(untouched, items, anchors[anchors.split == "dev"])
    first = curve[curve.epoch == 0].reset_index(drop=True)
    pd.testing.assert_frame_equal(first[before.columns], before)
    assert not np.allclose(first.value, each.value), "what was trained is what was measured"
    file = tmp_path / "scores" / f"nevir-{architecture}" / "epochs.csv"
    pd.testing.assert_frame_equal(pd.read_csv(file), curve, atol=1e-4)
    about = json.loads(file.with_name("epochs.csv.json").read_text())
    assert (about["architecture"], about["base"], about["pairs"], about["epochs"]) == (architecture, base, 4, 3)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    scored = {path for path in left if path.startswith("scores")}
    assert scored == {f"scores/nevir-{architecture}/epochs.csv{part}" for part in ("", ".json")}
    assert all(path.startswith(f"encoders/nevir-{architecture}") for path in left - scored), "no checkpoint"
    tuned = rankers.load(str(tmp_path / "encoders" / f"nevir-{architecture}"))
    assert (tuned.name, tuned.kind) == (f"nevir-{architecture}", untouched.kind)
    after = nevir_training.measure(tuned, items, anchors[anchors.split == "dev"])
    np.testing.assert_allclose(after.value, each.value[after.set], atol=1e-4)


@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_what_is_called_right_is_ranked_above_what_is_called_wrong(architecture, toy, bases, tmp_path):
    chosen, base = ARCHITECTURES[architecture], bases[architecture]
    told = pd.DataFrame({"id": [f"p-{k}" for k in range(8)], "anchor": [f"how is door {k}" for k in range(8)],
                         "hedge": "q1", "negation": "q1"})  # fmt: skip
    colours = {"positive": "red", "negative": "green"}
    margins = []
    for sides in (colours, dict(zip(colours, reversed(colours.values()), strict=True))):
        table = told.assign(**{side: told.anchor + f" it is {colour}" for side, colour in sides.items()})
        ranker = chosen.load(base)
        chosen.fit(ranker.model, replace(toy, base=base, learning_rate=3e-3, epochs=16), table, tmp_path, [])
        ranker.model.eval()
        asked = "how is door 9"
        red, green = ranker.score([asked] * 2, [f"{asked} it is {colour}" for colour in ("red", "green")])
        margins.append(red - green)
    assert margins[0] > 0 > margins[1]


def test_the_same_seed_gives_the_same_curve_and_another_another(toy, bases, toys, tmp_path, monkeypatch):
    monkeypatch.setitem(dev.SETS, "nevir", {"STSB mini dev": TOY_SETS["STSB mini dev"]})  # enough, and soon done

    def curve(seed, folder):
        settings = replace(toy, base=bases["multi-vector"], epochs=1, seed=seed)
        return nevir_training.run("multi-vector", settings, tmp_path / folder, "unread")

    first, again, other = curve(0, "a"), curve(0, "b"), curve(1, "c")
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


class Cosine:
    """An encoder as a ranker."""

    name, source = "cosine", "here"

    def __init__(self, encoder):
        self.encoder = encoder

    def score(self, queries, documents):
        return embeddings.similarity(*(embeddings.encode(self.encoder, list(texts)) for texts in (queries, documents)))


def test_an_encoder_as_ranker_has_the_dev_scores_that_the_watch_of_notebook_04_gives(tiny_encoder, anchors, toys):
    trained = pd.DataFrame({"id": [corpora.load("nevir_mini").id[0]]})
    watched = dev.Watch(tiny_encoder, anchors, trained, "nevir").measure(tiny_encoder.model)
    measured = nevir_training.measure(Cosine(tiny_encoder), dev.items("nevir", set(trained.id)), anchors)
    expected = watched[watched.kind != "diagnostic"].drop(columns="kind").reset_index(drop=True)
    pd.testing.assert_frame_equal(measured.drop(columns="metric"), expected)
    assert measured.set_index("set").n["NevIR mini"] == 99, "what was trained on is left out"


def test_the_mean_over_the_querys_tokens_ranks_as_the_sum_does(tiny_encoder_folder, tiny_encoder):
    by_mean = nevir_training.load_multi_vector(str(tiny_encoder_folder))
    by_sum = rankers.token_maxsim(tiny_encoder)
    queries, documents = ["is it red", "is the door of the house red"] * 2, ["it is red", "it is red", "no", "no"]
    tokens = [len(by_sum.model.encode_query(query)) for query in queries]
    np.testing.assert_allclose(by_mean.score(queries, documents) * tokens, by_sum.score(queries, documents), rtol=1e-5)


def test_a_questions_own_document_is_right_and_the_pairs_other_one_wrong():
    table = cross_training.labelled(triples.nevir(toy_pairs([7])))
    right, wrong = (table[table.label == label].set_index("query").document.to_dict() for label in (1.0, 0.0))
    assert right == {"is door 7 red": "door 7 is red", "is door 7 green": "door 7 is green"}
    assert wrong == {"is door 7 red": "door 7 is green", "is door 7 green": "door 7 is red"}


def test_what_gives_no_single_score_is_refused(toy, tmp_path, tiny_encoder_folder):
    with pytest.raises(FinetuningError, match=r"No cross-encoder at .*absent.*cross_training triples"):
        nevir_training.load_cross_encoder(str(tmp_path / "absent"))
    with pytest.raises(RankerError, match="holds a SentenceTransformer"):
        nevir_training.load_cross_encoder(str(tiny_encoder_folder))
    table = pd.DataFrame({"query": ["the door"] * 3, "document": ["open", "red", "closed"], "label": [0, 1, 2]})
    cross_training.train(replace(toy, epochs=1), table, tmp_path / "scratch").save_pretrained(str(tmp_path / "classes"))
    with pytest.raises(FinetuningError, match=r"classes is no cross-encoder that gives .* one score"):
        nevir_training.load_cross_encoder(str(tmp_path / "classes"))


@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_without_the_anchors_the_command_ends_with_one_line(architecture, tmp_path):
    with pytest.raises(SystemExit, match=r"error: No anchors at .*triples/anchors\.parquet"):
        nevir_training.main([architecture, "--run-dir", str(tmp_path)])
    assert not any(tmp_path.iterdir())


def test_without_a_cross_encoder_the_command_says_how_to_train_one(toys, tmp_path):
    with pytest.raises(SystemExit, match=r"error: No cross-encoder at .*encoders/cross-triples\. Train one first"):
        nevir_training.main(["cross-encoder", "--run-dir", str(tmp_path)])


def test_the_command_trains_as_the_paper_did(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(nevir_training, "run", lambda *told, **named: given.append((*told, named)))
    nevir_training.main(["multi-vector", "--run-dir", str(tmp_path)])
    ((architecture, settings, *_, named),) = given
    assert (architecture, settings.base) == ("multi-vector", "all-MiniLM-L6-v2")
    assert (settings.learning_rate, settings.batch_size, settings.epochs) == (2e-5, 16, 20)
    assert named == {"name": None, "every_epoch": True}


def test_measured_at_its_ends_the_training_is_the_same_one(bases, toys, tmp_path):
    def command(name, *more):
        options = f"--base {bases['multi-vector']} --epochs 2 --learning-rate 1e-3 --run-dir {tmp_path} --name {name}"
        nevir_training.main(["multi-vector", *options.split(), *more])
        return pd.read_csv(scores.folder_of(tmp_path, name) / "epochs.csv")

    whole, ends = command("whole"), command("ends", "--ends")
    assert whole.epoch.unique().tolist() == [0, 1, 2]
    pd.testing.assert_frame_equal(ends, whole[whole.epoch != 1].reset_index(drop=True))
    weights = [(tmp_path / "encoders" / name / "model.safetensors").read_bytes() for name in ("whole", "ends")]
    assert weights[0] == weights[1]


@pytest.mark.official
def test_the_pairs_are_those_of_the_bi_encoder_and_no_test_set_is_read(bases, toy, anchors, tmp_path, monkeypatch):
    read, load = [], corpora.load
    monkeypatch.setattr(corpora, "load", lambda name, split="test": read.append((name, split)) or load(name, split))
    monkeypatch.setattr(triples, "load_anchors", lambda file: anchors)
    settings = replace(toy, base=bases["multi-vector"], epochs=1, batch_size=16)
    curve = nevir_training.run("multi-vector", settings, tmp_path, "unread")
    assert curve[curve.epoch == 0].set_index("set").n.to_dict() == {
        "STSB dev": 750, "NevIR train sample": 10, "NevIR mini": 100, "dev anchors": 24,
    }  # fmt: skip
    assert {name for name, split in read if split == "test"} == {"nevir_mini"}, "a miniature, which is dev data here"
    assert models.load(settings.base).name  # the base is still what it was
