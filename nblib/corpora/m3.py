"""M3-derived: Truong's M3-Counterfactual (§4.2.1) rebuilt from the target statements of M3's levels 2 and 3.

M3-Counterfactual is no public file: statements corrupted by hand by "adding negation", by "There is no evidence that ..." and by
"hedging words such as might", with the scores −1, 0 and 1. Here a rule does so to each distinct statement that is one plain
sentence (no connective at the start, nothing reported), without hedge or evidential (`_HEDGED`), and with a clean verbal
negation (`negator`); "might" goes into the verb group that the negation went into, and past tense becomes "might have".

all-mpnet-base-v2 scores 49.0 on these (19.4 with the hedge "There is weak evidence that "); the paper prints 16.20 on its own.
M3-derived is an easier test and enters no average.
"""

import re
from typing import TYPE_CHECKING

import pandas as pd

from nblib import corpora
from nblib.corpora import negator

if TYPE_CHECKING:
    from spacy.tokens import Doc

SCORES = {"negation": -1.0, "no_evidence": 0.0, "hedged": 1.0}

_HEDGED = re.compile(
    r"\b(?:may|might|could|can|should|would|will|must|possibl[ye]|potential(?:ly)?|likely|probabl[ye]|appear(?:s|ed)?|seem(?:s|ed)?|"
    r"suggest(?:s|ed)?|evidence)\b",
    re.I,
)


def load(name: str = "m3") -> pd.DataFrame:
    """The pairs of M3-derived (`m3`) or of the authored mini set (`m3_mini`): id, claim (the original statement), kind (one of
    `SCORES`), variant, score."""
    claims = corpora.load(name)
    if name == "m3":
        claims = derive(claims.drop_duplicates("target_text"))
    pairs = claims.melt(id_vars=["id", "claim"], value_vars=list(SCORES), var_name="kind", value_name="variant")
    return pairs.assign(score=pairs.kind.map(SCORES)).sort_values("id", kind="stable", ignore_index=True)


def derive(statements: pd.DataFrame) -> pd.DataFrame:
    """The rule on distinct statements (docid, target_text, split): id, claim, negation, no_evidence, hedged, where it applies."""
    claims = statements.assign(claim=statements.target_text.str.strip())
    claims = claims[~claims.claim.str.contains(_HEDGED)]
    claims = claims.merge(negator.negate_sentences(claims.claim.tolist()), left_on="claim", right_on="sentence")
    rows = []
    for row in claims[claims.reason == ""].itertuples():
        doc = negator.parse(row.claim)
        if _is_plain_claim(doc) and (hedged := hedge(doc)) is not None:
            no_evidence = f"There is no evidence that {_inside_sentence(doc)}"
            rows.append((f"{row.split}/{row.docid}", row.claim, row.negated, no_evidence, hedged))
    return pd.DataFrame(rows, columns=["id", "claim", "negation", "no_evidence", "hedged"])


def _is_plain_claim(doc: "Doc") -> bool:
    root = next(token for token in doc if token.dep_ == "ROOT")
    connective = doc[0].dep_ in ("mark", "cc") or (doc[0].dep_ == "advmod" and doc[0].head == root)
    reports = {"ccomp", "csubj"} & {child.dep_ for child in root.children}
    reports |= {"advcl"} & {child.dep_ for child in root.lefts}
    return len(list(doc.sents)) == 1 and not connective and not reports


def hedge(doc: "Doc") -> str | None:
    """The sentence with "might" in its main verb group; None where that has no finite verb the rule knows."""
    root = next(token for token in doc if token.dep_ == "ROOT")
    auxiliaries = [token for token in root.lefts if token.dep_ in ("aux", "auxpass")]
    finite = auxiliaries[0] if auxiliaries else root
    if finite.tag_ not in ("VBZ", "VBP", "VBD"):
        return None
    if finite.tag_ != "VBD":
        replacement = f"might {finite.lemma_.lower()}"
    elif finite.lemma_.lower() == "have":  # a past perfect is a perfect under a modal
        replacement = "might have" if auxiliaries else "might have had"
    else:
        from lemminflect import getInflection  # loads spaCy

        participle = getInflection(finite.lemma_, tag="VBN")
        if not participle:
            return None
        replacement = f"might have {participle[0]}"
    return doc.text[: finite.idx] + replacement + doc.text[finite.idx + len(finite) :]


def _inside_sentence(doc: "Doc") -> str:
    """The statement as it stands after "that": without the capital, unless of a name or an acronym."""
    first = doc[0]
    keeps_capital = first.pos_ == "PROPN" or not first.text[1:].islower()
    return doc.text if keeps_capital and first.lower_ != "a" else doc.text[0].lower() + doc.text[1:]
