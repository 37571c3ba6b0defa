"""Corpora: what loads is what the registry describes, and whatever else lies there is refused with its place."""

import functools
import gzip
import http.server
import io
import json
import tarfile
import threading
from dataclasses import replace

import pandas as pd
import pytest

from nblib import corpora, paths
from nblib.corpora import Corpus, CorpusError, registry
from nblib.corpora.registry import Split

ROWS = [
    {"id": "b", "score": 4, "sentence1": "A man is not here.", "choices": ["x", "y"], "extra": 1},
    {"id": "a", "score": 2.5, "sentence1": "Käse – it's", "choices": ["z"]},
    {"id": "c", "score": 0.0, "sentence1": "Two lines\u2028in one\x85text", "choices": ["v"]},
]
CORPUS = Corpus(
    name="toy", title="Toy", benchmark="Toy", official=True, licence="none", key=["id"],
    columns={"id": "str", "score": "float", "sentence1": "str", "choices": "list"},
    splits={"test": Split("toy/test.jsonl.gz", 3, "")},
)  # fmt: skip


def declared(corpus, rows, split="test"):
    """The corpus as a registry entry that describes these rows."""
    digest = registry.content_hash(pd.DataFrame(rows)[list(corpus.columns)], corpus)
    return replace(corpus, splits={split: Split(corpus.splits[split].file, len(rows), digest)})


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
    assert not table.duplicated(["split", *corpus.key]).any()
    one = next(iter(corpus.splits))
    assert corpora.load(name, one).split.unique().tolist() == [one]


@pytest.mark.official
@pytest.mark.parametrize(
    ("name", "rows"), [("stsb", {"train": 5749, "dev": 1500, "test": 1379}), ("semantoneg", {"test": 3152})]
)
def test_an_official_corpus_loads_in_full(name, rows):
    assert corpora.load(name).groupby("split").size().to_dict() == rows
    assert corpora.describe(name).label == corpora.describe(name).benchmark


def test_a_text_may_be_empty_and_numbers_are_a_list_of_numbers(monkeypatch):
    columns = {"id": "str", "title": "text", "relevance": "numbers"}
    corpus = replace(CORPUS, columns=columns)
    rows = [{"id": "a", "title": "", "relevance": [1, 2.5]}]
    entry = declared(corpus, rows)
    assert registry.validate(rows, entry, "test", "file").title.tolist() == [""]
    whole = [{"id": "a", "title": "", "relevance": [1.0, 2.5]}]
    assert registry.content_hash(pd.DataFrame(whole), corpus) == entry.splits["test"].sha256
    for unusable in ([], [1, "2"], [True], 3):
        with pytest.raises(CorpusError, match="column 'relevance'"):
            registry.validate([{**rows[0], "relevance": unusable}], entry, "test", "file")


def test_a_corpus_that_is_not_downloaded_says_where_it_is(monkeypatch):
    with pytest.raises(CorpusError, match=r"Set NBLIB_DATA to a folder that has it\. .* on the hub as mteb/sts12-sts"):
        corpora.load("sts12")


def test_the_content_hash_heeds_content_and_not_order_packing_or_extra_columns(toy):
    toy(gzip.compress(as_lines(ROWS)))
    table = corpora.load("toy")
    assert table.id.tolist() == ["b", "a", "c"], "rows keep the file's order"
    assert table.score.tolist() == [4, 2.5, 0]
    toy(gzip.compress(as_lines(ROWS[::-1]), compresslevel=1, mtime=5))
    assert corpora.load("toy").id.tolist() == ["c", "a", "b"]
    changed = [{**ROWS[0], "choices": ["y", "x"]}, *ROWS[1:]]
    assert registry.content_hash(pd.DataFrame(changed), CORPUS) != registry.content_hash(pd.DataFrame(ROWS), CORPUS)


WHOLE = gzip.compress(as_lines(ROWS), mtime=0)
FLIPPED = WHOLE[:12] + bytes(255 - byte for byte in WHOLE[12:40]) + WHOLE[40:]


