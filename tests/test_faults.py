"""Faults: a damaged or absent artefact is named with its path and the way out; a killed write leaves nothing half-written."""

import random
import sqlite3
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from support import faults
from support.close import close
from support.encoders import tiny

from nblib import artefacts, paths
from nblib.errors import StudyError
from nblib.models import embeddings
from nblib.training import checkpoints
from nblib.workflow import archive

HOSTILE = [
    "", " ", ".", "..", "../x", "/etc", "a/b", "a\\b", "nul\0", "line\nbreak", "tab\t", "\x1b[31m", ".hidden", "x" * 300,
    "ä" * 60,
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One artefact of each kind, and what is read of it: made once, put back after each damage."""
    found = {}
    for name, kind in faults.KINDS.items():
        run = tmp_path_factory.mktemp("run") / name.replace(" ", "-")
        found[name] = (run, kind.make(run), kind.read(run))
    return found


@pytest.mark.parametrize("damage", faults.DAMAGES)
@pytest.mark.parametrize("name", faults.KINDS)
def test_a_damaged_artefact_is_named_with_the_way_out(made, name, damage):
    run, artefact, expected = made[name]
    chance = random.Random(f"{name} {damage}")
    for file in chance.sample(faults.parts(artefact), min(3, len(faults.parts(artefact)))):
        content = file.read_bytes()
        damaged = faults.DAMAGES[damage](content, chance)
        file.unlink() if damaged is None else file.write_bytes(damaged)
        try:
            found, said = faults.outcome(lambda: faults.KINDS[name].read(run), expected, artefact)
        finally:
            file.write_bytes(content)
        if (name, damage) in faults.NOTHING_YET:
            continue
        assert found in ("named", "harmless"), f"{file}: {found} {said}"
        if name not in {kind for kind, _ in faults.NOTHING_YET} and file == artefact:
            assert found == "named", "the artefact itself is no longer what was written"


def test_an_artefact_without_a_checksum_is_refused_until_someone_vouches_for_it(tmp_path):
    file = tmp_path / "runs" / "x" / "scores" / "tiny" / "nevir_test.parquet"
    file.parent.mkdir(parents=True)
    pd.DataFrame({"id": [1]}).to_parquet(file)
    with pytest.raises(
        artefacts.DamageError, match=r"nevir_test.parquet has no checksum.*nblib seal .*nblib score tiny"
    ):
        artefacts.read_table(file)
    artefacts.seal(file)
    assert artefacts.read_table(file).id.tolist() == [1]
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(artefacts.DamageError, match="is damaged"):
        artefacts.seal(file)


def test_what_this_study_writes_and_ships_has_a_checksum():
    recordings = sorted((paths.DATA / "synthesis" / "generations").glob("*.jsonl"))
    for shipped in (archive.archive("official"), paths.DATA / "adapters" / "hedge-mpnet", *recordings):
        assert artefacts.check(shipped) == shipped


def test_a_folder_that_the_study_has_not_made_is_not_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("three years")
    with pytest.raises(artefacts.DamageError, match="isn't this study's"), artefacts.write(tmp_path / "mine"):
        pytest.fail("the block must not run")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "three years"


def test_only_checkpoints_are_forgotten(tmp_path):
    (tmp_path / "victim").mkdir()
    checkpoints.forget(tmp_path / "victim")
    assert (tmp_path / "victim").is_dir()
    checkpoints.reserve_folder(tmp_path / "mine", {"seed": 1})
    checkpoints.forget(tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_a_full_disk_is_named_and_leaves_the_old_file(tmp_path):
    artefacts.write_table(pd.DataFrame({"a": [1]}), tmp_path / "a.csv")
    with (
        pytest.raises(StudyError, match=r"a\.csv can't be written: the disk is full"),
        artefacts.write(tmp_path / "a.csv"),
    ):
        raise OSError(28, "No space left on device")
    assert artefacts.read_table(tmp_path / "a.csv").a.tolist() == [1]
    assert {file.name for file in tmp_path.iterdir()} == {"a.csv", "a.csv.json"}


def test_a_full_disk_is_told_by_what_is_free_where_a_library_does_not_say_so(tmp_path, monkeypatch):
    def fail():
        with paths.naming_full_disk(tmp_path / "checkpoint-1"):
            raise RuntimeError("PytorchStreamWriter failed writing file data/10: file write failed")

    with pytest.raises(RuntimeError, match="file write failed"):
        fail()
    monkeypatch.setattr(paths.shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    with pytest.raises(StudyError, match=r"checkpoint-1 can't be written: the disk is full\. Free space, and run"):
        fail()


def test_a_full_disk_under_the_embeddings_is_named_and_keeps_what_is_stored(tmp_path, fresh_cache, monkeypatch):
    encoder = tiny(tmp_path)
    embeddings.encode(encoder, faults.TEXTS)

    def put(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(embeddings._Store, "put", put)
    with pytest.raises(StudyError, match=r"\.sqlite can't be written: the disk is full\. Free space"):
        embeddings.encode(encoder, ["another text"])
    assert embeddings.not_encoded(encoder, faults.TEXTS) == []


@pytest.mark.parametrize("spoil", ["vector = zeroblob(128)", "vector = NULL", "vector = x'00'", "crc = crc + 1"])
def test_a_damaged_embedding_is_computed_again(tmp_path, fresh_cache, spoil):
    encoder = tiny(tmp_path)
    right = embeddings.encode(encoder, faults.TEXTS)
    (file,) = (fresh_cache / "embeddings").glob("*.sqlite")
    for _ in range(2):  # the second time, what was put back is whole
        with sqlite3.connect(file) as store:
            store.execute(f"UPDATE vectors SET {spoil} WHERE text = (SELECT text FROM vectors LIMIT 1)")
        store.close()
        assert close(embeddings.encode(encoder, faults.TEXTS), right)


def test_embeddings_of_an_earlier_version_get_their_checksums(tmp_path, fresh_cache):
    encoder = tiny(tmp_path)
    right = embeddings.encode(encoder, faults.TEXTS)
    (file,) = (fresh_cache / "embeddings").glob("*.sqlite")
    with sqlite3.connect(file) as store:
        store.execute("ALTER TABLE vectors DROP COLUMN crc")
    store.close()
    assert np.array_equal(embeddings.encode(encoder, faults.TEXTS), right)
    assert embeddings.not_encoded(encoder, faults.TEXTS) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused_with_a_sentence(tmp_path, name):
    with pytest.raises(paths.PathError, match=r"can't be a name: .* Choose another name\.$"):
        paths.inside(tmp_path, "encoders", name)


@pytest.mark.parametrize("name", ["hedge-mpnet", "all-mpnet-base-v2+adapter", "a b", "größe", "x" * 100, "nevir-a050"])
def test_an_ordinary_name_is_a_name(tmp_path, name):
    assert paths.inside(tmp_path, name) == tmp_path / name


def test_a_path_that_no_file_system_takes_is_refused():
    for path in ("x" * 300, "a\0b"):
        with pytest.raises(paths.PathError, match="can't be a path"):
            paths.resolve(path)


# --- kills ------------------------------------------------------------------------------------------------------------


def test_a_killed_write_leaves_the_old_table_the_new_one_or_an_error_that_names_it(tmp_path):
    file = tmp_path / "scores" / "tiny" / "x_test.parquet"

    def write_for_ever():
        for number in range(10**6):
            artefacts.write_table(pd.DataFrame({"number": [number] * 20_000}), file)

    artefacts.write_table(pd.DataFrame({"number": [0] * 20_000}), file)
    for seed in range(4):
        assert faults.killed(write_for_ever, 0.05 + random.Random(seed).random() / 5)
        try:
            assert artefacts.read_table(file).number.nunique() == 1
        except artefacts.DamageError as error:
            assert "nblib score tiny" in str(error)
        artefacts.write_table(pd.DataFrame({"number": [-1] * 20_000}), file)
        assert artefacts.read_table(file).number.unique().tolist() == [-1]
        assert {left.name for left in file.parent.iterdir()} == {file.name, f"{file.name}.json"}, "no draft"


def test_a_killed_unpacking_is_completed_by_the_next(tmp_path):
    for seed in range(2):
        run = tmp_path / str(seed)
        assert faults.killed(lambda run=run: archive.unpack("official", run), 0.6 + random.Random(seed).random() / 2)
        unpacked, kept = archive.unpack("official", run)
        assert unpacked and archive.unpack("official", run) == (0, unpacked + kept)
