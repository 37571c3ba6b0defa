"""From paraphrases to a benchmark like SemAntoNeg (Vahtola §3): filter, substitute, review, permute.

    pairs = corpora.load("paraphrases_mini")            # sentence1, sentence2; the paper's are Opusparcus
    draft = construct(pairs)                            # draft.sets is what a person has to review (drop or correct rows)
    items = construct(pairs, reviewed=corrected).items  # in the official format; .funnel says how many survived each step

Each step is a function, in the paper's order. Where the paper leaves room, we follow the official file:

1. *Length in tokens*: a tokenizer's tokens, with punctuation and clitics; "Yeah, not bad." is in the official file.
2. *Contains a negation*: any negative word, n't and never included. The paper's example of what is removed after this step is
   "Aren't you cold? – Are you cold?".
3. *Explicit negation (not) as an adverb, and adjectives*: the word "not" itself; no official item is negated by n't (the one
   exception, "She didn't stay.", has no adjective either). Of several adjectives we take the first after "not", else the last
   before it. The study's spaCy pipeline tags; the paper used NLTK.
4. *Duplicates*: sentences that are the same to the letter.
5. *An antonym*: one set for each (the official 788 sets have 473 negated sentences), see `antonyms`. The official sentences give
   892 candidates, among them 725 of the 785 distinct official sets. The other 60 have an adjective that was worded by hand
   ("the same" → "different") or that the tagger took for another part of speech.
6. *Deleting the negator* changes nothing else: "It does look good." is in the official file. We correct the capital at the start
   of a sentence and the article before a new adjective (the paper's "a evil idea"); the rest is for the review.
7. *Review by hand*: between the two calls above.
8. *Permuting*: each of a set's four sentences is the input once, in the official order. Repeated sets stay, as there (788 sets,
   770 distinct).
"""

import math
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import pandas as pd

from nblib.corpora import negator
from nblib.corpora.wordnet import wordnet
from nblib.errors import StudyError
from nblib.results import published

if TYPE_CHECKING:
    from inflect import engine
    from spacy.tokens import Doc, Token

SHORTEST = 4  # tokens; "where the length of either of the sentences was less than four tokens" is removed

# A set's four sentences, in the order in which the official file takes them as inputs, each with its options: only the
# adjective swapped, only the polarity swapped, both (the paraphrase, so the label is always 2).
OPTIONS = {
    "negated": ("negated_antonym", "affirmative", "affirmative_antonym"),
    "affirmative_antonym": ("affirmative", "negated_antonym", "negated"),
    "negated_antonym": ("negated", "affirmative_antonym", "affirmative"),
    "affirmative": ("affirmative_antonym", "negated", "negated_antonym"),
}
LABEL = 2

# Where the paper prints how many were left: step of the funnel → system and metric of its Section 3.
_PUBLISHED = {
    "paraphrase pairs": ("Opusparcus", "sentence_pairs_downloaded"),
    "a negation in exactly one": ("SemAntoNeg", "pairs_after_filtering"),
    "each sentence once": ("SemAntoNeg", "sentences_with_negation_and_adjective"),
    "sets after review": ("SemAntoNeg", "examples_after_review"),
    "test items": ("SemAntoNeg", "test_items"),
}


class ConstructionError(StudyError):
    """Paraphrases or sets that give no benchmark, or no WordNet."""


@dataclass(frozen=True)
class Construction:
    """A benchmark and its construction.

    Attributes:
        sets: before review: the four sentences (`OPTIONS`), adjective, antonym.
        items: idx, label, input, sentences (list of three), as `semantoneg.items` takes them.
        funnel: step, unit, left (how many), printed (in the paper, or NaN).
    """

    sets: pd.DataFrame
    items: pd.DataFrame
    funnel: pd.DataFrame


