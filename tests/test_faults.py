"""Faults: a kill or a full disk leaves nothing half-written, and what is damaged is named, not read."""

import errno
import os
import random
import shutil
import signal
import time

import numpy as np
import pandas as pd
import pytest
from support.encoders import fitted_adapter, tiny

from nblib import artefacts, paths
from nblib.errors import StudyError
from nblib.models import encoders
from nblib.models.folders import model_folder
from nblib.models.negation_adapter import NegationAdapter
from nblib.training import checkpoints
from nblib.workflow import archive

HOSTILE = [
    "", " ", ".", "..", "../x", "/etc", "a/b", "a\\b", "nul\0", "line\nbreak", "tab\t", "\x1b[31m", ".hidden", "x" * 300,
]  # fmt: skip


def killed(work, seconds):
    """Do something in a process of its own and kill it after a while; whether it was still at work."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def flip(file, place):
    """Flip a bit of a file."""
    content = bytearray(file.read_bytes())
    content[place] ^= 16
    file.write_bytes(content)


# --- kills and full disks ---------------------------------------------------------------------------------------------


def test_a_killed_write_leaves_a_whole_table_and_never_the_sidecar_of_another(tmp_path):
    file = tmp_path / "x_test.parquet"

    def write(number):
        artefacts.write_table(pd.DataFrame({"number": [number] * 20_000}), file, {"number": number})

    write(-1)
    for seed in range(4):
        assert killed(lambda: [write(number) for number in range(10**6)], 0.05 + random.Random(seed).random() / 5)
        (number,) = artefacts.read_table(file).number.unique()
        assert artefacts.about(file).get("number", number) == number


def test_a_killed_unpacking_is_completed_by_the_next(tmp_path):
    assert killed(lambda: archive.unpack("official", tmp_path), 1)
    unpacked, there = archive.unpack("official", tmp_path)
    files = [file for file in tmp_path.rglob("*") if file.is_file() and ".unpacking-" not in str(file)]
    assert unpacked and len(files) == unpacked + there


def test_a_full_disk_leaves_the_old_file_and_no_draft(tmp_path):
    file = artefacts.write_table(pd.DataFrame({"a": [1]}), tmp_path / "a.csv", {"seed": 1})
    with pytest.raises(OSError, match="No space left"), artefacts.write(file, {"seed": 2}) as draft:
        draft.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert artefacts.read_table(file).a.tolist() == [1]
    assert artefacts.about(file)["seed"] == 1
    assert {left.name for left in tmp_path.iterdir()} == {"a.csv", "a.csv.json"}


# --- damage -----------------------------------------------------------------------------------------------------------


def test_a_flipped_bit_of_a_parquet_page_is_named(tmp_path):
    file = artefacts.write_table(
        pd.DataFrame({"margin": np.random.default_rng(0).normal(size=500)}), tmp_path / "x.parquet"
    )
    whole = file.read_bytes()
    for place in range(200, 4000, 100):
        flip(file, place)
        with pytest.raises(StudyError, match=r"x\.parquet can't be read, it is damaged .*Make it anew"):
            artefacts.read_table(file)
        file.write_bytes(whole)
    assert len(artefacts.read_table(file)) == 500


def test_flipped_weights_are_not_loaded(tmp_path):
    folder, model = tmp_path / "hedge", tiny(tmp_path / "base").model
    with model_folder(folder, "# hedge", {"seed": 0}) as draft:
        model.save_pretrained(str(draft), create_model_card=False)
    adapter = fitted_adapter().save(tmp_path / "tiny.safetensors")
    (folder / artefacts.CARD).write_text("edited")
    for file, load in [(folder / "model.safetensors", encoders.load), (adapter, NegationAdapter.load)]:
        target = folder if file.parent == folder else file
        load(str(target))
        flip(file, -9)
        with pytest.raises(
            StudyError, match=rf"{file.name} is damaged: it doesn't have the SHA-256 in {target.name}\.json"
        ):
            load(str(target))


def test_a_damaged_archive_is_refused_and_nothing_is_unpacked(tmp_path, monkeypatch):
    (tmp_path / "official").mkdir()
    for file in (archive.archive("official"), artefacts.sidecar(archive.archive("official"))):
        shutil.copy(file, tmp_path / "official")
    monkeypatch.setattr(paths, "FIGURES", tmp_path)
    flip(archive.archive("official"), 10_000)
    with pytest.raises(StudyError, match=r"predictions\.tar\.xz is damaged"):
        archive.unpack("official", tmp_path / "run")
    assert not list((tmp_path / "run").iterdir())


@pytest.mark.parametrize("content", ["{", "", "\0", "[" * 100_000])
def test_damaged_json_is_named(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(StudyError, match=r"x\.json can't be read, it is damaged"):
        artefacts.read_json(tmp_path / "x.json")


# --- what is not ours, and hostile names ------------------------------------------------------------------------------


def test_a_folder_that_the_study_has_not_made_is_not_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("three years")
    with pytest.raises(StudyError, match="isn't this study's"), artefacts.write(tmp_path / "mine"):
        pytest.fail("the block must not run")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "three years"


def test_only_checkpoints_are_forgotten(tmp_path):
    (tmp_path / "victim").mkdir()
    checkpoints.forget(tmp_path / "victim")
    assert (tmp_path / "victim").is_dir()
    checkpoints.reserve_folder(tmp_path / "mine", {"seed": 1})
    checkpoints.forget(tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused_with_a_sentence(tmp_path, name):
    with pytest.raises(StudyError, match=r"can't be a name: .* Choose another name\.$"):
        paths.inside(tmp_path, "encoders", name)
    if not name.isprintable() or not name.strip():
        with pytest.raises(StudyError, match="can't be a path"):
            paths.resolve(name)


@pytest.mark.parametrize("name", ["hedge-mpnet", "all-mpnet-base-v2+adapter", "a b", "größe", "x" * 100, "nevir-a050"])
def test_an_ordinary_name_is_a_name(tmp_path, name):
    assert paths.inside(tmp_path, name) == tmp_path / name
