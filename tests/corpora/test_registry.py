"""Corpora: what loads is what the registry describes, and whatever else lies there is refused with its place."""

import gzip
import io
import json
import tarfile
from dataclasses import replace

import pandas as pd
import pooch
import pytest

from nblib import corpora
from nblib.corpora import Corpus, registry
from nblib.corpora.registry import Split
from nblib.errors import StudyError

ROWS = [
    {"id": "b", "score": 4, "sentence1": "A man is not here.", "choices": ["x", "y"], "extra": 1},
    {"id": "a", "score": 2.5, "sentence1": "Käse – it's", "choices": ["z"]},
    {"id": "c", "score": 0.0, "sentence1": "Two lines\u2028in one\x85text", "choices": ["v"]},
]
COLUMNS = {"id": "str", "score": "float", "sentence1": "str", "choices": "list"}
CORPUS = Corpus("toy", "Toy", "Toy", "toy", True, "none", COLUMNS, ["id"], {"test": Split("toy/test.jsonl.gz", 3, "")})


def declared(corpus, rows):
    """The corpus as the registry describes it where these are its rows."""
    digest = registry.content_hash(pd.DataFrame(rows)[list(corpus.columns)], corpus)
    return replace(corpus, splits={"test": Split("toy/test.jsonl.gz", len(rows), digest)})


def as_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The toy corpus in the registry, and a function that puts bytes where its file should be (under NBLIB_DATA)."""
    monkeypatch.setattr(registry, "entries", lambda: {"toy": declared(CORPUS, ROWS)})
    monkeypatch.setenv("NBLIB_DATA", str(tmp_path))
    file = tmp_path / "toy" / "test.jsonl.gz"
    file.parent.mkdir()

    def put(content):
        file.write_bytes(content)
        return file

    return put


@pytest.mark.parametrize("name", [name for name, corpus in corpora.entries().items() if not corpus.official])
def test_a_mini_corpus_loads_offline_and_is_called_mini(name):
    corpus, table = corpora.describe(name), corpora.load(name)
    assert table.groupby("split").size().to_dict() == {split: item.rows for split, item in corpus.splits.items()}
    assert list(table.columns) == [*corpus.columns, "split"]
    assert corpus.label.endswith("(mini)")
    one = next(iter(corpus.splits))
    assert corpora.load(name, one).split.unique().tolist() == [one]


@pytest.mark.official
@pytest.mark.parametrize("name", [name for name, corpus in corpora.entries().items() if corpus.official])
def test_an_official_corpus_has_the_content_that_the_registry_describes(name):
    assert len(corpora.load(name)) == sum(split.rows for split in corpora.describe(name).splits.values())


def test_a_text_may_be_empty_and_numbers_are_a_list_of_numbers():
    corpus = replace(CORPUS, columns={"id": "str", "title": "text", "relevance": "numbers"})
    row = {"id": "a", "title": "", "relevance": [1, 2.5]}
    entry = declared(corpus, [{"id": "a", "title": "", "relevance": [1.0, 2.5]}])
    assert registry.validate({"line 1": row}, entry, "test", "file").title.tolist() == [""]
    for unusable in ([], [1, "2"], [True], 3):
        with pytest.raises(StudyError, match="file, line 1: relevance must be a list of numbers"):
            registry.validate({"line 1": {**row, "relevance": unusable}}, entry, "test", "file")


def test_the_content_hash_heeds_content_and_not_order_packing_or_extra_columns(toy):
    toy(gzip.compress(as_lines(ROWS)))
    table = corpora.load("toy")
    assert table.id.tolist() == ["b", "a", "c"], "rows keep the file's order"
    assert table.score.tolist() == [4, 2.5, 0]
    toy(gzip.compress(b"\n" + as_lines(ROWS[::-1]) + b" \n", compresslevel=1, mtime=5))
    assert corpora.load("toy").id.tolist() == ["c", "a", "b"]
    changed = [{**ROWS[0], "choices": ["y", "x"]}, *ROWS[1:]]
    assert registry.content_hash(pd.DataFrame(changed), CORPUS) != registry.content_hash(pd.DataFrame(ROWS), CORPUS)


WHOLE = gzip.compress(as_lines(ROWS), mtime=0)
HALF = gzip.compress(json.dumps({**ROWS[0], "sentence1": "\ud800"}).encode() + b"\n", mtime=0)  # of a character


def changed(**values):
    return gzip.compress(as_lines([ROWS[0], {**ROWS[1], **values}, ROWS[2]]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed(sentence1="another text"), "3 rows with the content hash"),
        (gzip.compress(as_lines(ROWS[:2]), mtime=0), "2 rows with the content hash .* expected are 3"),
        (WHOLE[:-20], "is damaged"),
        (gzip.compress(as_lines(ROWS[:1]) + b'{"id": "a", \n', mtime=0), "line 2 can't be read"),
        *((changed(score=value), "line 2: score must") for value in ("2.5", True, float("nan"), float("inf"), None)),
        (changed(sentence1="  "), "line 2: sentence1 must be a text"),
        (HALF, "line 1: sentence1 must be a text"),
        (changed(choices=["z", ""]), "line 2: choices must be a list of texts"),
        (changed(id="b"), r"line 2 repeats a key \(id: 'b'\)"),
    ],
)
def test_a_bad_file_is_refused_with_what_and_where(toy, content, message):
    file = toy(content)
    with pytest.raises(StudyError, match=message) as error:
        corpora.load("toy")
    assert str(file) in str(error.value)


def test_what_is_unknown_or_absent_is_said(toy):
    said = {("toy",): r"there is no file .*Set NBLIB_DATA", ("toy", "tset"): "No split of toy called 'tset'"}
    for asked, message in {**said, ("stbs",): "No corpus called 'stbs'"}.items():
        with pytest.raises(StudyError, match=message):
            corpora.load(*asked)  # never a download


def stsb_archive(rows):
    """An archive as the STS Benchmark's: one tab-separated file a split, some rows with further fields."""
    lines = [f"main\tMSR\t2012\t{row['id']}\t{row['score']}\t{row['sentence1']}\tB\tlicence" for row in rows]
    content, packed = "\n".join(lines).encode() + b"\n", io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("set/sts-test.csv")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


