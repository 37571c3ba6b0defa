"""From paraphrases to a test suite like SemAntoNeg (Vahtola §3): filter, substitute, review, permute.

    pairs = read_pairs("paraphrases.jsonl")             # sentence1, sentence2: Opusparcus, or the authored miniature
    draft = construct(pairs)                            # draft.sets is what a person has to review (drop or correct rows)
    suite = construct(pairs, reviewed=corrected).suite  # in the official format; .funnel says how many survived each step

The steps are functions of their own, in the paper's order. Where the paper leaves room, the official file decides as far as it
can (its items carry the traces of the steps):

1. *Length in tokens*: a tokenizer's tokens, so with punctuation and clitics; "Yeah, not bad." is in the official file.
2. *Contains a negation*: any negative word, n't and never included; the paper's example of what still has to go after this
   step is "Aren't you cold? – Are you cold?".
3. *Explicit negation (not) as an adverb, and adjectives*: the word "not" itself: no official item is negated by n't (the one
   exception, "She didn't stay.", has no adjective either). Of several adjectives the first after "not" is taken (so in the
   official sentences that have several), and the last before it where none follows. Tagged by the study's spaCy pipeline, in
   the paper by NLTK.
4. *Duplicates*: sentences that are the same to the letter.
5. *An antonym*: one set for each (the official 788 sets have 473 negated sentences), as `wordnet.antonyms` says: from the
   official sentences come 892 candidates, among them 725 of the 785 distinct official ones; the other 60 have an adjective
   that was worded by hand ("the same" → "different") or that the tagger took for another part of speech.
6. *Deleting the negator* is just that: "It does look good." is in the official file (beside "That looks good.", corrected by
   hand). The capital at the start of a sentence and the article before a new adjective (the paper's "a evil idea") are put
   right here; the rest is for the review.
7. *Review by hand*: between the two calls above; no program does it.
8. *Permuting*: each of a set's four sentences is the input once; order of rows and options as in the official file. Sets that
   come out twice stay, as there (788 sets, 770 distinct).
"""

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from spacy.tokens import Doc, Token

from nblib import corpora, negator, paths, published, wordnet

if TYPE_CHECKING:
    from inflect import engine

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
_PRINTED = {
    "paraphrase pairs": ("Opusparcus", "sentence_pairs_downloaded"),
    "a negation in exactly one": ("SemAntoNeg", "pairs_after_filtering"),
    "each sentence once": ("SemAntoNeg", "sentences_with_negation_and_adjective"),
    "sets after review": ("SemAntoNeg", "examples_after_review"),
    "test items": ("SemAntoNeg", "test_items"),
}


class ConstructionError(ValueError):
    """Paraphrases or sets that no test suite can be made of."""


@dataclass(frozen=True)
class Construction:
    """A test suite and how it came about.

    Attributes:
        sets: what WordNet gives, before review: the four sentences (`OPTIONS`), adjective, antonym.
        suite: idx, label, input, sentences (list of three), as `semantoneg.items` takes them.
        funnel: step, unit, left (how many), printed (in the paper, NaN where it doesn't say).
    """

    sets: pd.DataFrame
    suite: pd.DataFrame
    funnel: pd.DataFrame


def construct(pairs: pd.DataFrame, reviewed: pd.DataFrame | None = None) -> Construction:
    """All steps.

    Args:
        pairs: sentence1, sentence2.
        reviewed: the sets that a person let pass, perhaps corrected: the columns of `OPTIONS`. Without it every set goes into
            the suite, and the funnel has no review.

    Raises:
        ConstructionError: a step leaves nothing, or a reviewed set is unusable or was never a candidate.
    """
    filters = [
        (f"both of {SHORTEST} tokens or more", "pairs", long_enough),
        ("a negation in exactly one", "pairs", negated_on_one_side),
        ("“not” and an adjective", "sentences", with_not_and_adjective),
        ("each sentence once", "sentences", distinct),
        ("an antonym in WordNet: candidates", "sets", substituted),
    ]
    left = pairs
    funnel = [("paraphrase pairs", "pairs", len(left))]
    for step, unit, function in filters:
        if left.empty:
            raise ConstructionError(f"Of {len(pairs)} paraphrase pairs none is left after “{funnel[-1][0]}”.")
        left = function(left)
        funnel.append((step, unit, len(left)))
    candidates = left
    if reviewed is not None:
        left = _checked_review(reviewed, candidates)
        funnel.append(("sets after review", "sets", len(left)))
    if left.empty:
        raise ConstructionError(f"Of {len(pairs)} paraphrase pairs none is left after “{funnel[-1][0]}”.")
    suite = permuted(left)
    funnel.append(("test items", "items", len(suite)))
    table = pd.DataFrame(funnel, columns=["step", "unit", "left"])
    return Construction(candidates, suite, table.assign(printed=table.step.map(_printed)))