def construct(pairs: pd.DataFrame, reviewed: pd.DataFrame | None = None) -> Construction:
    """All steps.

    Args:
        pairs: sentence1, sentence2.
        reviewed: the accepted sets, perhaps corrected: the columns of `OPTIONS`. Without it every set is used.

    Raises:
        ConstructionError: a step leaves nothing, or a reviewed set is unusable or not a candidate.
    """
    filters = [
        (f"both of {SHORTEST} tokens or more", "pairs", long_enough),
        ("a negation in exactly one", "pairs", negated_on_one_side),
        ("“not” and an adjective", "sentences", with_not_and_adjective),
        ("each sentence once", "sentences", distinct),
        ("an antonym in WordNet: candidates", "sets", substituted),
    ]
    if reviewed is not None:
        filters.append(("sets after review", "sets", partial(_checked_review, reviewed)))
    filters.append(("test items", "items", permuted))
    left, candidates = pairs, None
    funnel = [("paraphrase pairs", "pairs", len(left))]
    for step, unit, function in filters:
        if left.empty:
            raise ConstructionError(
                f"None of the {len(pairs)} paraphrase pairs is left after the step “{funnel[-1][0]}”. Give more pairs."
            )
        left = function(left)
        funnel.append((step, unit, len(left)))
        candidates = left if function is substituted else candidates
    table = pd.DataFrame(funnel, columns=["step", "unit", "left"])
    return Construction(candidates, left, table.assign(printed=table.step.map(_published)))


def _published(step: str) -> float:
    """How many are left according to the paper."""
    return published.value("vahtola", "Section 3", *_PUBLISHED[step]) if step in _PUBLISHED else math.nan


# --- the filters ------------------------------------------------------------------------------------------------------


