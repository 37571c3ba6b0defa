"""A training is found again by all that decides its result, and an interrupted one by the same."""

import json

import pandas as pd
import pytest

from nblib.errors import StudyError
from nblib.training import records

MADE_FROM = {"epochs": 2, "targets": ("q", "v"), "texts": "sha", "device": "cpu"}


def test_texts_count_in_their_order_and_where_one_ends():
    assert records.texts_sha256([("a b", "c")]) != records.texts_sha256([("a", "b c")])
    assert records.texts_sha256([("a",), ("b",)]) != records.texts_sha256([("b",), ("a",)])


def test_a_record_is_found_by_all_that_made_it_with_its_tables_and_what_is_known(tmp_path):
    history = pd.DataFrame({"step": [1], "loss": [0.1 + 0.2]})
    folder = tmp_path / "trainings" / "mine"
    records.save(folder, MADE_FROM, {"history": history, "epochs": pd.DataFrame()}, alpha=0.5)
    found = records.find(folder, MADE_FROM)
    pd.testing.assert_frame_equal(found.table("history"), history, check_exact=True)
    assert found.table("epochs").empty and found.about["alpha"] == 0.5
    assert records.load(tmp_path, "mine").about == found.about
    for other in ({**MADE_FROM, "epochs": 3}, {**MADE_FROM, "more": 1}, {"epochs": 2}):
        assert records.find(folder, other) is None
    assert records.find(folder, {**MADE_FROM, "device": "cuda"}), "on another machine it is the same training"
    records.forget(folder)
    assert records.find(folder, MADE_FROM) is None
    with pytest.raises(StudyError, match="no training mine"):
        records.load(tmp_path, "mine")


def test_the_checkpoints_of_another_training_are_refused_and_only_checkpoints_are_forgotten(tmp_path):
    folder = records.reserve_folder(tmp_path / "mine", MADE_FROM)
    records.reserve_folder(folder, {"epochs": 3})  # there is nothing yet to lose
    (folder / "checkpoint-3").mkdir()
    (folder / "checkpoint-3" / "trainer_state.json").write_text("{}")
    records.reserve_folder(folder, {"epochs": 3})
    with pytest.raises(StudyError, match="holds the checkpoints of another training"):
        records.reserve_folder(folder, MADE_FROM)
    records.forget(folder)
    assert not folder.exists()
    records.forget(tmp_path)
    assert tmp_path.is_dir(), "another folder stays"


def test_a_checkpoint_that_was_left_half_written_is_passed_over(tmp_path):
    for name, state in [("checkpoint-3", json.dumps({"global_step": 3})), ("checkpoint-5", '{"global_st')]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "trainer_state.json").write_text(state)
    (tmp_path / "checkpoint-4").mkdir()
    assert records.last_checkpoint(tmp_path).endswith("checkpoint-3")
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint-3"]
