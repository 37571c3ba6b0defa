"""From paraphrases to a test suite: each step does what Vahtola §3 says, and the official file is of the form it gives."""

import pandas as pd
import pytest

from nblib import corpora
from nblib.analysis import semantoneg_construction
from nblib.analysis.semantoneg_construction import OPTIONS
from nblib.benchmarks import semantoneg
from nblib.corpora import negator
from nblib.errors import StudyError


def as_pairs(*pairs):
    return pd.DataFrame(pairs, columns=["sentence1", "sentence2"])


def substituted(*sentences):
    return semantoneg_construction.substituted(semantoneg_construction.with_not_and_adjective(sentences))


def test_both_sentences_have_to_be_long_enough_punctuation_and_clitics_counted():
    counts = {"Not bad.": 3, "That's bad.": 4, "Yeah, not bad.": 5, "You cannot.": 4}
    assert {text: negator.count_tokens(text) for text in counts} == counts
    pairs = [("Not bad.", "That is rather good."), ("That is good.", "It isn't bad."), ("Good.", "Not at all bad.")]
    pairs = as_pairs(*pairs)
    assert semantoneg_construction.long_enough(pairs).index.tolist() == [1]


def test_exactly_one_sentence_has_a_negation_of_any_kind():
    pairs = as_pairs(
        ("I am innocent.", "I'm not guilty."),
        ("It's never dull.", "It is fun."),
        ("Aren't you cold?", "Are you cold?"),
        ("It is fun.", "It's a joy."),
        ("It's not fun.", "It isn't a joy."),
    )
    kept = semantoneg_construction.negated_sentences(pairs)
    assert kept == ["I'm not guilty.", "It's never dull.", "Aren't you cold?"]


def test_antonyms_are_those_of_the_synonyms_too_and_each_gives_a_set():
    wanted = {"Polite": ["impolite", "uncivil"], "fat": ["thin", "nonfat"], "shy": ["confident"]}
    wanted |= {"purple": [], "table": [], "qwxz": []}
    assert {word: semantoneg_construction.antonyms(word) for word in wanted} == wanted
    sets = substituted("You're not fat.", "The curtains are not purple.")
    assert sets.negated_antonym.tolist() == ["You're not thin.", "You're not nonfat."]


@pytest.mark.parametrize(
    ("sentence", "antonym", "affirmative", "negated_antonym", "affirmative_antonym"),
    [
        ("It's not a good idea.", "evil", "It's a good idea.", "It's not an evil idea.", "It's an evil idea."),
        ("It cannot be true.", "false", "It can be true.", "It cannot be false.", "It can be false."),
        ("Not Guilty, sir!", "innocent", "Guilty, sir!", "Not Innocent, sir!", "Innocent, sir!"),
    ],
)
def test_the_four_sentences(sentence, antonym, affirmative, negated_antonym, affirmative_antonym):
    row = substituted(sentence).set_index("antonym").loc[antonym]
    assert row[list(OPTIONS)].tolist() == [sentence, affirmative_antonym, negated_antonym, affirmative]


def test_the_options_differ_from_the_input_as_said():
    """Sentences as polarity and adjective: option 0 swaps the adjective alone, 1 the polarity alone, 2 both."""
    rows = [(f"- {word}", f"+ x{word}", f"- x{word}", f"+ {word}") for word in ("a", "b", "ab")]
    items = semantoneg_construction.permuted(pd.DataFrame(rows, columns=list(OPTIONS)))
    assert items.idx.tolist() == list(range(12)) and items.label.eq(2).all()
    for row in items.itertuples():
        polarity, adjective = row.input.split()
        differs = [(one != polarity, other != adjective) for one, other in map(str.split, row.sentences)]
        assert differs == [(False, True), (True, False), (True, True)]


@pytest.mark.parametrize("broken", ["It's not hot.", " ", None])
def test_a_set_without_four_different_sentences_is_refused(broken):
    row = substituted("It's not hot.").iloc[0].to_dict()
    with pytest.raises(StudyError, match="Set 2 needs four different sentences"):
        semantoneg_construction.permuted(pd.DataFrame([row, {**row, "affirmative": broken}]))


def test_the_miniature_is_read_as_semantoneg_is_and_its_review_dropped_and_corrected_candidates():
    reviewed = corpora.load("paraphrases_mini_sets").drop(columns="split")
    items = semantoneg.items(semantoneg_construction.permuted(reviewed))
    assert (len(items), items.sentence_set.nunique()) == (164, 41)
    item = items.set_index("input").loc["The pond is shallow."]
    assert item.positive == "The pond is not deep."
    assert set(item.negatives) == {"The pond is deep.", "The pond is not shallow."}
    pairs = semantoneg_construction.long_enough(corpora.load("paraphrases_mini"))
    candidates = substituted(*dict.fromkeys(semantoneg_construction.negated_sentences(pairs)))
    keys = ["negated", "adjective", "antonym"]
    paired = reviewed.merge(candidates, on=keys, suffixes=("", "_candidate"), validate="1:1")
    assert (len(pairs), len(candidates), len(paired)) == (58, 63, len(reviewed))
    corrected = paired[paired.affirmative != paired.affirmative_candidate]
    assert sorted(corrected.adjective) == ["bad", "hot", "ready", "safe"]


@pytest.fixture(scope="module")
def official_sets():
    """The sets behind the official file: it has four blocks of 788 rows, one for each sentence of the set as the input."""
    blocks = corpora.load("semantoneg").input.to_numpy().reshape(len(OPTIONS), -1)
    return pd.DataFrame(dict(zip(OPTIONS, blocks, strict=True)))


@pytest.mark.official
def test_the_official_file_is_the_permutation_of_788_sets(official_sets):
    assert (len(official_sets), official_sets.apply(frozenset, axis=1).nunique()) == (788, 770)
    expected = corpora.load("semantoneg")[["idx", "label", "input", "sentences"]]
    pd.testing.assert_frame_equal(semantoneg_construction.permuted(official_sets), expected, check_dtype=False)


@pytest.mark.official
def test_the_construction_finds_the_official_antonyms(official_sets):
    """The numbers of notebook 10; an adjective's own antonyms, without its synonyms', would give fewer."""
    sets = official_sets.drop_duplicates()
    candidates = substituted(*sets.negated.drop_duplicates())
    both = sets.merge(candidates, on=["negated", "negated_antonym"])
    assert (len(sets), len(candidates), len(both)) == (785, 892, 725)
    assert sum(row.antonym in _own_antonyms(row.adjective) for row in both.itertuples()) == 572
    for column in OPTIONS:
        assert (candidates[column].str[-1] == candidates.negated.str[-1]).all()
        assert not candidates[column].str.contains(r"  |\b[Aa] [aeio]|^[a-z]").any(), column


def _own_antonyms(word):
    lemmas = [lemma for sense in semantoneg_construction.wordnet().synsets(word, pos="a") for lemma in sense.lemmas()]
    return {antonym.name() for lemma in lemmas if lemma.name() == word for antonym in lemma.antonyms()}
