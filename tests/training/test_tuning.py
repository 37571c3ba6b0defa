"""Whole trainings: what is kept, that it is found again, and when it is not."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import create_autospec

import pandas as pd
import pytest
from datasets import DatasetDict
from sentence_transformers import SentenceTransformer
from support.close import TRAINED, assert_close
from support.encoders import toy_examples, toy_triples

from nblib import corpora
from nblib.benchmarks.base import DevSet
from nblib.benchmarks.stsb import STSB
from nblib.errors import StudyError
from nblib.models import systems
from nblib.models.systems import BiEncoder
from nblib.training import batches, dev_scores, records, trainer, tuning
from nblib.training.losses import LOSSES


@pytest.fixture
def evaluator(tiny_encoder, monkeypatch):
    """Makes an evaluator over a few dev items of the miniatures."""
    monkeypatch.setattr(STSB, "dev_sets", (DevSet("dev", ("mini",), form="mini", most=20),))
    anchors = corpora.load("authored_triples").head(3)
    return lambda base=None: dev_scores.DevEvaluator(base or BiEncoder(tiny_encoder), anchors, [], "mini")


def plan(settings, folder, **more):
    return tuning.Plan(settings, toy_examples(), folder, "hedge", **more)


@pytest.fixture(scope="module")
def kept_lora(toy, tmp_path_factory):
    """The run of a LoRA, without dev scores."""
    folder = tmp_path_factory.mktemp("kept")
    tuning.fit_and_keep(plan(replace(toy, method="lora", epochs=1), folder))
    return folder


def test_a_finished_training_is_found_again_with_all_that_was_measured(toy, evaluator, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "train", create_autospec(trainer.train, side_effect=trainer.train))
    settings = replace(toy, method="lora", epochs=2)
    options = {"alphas": (0.5, 1.0), "sts_budget": 0.0}
    about = {"training_data": "both", "training_items": 6, "variant": ""}
    asked = plan(settings, tmp_path, evaluator=evaluator(), **options, about=about)
    first = tuning.fit_and_keep(asked)
    record = tuning.fit_and_keep(replace(asked, evaluator=evaluator()))
    assert record.about == first.about and trainer.train.call_count == 1
    assert record.table("epochs").epoch.unique().tolist() == [0, 1, 2]
    assert record.table("alphas").alpha.unique().tolist() == [0.0, 0.5, 1.0]
    assert record.table("history").step.iloc[-1] == 8
    assert {path.name for path in (tmp_path / "encoders").iterdir() if path.is_dir()} == {"hedge", "hedge-lora"}
    told = {key: record.about[key] for key in ("architecture", "method", "seed", *about)}
    assert told == {"architecture": "bi-encoder", "method": "lora", "seed": 0, **about}
    assert record.about["base"] == "tiny-encoder", "a folder's name"
    card, before = (tmp_path / "encoders" / "hedge" / "README.md").read_text(), record.table("alphas").value[0]
    assert "Dev scores by α" in card and f"{before:.1f}" in card and "MultipleNegatives" in card
    lora = json.loads((tmp_path / "encoders" / "hedge-lora" / "adapter_config.json").read_text())
    assert lora["lora_alpha"] == 2 * lora["r"] * record.about["alpha"], "α is in it"
    shutil.rmtree(tmp_path / "encoders")
    assert tuning.fit_and_keep(replace(asked, record_suffices=True)).about == first.about


UNCHOOSABLE = {"alphas": (0.5, 1.0), "evaluator": SimpleNamespace(graded=False)}  # as a cross-encoder's


@pytest.mark.parametrize("wrong", [{"alphas": ()}, {"alphas": (1.5,)}, UNCHOOSABLE])
def test_alphas_beyond_base_and_trained_weights_or_without_a_score_to_choose_by_are_refused(wrong, toy, tmp_path):
    with pytest.raises(StudyError, match="alphas"):
        plan(toy, tmp_path, **wrong)


def test_the_kept_encoder_is_the_blend_and_loads_as_any_other(toy, evaluator, tiny_encoder, tmp_path):
    whole = tuning.fit_and_keep(plan(toy, tmp_path / "whole"))
    options = {"evaluator": evaluator(), "alphas": (0.5,), "every_epoch": False}
    half = tuning.fit_and_keep(plan(toy, tmp_path / "half", **options))
    assert (whole.about["alpha"], half.about["alpha"]) == (1.0, 0.5)
    assert whole.table("alphas").empty and whole.table("epochs").empty
    kept = [SentenceTransformer(str(tmp_path / part / "encoders" / "hedge")) for part in ("whole", "half")]
    weights = kept[0].state_dict()
    for key, value in tiny_encoder.model.state_dict().items():
        if value.is_floating_point():
            weights[key].lerp_(value, 0.5)
    assert_close(*(model.encode(["a dog", "no dog"]) for model in kept), times=TRAINED)


@pytest.mark.parametrize("architecture", ["cross-encoder", "multi-vector"])
def test_other_architectures_are_measured_and_kept_as_well(architecture, toy, evaluator, tmp_path):
    loss = {"cross-encoder": "cross-entropy", "multi-vector": "in-batch MaxSim"}[architecture]
    settings = replace(toy, architecture=architecture, loss=loss, epochs=1)
    datasets = DatasetDict(statements=batches.lay_out(toy_triples(), LOSSES[loss].layout))
    untouched = trainer.ARCHITECTURES[architecture].load(settings, datasets)
    measured = evaluator(untouched)
    measured.graded = trainer.ARCHITECTURES[architecture].graded
    record = tuning.fit_and_keep(tuning.Plan(settings, datasets, tmp_path, "mine", measured))
    loaded = systems.load(str(tmp_path / "encoders" / "mine"))
    assert loaded.name == "mine"
    after = measured.measure(loaded.model)
    kept = record.table("alphas").query("alpha == 1")
    assert_close(after.value.to_numpy(), kept.value.to_numpy(), times=100)
    assert ("STSB mini dev" in set(kept.set)) == (architecture == "multi-vector")


@pytest.mark.parametrize("what", ["texts", "base", "settings", "dev data", "part"])
def test_what_differs_is_trained_anew(what, toy, evaluator, kept_lora, tmp_path, monkeypatch):
    shutil.copytree(kept_lora, tmp_path, dirs_exist_ok=True)
    asked = plan(replace(toy, method="lora", epochs=1), tmp_path)
    monkeypatch.setattr(trainer, "train", lambda *_, **__: pytest.fail("trained anew"))
    tuning.fit_and_keep(asked)
    if what == "texts":
        monkeypatch.setattr(trainer, "texts_sha256", lambda datasets: "others")
    elif what == "base":
        monkeypatch.setattr(tuning, "fingerprint", lambda model: "another")
    elif what == "part":
        shutil.rmtree(tmp_path / "encoders" / "hedge-lora")
    else:
        changed = {"settings": {"settings": replace(asked.settings, seed=1)}, "dev data": {"evaluator": evaluator()}}
        asked = replace(asked, **changed[what])
    with pytest.raises(pytest.fail.Exception, match="trained anew"):
        tuning.fit_and_keep(asked)
    assert not (tmp_path / "trainings" / "hedge" / "training.json").exists(), "a record vouches for its weights"


def test_a_resumed_training_has_the_dev_scores_of_all_its_epochs(toy, evaluator, tmp_path, monkeypatch):
    whole = tuning.fit_and_keep(plan(toy, tmp_path / "whole", evaluator=evaluator()))
    train = trainer.train

    def killed(*args, after_epoch, **kw):
        def last(model, epoch):
            after_epoch(model, epoch)
            if epoch == 2:
                raise KeyboardInterrupt

        return train(*args, after_epoch=last, **kw)

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "train", killed)
        patch.setattr(records, "CHECKPOINT_STEPS", 3)
        with pytest.raises(KeyboardInterrupt):
            tuning.fit_and_keep(plan(toy, tmp_path / "killed", evaluator=evaluator()))
    assert records.last_checkpoint(tmp_path / "killed" / "checkpoints" / "hedge")
    with pytest.raises(StudyError, match="checkpoints of another training"):  # measured otherwise, it is another one
        tuning.fit_and_keep(plan(toy, tmp_path / "killed", evaluator=evaluator(), sts_budget=0.5))
    resumed = tuning.fit_and_keep(plan(toy, tmp_path / "killed", evaluator=evaluator()))
    assert not (tmp_path / "killed" / "checkpoints" / "hedge").exists()
    both = [record.table("epochs").sort_values(["epoch", "set"], ignore_index=True) for record in (whole, resumed)]
    pd.testing.assert_frame_equal(*both)
    assert_close(*(record.table("history") for record in (whole, resumed)), times=TRAINED)
