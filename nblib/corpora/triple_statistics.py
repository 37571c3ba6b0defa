"""What is in anchors and their variants: edit distances, what a filter keeps, patterns of negation (Truong §3.1)."""

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from nblib.corpora import negator
from nblib.corpora.authored import VARIANTS

if TYPE_CHECKING:
    from spacy.tokens import Doc

_SHORT_NOT = ("n't", "n’t")
_AUXILIARIES = set("do be have will would can could the a an any".split())


def distances(anchors: pd.DataFrame) -> pd.DataFrame:
    """Levenshtein distance (characters) of each variant from its anchor: id, and a column a variant."""
    measure = {"scorer": Levenshtein.distance, "dtype": np.int32}
    columns = {variant: cpdist(anchors.anchor, anchors[variant], **measure) for variant in VARIANTS}
    return pd.DataFrame({"id": anchors.id.to_numpy(), **columns})


def yields(measured: pd.DataFrame, thresholds: Sequence[int]) -> pd.DataFrame:
    """What of `distances` survives the filter: threshold, variant ("all six": all of an anchor's), share (percent)."""
    rows = []
    for threshold in thresholds:
        kept = measured.drop(columns="id") <= threshold
        shares = 100 * kept.assign(**{"all six": kept.all(axis=1)}).mean()
        rows += [(threshold, variant, share) for variant, share in shares.items()]
    return pd.DataFrame(rows, columns=["threshold", "variant", "share"])


def patterns(anchors: Sequence[str], variants: Sequence[str]) -> list[str]:
    """The pattern by which each variant negates (or hedges) its anchor: the lemmas that the edit adds, without auxiliaries ("not"
    for "doesn't work" and "did not sink"); "" where it adds none."""
    distinct = list(dict.fromkeys([*anchors, *variants]))
    lemmas = dict(zip(distinct, map(_lemmas, negator.tag_all(distinct)), strict=True))
    return [_added(lemmas[anchor], lemmas[variant]) for anchor, variant in zip(anchors, variants, strict=True)]


def _added(old: list[str], new: list[str]) -> str:
    steps = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
    added = [word for step, _, _, start, end in steps if step in ("insert", "replace") for word in new[start:end]]
    return " ".join(word for word in added if word not in {*old, *_AUXILIARIES})


def _lemmas(text: "Doc") -> list[str]:
    words = [token for token in text if token.is_alpha or token.lower_ in _SHORT_NOT]
    return ["not" if token.lower_ in _SHORT_NOT else token.lemma_.lower() for token in words]


def diversity(anchors: pd.DataFrame, variants: Sequence[str], draws: int = 1000) -> pd.DataFrame:
    """The `patterns` in each column of variants: variant, n, patterns (distinct ones), per_draws (distinct ones among that many
    pairs, on average: comparable between unequal n), entropy (bits), commonest (pattern), share (its percent)."""
    long = anchors.melt("anchor", variants, "variant", "text").dropna()
    long["pattern"] = patterns(long.anchor, long.text)
    rows = []
    for variant in variants:
        counts = long.pattern[(long.variant == variant) & (long.pattern != "")].value_counts()
        n, share = int(counts.sum()), counts / counts.sum()
        expected, entropy = (1 - (1 - share) ** min(draws, n)).sum(), -(share * np.log2(share)).sum()
        commonest, most = next(share.items(), ("", np.nan))
        rows.append((variant, n, len(counts), expected, entropy, commonest, 100 * most))
    columns = ["variant", "n", "patterns", "per_draws", "entropy", "commonest", "share"]
    return pd.DataFrame(rows, columns=columns)
