"""The benchmarks and data sets, by name: where they are, what they must contain, how they are checked.

`data/registries/corpora.yaml` declares each corpus; `load(name, split)` finds its file (shipped with the project, under
`NBLIB_DATA`, or downloaded from its official source), validates it and returns a DataFrame. A corpus is identified by a
content hash over its validated rows, so that a re-packed file and a download agree.
"""

import gzip
import hashlib
import json
import math
import tarfile
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from nblib import paths, shipped
from nblib.errors import StudyError

TYPES = {"str": str, "text": str, "int": int, "float": (int, float), "list": list, "numbers": list}


WAY_OUT = "Restore it, or fetch it again."


class CorpusError(StudyError):
    """A corpus that is unknown, absent, malformed or not as registered."""


@dataclass(frozen=True)
class Split:
    """One file of a corpus: its path below the corpora's root, its number of rows and its content hash."""

    file: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class Corpus:
    """A registry entry.

    Attributes:
        benchmark: the name in results tables (STSB, SemAntoNeg, …).
        official: True for the benchmark itself, False for the project's own mini version.
        columns: column → type (`str`, `text` that may be empty, `int`, `float`, `list` of strings, `numbers`); exactly these are
            kept, and hashed.
        key: the columns that identify a row.
        numbered: whether a row's place in its file is its `idx`, for files without ids.
        source: how to download it: url, optional member of an archive (with `{split}`), format.
        hub: the data set on the hub that holds the same rows, for people who look for them; it is not downloaded.
    """

    name: str
    title: str
    benchmark: str
    official: bool
    licence: str
    columns: dict[str, str]
    key: list[str]
    splits: dict[str, Split]
    numbered: bool = False
    source: dict[str, str] | None = None
    hub: str | None = None

    @property
    def label(self) -> str:
        """The name for tables; that of a mini set ends in (mini)."""
        return self.benchmark if self.official else f"{self.benchmark} (mini)"


@cache
def entries() -> dict[str, Corpus]:
    """All declared corpora by name."""
    return shipped.read_registry("corpora.yaml", Corpus)


def describe(name: str) -> Corpus:
    """The registry entry.

    Raises:
        CorpusError: unknown name; lists the known ones.
    """
    try:
        return entries()[name]
    except KeyError:
        raise CorpusError(f"No corpus called {name!r}. Known: {', '.join(entries())}.") from None


def load(name: str, *splits: str) -> pd.DataFrame:
    """A corpus, or some of its splits one below the other, validated.

    Returns:
        The registry's columns in file order, plus `split`.

    Raises:
        CorpusError: unknown corpus or split, missing file, malformed line, missing or ill-typed value, repeated key, wrong number
            of rows or wrong content hash.
    """
    corpus = describe(name)
    for split in splits:
        if split not in corpus.splits:
            raise CorpusError(f"{name} has no split {split!r}. Splits: {', '.join(corpus.splits)}.")
    tables = []
    for split in splits or tuple(corpus.splits):
        file = locate(corpus, split)
        rows = read_jsonl(file)
        if corpus.numbered:
            rows = [{"idx": number, **row} for number, row in enumerate(rows)]
        rows = [row for row in rows if row.get("split", split) == split]  # the mini sets keep splits together
        try:
            table = validate(rows, corpus, split, where=str(file))
        except CorpusError as error:
            way_out = "Fetch it again" if corpus.official else f"Restore it: git checkout {file}"
            raise CorpusError(f"{error} {way_out}.") from None
        tables.append(table.assign(split=split))
    return pd.concat(tables, ignore_index=True)


def locate(corpus: Corpus, split: str) -> Path:
    """The file of a split: shipped, under `NBLIB_DATA`, or downloaded once into the cache.

    Raises:
        CorpusError: it is in none of these places.
    """
    expected = corpus.splits[split].file
    official = paths.official_data() if corpus.official else None
    if not corpus.official:
        root, hint = paths.DATA, "It ships with the project: restore it with `git checkout data`."
    elif official is not None:
        root, hint = official, "Complete NBLIB_DATA, or unset it to download from the official source."
    else:
        root = paths.cache() / "corpora"
        home = f"on the hub as {corpus.hub}, which the study doesn't download" if corpus.hub else "not public as a file"
        hint = f"Set NBLIB_DATA to a folder that has it. Its source: {corpus.source['url'] if corpus.source else home}."
        if corpus.source and not (root / expected).exists():
            _download(corpus, split, root / expected)
    if not (root / expected).is_file():
        raise CorpusError(f"{corpus.name} ({split}): there is no file {root / expected}. {hint}")
    return root / expected


