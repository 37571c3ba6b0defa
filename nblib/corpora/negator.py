"""Rule-based sentence negation for STSB (Cao §3.1), by the tool he cites: `negate`, of Anschütz et al.

The tool adds or removes one verbal negation and doesn't report sentences it can't negate. `negate_sentences` gives each sentence
its negation and, where that isn't clean, the reason.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from types import ModuleType

    from spacy.tokens import Doc

NO_OUTPUT = ("no verb to negate", "broken output")
REASONS = (*NO_OUTPUT, "question", "already negative", "quantified subject", "reported speech")

_NEGATIVE = re.compile(r"n[’']t\b|\b(not|no|never|none|nobody|nothing|nowhere|neither|nor|without|cannot)\b", re.I)
_QUANTIFIERS = {
    "all", "every", "each", "some", "any", "many", "most", "few", "several", "both", "everyone", "everybody",
    "everything", "someone", "somebody", "something", "anyone", "anybody", "anything", "only",
}  # fmt: skip
_REPORTING = {
    "say", "tell", "report", "announce", "state", "claim", "add", "note", "explain", "warn", "argue", "suggest",
    "believe", "think", "write", "ask", "insist", "declare", "confirm", "admit", "deny", "reply", "estimate",
    "expect",
}  # fmt: skip


def has_negative_word(sentence: str) -> bool:
    """Whether a sentence has one of the negative words (not, n't, no, never, nobody, nor, without, …); affixal and lexical
    negation (unable, fail) has none."""
    return bool(_NEGATIVE.search(sentence))


def _tool() -> "ModuleType":
    from nblib.corpora import offline_negator  # loads spaCy and, with it, torch: seconds

    return offline_negator


def parse(sentence: str) -> "Doc":
    """The sentence as the tool's own pipeline reads it."""
    return _tool().pipeline()(sentence)


def count_tokens(sentence: str) -> int:
    """How many tokens a sentence has, punctuation and clitics included ("It's fine." has four)."""
    return len(_tool().pipeline().tokenizer(sentence))


def tag_all(sentences: Sequence[str]) -> Iterator["Doc"]:
    """Sentences with lemmas and parts of speech, in batches; not parsed, which takes half of the time."""
    return _tool().pipeline().pipe(sentences, batch_size=256, disable=["parser"])


def negate_sentences(sentences: Sequence[str]) -> pd.DataFrame:
    """Negate each distinct sentence.

    Returns:
        A row per distinct sentence, in order of appearance: sentence; negated, the tool's output (or the sentence itself);
        reason, one of `REASONS` where that isn't a plain negation, else "". "No man isn't …" removes nothing; "All men aren't"
        negates "all", not "are"; "He didn't say that …" doesn't negate the statement; a negative sentence becomes affirmative.
    """
    distinct = list(dict.fromkeys(sentences))
    negator = _tool().OfflineNegator(_tool().pipeline())
    cleaned = [negator._remove_extra_whitespaces(sentence) for sentence in distinct]
    parsed = dict(zip(cleaned, _tool().pipeline().pipe(cleaned, batch_size=256), strict=True))
    negator.spacy_model = lambda text: parsed.get(text) or _tool().pipeline()(text)
    rows = []
    for sentence, text in zip(distinct, cleaned, strict=True):
        negated = negator.negate_sentence(sentence)
        rows.append((sentence, negated, _reason(text, negated, parsed[text])))
    return pd.DataFrame(rows, columns=["sentence", "negated", "reason"])


def _reason(sentence: str, negated: str, doc: "Doc") -> str:
    if negated.split() == sentence.split():
        return "no verb to negate"
    if "None " in negated and "None " not in sentence:  # the tool's own "None park" for a participle without auxiliary
        return "broken output"
    if "?" in sentence:
        return "question"
    if _NEGATIVE.search(sentence):
        return "already negative"
    root = next(token for token in doc if token.dep_ == "ROOT")
    children = list(root.children)
    subjects = [child for child in children if child.dep_ in ("nsubj", "nsubjpass")]
    words = {token.lower_ for subject in subjects for token in (subject, *subject.children)}
    if words & _QUANTIFIERS:
        return "quantified subject"
    if root.lemma_.lower() in _REPORTING and any(child.dep_ in ("ccomp", "xcomp", "parataxis") for child in children):
        return "reported speech"
    return ""
