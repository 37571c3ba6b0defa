"""From anchors with their variants to contrastive triples (Truong §3.1.3): filter, build, ablate, subset, export.

An anchor comes with four negations and two hedges. A hedged variant is the positive, a negated one the negative: 4 × 2 = 8
triples an anchor. The ablations of §5.1 replace one side: *only negation* has the entailed sentence as the positive, *only
hedging* the simple (verbal) negation as the negative.
"""

import difflib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist
from spacy.tokens import Doc

from nblib import corpora, negator, paths
from nblib.negation_profile import HEDGES, NEGATIONS, held_out

THRESHOLD = 60  # characters; "equivalent to 10 words" (§3.1.3)
NEVIR_DEV = 10  # of the 50 training pairs at hand, to choose on
EXCLUSION = "exclusion"  # what `hedge` and `negation` say of a triple of `exclusions`
RECIPES = ("both", "only negation", "only hedging", *NEGATIONS, "mixed", "rule-based", "both + exclusions", "NevIR")
COLUMNS = ["id", "anchor", "positive", "negative", "hedge", "negation"]
_SHORT_NOT = ("n't", "n’t")
_AUXILIARIES = {"do", "be", "have", "will", "would", "can", "could", "the", "a", "an", "any"}


class TripleError(ValueError):
    """Anchors or triples that can't be used for training."""


# --- the filter -------------------------------------------------------------------------------------------------------