def read_jsonl(file: Path) -> list[dict]:
    """The objects of a JSON-lines file, gzipped or not.

    Raises:
        CorpusError: truncated archive, or a line that is not a JSON object; names file and line.
    """
    opener = gzip.open if file.suffix == ".gz" else open
    rows: list[dict] = []
    try:
        with opener(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError("not an object")
                rows.append(row)
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise CorpusError(f"{file} is damaged after line {len(rows)} ({error}). {WAY_OUT}") from error
    except ValueError as error:
        raise CorpusError(f"{file}, line {len(rows) + 1}: not a JSON object ({error}). {WAY_OUT}") from error
    return rows


def validate(rows: list[dict], corpus: Corpus, split: str, where: str) -> pd.DataFrame:
    """The rows as a DataFrame of the registry's columns, after every check the registry allows.

    Raises:
        CorpusError: see `load`.
    """
    place = f"{corpus.name} ({split}), {where}"
    for number, row in enumerate(rows, start=1):
        for column, kind in corpus.columns.items():
            if column not in row:
                raise CorpusError(f"{place}: row {number} has no column {column!r}; it has {', '.join(row)}.")
            if not _well_typed(row[column], kind):
                raise CorpusError(f"{place}: row {number}, column {column!r}: {row[column]!r} is no usable {kind}.")
    values = [[row[column] for column in corpus.columns] for row in rows]
    table = pd.DataFrame(values, columns=list(corpus.columns))
    repeated = table[table.duplicated(corpus.key)]
    if len(repeated):
        key, first = ", ".join(corpus.key), tuple(repeated.iloc[0][corpus.key])
        raise CorpusError(f"{place}: {len(repeated)} rows repeat a key ({key}); the first is {first}.")
    wanted = corpus.splits[split]
    if len(table) != wanted.rows:
        raise CorpusError(
            f"{place}: it has {len(table)} rows, expected {wanted.rows}. It is cut short, or another version."
        )
    try:
        found = content_hash(table, corpus)
    except UnicodeEncodeError as error:
        raise CorpusError(f"{place}: a text holds half a character ({error}).") from error
    if found != wanted.sha256:
        raise CorpusError(
            f"{place}: the content hash is {found}, expected {wanted.sha256}. Texts, labels or scores differ from the "
            "study's."
        )
    return table


def _well_typed(value: object, kind: str) -> bool:
    if kind in ("list", "numbers"):
        of = "str" if kind == "list" else "float"
        return isinstance(value, list) and bool(value) and all(_well_typed(x, of) for x in value)
    if kind in ("str", "text"):
        return isinstance(value, str) and (kind == "text" or bool(value.strip()))
    return isinstance(value, TYPES[kind]) and not isinstance(value, bool) and math.isfinite(value)


def content_hash(table: pd.DataFrame, corpus: Corpus) -> str:
    """SHA-256 of the rows, sorted by key, as canonical JSON: one sorted-key object a line, numbers as Python writes them."""
    rows = table[list(corpus.columns)].to_dict("records")
    floats = [column for column, kind in corpus.columns.items() if kind == "float"]
    numbers = [column for column, kind in corpus.columns.items() if kind == "numbers"]
    for row in rows:
        row.update({column: float(row[column]) for column in floats})
        row.update({column: [float(number) for number in row[column]] for column in numbers})
    rows.sort(key=lambda row: [row[column] for column in corpus.key])
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()


# --- official sources -------------------------------------------------------------------------------------------------


def _download(corpus: Corpus, split: str, target: Path) -> None:
    """Fetch a split from the corpus's official source and keep it as JSON lines, once it has passed validation."""
    import pooch  # only a machine without NBLIB_DATA needs it

    url = corpus.source["url"].format(split=split)
    try:
        # The bytes of an archive may change; what counts is checked by the content hash below.
        fetched = Path(pooch.retrieve(url, known_hash=None, path=paths.cache() / "downloads", progressbar=True))
    except Exception as error:  # pooch passes on whatever its transport raises
        raise CorpusError(
            f"{corpus.name} ({split}) could not be fetched from {url} ({type(error).__name__}). Set NBLIB_DATA to a "
            f"folder that has {corpus.splits[split].file}, or try again with a network."
        ) from None
    try:
        rows = READERS[corpus.source["format"]](fetched, corpus.source.get("member", "").format(split=split))
        validate(rows, corpus, split, where=url)
    except Exception as error:  # a damaged archive fails in many ways
        fetched.unlink()  # it must not be found again by the next try
        if isinstance(error, CorpusError):
            raise
        raise CorpusError(
            f"{corpus.name} ({split}): the download from {url} can't be read ({type(error).__name__}: {error}). Try again, or "
            f"set NBLIB_DATA to a folder that has {corpus.splits[split].file}."
        ) from error
    with paths.write_atomically(target) as draft, gzip.open(draft, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _read_json(file: Path, member: str) -> list[dict]:
    """A JSON array, or JSON lines, with a 0-based `idx` for rows that bring none."""
    text = file.read_text(encoding="utf-8").strip()
    rows = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.split("\n")]
    return [{"idx": number, **row} for number, row in enumerate(rows)]


def _read_stsb(file: Path, member: str) -> list[dict]:
    """A split of the STS Benchmark's archive: tab-separated, unquoted, seven fields (then licence fields, unused)."""
    with tarfile.open(file) as archive:
        text = archive.extractfile(member).read().decode("utf-8").removesuffix("\n")
    names = ["genre", "file", "year", "index", "score", "sentence1", "sentence2"]
    # not splitlines: a sentence may hold one of the rarer signs that end a line
    rows = [dict(zip(names, line.split("\t"), strict=False)) for line in text.split("\n")]
    return [{**row, "score": float(row["score"])} for row in rows]


READERS = {"json": _read_json, "stsb": _read_stsb}
