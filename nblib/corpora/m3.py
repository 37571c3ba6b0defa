"""M3-derived: Truong's M3-Counterfactual (§4.2.1) rebuilt from the target statements of M3's levels 2 and 3.

M3-Counterfactual is no public file. The paper says what it is: statements of biomedical reviews, corrupted by hand by
"adding negation", "changing statements into non-evidential sentences (There is no evidence that ...)" and "changing the
modality (e.g. by adding hedging words such as might ...)"; pairs of original and corruption have the scores −1, 0 and 1.
The rule here does the same without a hand, so the result has a name of its own:

1. Originals: the distinct target statements of both levels that are one plain sentence (no connective at the start, no
   reported statement as in "These results show that …"), without hedge or evidential (`_HEDGED`), and with a clean verbal
   negation (`negator`).
2. Negation: the rule-based negator of notebook 01.
3. No evidence: "There is no evidence that " before the statement.
4. Hedged: "might" in the verb group that the negation went into; past tense becomes "might have".

Intensified statements ("certainly") are named in the paper but have no score there, so they are left out.

all-mpnet-base-v2 scores 49.0 on the official statements; the paper prints 16.20 on its hand-made ones. M3-derived is an easier
test and enters no average. The wording of the hedge matters most: with "It is possible that " the same model scores 41.2,
with "There is weak evidence that " 19.4. We use the word that the paper names.
"""

import re
from typing import TYPE_CHECKING

import pandas as pd

from nblib import corpora
from nblib.corpora import negator

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

SCORES = {"negation": -1.0, "no_evidence": 0.0, "hedged": 1.0}

_HEDGED = re.compile(
    r"\b(?:may|might|could|can|should|would|will|must|possibl[ye]|potential(?:ly)?|likely|probabl[ye]|appear(?:s|ed)?|seem(?:s|ed)?|"
    r"suggest(?:s|ed)?|evidence)\b",
    re.I,
)


def load(name: str = "m3") -> pd.DataFrame:
    """The pairs of M3-derived (`m3`) or of the authored mini set (`m3_mini`).

    Returns:
        id, claim (the original statement), kind (one of `SCORES`), variant, score.
    """
    claims = corpora.load(name)
    if name == "m3":
        claims = derive(claims.drop_duplicates("target_text"))
    pairs = claims.melt(id_vars=["id", "claim"], value_vars=list(SCORES), var_name="kind", value_name="variant")
    return pairs.assign(score=pairs.kind.map(SCORES)).sort_values("id", kind="stable", ignore_index=True)


def derive(statements: pd.DataFrame) -> pd.DataFrame:
    """Apply the module's rule.

    Args:
        statements: docid, target_text, split; distinct statements.

    Returns:
        id (split and docid), claim, negation, no_evidence, hedged, for the statements the rule can do.
    """
    claims = statements.target_text.str.strip()
    claims = claims[~claims.str.contains(_HEDGED)]
    negations = negator.negate_sentences(claims.tolist()).set_index("sentence")
    rows = []
    for index, claim in claims.items():
        if negations.reason[claim]:
            continue
        doc = negator.parse(claim)
        hedged = hedge(doc) if _is_plain_claim(doc) else None
        if hedged is not None:
            no_evidence = f"There is no evidence that {_inside_sentence(doc)}"
            key = f"{statements.split[index]}/{statements.docid[index]}"
            rows.append((key, claim, negations.negated[claim], no_evidence, hedged))
    return pd.DataFrame(rows, columns=["id", "claim", "negation", "no_evidence", "hedged"])


def _is_plain_claim(doc: "Doc") -> bool:
    root = next(token for token in doc if token.dep_ == "ROOT")
    opens_with_connective = doc[0].dep_ in ("mark", "cc") or (doc[0].dep_ == "advmod" and doc[0].head == root)
    return (
        len(list(doc.sents)) == 1
        and not opens_with_connective
        and not any(
            child.dep_ in ("ccomp", "csubj") or (child.dep_ == "advcl" and child.i < root.i) for child in root.children
        )
    )


def hedge(doc: "Doc") -> str | None:
    """The sentence with "might" in its main verb group ("reduced" → "might have reduced"); None where that group has no
    finite verb the rule knows."""
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
    """The statement as it stands after "that": its first word without the capital, unless it is a name or an acronym."""
    first: Token = doc[0]
    keeps_capital = first.pos_ == "PROPN" or not first.text[1:].islower()
    return doc.text if keeps_capital and first.lower_ != "a" else doc.text[0].lower() + doc.text[1:]
