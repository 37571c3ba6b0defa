"""What is in anchors and their variants: edit distances, what a filter keeps, patterns of negation, hedge cues (Truong §3.1)."""

import difflib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from nblib import paths
from nblib.corpora import negator
from nblib.corpora.hedgetriple import HEDGES, VARIANTS

if TYPE_CHECKING:
    from spacy.tokens import Doc

_SHORT_NOT = ("n't", "n’t")
_AUXILIARIES = {"do", "be", "have", "will", "would", "can", "could", "the", "a", "an", "any"}


def distances(anchors: pd.DataFrame) -> pd.DataFrame:
    """Levenshtein distance (characters) of each variant from its anchor: id, then a column for each of the six variants."""
    columns = {
        variant: cpdist(anchors.anchor, anchors[variant], scorer=Levenshtein.distance, dtype=np.int32)
        for variant in VARIANTS
    }
    return pd.DataFrame({"id": anchors.id.to_numpy(), **columns})


def yields(measured: pd.DataFrame, thresholds: Sequence[int]) -> pd.DataFrame:
    """What survives the filter: threshold, variant ("all six" for anchors that keep every variant), share (percent).

    Args:
        measured: from `distances`.
    """
    rows = []
    for threshold in thresholds:
        kept = measured.drop(columns="id") <= threshold
        rows += [(threshold, variant, 100 * kept[variant].mean()) for variant in kept]
        rows.append((threshold, "all six", 100 * kept.all(axis=1).mean()))
    return pd.DataFrame(rows, columns=["threshold", "variant", "share"])


def patterns(anchors: Sequence[str], variants: Sequence[str]) -> list[str]:
    """The pattern by which each variant negates (or hedges) its anchor: the lemmas that the edit adds, without auxiliaries; ""
    where it adds none. "doesn't work" and "did not sink" have one pattern, "not"; "unwilling to sink" has another."""
    distinct = list(dict.fromkeys([*anchors, *variants]))
    lemmas = dict(zip(distinct, map(_lemmas, negator.tag_all(distinct)), strict=True))
    return [_added(lemmas[anchor], lemmas[variant]) for anchor, variant in zip(anchors, variants, strict=True)]


def _added(old: list[str], new: list[str]) -> str:
    steps = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
    added = [word for kind, _, _, start, end in steps if kind in ("insert", "replace") for word in new[start:end]]
    return " ".join(word for word in added if word not in {*old, *_AUXILIARIES})


def _lemmas(text: "Doc") -> list[str]:
    words = [token for token in text if token.is_alpha or token.lower_ in _SHORT_NOT]
    return ["not" if token.lower_ in _SHORT_NOT else token.lemma_.lower() for token in words]


def diversity(anchors: pd.DataFrame, variants: Sequence[str], draws: int = 1000) -> pd.DataFrame:
    """How many distinct patterns (see `patterns`) occur in each column of variants.

    Returns:
        variant, n, ways (distinct patterns), per_draws (distinct patterns among that many pairs, on average: comparable
        between unequal n), entropy (bits), commonest (the most frequent pattern), share (its percent).
    """
    rows = []
    long = anchors.melt("anchor", variants, "variant", "text").dropna()
    long["pattern"] = patterns(long.anchor, long.text)
    for variant in variants:
        found = long.pattern[long.variant == variant]
        counts = found[found != ""].value_counts()
        share = counts / counts.sum()
        expected = (1 - (1 - share) ** min(draws, int(counts.sum()))).sum()
        rows.append((
            variant, int(counts.sum()), len(counts), expected, -(share * np.log2(share)).sum(), counts.index[0],
            100 * share.iloc[0],
        ))  # fmt: skip
    columns = ["variant", "n", "ways", "per_draws", "entropy", "commonest", "share"]
    return pd.DataFrame(rows, columns=columns)


def cue_coverage(anchors: pd.DataFrame) -> pd.DataFrame:
    """Truong's hedge cues (Appendix A) in the hedges: kind (word, phrase), cues (in the paper), used, asked (hedges whose
    cue is one of them), median and most often a cue is used."""
    known = json.loads((paths.DATA / "published" / "hedge_cues.json").read_text(encoding="utf-8"))
    rows = []
    for kind in HEDGES:
        cues = set(known[kind])
        uses = anchors[f"{kind}_cue"].value_counts()
        ours = uses[uses.index.isin(cues)]
        rows.append((kind, len(cues), len(ours), int(ours.sum()), float(ours.median()), int(ours.max())))
    return pd.DataFrame(rows, columns=["kind", "cues", "used", "asked", "median_uses", "most_uses"])
