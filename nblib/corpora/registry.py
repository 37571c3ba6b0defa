"""The benchmarks and data sets of `data/registries/corpora.yaml`, by name. A content hash over its validated rows identifies a
corpus, so that a re-packed file and a download agree."""

import gzip
import hashlib
import json
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from nblib import paths, shipped
from nblib.corpora import files
from nblib.errors import StudyError, one_of, readable


@dataclass(frozen=True)
class Split:
    """One file of a corpus: its path, number of rows and content hash."""

    file: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class Corpus:
    """A registry entry."""

    name: str
    title: str  # what it is, in a line
    label: str  # its name in tables and figures
    benchmark: str  # the key in measurements; a mini set has that of the official one
    official: bool  # or the project's own mini version
    licence: str  # for people
    columns: dict[str, str]  # these are kept, and hashed; name → one of `files.TYPES`
    key: list[str]  # the columns that identify a row
    splits: dict[str, Split]
    source: dict[str, str] | None = None  # url, and the member of an archive (with `{split}`)
    hub: str | None = None  # the data set on the hub that holds the same rows, for people


@cache
def entries() -> dict[str, Corpus]:
    """All declared corpora by name."""
    return shipped.read_registry("corpora.yaml", Corpus)


def describe(name: str) -> Corpus:
    """The registry entry; StudyError for an unknown name."""
    return entries()[one_of(name, entries(), "corpus")]


def load(name: str, *splits: str) -> pd.DataFrame:
    """A corpus, or some of its splits one below the other, validated: the registry's columns in file order, plus `split`.

    Raises:
        StudyError: unknown corpus or split, missing file, or other content than registered.
    """
    corpus = describe(name)
    tables = []
    for split in splits or corpus.splits:
        file = _locate(corpus, one_of(split, corpus.splits, f"split of {name}"))
        rows = _numbered(files.read(file)).items()
        own = {place: row for place, row in rows if row.get("split", split) == split}  # several in a mini set
        tables.append(validate(own, corpus, split, str(file)).assign(split=split))
    return pd.concat(tables, ignore_index=True)


def _locate(corpus: Corpus, split: str) -> Path:
    """The file of a split: shipped, under `NBLIB_DATA`, or downloaded."""
    root = paths.official_data() if corpus.official else paths.DATA
    file = (root or paths.cache() / "corpora") / corpus.splits[split].file
    if root is None and corpus.source and not file.exists():
        _download(corpus, split, file)
    if not file.is_file():
        official = "Set NBLIB_DATA to a folder that has it; unset, it is downloaded where the registry has a source."
        remedy = official if corpus.official else "Restore it with `git checkout data`."
        raise StudyError(f"{corpus.name} ({split}): there is no file {file}. {remedy}")
    return file


def validate(rows: dict[str, dict], corpus: Corpus, split: str, where: str) -> pd.DataFrame:
    """Rows, by place, as a DataFrame of the registry's columns; errors (see `load`) name `where` the rows are from."""
    where = f"{corpus.name} ({split}), {where}"
    table = files.check(rows, corpus.columns, corpus.key, where)
    expected, digest = corpus.splits[split], content_hash(table, corpus)
    if (len(table), digest) != (expected.rows, expected.sha256):
        registered = f"expected are {expected.rows} with {expected.sha256}"
        raise StudyError(f"{where}: {len(table)} rows with the content hash {digest}, {registered}. {files.REMEDY}")
    return table


def content_hash(table: pd.DataFrame, corpus: Corpus) -> str:
    """SHA-256 of the rows, sorted by key, as JSON lines with sorted keys."""
    as_written = {"float": float, "numbers": lambda numbers: list(map(float, numbers))}
    rows = table[list(corpus.columns)].to_dict("records")
    rows.sort(key=lambda row: [row[column] for column in corpus.key])
    digest = hashlib.sha256()
    for row in rows:
        row |= {name: as_written[kind](row[name]) for name, kind in corpus.columns.items() if kind in as_written}
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()


def _download(corpus: Corpus, split: str, target: Path) -> None:
    """Fetch a split from the corpus's official source; keep it as JSON lines once it is validated."""
    import pooch  # only a machine without NBLIB_DATA needs it

    url, member = (corpus.source.get(name, "").format(split=split) for name in ("url", "member"))
    with readable(url, "Try again, or set NBLIB_DATA."), tempfile.TemporaryDirectory() as folder:
        downloaded = Path(pooch.retrieve(url, known_hash=None, path=folder))  # checked by content
        rows = _read_archive(downloaded, member) if member else files.objects(downloaded.read_text("utf-8"), url)
    validate(_numbered(rows), corpus, split, where=url)
    with paths.write_atomically(target) as draft, gzip.open(draft, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows.values())


def _numbered(rows: dict[str, dict]) -> dict[str, dict]:
    """The rows with their position as `idx`, where they bring none."""
    return {place: {"idx": number, **row} for number, (place, row) in enumerate(rows.items())}


def _read_archive(file: Path, member: str) -> dict[str, dict]:
    """The rows of a tab-separated member of an archive (STS Benchmark)."""
    with tarfile.open(file) as archive:
        text = archive.extractfile(member).read().decode("utf-8").removesuffix("\n")
    names = "genre file year index score sentence1 sentence2".split()  # licences may follow
    # Not splitlines: a sentence may hold a rarer sign that ends a line
    rows = [dict(zip(names, line.split("\t"), strict=False)) for line in text.split("\n")]
    return {f"row {number}": {**row, "score": float(row["score"])} for number, row in enumerate(rows, start=1)}
