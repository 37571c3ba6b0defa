"""The search to look at: what it finds, keeps, and how it is shown."""

import pandas as pd
import pytest
from support.encoders import written

from nblib import artefacts, corpora
from nblib.analysis import search
from nblib.analysis.search import SearchError
from nblib.models.systems import BiEncoder


@pytest.fixture
def knowing():
    """An encoder that knows which passage answers which of the first pair's questions, and nothing else."""
    pairs = corpora.load(search.CORPUS)
    vectors = {text: [0.1, 0.1, 1.0] for column in ("doc1", "doc2") for text in pairs[column]}
    pair = pairs.set_index("id").loc[search.QUESTIONS[0]]
    vectors |= {pair.q1: [1.0, 0.2, 0.0], pair.doc1: [1.0, 0.1, 0.0]}
    vectors |= {pair.q2: [0.2, 1.0, 0.0], pair.doc2: [0.1, 1.0, 0.0]}
    return BiEncoder(written(vectors, name="knowing"))


def test_the_nearest_come_first_and_are_judged(knowing, tmp_path):
    table = search.run(knowing, tmp_path, pair_ids=search.QUESTIONS[:1])
    assert table.groupby("query", sort=False)["rank"].agg(list).tolist() == [[1, 2, 3, 4, 5]] * 2
    assert table[table["rank"] == 1].right.all()
    assert table[table["rank"] == 2].other.all()
    assert all(found.is_monotonic_decreasing for _, found in table.groupby("query").similarity)
    kept = pd.read_csv(tmp_path / "scores" / "knowing" / "search.csv")
    assert kept.passage.tolist() == table.passage.tolist()
    assert search.first_right(tmp_path, "knowing") == (2, 2)


def test_encoders_stand_side_by_side_and_passages_are_no_markup(knowing, tmp_path):
    search.run(knowing, tmp_path, pair_ids=search.QUESTIONS[:1])
    file = tmp_path / "scores" / "other" / "search.csv"
    table = pd.read_csv(tmp_path / "scores" / "knowing" / "search.csv")
    artefacts.write_table(table.assign(passage="<script>" + table.passage, right=table.other, other=table.right), file)
    shown = search.side_by_side(tmp_path, ["knowing", "other"])
    assert shown.columns.tolist() == ["query", "rank", "knowing", "other"]
    assert len(shown) == 10
    assert shown.knowing[0].startswith("✓ <b>The Fallow")
    assert shown.other[0].startswith("✗ &lt;script&gt;The Fallow")


def test_an_excerpt_shows_the_words_in_which_a_pair_differs():
    pair = corpora.load(search.CORPUS).set_index("id").loc[search.QUESTIONS[0]]
    expected = "The Fallow fraud case … the morning. The jury believed the night porter,"
    assert search.excerpt(pair.doc1, pair.doc2).startswith(expected)
    assert "The jury did not believe the night porter" in search.excerpt(pair.doc2, pair.doc1)
    assert search.excerpt("one two three", "one 2 three") == "one two three"
    assert search.excerpt("a b c", "") == "a b c"


def test_all_pairs_can_be_told_apart_by_their_excerpts():
    for row in corpora.load(search.CORPUS).itertuples():
        assert search.excerpt(row.doc1, row.doc2) != search.excerpt(row.doc2, row.doc1), row.id


def test_a_search_that_was_not_made_says_what_makes_it(tmp_path):
    with pytest.raises(SearchError, match=r"No search at .*absent.search.csv. Run notebook 07"):
        search.side_by_side(tmp_path, ["absent"])
