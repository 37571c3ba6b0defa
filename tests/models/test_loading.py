"""What a model's files say that it is, from wherever it is named."""

import json
import pickle
import shutil

import pytest
from support import toys
from support.close import assert_close
from support.encoders import fitted_adapter

from nblib.errors import StudyError
from nblib.models import systems
from nblib.models.weights import WEIGHTS

QUERIES, DOCUMENTS = ["the dog", "no cat"], ["a dog", "the cat in the house"]


def edit(file, **settings):
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | settings), encoding="utf-8")


def test_a_pylate_model_is_one_of_late_interaction_and_an_unknown_type_is_none(tmp_path):
    toy = toys.make(tmp_path, 1, "late")
    saved = toy.folder / "config_sentence_transformers.json"
    edit(saved, model_type="ColBERT")
    system = systems.load(str(toy.folder), device="cpu")
    expected = toys.five_lines(toy.load(), QUERIES, DOCUMENTS, search=True)
    assert system.architecture == "late-interaction"
    assert_close(system.score(QUERIES, DOCUMENTS), expected, times=10)
    edit(saved, model_type="Oracle")
    with pytest.raises(StudyError, match="model_type Oracle"):
        systems.load(str(toy.folder))


@pytest.fixture
def here(tiny_encoder_folder, tmp_path, monkeypatch):
    """A copy of the tiny model, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(tiny_encoder_folder, tmp_path / "bge+hard" / "final")


def test_a_length_beyond_the_positions_is_refused_with_both_numbers(here):
    (here / "sentence_bert_config.json").write_text('{"max_seq_length": 512, "do_lower_case": false}')
    with pytest.raises(StudyError, match="max_seq_length of 512, and its network has 64 positions"):
        systems.load("bge+hard/final", device="cpu")


def test_pickles_are_refused_below_the_working_directory_as_well(here, tmp_path):
    (here / WEIGHTS).unlink()
    (here / "pytorch_model.bin").write_bytes(pickle.dumps({}))
    with pytest.raises(StudyError, match="holds pickled weights"):
        systems.load("bge+hard/final", device="cpu")


def test_an_adapters_file_is_told_from_a_plus_in_a_folders_name(here):
    fitted_adapter().save(here.parent / "adapter.safetensors")
    adapted = systems.load("bge+hard/final+bge+hard/adapter.safetensors", device="cpu")
    plain = systems.load("bge+hard/final", device="cpu")
    assert (adapted.name, adapted.base, adapted.adapter) == ("final+adapter", "final", "original_norms")
    assert (plain.name, plain.base, plain.adapter) == ("final", None, "")
