"""Whole trainings: what is kept, that it is found again, and when it is not."""

import json
import shutil
from dataclasses import replace

import pandas as pd
import pytest
from sentence_transformers import SentenceTransformer
from support.close import TRAINED, assert_close
from support.encoders import toy_examples

from nblib import artefacts, corpora
from nblib.benchmarks.base import DevSet
from nblib.benchmarks.stsb import STSB
from nblib.models import encoders
from nblib.models.folders import FinetuningError
from nblib.models.systems import BiEncoder
from nblib.training import checkpoints, dev_scores, records, trainer, tuning


@pytest.fixture
def evaluator(tiny_encoder, monkeypatch):
    """Makes an evaluator over a few dev items of the miniatures."""
    monkeypatch.setattr(STSB, "dev_sets", (DevSet("stsb_mini", "dev", ("mini",), 20),))
    anchors = corpora.load("hedgetriple").head(3)
    return lambda: dev_scores.DevEvaluator(BiEncoder(tiny_encoder), anchors, [], "mini")


@pytest.fixture(scope="module")
def kept():
    """What trainings of this module have left, by what they were asked for: each runs once."""
    return {}


@pytest.fixture
def tuned_before(kept, tmp_path_factory, evaluator):
    """Copies to a folder what such a training leaves, and finds it there."""

    def tuned(settings, folder, **more):
        asked = repr((settings, more))
        if asked not in kept:
            kept[asked] = tmp_path_factory.mktemp("kept")
            tune(settings, kept[asked], evaluator=evaluator(), **more)
        shutil.copytree(kept[asked], folder, dirs_exist_ok=True)
        found = tune(settings, folder, evaluator=evaluator(), **more)
        assert found.found
        return found

    return tuned


@pytest.fixture
def without_weights(tuned_before, toy):
    """Likewise of one training, without its weights."""

    def tuned(folder):
        found = tuned_before(toy, folder, alphas=[0.5, 1.0], training_data="both")
        shutil.rmtree(found.folder)
        return found

    return tuned


@pytest.fixture
def trainings(monkeypatch):
    """The trainings that are run, one entry each."""
    done, train = [], trainer.train
    monkeypatch.setattr(trainer, "train", lambda *args, **kw: (done.append(args[1]), train(*args, **kw))[1])
    return done


def places(folder):
    return folder / "hedge", folder / "record", folder / "scratch"


def tune(settings, folder, **more):
    return tuning.tune("bi-encoder", settings, toy_examples(), *places(folder), **more)