def distances(anchors: pd.DataFrame) -> pd.DataFrame:
    """Levenshtein distance (characters) of each variant from its anchor: id, then a column for each of the six variants."""
    columns = {
        variant: cpdist(anchors.anchor, anchors[variant], scorer=Levenshtein.distance, dtype=np.int32)
        for variant in (*NEGATIONS, *HEDGES)
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


def filtered(anchors: pd.DataFrame, threshold: int = THRESHOLD) -> pd.DataFrame:
    """The anchors all of whose six variants are within the threshold (characters): the paper's 31K × 8 = 248K holds only so.

    Raises:
        TripleError: nothing survives.
    """
    close = (distances(anchors).drop(columns="id") <= threshold).all(axis=1).to_numpy()
    if not close.any():
        raise TripleError(
            f"No anchor of {len(anchors)} has all six variants within {threshold} characters. Raise the threshold."
        )
    return anchors[close].reset_index(drop=True)


# --- splits and triples -----------------------------------------------------------------------------------------------


def split(anchors: pd.DataFrame, dev: int = 100, seed: int = 0) -> pd.DataFrame:
    """The anchors with a column `split`: "held out" (the committed list, for the negation-type profile), "dev" (that many
    of the others, drawn by seed), "train"; those of "train" in the order in which `subset` takes them.

    Raises:
        TripleError: nothing would be left to train on.
    """
    apart = anchors.id.isin(held_out())
    rest = anchors[~apart].sample(frac=1, random_state=seed)
    if not 0 <= dev < len(rest):
        raise TripleError(
            f"{dev} dev anchors can't be taken of {len(rest)} with some left to train on. Choose another dev."
        )
    parts = {"train": rest[dev:], "dev": rest[:dev], "held out": anchors[apart]}
    return pd.concat([part.assign(split=name) for name, part in parts.items()], ignore_index=True)


def subset(anchors: pd.DataFrame, size: int) -> pd.DataFrame:
    """The first anchors: smaller subsets lie within larger ones.

    Raises:
        TripleError: fewer anchors than asked for.
    """
    if not 0 < size <= len(anchors):
        raise TripleError(f"A subset of {size} anchors of {len(anchors)} can't be had.")
    return anchors.head(size).reset_index(drop=True)


def build(anchors: pd.DataFrame, recipe: str = "both", seed: int = 0) -> pd.DataFrame:
    """Triples by recipe.

    Args:
        anchors: id, anchor, entailment, the four negations, the two hedges.
        recipe: "both" (8 an anchor); "only negation" (entailed sentence × 4) and "only hedging" (2 × verbal), §5.1; one
            type of negation (2 an anchor); and at the same size "mixed" (a type drawn for each hedge) and "rule-based"
            (the negation that the tool of Anschütz et al. makes; anchors it can't negate are left out).
        seed: of the draw of "mixed".

    Returns:
        `COLUMNS`: id (the anchor's), anchor, positive, negative, hedge and negation (which variants they are).

    Raises:
        TripleError: unknown recipe, or unusable texts (see `check`).
    """
    hedges, negations = HEDGES, NEGATIONS
    if recipe == "only negation":
        hedges = ("entailment",)
    elif recipe == "only hedging":
        negations = ("verbal",)
    elif recipe in NEGATIONS:
        negations = (recipe,)
    elif recipe == "mixed":
        drawn = np.random.default_rng(seed).integers(len(NEGATIONS), size=(len(anchors), len(HEDGES)))
    elif recipe == "rule-based":
        made = negator.negate_sentences(anchors.anchor)
        negated = made.negated.where(made.reason == "")
        anchors = anchors.assign(rule=anchors.anchor.map(dict(zip(made.sentence, negated, strict=True))))
        anchors, negations = anchors.dropna(subset=["rule"]), ("rule",)
    elif recipe != "both":
        raise TripleError(f"Unknown recipe {recipe!r}; known: {', '.join(RECIPES)}.")
    rows = []
    for place, anchor in enumerate(anchors.to_dict("records")):
        for turn, hedge in enumerate(hedges):
            chosen = (NEGATIONS[drawn[place, turn]],) if recipe == "mixed" else negations
            rows += [(anchor["id"], anchor["anchor"], anchor[hedge], anchor[name], hedge, name) for name in chosen]
    return check(pd.DataFrame(rows, columns=COLUMNS))


def training_set(anchors: pd.DataFrame, recipe: str, size: int = 0, seed: int = 0) -> pd.DataFrame:
    """The triples of one training: the first `size` anchors (0: all) of the split "train", by recipe (`build`), for "both +
    exclusions" with those of `exclusions`; or, for the recipe "NevIR" (Weller §6), of the training pairs at hand all but the
    last `NEVIR_DEV`."""
    if recipe == "NevIR":
        pairs = corpora.load("nevir", "train_sample")
        train = pairs.head(len(pairs) - NEVIR_DEV)
        return nevir(subset(train, size or len(train)))
    train = anchors[anchors.split == "train"]
    chosen = subset(train, size or len(train))
    if recipe == "both + exclusions":
        return pd.concat([build(chosen), exclusions()], ignore_index=True)
    return build(chosen, recipe, seed)


def exclusions() -> pd.DataFrame:
    """Triples that ask to leave something out ("X, but not Y"), which no hedge or negation of a statement does: a query, a
    passage that answers it, one about just what it excludes; and its twin, for which the two change sides. The study's own,
    authored; two an item."""
    table = corpora.load("exclusions")
    sides = [("query", "positive", "negative"), ("twin", "negative", "positive")]
    tables = [
        pd.DataFrame({"id": table.id, "anchor": table[query], "positive": table[answer], "negative": table[other]})
        for query, answer, other in sides
    ]
    return check(pd.concat(tables, ignore_index=True).assign(hedge=EXCLUSION, negation=EXCLUSION))


def nevir(pairs: pd.DataFrame) -> pd.DataFrame:
    """NevIR's pairs as triples: each query with its document and the other one; two a pair.

    Args:
        pairs: id, q1, q2, doc1, doc2.
    """
    sides = [("q1", pairs.q1, pairs.doc1, pairs.doc2), ("q2", pairs.q2, pairs.doc2, pairs.doc1)]
    tables = [
        pd.DataFrame(
            {"id": pairs.id, "anchor": query, "positive": own, "negative": other, "hedge": side, "negation": side}
        )
        for side, query, own, other in sides
    ]
    return check(pd.concat(tables, ignore_index=True))


def check(triples: pd.DataFrame) -> pd.DataFrame:
    """The triples, if a contrastive loss can learn from every one.

    Raises:
        TripleError: no triples, a missing column, an empty text, or two of a triple's texts identical; names the first.
    """
    missing = [column for column in COLUMNS if column not in triples]
    if missing:
        raise TripleError(f"Triples without the columns {', '.join(missing)}; they have {', '.join(triples.columns)}.")
    if triples.empty:
        raise TripleError("No triples: neither positives nor negatives to learn from.")
    texts = triples[["anchor", "positive", "negative"]]
    empty = ~texts.map(lambda text: isinstance(text, str) and bool(text.strip())).all(axis=1)
    same = (texts.anchor == texts.negative) | (texts.positive == texts.negative) | (texts.anchor == texts.positive)
    for fault, where in [("an empty text", empty), ("two identical texts", same)]:
        if where.any():
            first = triples[where].iloc[0]
            raise TripleError(
                f"{where.sum()} triples with {fault}, first: anchor {first.id}, {first.hedge} / {first.negation}: "
                f"{first.anchor!r}, {first.positive!r}, {first.negative!r}. Mend the text or leave the anchor out."
            )
    return triples


# --- what is in them --------------------------------------------------------------------------------------------------


def ways(anchors: Sequence[str], variants: Sequence[str]) -> list[str]:
    """For each pair, the way it negates (or hedges): the lemmas that the edit adds to the anchor, auxiliaries aside; "" where
    it adds none. "doesn't work" and "did not sink" are one way, "not"; "unwilling to sink" and "kept afloat" are others."""
    distinct = list(dict.fromkeys([*anchors, *variants]))
    lemmas = dict(zip(distinct, map(_lemmas, negator.tag_all(distinct)), strict=True))
    return [_added(lemmas[anchor], lemmas[variant]) for anchor, variant in zip(anchors, variants, strict=True)]


def _added(old: list[str], new: list[str]) -> str:
    steps = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
    added = [word for kind, _, _, start, end in steps if kind in ("insert", "replace") for word in new[start:end]]
    return " ".join(word for word in added if word not in {*old, *_AUXILIARIES})


def _lemmas(text: Doc) -> list[str]:
    words = [token for token in text if token.is_alpha or token.lower_ in _SHORT_NOT]
    return ["not" if token.lower_ in _SHORT_NOT else token.lemma_.lower() for token in words]


def diversity(anchors: pd.DataFrame, variants: Sequence[str], draws: int = 1000) -> pd.DataFrame:
    """How many ways of negating (or hedging) each column of variants knows.

    Returns:
        variant, n, ways (different ones, see `ways`), per_draws (different ways among that many
        pairs, on average: comparable between unequal n), entropy (bits, of the ways), commonest, share (percent).
    """
    rows = []
    long = anchors.melt("anchor", variants, "variant", "text").dropna()
    long["way"] = ways(long.anchor, long.text)
    for variant in variants:
        found = long.way[long.variant == variant]
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


# --- export -----------------------------------------------------------------------------------------------------------


def save(folder: str | Path, tables: dict[str, pd.DataFrame], card: str) -> Path:
    """Write the triples as parquet, one file a split, with a card: `datasets.load_dataset(folder)` reads it in one line."""
    folder = paths.writable_folder(folder)
    for name, table in tables.items():
        with paths.write_atomically(folder / f"{name}.parquet") as draft:
            check(table).to_parquet(draft, index=False)
    files = "".join(f"      - split: {name}\n        path: {name}.parquet\n" for name in tables)
    header = (
        f"---\nlicense: cc-by-4.0\nlanguage: en\nconfigs:\n  - config_name: default\n    data_files:\n{files}---\n\n"
    )
    with paths.write_atomically(folder / "README.md") as draft:
        draft.write_text(header + card.strip() + "\n", encoding="utf-8")
    return folder


def load_variants(file: str | Path) -> pd.DataFrame:
    """Anchors with their six variants, as notebook 02 leaves them (entailment may be missing in some or all).

    Raises:
        TripleError: no such file, or no such table.
    """
    return _read(file, {"id", "anchor", "entailment", *NEGATIONS, *HEDGES}, "02")


def load_anchors(file: str | Path) -> pd.DataFrame:
    """The anchors that notebook 03 has left, with their split.

    Raises:
        TripleError: no such file, or no such table, or one that would train on what is held out.
    """
    table = _read(file, {"id", "anchor", "entailment", "split", *NEGATIONS, *HEDGES}, "03")
    if leaked := set(table.id[table.split != "held out"]) & set(held_out()):
        raise TripleError(
            f"{paths.resolve(file)} would train on {len(leaked)} held-out anchors, first {min(leaked)}. {_how('03')}"
        )
    return table


def _read(file: str | Path, columns: set[str], notebook: str) -> pd.DataFrame:
    file = paths.resolve(file)
    if not file.is_file():
        raise TripleError(f"No anchors at {file}. {_how(notebook)}")
    try:
        table = pd.read_parquet(file)
    except Exception as error:  # pyarrow has its own for every way a file can be damaged
        raise TripleError(f"{file} can't be read as parquet ({error}). {_how(notebook)}") from error
    if missing := columns - set(table.columns):
        raise TripleError(f"{file} has no column {', '.join(sorted(missing))}. {_how(notebook)}")
    return table


def _how(notebook: str) -> str:
    return f"Make it: python -m nblib.execution {notebook} out.ipynb (its run_dir says where it goes)."


def card(parts: dict[str, pd.DataFrame], threshold: int, seed: int, variants: str = "authored") -> str:
    """What to say of exported triples: what they are, how many, how they were made, what they are not.

    Args:
        variants: "authored", or the file of notebook 02 that they were built from.
    """
    sizes = "\n".join(f"| {name} | {table.id.nunique():,} | {len(table):,} |" for name, table in parts.items())
    return f"""# HedgeTriple open

Triples for contrastive training (Truong et al., *Learning Robust Negation Text Representations*, §3.1.3):
`anchor`, `positive` (a hedged variant), `negative` (a negated one), `hedge` and `negation` (which), `id` (the anchor's).

| split | anchors | triples |
|---|---|---|
{sizes}

Made with a Levenshtein threshold of {threshold} characters on all six variants and seed {seed}. {_origin(variants)}
"""


def _origin(variants: str) -> str:
    if variants != "authored":
        return f"Anchors and variants: {variants}, synthesised by notebook 02; its sidecar says by which model."
    return (
        "300 further anchors are held out for the negation-type profile and in neither split. The texts were written by a\n"
        "large language model under close instructions, not sampled from the paper's sources:\n"
        "this is not the authors' HedgeTriple. Known weaknesses: the study's data card."
    )