def _printed(step: str) -> float:
    """How many the paper says were left."""
    return published.value("vahtola", "Section 3", *_PRINTED[step]) if step in _PRINTED else math.nan


def read_pairs(file: str | Path) -> pd.DataFrame:
    """Paraphrase pairs from JSON lines (gzipped or not) with `sentence1` and `sentence2`.

    Raises:
        ConstructionError: a line lacks one of them.
        corpora.CorpusError: the file is damaged or isn't JSON lines.
    """
    rows = corpora.read_jsonl(paths.resolve(file))
    for number, row in enumerate(rows, start=1):
        for column in ("sentence1", "sentence2"):
            if not isinstance(row.get(column), str):
                raise ConstructionError(
                    f"{file}, line {number}: no text {column!r}; a paraphrase pair is an object with sentence1 and sentence2."
                )
    return pd.DataFrame(rows, columns=["sentence1", "sentence2"])


# --- the filters ------------------------------------------------------------------------------------------------------


def long_enough(pairs: pd.DataFrame, shortest: int = SHORTEST) -> pd.DataFrame:
    """The pairs both of whose sentences have that many tokens, punctuation included."""
    fits = [min(map(negator.count_tokens, pair)) >= shortest for pair in _both(pairs)]
    return pairs[pd.Series(fits, index=pairs.index, dtype=bool)]


def negated_on_one_side(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs of which one sentence has a negative word and the other has none; that one as the column `sentence`."""
    rows = []
    for index, pair in zip(pairs.index, _both(pairs), strict=True):
        negative = [sentence for sentence in pair if negator.has_negative_word(sentence)]
        if len(negative) == 1:
            rows.append((index, negative[0]))
    index = [index for index, _ in rows]
    return pairs.loc[index].assign(sentence=[sentence for _, sentence in rows])


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


def _find(doc: Doc) -> tuple[Token, Token] | None:
    """The negator and the adjective to swap; None without the one or the other."""
    negation = next((token for token in doc if token.lower_ == "not" and token.tag_ == "RB"), None)
    if negation is None:
        return None
    nearest = [*doc[negation.i + 1 :], *reversed(doc[: negation.i])]
    adjective = next((token for token in nearest if token.tag_ == "JJ"), None)
    return (negation, adjective) if adjective is not None else None


# --- the four sentences -----------------------------------------------------------------------------------------------


def substituted(sentences: pd.DataFrame) -> pd.DataFrame:
    """A set of four for each antonym of each sentence's adjective.

    Args:
        sentences: sentence, doc (from `with_not_and_adjective`).

    Returns:
        The four sentences (`OPTIONS`), adjective, antonym (lower case); none for an adjective without antonym.
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
            for antonym in wordnet.antonyms(adjective.text)
        ]
    return pd.DataFrame(rows, columns=[*OPTIONS, "adjective", "antonym"])


def _rewritten(doc: Doc, adjective: Token, antonym: str | None = None, without: Token | None = None) -> str:
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


# --- the suite --------------------------------------------------------------------------------------------------------


def permuted(sets: pd.DataFrame) -> pd.DataFrame:
    """Four items a set, each of its sentences once the input: idx, label (always 2), input, sentences; in the official order.

    Raises:
        ConstructionError: a set lacks a sentence, or has one twice.
    """
    if missing := [column for column in OPTIONS if column not in sets]:
        raise ConstructionError(f"The sets have no column {', '.join(missing)}; a set is {', '.join(OPTIONS)}.")
    for number, row in enumerate(sets[list(OPTIONS)].itertuples(index=False), start=1):
        if not all(isinstance(text, str) and text.strip() for text in row) or len(set(row)) < len(OPTIONS):
            raise ConstructionError(
                f"Set {number} needs four different sentences, and has {tuple(row)}. Correct or drop it."
            )
    items = [
        (LABEL, getattr(row, given), [getattr(row, option) for option in options])
        for given, options in OPTIONS.items()
        for row in sets.itertuples()
    ]
    return pd.DataFrame(items, columns=["label", "input", "sentences"]).rename_axis("idx").reset_index()


def _checked_review(reviewed: pd.DataFrame, sets: pd.DataFrame) -> pd.DataFrame:
    """A review drops and corrects sets; it can't bring in a sentence that the filters didn't let through."""
    if "negated" in reviewed and (strangers := sorted(set(reviewed.negated) - set(sets.negated))):
        raise ConstructionError(
            f"{len(strangers)} reviewed sets belong to no negated sentence among the candidates, the first: {strangers[0]!r}. "
            "Review the sets of these very pairs, and leave the negated sentence as it is."
        )
    return reviewed
