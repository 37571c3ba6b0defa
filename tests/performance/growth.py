"""How time and memory grow over three decades, with the exponent: 1 is linear. Each size has a process of its own."""

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from cases import many_anchors
from measure import peak

from nblib import artefacts
from nblib.analysis import contamination
from nblib.benchmarks import catalogue, scoring
from nblib.corpora import triples
from nblib.models import embeddings
from nblib.models.encoders import Encoder
from nblib.models.registry import ModelSpec
from nblib.results.report import items

BENCHMARKS = ("nevir", "excluir", "semantoneg", "cannot_wmt", "m3", "stsb", "nevir_mini", "excluir_mini", "stsb_mini")
ITEMS = (1383, 3452, 3152, 7804, 1500, 1379, 100, 100, 500)


class Subject(NamedTuple):
    """What grows: its name, the unit of its sizes, the sizes, what prepares one and gives the function to measure."""

    what: str
    unit: str
    sizes: Sequence[int]
    prepare: Callable[[int], Callable[[], object]]


def tables(short: bool) -> Iterator[pd.DataFrame]:
    """A table for each subject: what, unit, size, seconds, peak_mib, exponent (of the seconds over the sizes; from the second
    on, because the time of the first is mostly what every size costs).

    Args:
        short: only the two smallest sizes.
    """
    fresh = multiprocessing.get_context("spawn")
    for place, subject in enumerate(SUBJECTS):
        rows = []
        for size in subject.sizes[:2] if short else subject.sizes:
            with ProcessPoolExecutor(1, mp_context=fresh) as process:
                seconds, memory = process.submit(_measure, place, size).result()
            rows.append((subject.what, subject.unit, size, seconds, memory))
        table = pd.DataFrame(rows, columns=["what", "unit", "size", "seconds", "peak_mib"])
        grown = table if len(table) < 3 else table[1:]
        steep = np.polyfit(np.log(grown["size"]), np.log(grown.seconds), 1)[0] if len(grown) > 1 else np.nan
        yield table.assign(exponent=steep)


def _measure(place: int, size: int) -> tuple[float, float]:
    """Seconds and peak memory (MiB) of a subject's size in this process, which has done the smallest before: imports don't
    count."""
    with tempfile.TemporaryDirectory(prefix="bench") as tempfile.tempdir:
        subject = SUBJECTS[place]
        subject.prepare(subject.sizes[0])()
        return peak(subject.prepare(size))[1:]


class _Hashing:
    """A model that takes no time: a vector is drawn by the text's own number."""

    def encode(self, texts: Sequence[str], **_: object) -> np.ndarray:
        return np.stack([np.random.default_rng(int(text.split()[0])).random(64, dtype=np.float32) for text in texts])


def _cached_texts(n: int) -> Callable[[], object]:
    os.environ["NBLIB_CACHE"] = tempfile.mkdtemp()
    encoder = Encoder(ModelSpec(name="hashing"), _Hashing(), "hashing")
    texts = [f"{number} boats are not on the lake" for number in range(n)]
    embeddings.encode(encoder, texts)
    return lambda: embeddings.encode(encoder, texts)


def _triples(n: int) -> Callable[[], object]:
    anchors = many_anchors(n // 8)
    names = contamination.benchmarks("official" if os.environ.get("NBLIB_DATA") else "mini")

    def build() -> None:
        table = triples.build(triples.filtered(anchors))
        contamination.check({*table.anchor, *table.positive, *table.negative}, names)

    return build


def _systems(n: int) -> Callable[[], object]:
    run, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    for task, size in zip(BENCHMARKS, ITEMS, strict=True):
        about = {"id": [str(k) for k in range(size)], "cluster": np.arange(size) // 4}
        graded, gold = catalogue.get(task).protocol == "similarity", rng.integers(0, 26, size) / 5
        for number in range(n):
            own = (
                {"score": gold, "similarity": gold + rng.normal(size=size)}
                if graded
                else {"correct": rng.random(size) < 0.5}
            )
            file = scoring.predictions_file(run, f"system-{number}", task)
            artefacts.write_table(pd.DataFrame(about | own), file)
    others = [f"system-{number}" for number in range(1, n)]
    return lambda: scoring.compare(run, "system-0", others, BENCHMARKS)


def _predictions(n: int) -> Callable[[], object]:
    run, rng, each = Path(tempfile.mkdtemp()), np.random.default_rng(0), n // 100
    ids = [f"item-{number}" for number in range(each)]
    for number in range(100):
        margin = rng.normal(size=each)
        table = pd.DataFrame({"id": ids, "cluster": range(each), "margin": margin, "correct": margin > 0})
        artefacts.write_table(table, scoring.predictions_file(run, f"system-{number}", "other"))
    return lambda: items.write(run, run / "site")


SUBJECTS = (
    Subject("embeddings from the cache", "texts", (1_000, 10_000, 100_000), _cached_texts),
    Subject(
        "triples built, filtered, checked for contamination", "triples", (1_000, 10_000, 100_000, 250_000), _triples
    ),
    Subject("comparison with a baseline on nine benchmarks", "systems", (3, 10, 30, 100), _systems),
    Subject("predictions in the report's tables", "predictions", (1_000, 10_000, 100_000, 1_000_000), _predictions),
)