def changed(**values):
    return as_lines([ROWS[0], {**ROWS[1], **values}, ROWS[2]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed(sentence1="another text"), r"content hash is [0-9a-f]{64}, expected [0-9a-f]{64}"),
        (WHOLE[:-20], r"is damaged after line \d"),
        (FLIPPED, "damaged|not a JSON object"),
        (as_lines(ROWS), "is damaged after line 0"),
        (b"", "0 rows, expected 3"),
        (as_lines(ROWS[:1]) + b'{"id": "a", \n', "line 2: not a JSON object"),
        (as_lines(ROWS[:2]) + b"[1, 2]\n", "line 3: not a JSON object .not an object"),
        (as_lines(ROWS[:1]) + b'{"id": "\xff"}\n', "damaged after line"),
        (as_lines([{k: v for k, v in ROWS[0].items() if k != "score"}]), "row 1 has no column 'score'; it has id"),
        (changed(score="2.5"), "row 2, column 'score': '2.5' is no usable float"),
        (changed(score=True), "row 2, column 'score': True is no usable float"),
        (changed(score=float("nan")), "row 2, column 'score': nan is no usable float"),
        (changed(score=float("inf")), "row 2, column 'score': inf is no usable float"),
        (changed(score=None), "row 2, column 'score': None is no usable float"),
        (changed(sentence1="  "), "row 2, column 'sentence1': '  ' is no usable str"),
        (changed(choices=[]), "row 2, column 'choices'"),
        (changed(choices=["z", ""]), "row 2, column 'choices'"),
        (changed(id="b"), r"1 rows repeat a key \(id\); the first is \('b',\)"),
        (as_lines(ROWS[:2]), "2 rows, expected 3"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_what_and_where(toy, content, message):
    damaged = content in (WHOLE[:-20], FLIPPED) or message == "is damaged after line 0"
    file = toy(content if damaged else gzip.compress(content))
    with pytest.raises(CorpusError, match=message) as error:
        corpora.load("toy")
    assert str(file) in str(error.value)


def test_an_unknown_corpus_or_split_lists_the_known_ones():
    with pytest.raises(CorpusError, match=r"'stbs'.*Known: stsb, semantoneg"):
        corpora.load("stbs")
    with pytest.raises(CorpusError, match=r"stsb_mini has no split 'tset'. Splits: train, dev, test"):
        corpora.load("stsb_mini", "tset")


def test_an_incomplete_nblib_data_is_an_error_and_never_a_download(toy):
    with pytest.raises(CorpusError, match=r"no file .*toy/test\.jsonl\.gz\. Complete NBLIB_DATA"):
        corpora.load("toy")


# --- downloads, from a real server -------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    """A folder, the address it is served at, and a function that stops serving."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=site.serve_forever, args=(0.01,))
    thread.start()
    stopped = threading.Event()

    def stop():
        if not stopped.is_set():
            stopped.set()
            site.shutdown()
            site.server_close()
            thread.join()

    yield folder, f"http://127.0.0.1:{site.server_address[1]}", stop
    stop()


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
STS_ROWS = [
    {"index": row["id"], "score": float(row["score"]), "sentence1": row["sentence1"], "sentence2": "B"} for row in ROWS
]
INDEXED = replace(CORPUS, key=["idx"], columns={"idx": "int", "sentence1": "str"})
INDEXED_ROWS = [{"idx": number, "sentence1": row["sentence1"]} for number, row in enumerate(ROWS)]
SOURCES = {
    "a JSON array": (declared(CORPUS, ROWS), "json", json.dumps(ROWS, indent=1).encode()),
    "JSON lines": (declared(CORPUS, ROWS), "json", as_lines(ROWS)),
    "rows without a number": (declared(INDEXED, INDEXED_ROWS), "json", as_lines(ROWS)),
    "an STSB archive": (declared(STS, STS_ROWS), "stsb", stsb_archive(ROWS)),
}


def offer(monkeypatch, address, corpus, form):
    source = {"url": f"{address}/toy-{{split}}", "format": form, "member": "set/sts-{split}.csv"}
    monkeypatch.setattr(registry, "entries", lambda: {"toy": replace(corpus, source=source)})


@pytest.mark.parametrize("kind", SOURCES)
def test_a_download_is_verified_kept_and_not_fetched_again(kind, server, fresh_cache, monkeypatch):
    folder, address, stop = server
    corpus, form, content = SOURCES[kind]
    offer(monkeypatch, address, corpus, form)
    (folder / "toy-test").write_bytes(content)
    first = corpora.load("toy", "test")
    stop()
    (folder / "toy-test").unlink()
    pd.testing.assert_frame_equal(corpora.load("toy", "test"), first)
    assert len(first) == 3
    assert (fresh_cache / "corpora" / "toy" / "test.jsonl.gz").is_file()


@pytest.mark.parametrize(
    ("kind", "cut"), [(kind, cut) for kind in ("JSON lines", "an STSB archive") for cut in (1, 40)]
)
def test_a_damaged_download_is_refused_and_forgotten(kind, cut, server, fresh_cache, monkeypatch):
    folder, address, _ = server
    corpus, form, content = SOURCES[kind]
    offer(monkeypatch, address, corpus, form)
    (folder / "toy-test").write_bytes(content[: len(content) // 2 - cut])
    with pytest.raises(CorpusError, match=f"{address}/toy-test"):
        corpora.load("toy", "test")
    assert [file for file in fresh_cache.rglob("*") if file.is_file()] == []
    (folder / "toy-test").write_bytes(content)  # the source is mended: the next try works
    assert len(corpora.load("toy", "test")) == 3


def test_an_unreachable_source_says_where_else_the_file_can_come_from(server, fresh_cache, monkeypatch):
    _, address, stop = server
    offer(monkeypatch, address, declared(CORPUS, ROWS), "json")
    expected = r"toy \(test\) could not be fetched .*Set NBLIB_DATA to a folder that has toy/"
    with pytest.raises(CorpusError, match=expected):
        corpora.load("toy", "test")
    stop()
    assert not (fresh_cache / "corpora" / "toy").exists()


def test_a_corpus_without_a_public_source_says_so(fresh_cache, monkeypatch):
    monkeypatch.setattr(registry, "entries", lambda: {"toy": declared(CORPUS, ROWS)})
    with pytest.raises(CorpusError, match="not public as a file"):
        corpora.load("toy", "test")


def test_registry_entries_name_columns_keys_and_files_that_make_sense():
    for name, corpus in corpora.entries().items():
        assert set(corpus.columns.values()) <= set(registry.TYPES), name
        assert set(corpus.key) <= set(corpus.columns), name
        assert corpus.licence, name
        if not corpus.official:
            assert all((paths.DATA / split.file).is_file() for split in corpus.splits.values()), name
