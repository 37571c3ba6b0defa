"""From anchors with their variants to contrastive triples (Truong §3.1.3): filter, build, ablate, subset, export.

An anchor comes with four negations and two hedges. A hedged variant is the positive, a negated one the negative: 4 × 2 = 8
triples an anchor. The ablations of §5.1 replace one side: *only negation* has the entailed sentence as the positive, *only
hedging* the simple (verbal) negation as the negative.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from nblib import artefacts, corpora, paths
from nblib.corpora import negator, twins
from nblib.corpora.hedgetriple import HEDGES, NEGATIONS, VARIANTS, held_out
from nblib.corpora.triple_statistics import distances
from nblib.errors import StudyError, check_numbers

THRESHOLD = 60  # characters; "equivalent to 10 words" (§3.1.3)
NEVIR_DEV = 10  # of the 50 training pairs at hand, to choose on
EXCLUSION = "exclusion"  # `hedge` and `negation` of a triple of `exclusions`
TRAINING_DATA = (
    "both",
    "only negation",
    "only hedging",
    *NEGATIONS,
    "mixed",
    "rule-based",
    "both + exclusions",
    "NevIR",
)
COLUMNS = ["id", "anchor", "positive", "negative", "hedge", "negation"]


class TripleError(StudyError):
    """Anchors or triples that can't be used for training."""


def filtered(anchors: pd.DataFrame, threshold: int = THRESHOLD) -> pd.DataFrame:
    """The anchors all of whose six variants are within the threshold (characters): the paper's 31K × 8 = 248K holds only so.

    Raises:
        TripleError: nothing survives.
    """
    close = (distances(anchors).drop(columns="id") <= threshold).all(axis=1).to_numpy()
    if not close.any():
        n = len(anchors)
        raise TripleError(f"No anchor of {n} has all six variants within {threshold} characters. Raise the threshold.")
    return anchors[close].reset_index(drop=True)


# --- splits and triples -----------------------------------------------------------------------------------------------


def split(anchors: pd.DataFrame, dev: int = 100, seed: int = 0) -> pd.DataFrame:
    """The anchors with a column `split`: "held out" (the committed list, for the negation-type profile), "dev" (that many
    of the others, sampled by seed), "train"; those of "train" in the order in which `subset` takes them.

    Raises:
        TripleError: nothing would be left to train on, or the seed can't be one.
    """
    check_numbers(seed)
    apart = anchors.id.isin(held_out())
    rest = anchors[~apart].sample(frac=1, random_state=seed)
    if not 0 <= dev < len(rest):
        raise TripleError(
            f"dev must be between 0 and {len(rest) - 1}, so that some of {len(rest)} anchors are left to train on. It is {dev}."
        )
    parts = {"train": rest[dev:], "dev": rest[:dev], "held out": anchors[apart]}
    return pd.concat([part.assign(split=name) for name, part in parts.items()], ignore_index=True)


def subset(anchors: pd.DataFrame, size: int) -> pd.DataFrame:
    """The first anchors: smaller subsets lie within larger ones.

    Raises:
        TripleError: fewer anchors than asked for.
    """
    if not 0 < size <= len(anchors):
        raise TripleError(
            f"A subset can't have {size} of {len(anchors)} anchors. Choose a size from 1 to {len(anchors)}."
        )
    return anchors.head(size).reset_index(drop=True)


def build(anchors: pd.DataFrame, training_data: str = "both", seed: int = 0) -> pd.DataFrame:
    """The triples of one kind of training data.

    Args:
        anchors: id, anchor, entailment, the four negations, the two hedges.
        training_data: "both" (8 an anchor); "only negation" (entailed sentence × 4) and "only hedging" (2 × verbal), §5.1; one
            type of negation (2 an anchor); and at the same size "mixed" (a random type for each hedge) and "rule-based"
            (the negation that the tool of Anschütz et al. makes; anchors it can't negate are left out).
        seed: of the draw of "mixed".

    Returns:
        `COLUMNS`: id (the anchor's), anchor, positive, negative, hedge and negation (which variants they are).

    Raises:
        TripleError: unknown training data, or unusable texts (see `check`).
    """
    hedges, negations = HEDGES, NEGATIONS
    if training_data == "only negation":
        hedges = ("entailment",)
    elif training_data == "only hedging":
        negations = ("verbal",)
    elif training_data in NEGATIONS:
        negations = (training_data,)
    elif training_data == "mixed":
        types = np.random.default_rng(seed).integers(len(NEGATIONS), size=(len(anchors), len(HEDGES)))
    elif training_data == "rule-based":
        output = negator.negate_sentences(anchors.anchor)
        clean = output.negated.where(output.reason == "")
        anchors = anchors.assign(rule=anchors.anchor.map(dict(zip(output.sentence, clean, strict=True))))
        anchors, negations = anchors.dropna(subset=["rule"]), ("rule",)
    elif training_data != "both":
        raise TripleError(f"Unknown training data {training_data!r}; known: {', '.join(TRAINING_DATA)}.")
    rows = []
    for place, anchor in enumerate(anchors.to_dict("records")):
        for turn, hedge in enumerate(hedges):
            chosen = (NEGATIONS[types[place, turn]],) if training_data == "mixed" else negations
            rows += [(anchor["id"], anchor["anchor"], anchor[hedge], anchor[name], hedge, name) for name in chosen]
    return check(pd.DataFrame(rows, columns=COLUMNS))


