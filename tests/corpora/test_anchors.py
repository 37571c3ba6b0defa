"""The selection of anchors: sources, lengths, mostly affirmative, always the same."""

import gzip
import json

import pandas as pd
import pytest

from nblib import corpora
from nblib.corpora import anchors, authored, negator
from nblib.errors import StudyError

ROWS = {
    "SNLI": lambda a, b: {"premise": a, "hypothesis": b, "label": 0},
    "Multi-NLI": lambda a, b: {"premise": a, "hypothesis": b, "label": "entailment"},
    "sentence-compression": lambda a, b: {"sentence": a, "compression": b},
    "Simple Wikipedia": lambda a, b: {"corpus": "wikismall_test", "normal": a, "simple": b},
    "COCO": lambda a, b: {"image_id": a, "caption": a},
}


def write(folder, name, rows):
    (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Sentences of 10, 20 and 40 words from every source, a tenth with a negative word."""
    monkeypatch.setenv("NBLIB_DATA", str(tmp_path))
    folder = tmp_path / "anchors"
    folder.mkdir()
    for name, files in anchors.SOURCES.items():
        rows = []
        for words in (10, 20, 40):
            for k in range(40):
                filler = ["not" if k % 10 == 0 else "word"] + ["word"] * (words - 3)
                sentence = f"{name.title().replace(' ', '')} {k} {' '.join(filler)}"
                rows.append(ROWS[name](sentence, sentence + " too"))
                if name == "COCO":
                    rows.append({"image_id": sentence, "caption": "x"})
        for file in files:
            write(folder, file, rows)
    return folder


def snli(folder, rows):
    """The anchors of SNLI where its files hold these rows."""
    write(folder, "snli_dev", rows)
    write(folder, "snli_test", [])
    pool = anchors.proxies()
    return pool[pool.source == "SNLI"].anchor.tolist()


def test_the_mix_is_the_papers_and_the_sources_have_equal_shares(folder):
    table = anchors.select(anchors.proxies(), 200)
    assert table.columns.tolist() == anchors.ANCHOR_COLUMNS
    assert table.length.value_counts().to_dict() == {"short": 100, "middle": 80, "long": 20}
    assert table.words.groupby(table.length).agg(["min", "max"]).to_numpy().tolist() == [[40, 40], [20, 20], [10, 10]]
    assert table.source.value_counts().to_dict() == dict.fromkeys(anchors.SOURCES, 40)
    assert 0 < table.negative.sum() <= 10
    assert table.negative.tolist() == [negator.has_negative_word(text) for text in table.anchor]
    assert table.id.is_unique and table.anchor.is_unique


def test_the_draw_depends_on_the_seed_alone(folder):
    pool = anchors.proxies()
    first, other = anchors.select(pool, 100), anchors.select(pool, 100, seed=1)
    pd.testing.assert_frame_equal(first, anchors.select(pool.sample(frac=1, random_state=0), 100))
    assert set(first.id) != set(other.id)


def test_a_source_that_is_too_small_gives_what_it_has(folder):
    rows = [ROWS["Multi-NLI"](f"One {k} of ten short words it is so far.", "It is.") for k in range(3)]
    write(folder, "mnli_textfooler_sample", rows)
    table = anchors.select(anchors.proxies(), 100)
    assert (table.source == "Multi-NLI").sum() == 3
    assert table.length.value_counts().to_dict() == {"short": 50, "middle": 40, "long": 10}
    with pytest.raises(StudyError, match=r"there are .*Ask for fewer"):
        anchors.select(anchors.proxies(), 10_000)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("We do n't say that , and they 're here !", "We don't say that, and they're here!"),
        ("all of it is in lower case .", ""),
        ("He came -LRB- late -RRB- to the house .", ""),
        ("Too short .", ""),
        ("It has a \x07 bell in it .", ""),
        ("word " * 61, ""),
    ],
)
def test_sentences_are_written_as_people_write_and_damaged_ones_left_out(folder, text, kept):
    assert snli(folder, [ROWS["SNLI"](text, "It is so.")]) == ([kept] if kept else [])


def test_what_is_missing_or_of_another_form_is_named(folder, monkeypatch):
    write(folder, "snli_dev", [{"text": "x"}])
    with pytest.raises(StudyError, match="unknown form: text"):
        anchors.proxies()
    monkeypatch.delenv("NBLIB_DATA")
    with pytest.raises(StudyError, match="NBLIB_DATA isn't set"):
        anchors.proxies()


def test_the_papers_own_source_is_read_as_datasets_reads_it(tmp_path):
    rows = [
        {"anchor": f"The {k}th man walks\nhis dog.", "entailment": "A man walks.", "negative": "No."} for k in range(20)
    ]
    rows += [rows[0], {"anchor": "Too short.", "entailment": "It is.", "negative": "No."}]
    pd.DataFrame(rows).to_parquet(tmp_path / "train.parquet")
    table = anchors.official(str(tmp_path))
    assert table.anchor.tolist() == [f"The {k}th man walks his dog." for k in range(20)]
    assert set(table.source) == {"jina"} and set(table.length) == {"short"}


def test_the_authored_anchors_keep_their_ids_and_the_held_out_stay_out():
    table = anchors.authored()
    assert table.columns.tolist() == anchors.ANCHOR_COLUMNS
    assert len(table) == 1700
    assert not set(table.id) & set(authored.held_out_ids())
    assert table.merge(corpora.load("authored_triples"), on=["id", "anchor", "entailment"]).shape[0] == len(table)
