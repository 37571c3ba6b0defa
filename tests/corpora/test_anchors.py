"""The selection of anchors: sources, lengths, mostly affirmative, always the same."""

import gzip
import json

import pandas as pd
import pytest

from nblib import corpora, paths
from nblib.corpora import anchors, hedgetriple, negator
from nblib.corpora.anchors import AnchorError

ROWS = {
    "SNLI": lambda a, b: {"premise": a, "hypothesis": b, "label": 0},
    "Multi-NLI": lambda a, b: {"premise": a, "hypothesis": b, "label": "entailment"},
    "sentence-compression": lambda a, b: {"sentence": a, "compression": b},
    "Simple Wikipedia": lambda a, b: {"corpus": "wikismall_test", "normal": a, "simple": b},
    "COCO": lambda a, b: {"image_id": a, "caption": a},
}


def write(folder, name, rows):
    with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path):
    """Sentences of 10, 20 and 40 words from every source, a tenth with a negative word."""
    for name, source in anchors.SOURCES.items():
        rows = []
        for words in (10, 20, 40):
            for k in range(40):
                filler = ["not" if k % 10 == 0 else "word"] + ["word"] * (words - 3)
                sentence = f"{name.title().replace(' ', '')} {k} {' '.join(filler)}"
                rows.append(ROWS[name](sentence, sentence + " too"))
                if name == "COCO":
                    rows.append({"image_id": sentence, "caption": "x"})
        for file in source.files:
            write(tmp_path, file, rows)
    return tmp_path


def test_the_mix_is_the_papers_and_the_sources_have_equal_shares(folder):
    table = anchors.select(anchors.proxies(folder), 200)
    assert table.columns.tolist() == anchors.COLUMNS
    assert table.length.value_counts().to_dict() == {"short": 100, "middle": 80, "long": 20}
    assert table.words.groupby(table.length).agg(["min", "max"]).to_numpy().tolist() == [[40, 40], [20, 20], [10, 10]]
    assert table.source.value_counts().to_dict() == dict.fromkeys(anchors.SOURCES, 40)
    assert 0 < table.negative.sum() <= 10
    assert table.negative.tolist() == [negator.has_negative_word(text) for text in table.anchor]
    assert table.id.is_unique
    assert table.anchor.is_unique


def test_the_draw_depends_on_the_seed_alone(folder):
    first = anchors.select(anchors.proxies(folder), 100)
    pd.testing.assert_frame_equal(first, anchors.select(anchors.proxies(folder), 100))
    other = anchors.select(anchors.proxies(folder), 100, seed=1)
    assert set(first.id) != set(other.id)
    shared = first.merge(other, on="anchor")
    assert (shared.id_x == shared.id_y).all(), "an id is the sentence's own"


def test_a_source_that_is_too_small_gives_what_it_has(folder):
    rows = [ROWS["Multi-NLI"](f"One {k} of ten short words it is so far.", "It is.") for k in range(3)]
    write(folder, "mnli_textfooler_sample", rows)
    table = anchors.select(anchors.proxies(folder), 100)
    assert (table.source == "Multi-NLI").sum() == 3
    assert table.length.value_counts().to_dict() == {"short": 50, "middle": 40, "long": 10}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("You can 't say that , they 're not here .", None),
        ("We do n't say that , and they 're here !", "We don't say that, and they're here!"),
        ("A man , a plan : it is .", "A man, a plan: it is."),
        ("all of it is in lower case .", ""),
        ("IT IS ALL IN CAPITALS .", ""),
        ("He came -LRB- late -RRB- to the house .", ""),
        ("The village of UÅ 3 in Poland .", ""),
        ("Too short .", ""),
        ("It has a \x07 bell in it .", ""),
        ("word " * 61, ""),
    ],
)
def test_sentences_are_written_as_people_write_and_damaged_ones_left_out(folder, text, kept):
    write(folder, "snli_dev", [ROWS["SNLI"](text, "It is so.")])
    write(folder, "snli_test", [])
    found = anchors.proxies(folder)
    found = found[found.source == "SNLI"].anchor.tolist()
    assert kept is None or found == ([kept] if kept else [])