def training_set(anchors: pd.DataFrame, training_data: str, size: int = 0, seed: int = 0) -> pd.DataFrame:
    """The triples of one training, from the first `size` anchors (0: all) of the split "train".

    Args:
        training_data: one of `TRAINING_DATA`: as for `build`; "both + exclusions" adds the triples of `exclusions`; "NevIR"
            (Weller §6) takes the training pairs at hand instead of anchors, all but the last `NEVIR_DEV`.
    """
    if training_data == "NevIR":
        pairs = corpora.load("nevir", "train_sample")
        train = pairs.head(len(pairs) - NEVIR_DEV)
        return nevir(subset(train, size or len(train)))
    train = anchors[anchors.split == "train"]
    chosen = subset(train, size or len(train))
    if training_data == "both + exclusions":
        return pd.concat([build(chosen), exclusions()], ignore_index=True)
    return build(chosen, training_data, seed)


def exclusions() -> pd.DataFrame:
    """Authored triples that exclude something ("X, but not Y"), two an item: a query, a passage that answers it, a passage about
    what it excludes; and its twin, for which the two passages are swapped."""
    asked = twins.questions(corpora.load("exclusions").rename(columns={"query": "anchor"}))
    return check(asked.assign(hedge=EXCLUSION, negation=EXCLUSION)[COLUMNS])


def nevir(pairs: pd.DataFrame) -> pd.DataFrame:
    """NevIR's pairs as triples: each query with its document and the other one; two a pair.

    Args:
        pairs: id, q1, q2, doc1, doc2.
    """
    names = {"q1": "anchor", "q2": "twin", "doc1": "positive", "doc2": "negative"}
    asked = twins.questions(pairs.rename(columns=names))
    return check(asked.assign(hedge=asked.question, negation=asked.question)[COLUMNS])


def check(triples: pd.DataFrame) -> pd.DataFrame:
    """The triples, if a contrastive loss can learn from every one.

    Raises:
        TripleError: no triples, a missing column, an empty text, or two of a triple's texts identical; names the first.
    """
    if missing := [column for column in COLUMNS if column not in triples]:
        raise TripleError(f"The triples lack the columns {', '.join(missing)}; they have {', '.join(triples.columns)}.")
    if triples.empty:
        raise TripleError("There are no triples, so there is nothing to learn from.")
    texts = triples[["anchor", "positive", "negative"]]
    empty = ~texts.map(lambda text: isinstance(text, str) and bool(text.strip())).all(axis=1)
    same = (texts.anchor == texts.negative) | (texts.positive == texts.negative) | (texts.anchor == texts.positive)
    for fault, where in [("an empty text", empty), ("two identical texts", same)]:
        if where.any():
            first = triples[where].iloc[0]
            raise TripleError(
                f"{where.sum()} triples have {fault}; the first is anchor {first.id}, {first.hedge} / {first.negation}: "
                f"{first.anchor!r}, {first.positive!r}, {first.negative!r}. Correct the text, or leave the anchor out."
            )
    return triples


# --- files ------------------------------------------------------------------------------------------------------------


def save(folder: str | Path, tables: dict[str, pd.DataFrame], card: str) -> Path:
    """Write the triples as parquet, one file a split, with a card: `datasets.load_dataset(folder)` reads it in one line."""
    folder = paths.writable_folder(folder)
    for name, table in tables.items():
        artefacts.write_table(check(table), folder / f"{name}.parquet")
    files = "".join(f"      - split: {name}\n        path: {name}.parquet\n" for name in tables)
    configs = f"configs:\n  - config_name: default\n    data_files:\n{files}"
    header = f"---\nlicense: cc-by-4.0\nlanguage: en\n{configs}---\n\n"
    with paths.write_atomically(folder / "README.md") as draft:
        draft.write_text(header + card.strip() + "\n", encoding="utf-8")
    return folder


def load_variants(file: str | Path) -> pd.DataFrame:
    """Anchors with their six variants, as notebook 02 leaves them (entailment may be missing in some or all).

    Raises:
        TripleError: no such file, or no such table.
    """
    return _read(file, {"id", "anchor", "entailment", *VARIANTS}, "02")


def load_anchors(file: str | Path) -> pd.DataFrame:
    """The anchors of notebook 03, with their split.

    Raises:
        TripleError: no such file or table, or a held-out anchor in the training or dev split.
    """
    table = _read(file, {"id", "anchor", "entailment", "split", *VARIANTS}, "03")
    if leaked := set(table.id[table.split != "held out"]) & set(held_out()):
        count = f"{len(leaked)} held-out anchors (the first is {min(leaked)})"
        raise TripleError(f"A training on {paths.resolve(file)} would use {count}. {_how('03')}")
    return table


def _read(file: str | Path, columns: set[str], notebook: str) -> pd.DataFrame:
    file = paths.resolve(file)
    if not file.is_file():
        raise TripleError(f"There are no anchors at {file}. {_how(notebook)}")
    table = artefacts.read_table(file)
    if missing := columns - set(table.columns):
        raise TripleError(f"{file} has no column {', '.join(sorted(missing))}. {_how(notebook)}")
    return table


def _how(notebook: str) -> str:
    return f"Make it: nblib run {notebook} out.ipynb (its run_dir says where it goes)."


def card(parts: dict[str, pd.DataFrame], threshold: int, seed: int, variants: str = "authored") -> str:
    """The card of exported triples: content, size, construction, limits.

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