STS = replace(CORPUS, key=["index"], columns={"index": "str", "score": "float", "sentence1": "str", "sentence2": "str"})
STS_ROWS = [{**row, "index": row["id"], "sentence2": "B"} for row in ROWS]
INDEXED = replace(CORPUS, key=["idx"], columns={"idx": "int", "sentence1": "str"})
INDEXED_ROWS = [{"idx": number, "sentence1": row["sentence1"]} for number, row in enumerate(ROWS)]
SOURCES = {
    "a JSON array": (declared(CORPUS, ROWS), "", json.dumps(ROWS, indent=1).encode()),
    "rows without a number": (declared(INDEXED, INDEXED_ROWS), "", as_lines(ROWS)),
    "an STSB archive": (declared(STS, STS_ROWS), "set/sts-{split}.csv", stsb_archive(ROWS)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_download_is_verified_and_kept_and_a_damaged_one_is_not(name, tmp_path, fresh_cache, monkeypatch):
    corpus, member, content = SOURCES[name]
    source = {"url": "host/{split}", "member": member}
    file = tmp_path / "downloaded"
    monkeypatch.setattr(registry, "entries", lambda: {"toy": replace(corpus, source=source)})
    monkeypatch.setattr(pooch, "retrieve", lambda url, **options: str(file))
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(StudyError, match="host/test"):
        corpora.load("toy")
    assert [file for file in fresh_cache.rglob("*") if file.is_file()] == []
    file.write_bytes(content)  # the source is mended
    first = corpora.load("toy")
    file.unlink()
    pd.testing.assert_frame_equal(corpora.load("toy"), first)
    assert len(first) == 3
