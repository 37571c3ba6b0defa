"""Damaged artefacts: a bit flipped, a file cut, emptied, zeroed or removed, and then read as the study reads it."""

import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from campaign import Kind, Step
from support import faults
from support.encoders import tiny

from nblib import artefacts, corpora, paths
from nblib.models import embeddings
from nblib.workflow import archive


def prepare(kind: faults.Kind, name: str, folder: Path) -> Step:
    artefact = kind.make(folder)
    return damage(artefact, kind.read(folder), lambda: kind.read(folder), name)


def damage(artefact: Path, expected: object, read: Callable[[], object], name: str) -> Step:
    def step(chance: random.Random) -> tuple[str, str]:
        file, how = chance.choice(faults.parts(artefact)), chance.choice(list(faults.DAMAGES))
        content = file.read_bytes()
        damaged = faults.DAMAGES[how](content, chance)
        file.unlink() if damaged is None else file.write_bytes(damaged)
        try:
            found, said = faults.outcome(read, expected, artefact)
        finally:
            file.write_bytes(content)
        if found == "SILENT" and (name, how) in faults.NOTHING_YET:
            found = "nothing yet"
        elif found == "SILENT" and name == "labels":  # people edit them: whatever is valid is theirs
            found = "as an edit"
        return {"harmless": "whole"}.get(found, found), f"{how} of {file.name}: {said}"

    return step


def archive_of_predictions(folder: Path) -> Step:
    """The archive of record, copied; nothing may be unpacked of a damaged one."""
    source = folder / "toy" / "predictions.tar.xz"
    source.parent.mkdir(parents=True)
    for file in (archive.archive("official"), artefacts.sidecar(archive.archive("official"))):
        shutil.copy(file, source.parent)

    def read() -> object:
        with mock.patch.object(paths, "FIGURES", folder), mock.patch.object(paths, "PROJECT_ROOT", folder):
            run = folder / "run"
            try:
                return archive.unpack("toy", run)[0] > 1000
            finally:
                assert not run.exists() or len(list(run.iterdir())) in (0, 7), "unpacked in part"
                shutil.rmtree(run, ignore_errors=True)

    return damage(source, True, read, "archive of predictions")


def embedding_store(folder: Path) -> Step:
    encoder = tiny(folder)
    texts = [f"the boat {'is not' * (k % 2)} {k} red" for k in range(60)]
    expected = embeddings.encode(encoder, texts)
    (file,) = (paths.cache() / "embeddings").glob("*.sqlite")
    content = file.read_bytes()

    def step(chance: random.Random) -> tuple[str, str]:
        how = chance.choice(list(faults.DAMAGES))
        damaged = faults.DAMAGES[how](content, chance)
        file.unlink() if damaged is None else file.write_bytes(damaged)
        try:
            found, said = faults.outcome(
                lambda: np.allclose(embeddings.encode(encoder, texts), expected, atol=1e-6), True, file
            )
        finally:
            for left in file.parent.glob(f"{file.name}*"):
                left.unlink()
            file.write_bytes(content)
        return {"harmless": "whole"}.get(found, found), f"{how}: {said}"

    return step


def corpus(name: str, folder: Path) -> Step:
    shutil.copytree(paths.DATA / "mini", folder / "mini")
    described, expected = corpora.describe(name), corpora.load(name).to_json()

    def read() -> str:
        with mock.patch.object(paths, "DATA", folder):
            return corpora.load(name).to_json()

    return damage(folder / next(iter(described.splits.values())).file, expected, read, name)


KINDS = [
    *(Kind("damage", name, 60, partial(prepare, kind, name)) for name, kind in faults.KINDS.items()),
    Kind("damage", "archive of predictions", 30, archive_of_predictions),
    Kind("damage", "embedding store", 70, embedding_store),
    *(
        Kind("damage", f"corpus {name}", 40, partial(corpus, name))
        for name in ("nevir_mini", "semantoneg_mini", "stsb_mini")
    ),
]
