"""Faults: a kill or a full disk leaves nothing half-written, and what is damaged is named, not read."""

import os
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
from nblib.models.negation_adapter import NegationAdapter
from nblib.workflow import archive

HOSTILE = ["", " ", "..", "../x", "/etc", "a\\b", "nul\0", "line\nbreak", "\x1b[31m", ".hidden", "x" * 300]


def flip(file, position):
    """Flip a bit of a file."""
    content = bytearray(file.read_bytes())
    content[position] ^= 16
    file.write_bytes(content)


def test_a_killed_write_leaves_a_whole_table_and_never_the_sidecar_of_another(tmp_path):
    file = tmp_path / "x_test.parquet"

    def write(number):
        artefacts.write_table(pd.DataFrame({"number": [number] * 20_000}), file, {"number": number})

    write(-1)
    for seconds in (0.06, 0.13, 0.21):
        if (child := os.fork()) == 0:
            for number in range(10**6):
                write(number)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "it was still at work"
        (number,) = artefacts.read_table(file).number.unique()
        assert artefacts.about(file).get("number", number) == number


def test_a_flipped_bit_of_a_parquet_page_and_damaged_json_are_named(tmp_path):
    table = pd.DataFrame({"margin": np.random.default_rng(0).normal(size=500)})
    file = artefacts.write_table(table, tmp_path / "x.parquet")
    whole = file.read_bytes()
    for position in range(200, 4000, 400):
        flip(file, position)
        with pytest.raises(StudyError, match=r"x\.parquet can't be read, it is damaged .*Make it anew"):
            artefacts.read_table(file)
        file.write_bytes(whole)
    assert len(artefacts.read_table(file)) == 500
    (tmp_path / "x.json").write_text("[" * 100_000)
    with pytest.raises(StudyError, match=r"x\.json can't be read, it is damaged"):
        artefacts.read_json(tmp_path / "x.json")


def test_flipped_weights_are_not_loaded(tmp_path):
    folder, model = tmp_path / "hedge", tiny(tmp_path / "base").model
    with artefacts.write(folder, {"seed": 0}) as draft:
        model.save_pretrained(str(draft), create_model_card=False)
    adapter = fitted_adapter().save(tmp_path / "tiny.safetensors")
    (folder / artefacts.CARD).write_text("edited")
    for file, load in [(folder / "model.safetensors", encoders.load), (adapter, NegationAdapter.load)]:
        target = folder if file.parent == folder else file
        load(str(target))
        flip(file, -9)
        with pytest.raises(StudyError, match=rf"{file.name} is damaged: .*SHA-256.* {target.name}\.json"):
            load(str(target))


def test_a_damaged_archive_is_refused_and_nothing_is_unpacked(tmp_path, monkeypatch):
    (tmp_path / "official").mkdir()
    for file in (archive.archive("official"), artefacts.sidecar(archive.archive("official"))):
        shutil.copy(file, tmp_path / "official")
    monkeypatch.setattr(paths, "FIGURES", tmp_path)
    flip(archive.archive("official"), 10_000)
    with pytest.raises(StudyError, match=r"predictions\.tar\.xz is damaged"):
        archive.unpack(archive.archive("official"), tmp_path / "run")
    assert not list((tmp_path / "run").iterdir())


def test_a_folder_that_the_study_has_not_made_is_not_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("three years")
    with pytest.raises(StudyError, match="isn't this study's"), artefacts.write(tmp_path / "mine"):
        pytest.fail("the block must not run")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "three years"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused_with_a_sentence(tmp_path, name):
    with pytest.raises(StudyError, match=r"can't be a name: .* Choose another name\.$"):
        paths.inside(tmp_path, "encoders", name)
    if not name.isprintable() or not name.strip():
        with pytest.raises(StudyError, match="can't be a path"):
            paths.resolve(name)
    for name in ("all-mpnet-base-v2+adapter", "a b", "größe", "x" * 100):
        assert paths.inside(tmp_path, name) == tmp_path / name
