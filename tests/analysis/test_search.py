"""The search to look at: what it finds, and how it is shown."""

from support.encoders import written

from nblib import corpora
from nblib.analysis import search
from nblib.models.systems import BiEncoder


def test_the_nearest_come_first_and_are_told_apart():
    """By an encoder that knows which passage answers which of the first pair's questions, and nothing else."""
    pairs = corpora.load(search.CORPUS)
    vectors = {text: [0.1, 0.1, 1.0] for column in ("q1", "q2", "doc1", "doc2") for text in pairs[column]}
    pair = pairs.set_index("id").loc[search.PAIRS[0]]
    vectors |= {pair.q1: [1.0, 0.2, 0.0], pair.doc1: [1.0, 0.1, 0.0]}
    vectors |= {pair.q2: [0.2, 1.0, 0.0], pair.doc2: [0.1, 1.0, 0.0]}
    table = search.search(BiEncoder(written(vectors, name="knowing")))
    assert table.groupby("query", sort=False)["rank"].agg(list).tolist() == [[1, 2, 3, 4, 5]] * 6
    assert all(part.is_monotonic_decreasing for _, part in table.groupby("query").similarity)
    assert table.passage[0].startswith("The Fallow fraud case … ")
    first_pair = table[table["query"].isin([pair.q1, pair.q2])]
    assert first_pair.answers.tolist() == ["this question", "the opposite question", "", "", ""] * 2


def test_an_excerpt_shows_the_words_in_which_a_pair_differs():
    pairs = corpora.load(search.CORPUS).set_index("id")
    pair = pairs.loc[search.PAIRS[0]]
    expected = "The Fallow fraud case … the morning. The jury believed the night porter,"
    assert search.excerpt(pair.doc1, pair.doc2).startswith(expected)
    assert "The jury did not believe the night porter" in search.excerpt(pair.doc2, pair.doc1)
    assert (search.excerpt("a two c", "a 2 c"), search.excerpt("a b c", "")) == ("a two c", "a b c")
    for row in pairs.itertuples():
        assert search.excerpt(row.doc1, row.doc2) != search.excerpt(row.doc2, row.doc1), row.Index