def long_enough(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs both of whose sentences have at least `SHORTEST` tokens, punctuation included."""
    fits = [min(map(negator.count_tokens, pair)) >= SHORTEST for pair in _both(pairs)]
    return pairs[pd.Series(fits, index=pairs.index, dtype=bool)]


def negated_on_one_side(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs of which exactly one sentence has a negative word, with that one as the column `sentence`."""
    negative = [[sentence for sentence in pair if negator.has_negative_word(sentence)] for pair in _both(pairs)]
    sentences = pd.Series(
        [found[0] if len(found) == 1 else None for found in negative], index=pairs.index, dtype=object
    )
    return pairs.assign(sentence=sentences).dropna(subset="sentence")


def with_not_and_adjective(pairs: pd.DataFrame) -> pd.DataFrame:
    """The negated sentences (from `negated_on_one_side`) with the adverb "not" (tag RB) and an adjective (JJ).

    Returns:
        sentence, and doc, the sentence tagged.
    """
    rows = [(doc.text, doc) for doc in negator.tag_all(pairs.sentence.tolist()) if _find(doc)]
    return pd.DataFrame(rows, columns=["sentence", "doc"])


def distinct(sentences: pd.DataFrame) -> pd.DataFrame:
    """Each sentence once."""
    return sentences.drop_duplicates("sentence", ignore_index=True)


def _both(pairs: pd.DataFrame) -> zip:
    return zip(pairs.sentence1, pairs.sentence2, strict=True)


def _find(doc: "Doc") -> "tuple[Token, Token] | None":
    """The negator and the adjective to swap; None without the one or the other."""
    negation = next((token for token in doc if token.lower_ == "not" and token.tag_ == "RB"), None)
    if negation is None:
        return None
    nearest = [*doc[negation.i + 1 :], *reversed(doc[: negation.i])]
    adjective = next((token for token in nearest if token.tag_ == "JJ"), None)
    return (negation, adjective) if adjective is not None else None


# --- WordNet's antonyms -----------------------------------------------------------------------------------------------


def antonyms(adjective: str) -> list[str]:
    """The antonyms of every word of every sense of an adjective, each once, in WordNet's order (frequent senses first).

    "polite" has its own antonym "impolite" and also "uncivil", that of its synonym "civil": a test shows that the official
    SemAntoNeg follows this rule.

    Raises:
        WordNetError: WordNet isn't installed.
    """
    senses = wordnet().synsets(adjective.lower(), pos="a")
    found = (antonym.name() for sense in senses for word in sense.lemmas() for antonym in word.antonyms())
    return list(dict.fromkeys(name.replace("_", " ") for name in found))


# --- the four sentences -----------------------------------------------------------------------------------------------


def substituted(sentences: pd.DataFrame) -> pd.DataFrame:
    """A set of four for each antonym of each sentence's adjective (from `with_not_and_adjective`).

    Returns:
        The four sentences (`OPTIONS`), adjective, antonym (lower case).
    """
    rows = []
    for doc in sentences.doc:
        negation, adjective = _find(doc)
        rows += [
            {
                "negated": doc.text,
                "affirmative": _rewritten(doc, adjective, without=negation),
                "negated_antonym": _rewritten(doc, adjective, antonym),
                "affirmative_antonym": _rewritten(doc, adjective, antonym, without=negation),
                "adjective": adjective.lower_,
                "antonym": antonym,
            }
            for antonym in antonyms(adjective.text)
        ]
    return pd.DataFrame(rows, columns=[*OPTIONS, "adjective", "antonym"])


def _rewritten(doc: "Doc", adjective: "Token", antonym: str | None = None, without: "Token | None" = None) -> str:
    """The sentence with the antonym in the adjective's place (if given), without the negator (if given); the article before
    the adjective agrees."""
    words: list[str] = []
    for token in doc:
        if token == without:
            if words:  # its space stays: "cannot be" → "can be"
                words[-1] = words[-1].rstrip() + token.whitespace_
            continue
        word = token.text
        if token == adjective:
            if antonym:
                word = antonym.capitalize() if token.is_title else antonym
            if words and words[-1].lower() in ("a ", "an "):
                article, _ = _grammar().a(word).split(maxsplit=1)
                words[-1] = f"{article.capitalize() if words[-1][0] == 'A' else article} "
        words.append(word + token.whitespace_)
    text = "".join(words)
    return text[0].upper() + text[1:] if doc.text[0].isupper() else text


@cache
def _grammar() -> "engine":
    import inflect  # a second to import; only sentences with an article need it

    return inflect.engine()


# --- the items --------------------------------------------------------------------------------------------------------


def permuted(sets: pd.DataFrame) -> pd.DataFrame:
    """Four items a set, each of its sentences once the input: idx, label (always 2), input, sentences; in the official order.

    Raises:
        ConstructionError: a set lacks a sentence, or has one twice.
    """
    if missing := [column for column in OPTIONS if column not in sets]:
        raise ConstructionError(f"The sets have no column {', '.join(missing)}; a set is {', '.join(OPTIONS)}.")
    for number, row in enumerate(sets[list(OPTIONS)].itertuples(index=False), start=1):
        if not all(isinstance(text, str) and text.strip() for text in row) or len(set(row)) < len(OPTIONS):
            raise ConstructionError(f"Set {number} needs four different sentences: {tuple(row)}. Correct or drop it.")
    items = [
        (LABEL, getattr(row, given), [getattr(row, option) for option in options])
        for given, options in OPTIONS.items()
        for row in sets.itertuples()
    ]
    return pd.DataFrame(items, columns=["label", "input", "sentences"]).rename_axis("idx").reset_index()


def _checked_review(reviewed: pd.DataFrame, sets: pd.DataFrame) -> pd.DataFrame:
    """A review drops and corrects sets; it adds no negated sentence."""
    if "negated" in reviewed and (unknown := sorted(set(reviewed.negated) - set(sets.negated))):
        raise ConstructionError(
            f"{len(unknown)} reviewed sets have a negated sentence that is no candidate, first: {unknown[0]!r}. Review the sets "
            "of these very pairs, and leave the negated sentence as it is."
        )
    return reviewed
