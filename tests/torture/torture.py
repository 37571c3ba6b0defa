"""The long campaign of faults: kills, damaged artefacts and bad input, until the time is over; prints the table as Markdown.

    make torture                 an hour
    make torture MINUTES=5

The exit status is 1 if anything was silent, raw, or cut after a rerun.
"""

import argparse
import contextlib
import io
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from support import faults
from support.encoders import tiny

from nblib import artefacts, corpora, paths, shipped
from nblib.models import embeddings
from nblib.models.folders import model_folder
from nblib.results import published
from nblib.workflow import archive

OUTCOMES = ("named", "harmless", "valid edit", "SILENT", "TRACEBACK", "UNCLEAR")
ENDS = ("done before", "whole", "named", "CUT AFTER RERUN", "DRAFT LEFT")
MANY = 40  # bad inputs a round: each takes a moment
MAY_BE_ABSENT = {"labels", "system.json", "reserved training"}  # then nothing has begun yet
CORPORA = ("nevir_mini", "semantoneg_mini", "stsb_mini")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="when to stop (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of everything drawn (default: %(default)s)")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    chance, end = random.Random(given.seed), time.monotonic() + 60 * given.minutes
    counts, examples = defaultdict(Counter), {}
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, NBLIB_CACHE=f"{folder}/cache"),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        steps = [*damages(Path(folder), chance), *kills(Path(folder), chance), *MANY * [*inputs(Path(folder), chance)]]
        while time.monotonic() < end:
            for what, step in steps:
                found, said = step()
                counts[what][found] += 1
                if found.isupper():
                    examples.setdefault((what, found), said)
                if time.monotonic() > end:
                    break
    sys.stdout.write(
        table("damaged or bad input", OUTCOMES, {k: v for k, v in counts.items() if not k.startswith("kill: ")})
    )
    sys.stdout.write(table("killed", ENDS, {k: v for k, v in counts.items() if k.startswith("kill: ")}))
    for (what, found), said in examples.items():
        sys.stdout.write(f"- {what}, {found}: {said[:300]}\n")
    raise SystemExit(bool(examples))


def table(title: str, columns: tuple[str, ...], counts: dict[str, Counter]) -> str:
    """Counts as a Markdown table with their sum."""
    rows = {**counts, "**sum**": sum(counts.values(), Counter())}
    lines = [f"| {title} | tried | {' | '.join(columns)} |", "|---|" + "---|" * (1 + len(columns))]
    lines += [f"| {name} | {row.total()} | {' | '.join(str(row[c]) for c in columns)} |" for name, row in rows.items()]
    return "\n".join(lines) + "\n\n"


Step = tuple[str, Callable[[], tuple[str, str]]]


# --- damages ----------------------------------------------------------------------------------------------------------


def damages(folder: Path, chance: random.Random) -> Iterator[Step]:
    """A step for each kind of artefact: one damage to one of its files."""
    for name, kind in faults.KINDS.items():
        run = folder / name.replace(" ", "-")
        artefact = kind.make(run)
        yield name, damage(artefact, kind.read(run), lambda kind=kind, run=run: kind.read(run), name, chance)
    yield "archive of predictions", archive_of_predictions(folder / "archive", chance)
    yield "embedding store", embedding_store(folder / "store", chance)
    for name in CORPORA:
        yield "corpus (mini)", corpus(name, folder / "data", chance)


def damage(artefact: Path, expected: object, read: Callable[[], object], name: str, chance: random.Random) -> Callable:
    def step() -> tuple[str, str]:
        file, how = chance.choice(faults.parts(artefact)), chance.choice(list(faults.DAMAGES))
        content = file.read_bytes()
        damaged = faults.DAMAGES[how](content, chance)
        file.unlink() if damaged is None else file.write_bytes(damaged)
        try:
            found, said = faults.outcome(read, expected, artefact)
        finally:
            file.write_bytes(content)
        if found == "SILENT" and how == "absent" and name in MAY_BE_ABSENT:
            found = "harmless"
        elif found == "SILENT" and name == "labels":  # people edit them: whatever is valid is theirs
            found = "valid edit"
        return found, f"{how} of {file.name}: {said}"

    return step


def archive_of_predictions(folder: Path, chance: random.Random) -> Callable:
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

    return damage(source, True, read, "archive", chance)


def embedding_store(folder: Path, chance: random.Random) -> Callable:
    encoder = tiny(folder)
    texts = [f"the boat {'is not' * (k % 2)} {k} red" for k in range(300)]
    expected = embeddings.encode(encoder, texts)
    (file,) = (paths.cache() / "embeddings").glob("*.sqlite")
    content = file.read_bytes()

    def step() -> tuple[str, str]:
        how = chance.choice(list(faults.DAMAGES))
        damaged = faults.DAMAGES[how](content, chance)
        file.unlink() if damaged is None else file.write_bytes(damaged)
        try:
            return faults.outcome(
                lambda: np.allclose(embeddings.encode(encoder, texts), expected, atol=1e-6), True, file
            )
        finally:
            for left in file.parent.glob(f"{file.name}*"):
                left.unlink()
            file.write_bytes(content)

    return step