def test_only_entailed_pairs_of_the_inference_sets_are_taken(folder):
    rows = [{"premise": f"A man number {k} walks his dog.", "hypothesis": "A man walks.", "label": k} for k in range(3)]
    write(folder, "snli_dev", rows)
    write(folder, "snli_test", [])
    found = anchors.proxies(folder)
    assert found.anchor[found.source == "SNLI"].tolist() == ["A man number 0 walks his dog."]


def test_a_missing_file_is_named_with_where_it_comes_from(folder):
    (folder / "snli_test.jsonl.gz").unlink()
    with pytest.raises(AnchorError, match=r"No file .*snli_test.jsonl.gz of SNLI. Complete .* SOURCE.md"):
        anchors.select(anchors.proxies(folder), 10)


def test_a_file_with_other_rows_is_an_error(folder):
    write(folder, "snli_dev", [{"text": "x"}])
    with pytest.raises(AnchorError, match=r"snli_dev.jsonl.gz: not the rows expected of SNLI .*'label'"):
        anchors.select(anchors.proxies(folder), 10)


def test_more_than_there_is_says_how_many_there_are(folder):
    expected = r"10000 anchors need 5000 short sentences .*4000 middle sentences .*Ask for at most \d+"
    with pytest.raises(AnchorError, match=expected) as failure:
        anchors.select(anchors.proxies(folder), 10_000)
    most = int(str(failure.value).split("at most ")[1].split(",")[0])
    assert len(anchors.select(anchors.proxies(folder), most - 10)) == most - 10
    with pytest.raises(AnchorError, match="at least 1"):
        anchors.select(anchors.proxies(folder), 0)


def test_without_the_official_data_it_says_what_to_set():
    with pytest.raises(AnchorError, match="NBLIB_DATA isn't set"):
        anchors.proxies()


def jina(folder, rows):
    """A folder that `datasets` reads as it reads the hub's."""
    pd.DataFrame(rows).to_parquet(folder / "train.parquet")
    return str(folder)


def test_the_papers_own_source_is_read_as_datasets_reads_it(tmp_path):
    rows = [
        {"anchor": f"The {k}th man walks\nhis dog.", "entailment": "A man walks.", "negative": "No."} for k in range(20)
    ]
    rows += [rows[0], {"anchor": "Too short.", "entailment": "It is.", "negative": "No."}]
    table = anchors.official(jina(tmp_path, rows))
    assert table.columns.tolist() == anchors.COLUMNS
    assert table.anchor.tolist() == [f"The {k}th man walks his dog." for k in range(20)]
    assert set(table.source) == {"jina"}
    assert set(table.length) == {"short"}


def test_a_source_without_the_columns_or_the_network_is_an_error(tmp_path):
    with pytest.raises(AnchorError, match="has no column anchor; it has text, entailment"):
        anchors.official(jina(tmp_path, [{"text": "A man walks.", "entailment": "x"}]))
    with pytest.raises(AnchorError, match=r"nowhere/at-all can't be read .* use the pool stand-ins"):
        anchors.official("nowhere/at-all")


def test_the_authored_anchors_keep_their_ids_and_the_held_out_stay_out():
    table = anchors.authored()
    assert table.columns.tolist() == anchors.COLUMNS
    assert len(table) == 1700
    assert not set(table.id) & set(hedgetriple.held_out())
    assert not table.set_index("id").anchor.reindex(corpora.load("hedgetriple").id).dropna().duplicated().any()
    assert table.merge(corpora.load("hedgetriple"), on=["id", "anchor", "entailment"]).shape[0] == len(table)


@pytest.mark.official
def test_the_files_at_hand_give_thousands_in_the_papers_mix():
    table = anchors.select(anchors.proxies(), 5000)
    assert table.words.lt(15).mean() == 0.5
    assert table.words.gt(30).mean() == 0.1
    assert table.negative.mean() <= 0.05
    assert set(table.source) == set(anchors.SOURCES)
    assert paths.official_data() is not None