def files(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_finished_training_is_found_again_with_all_that_was_measured(toy, evaluator, trainings, tmp_path):
    settings = replace(toy, method="lora", epochs=2)
    options = {"alphas": [0.5, 1.0], "sts_budget": 0.0, "interpolations": [0.25], "training_data": "both"}
    first = tune(settings, tmp_path, evaluator=evaluator(), **options)
    left = files(tmp_path)
    again = tune(settings, tmp_path, evaluator=evaluator(), **options)
    assert (first.found, again.found, len(trainings)) == (False, True, 1)
    assert files(tmp_path) == left, "nothing is written anew"
    for table in ("history", "epochs", "alphas"):
        pd.testing.assert_frame_equal(getattr(first, table), getattr(again, table), check_exact=True)
    assert again.epochs.epoch.unique().tolist() == [0, 1, 2]
    assert again.alphas.alpha.unique().tolist() == [0.0, 0.5, 1.0]
    assert again.history.step.iloc[-1] == 8
    assert list(again.compared().columns) == ["set", "kind", "n", "base", "tuned", "difference"]
    assert (again.alpha, again.seconds) == (first.alpha, first.seconds)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {
        "hedge",
        "hedge-a025",
        "hedge-lora",
        "record",
    }
    about = json.loads((tmp_path / "hedge.json").read_text())
    assert (about["alpha"], about["architecture"], about["method"]) == (first.alpha, "bi-encoder", "lora")
    assert about["training_data"] == "both"


@pytest.mark.parametrize("wrong", [{"alphas": [-0.5]}, {"alphas": [0.0]}, {"interpolations": [1.5]}])
def test_an_alpha_beyond_base_and_trained_weights_is_refused_before_anything_is_trained(
    wrong, toy, trainings, tmp_path
):
    with pytest.raises(FinetuningError, match=r"α goes from 0 \(the base\) to 1 \(as trained\), and can't be "):
        tune(toy, tmp_path, **wrong)
    assert not trainings


def test_the_kept_encoder_is_the_blend_and_loads_as_any_other(toy, evaluator, tiny_encoder, tmp_path):
    whole = tune(toy, tmp_path / "whole")
    half = tune(toy, tmp_path / "half", evaluator=evaluator(), alphas=[0.5], every_epoch=False)
    assert (whole.alpha, half.alpha) == (1.0, 0.5)
    assert whole.alphas.empty and whole.epochs.empty
    kept = [SentenceTransformer(str(tuned.folder)) for tuned in (whole, half)]
    weights = kept[0].state_dict()
    for key, value in tiny_encoder.model.state_dict().items():
        if value.is_floating_point():
            weights[key].lerp_(value, 0.5)
    assert_close(*(model.encode(["a dog", "no dog"]) for model in kept), times=TRAINED)


# What a training is made from beside its settings → what makes it look different
DIFFERENT = {
    "texts": lambda patch: patch.setattr(trainer, "texts_sha256", lambda data: "others"),
    "base": lambda patch: patch.setattr(encoders, "fingerprint", lambda model: "another"),
    "code version": lambda patch: patch.setattr(trainer, "CODE_VERSION", trainer.CODE_VERSION + 1),
}


@pytest.mark.parametrize("what", ["settings", "texts", "base", "code version", "alphas", "again", "part", "lora"])
def test_what_differs_is_trained_anew(what, toy, evaluator, tuned_before, trainings, tmp_path, monkeypatch):
    settings, more = replace(toy, method="lora", epochs=1), {"alphas": [1.0], "interpolations": [0.5]}
    tuned_before(settings, tmp_path, **more)
    trainings.clear()
    if what in DIFFERENT:
        DIFFERENT[what](monkeypatch)
    elif what == "settings":
        settings = replace(settings, seed=1)
    elif what == "alphas":
        more["alphas"] = [0.75]
    elif what == "again":
        more["again"] = True
    else:
        (tmp_path / f"hedge-{'a050' if what == 'part' else 'lora'}.json").unlink()
    found = tune(settings, tmp_path, evaluator=evaluator(), **more).found
    assert not found and len(trainings) == 1


def test_weights_that_are_here_complete_a_record_without_checksums(toy, trainings, tmp_path):
    first = tune(toy, tmp_path)
    made_from = {key: value for key, value in first.record.about["made_from"].items() if key not in records.CHECKSUMS}
    artefacts.write_json(first.record.folder / records.FILE, {**first.record.about, "made_from": made_from})
    tune(toy, tmp_path)
    assert artefacts.read_json(first.record.folder / records.FILE) == first.record.about and len(trainings) == 1


def test_without_its_weights_a_training_is_shown_by_its_record(toy, evaluator, without_weights, trainings, tmp_path):
    first = without_weights(tmp_path)
    trainings.clear()
    first.record.add("figure1", pd.DataFrame({"cosine": [0.1 + 0.2]}))
    shown = tune(toy, tmp_path, evaluator=evaluator(), alphas=[0.5, 1.0])
    assert (shown.found, shown.has_model, len(trainings)) == (True, False, 0)
    for table in ("history", "epochs", "alphas"):
        pd.testing.assert_frame_equal(getattr(first, table), getattr(shown, table), check_exact=True)
    assert (shown.alpha, shown.seconds) == (first.alpha, first.seconds)
    assert shown.record.table("figure1").cosine.tolist() == [0.1 + 0.2]
    assert "Its weights aren't here, so its record is shown" in shown.sentence and "may differ" not in shown.sentence
    again = tune(toy, tmp_path, evaluator=evaluator(), alphas=[0.5, 1.0], again=True)
    assert (again.found, again.has_model, len(trainings)) == (False, True, 1)
    assert again.record.table("figure1").empty, "of the training before"


def test_a_record_without_checksums_is_shown_by_its_settings_and_says_so(
    toy, evaluator, without_weights, trainings, tmp_path
):
    first = without_weights(tmp_path)
    trainings.clear()
    made_from = {key: value for key, value in first.record.about["made_from"].items() if key not in records.CHECKSUMS}
    artefacts.write_json(first.record.folder / records.FILE, {**first.record.about, "made_from": made_from})
    shown = tune(toy, tmp_path, evaluator=evaluator(), alphas=[0.5, 1.0], training_data="both")
    assert not shown.has_model and not trainings
    assert "it has no checksum of dev data, code version, texts, base weights, which may differ" in shown.sentence


@pytest.mark.parametrize("what", ["training_data", "setting"])
def test_a_record_without_checksums_needs_the_name_of_its_texts_and_all_settings(
    what, toy, evaluator, without_weights, tmp_path
):
    first = without_weights(tmp_path)
    made_from = {key: value for key, value in first.record.about["made_from"].items() if key not in records.CHECKSUMS}
    if what == "setting":
        made_from.pop("learning_rate")
    artefacts.write_json(first.record.folder / records.FILE, {**first.record.about, "made_from": made_from})
    texts = {"training_data": "both" if what == "setting" else "only negation"}
    assert not tune(toy, tmp_path, evaluator=evaluator(), alphas=[0.5, 1.0], **texts).found


@pytest.mark.parametrize("what", ["settings", "texts", "base", "code version", "alphas", "dev data"])
def test_another_trainings_record_is_not_taken(what, toy, evaluator, without_weights, trainings, tmp_path, monkeypatch):
    without_weights(tmp_path)
    trainings.clear()
    settings, more, measures = toy, {"alphas": [0.5, 1.0]}, evaluator()
    if what in DIFFERENT:
        DIFFERENT[what](monkeypatch)
    elif what == "settings":
        settings = replace(toy, seed=1)
    elif what == "alphas":
        more["alphas"] = [1.0]
    else:
        measures.anchors = measures.anchors.head(2)
    assert not tune(settings, tmp_path, evaluator=measures, **more).found and len(trainings) == 1


class Killed(BaseException):
    """What ends a training at once."""


def test_a_resumed_training_has_the_dev_scores_of_all_its_epochs(toy, evaluator, tmp_path, monkeypatch):
    whole = tune(toy, tmp_path / "whole", evaluator=evaluator())
    train = trainer.train

    def killed(*args, evaluate, **kw):
        def last(model, epoch):
            evaluate(model, epoch)
            if epoch == 2:
                raise Killed

        return train(*args, evaluate=last, checkpoint_steps=3, **kw)

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "train", killed)
        with pytest.raises(Killed):
            tune(toy, tmp_path / "killed", evaluator=evaluator())
    assert checkpoints.last_checkpoint(tmp_path / "killed" / "scratch")
    resumed = tune(toy, tmp_path / "killed", evaluator=evaluator())
    assert not (tmp_path / "killed" / "scratch").exists()
    by_epoch = [tuned.epochs.sort_values(["epoch", "set"], ignore_index=True) for tuned in (whole, resumed)]
    pd.testing.assert_frame_equal(*by_epoch)
    assert_close(whole.history, resumed.history, times=TRAINED)
    vectors = [SentenceTransformer(str(tuned.folder)).encode(["a dog"]) for tuned in (whole, resumed)]
    assert_close(*vectors, times=TRAINED)