def corpus(name: str, folder: Path, chance: random.Random) -> Callable:
    shutil.copytree(paths.DATA / "mini", folder / "mini", dirs_exist_ok=True)
    described = corpora.describe(name)
    expected = corpora.load(name).to_json()

    def read() -> str:
        with mock.patch.object(paths, "DATA", folder):
            return corpora.load(name).to_json()

    return damage(folder / next(iter(described.splits.values())).file, expected, read, "corpus", chance)


# --- kills ------------------------------------------------------------------------------------------------------------


def kills(folder: Path, chance: random.Random) -> Iterator[Step]:
    """A step for each way of writing: a process that writes is killed, then the same is done to its end."""
    file, model = folder / "scores" / "tiny" / "x_test.parquet", folder / "encoders" / "killed"

    def write(rows: int = 30_000) -> None:
        artefacts.write_table(pd.DataFrame({"number": [chance.random()] * rows}), file)

    def keep() -> None:
        with model_folder(model, "# card", {"seed": 0}) as draft:
            for k in range(5):
                (draft / f"{k}.safetensors").write_bytes(os.urandom(300_000))

    yield "kill: table", kill(lambda: repeated(write), write, file, 0.2, chance)
    yield "kill: model folder", kill(lambda: repeated(keep), keep, model, 0.3, chance)
    yield "kill: unpacking", unpacking(folder / "unpacked", chance)


def repeated(work: Callable[[], None]) -> None:
    while True:
        work()


def kill(for_ever: Callable, once: Callable, artefact: Path, longest: float, chance: random.Random) -> Callable:
    def step() -> tuple[str, str]:
        if not faults.killed(for_ever, chance.random() * longest):
            return "done before", ""
        known = not artefact.exists() and not artefacts.sidecar(artefact).exists()
        found, _ = (
            ("whole", "") if known else faults.outcome(lambda: artefacts.check(artefact).exists(), True, artefact)
        )
        once()
        if not artefacts.is_whole(artefact):
            return "CUT AFTER RERUN", str(artefact)
        if drafts := list(artefact.parent.glob(".*.tmp")):
            return "DRAFT LEFT", str(drafts)
        return ("whole" if found == "harmless" else found), ""

    return step


def unpacking(folder: Path, chance: random.Random) -> Callable:
    def step() -> tuple[str, str]:
        run = folder / str(chance.random())
        faults.killed(lambda: archive.unpack("official", run), 0.3 + chance.random() * 1.2)
        archive.unpack("official", run)
        cut = [file for file in run.rglob("*.parquet") if not artefacts.is_whole(file)]
        again = archive.unpack("official", run)
        shutil.rmtree(run)
        return ("CUT AFTER RERUN", str(cut or again)) if cut or again[0] else ("whole", "")

    return step


# --- bad input --------------------------------------------------------------------------------------------------------

PIECES = [
    "a",
    "hedge",
    "..",
    ".",
    "/",
    "\\",
    "\0",
    "\n",
    " ",
    "é",
    "😀",
    "\ud800",
    "%00",
    "~",
    "x" * 90,
    "-",
    "CON",
    "\x1b[0m",
]


def inputs(folder: Path, chance: random.Random) -> Iterator[Step]:
    """Names, JSON files and shipped tables of drawn content."""

    def name() -> tuple[str, str]:
        drawn = "".join(chance.choices(PIECES, k=chance.randrange(5)))
        inside = []
        found, said = refusal(lambda: inside.append(paths.inside(folder, drawn)))
        escaped = inside and (inside[0].parent != folder.resolve() or inside[0].name != drawn)
        return ("SILENT", repr(drawn)) if escaped else (found, said)

    def sealed() -> tuple[str, str]:
        file = folder / "drawn.json"
        file.write_bytes(
            chance.choice([b"[]", b"null", b"{", b"[" * 50_000, b"{}", b'{"checksum": 1}', chance.randbytes(40)])
        )
        return refusal(lambda: artefacts.read_json(file))

    def spoilt(source: Path, read: Callable[[], object]) -> Callable:
        def step() -> tuple[str, str]:
            data = folder / "spoilt"
            target = data / source.relative_to(paths.DATA)
            target.parent.mkdir(parents=True, exist_ok=True)
            content = source.read_bytes()
            place = chance.randrange(len(content))
            drawn = chance.choice([*b'\0\xff,"\nx:-[{&*!', chance.randrange(256)])
            target.write_bytes(
                content[:place] + bytes([drawn]) * chance.randrange(3) + content[place + chance.randrange(3) :]
            )
            with mock.patch.object(paths, "DATA", data):
                return refusal(read)

        return step

    yield "names", name
    yield "JSON files", sealed
    yield (
        "published numbers (form)",
        spoilt(paths.DATA / "published" / "weller.csv", lambda: published.load("weller")),
    )
    yield (
        "registries (form)",
        spoilt(
            paths.DATA / "registries" / "corpora.yaml",
            lambda: shipped.read_registry("corpora.yaml", corpora.registry.Corpus),
        ),
    )


def refusal(read: Callable[[], object]) -> tuple[str, str]:
    """Of input there is no right reading: it is taken, refused in a sentence, or raw."""
    found, said = faults.outcome(lambda: (read(), True)[1], True, Path("x"))
    return ("named" if found == "UNCLEAR" and "\n" not in said else found), said


if __name__ == "__main__":
    main()
