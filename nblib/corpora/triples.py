"""From anchors with their variants to contrastive triples (Truong §3.1.3): filter, split, build, save. One of an anchor's two
hedges is the positive, one of its four negations the negative: 8 triples an anchor."""

from pathlib import Path

import numpy as np
import pandas as pd

from nblib import artefacts, corpora, paths
from nblib.corpora import authored, files, negator
from nblib.corpora.authored import HEDGES, NEGATIONS, VARIANTS
from nblib.corpora.triple_statistics import distances
from nblib.errors import StudyError, check_numbers, one_of

NEVIR_DEV = 10  # of the 50 training pairs at hand, to choose on
OF_ANCHORS = ("both", "negation", "hedging", *NEGATIONS, "mixed", "rule_based")
TRAINING_DATA = (*OF_ANCHORS, "nevir")
TEXTS = ["anchor", "positive", "negative"]
COLUMNS = ["id", *TEXTS, "hedge", "negation"]
CARD = """---
{license}configs: [{{config_name: default, data_files: [{files}]}}]
---
# Triples of {variants} variants

Triples for contrastive training (Truong et al., §3.1.3): an anchor, a hedged variant as the positive, a negated one as
the negative; `hedge` and `negation` say which, `id` is the anchor's. {sizes}. Levenshtein threshold: {threshold}
characters on all six variants; seed: {seed}. Those called authored were written by a large
language model under close instructions, not sampled from the paper's sources: this is not the authors' HedgeTriple.
{held_out} further anchors are held out, in neither split.
"""


def filtered(anchors: pd.DataFrame, threshold: int) -> pd.DataFrame:
    """The anchors all of whose six variants are within the threshold (characters)."""
    close = (distances(anchors).drop(columns="id") <= threshold).all(axis=1).to_numpy()
    return anchors[close].reset_index(drop=True)


def split(anchors: pd.DataFrame, dev: int = 100, seed: int = 0) -> pd.DataFrame:
    """The anchors with a column `split`: "held out" (the committed list), "dev" (that many of the others, sampled by seed), and
    "train", in the order in which `subset` takes them. StudyError: nothing would be left to train on, or no seed."""
    check_numbers(seed)
    apart = anchors.id.isin(authored.held_out_ids())
    rest = anchors[~apart].sample(frac=1, random_state=seed)
    if not 0 < dev < len(rest):
        raise StudyError(f"There are {len(rest)} anchors for dev and training; {dev} for dev leaves none on one side.")
    parts = {"train": rest[dev:], "dev": rest[:dev], "held out": anchors[apart]}
    return pd.concat([part.assign(split=name) for name, part in parts.items()], ignore_index=True)


def subset(anchors: pd.DataFrame, size: int) -> pd.DataFrame:
    """The first anchors: smaller subsets lie within larger ones. StudyError: fewer than asked for."""
    if not 0 < size <= len(anchors):
        raise StudyError(f"A subset can't have {size} of {len(anchors)} anchors. Choose from 1 to {len(anchors)}.")
    return anchors.head(size).reset_index(drop=True)


def build(anchors: pd.DataFrame, training_data: str = "both", seed: int = 0) -> pd.DataFrame:
    """The triples of one kind of training data.

    Args:
        anchors: id, anchor, entailment, the four negations, the two hedges.
        training_data: "both" (8 an anchor); "negation" (entailed sentence × 4) and "hedging" (2 × verbal), §5.1; one type of
            negation (2 an anchor); and at the same size "mixed" (a random type for each hedge, drawn by seed) and "rule_based"
            (by `negator`, which leaves some anchors out).

    Returns:
        `COLUMNS`: id (the anchor's), anchor, positive, negative, hedge and negation (which variants they are). StudyError: see
        `check`.
    """
    one_of(training_data, OF_ANCHORS, "training data")
    hedges = ("entailment",) if training_data == "negation" else HEDGES
    single = {"hedging": "verbal", "rule_based": "rule", **{name: name for name in NEGATIONS}}.get(training_data)
    types = np.random.default_rng(seed).integers(len(NEGATIONS), size=(len(anchors), len(HEDGES)))
    if training_data == "rule_based":
        output = negator.negate_sentences(anchors.anchor)
        clean = output.negated.where(output.reason == "")
        rule = anchors.anchor.map(dict(zip(output.sentence, clean, strict=True)))
        anchors = anchors.assign(rule=rule).dropna(subset="rule")
    rows = []
    for index, anchor in enumerate(anchors.to_dict("records")):
        for turn, hedge in enumerate(hedges):
            own = NEGATIONS[types[index, turn]] if training_data == "mixed" else single
            chosen = (own,) if own else NEGATIONS
            rows += [(anchor["id"], anchor["anchor"], anchor[hedge], anchor[name], hedge, name) for name in chosen]
    return check(pd.DataFrame(rows, columns=COLUMNS))


def training_set(anchors: pd.DataFrame, training_data: str, size: int = 0, seed: int = 0) -> pd.DataFrame:
    """The triples of one training (see `build`), from the first `size` anchors (0: all) of the split "train"; "nevir" (Weller §6)
    takes the training pairs at hand instead, all but the last `NEVIR_DEV`."""
    if training_data == "nevir":
        pairs = corpora.load("nevir", "train_sample")[:-NEVIR_DEV]
        paired = subset(pairs, size or len(pairs)).rename(columns=authored.NEVIR_NAMES)
        return check(authored.questions(paired).drop(columns="question"))
    train = anchors[anchors.split == "train"]
    return build(subset(train, size or len(train)), training_data, seed)


def check(triples: pd.DataFrame) -> pd.DataFrame:
    """The triples. StudyError: there are none, an empty text, or two of a triple's texts identical."""
    texts = triples[TEXTS]
    empty = ~texts.map(lambda text: isinstance(text, str) and bool(text.strip())).all(axis=1)
    same = (texts.anchor == texts.negative) | (texts.positive == texts.negative) | (texts.anchor == texts.positive)
    faulty = empty | same
    if triples.empty:
        raise StudyError("There are no triples: no anchor has what this training data needs. Take more anchors.")
    if faulty.any():
        first = triples[faulty].head(1).to_dict("records")
        raise StudyError(
            f"{faulty.sum()} of {len(triples)} triples have an empty text or a double; the first: {first}."
        )
    return triples


def save(
    folder: str | Path, tables: dict[str, pd.DataFrame], threshold: int, seed: int, variants: str, held_out: int
) -> Path:
    """Write the triples as parquet, one file a split, with a card, which says how many anchors are held out:
    `datasets.load_dataset(folder)` reads it in one line."""
    folder = paths.writable_folder(folder)
    for name, table in tables.items():
        artefacts.write_table(table, folder / f"{name}.parquet")
    files = ", ".join(f"{{split: {name}, path: {name}.parquet}}" for name in tables)
    sizes = [f"{name}: {len(table):,} of {table.id.nunique():,} anchors" for name, table in tables.items()]
    made = {"threshold": threshold, "seed": seed, "variants": variants, "held_out": held_out}
    made["license"] = "license: cc-by-4.0\n" * (variants == "authored")
    with paths.write_atomically(folder / "README.md") as draft:
        draft.write_text(CARD.format(files=files, sizes="; ".join(sizes).capitalize(), **made), encoding="utf-8")
    return folder


def load_variants(variants: str | Path) -> pd.DataFrame:
    """The "authored" anchors with their variants, or those of a file: id, anchor, `VARIANTS`; missing where a file has none:
    entailment, word_cue, phrase_cue. StudyError: see `files.table` and `_read`."""
    return corpora.load("authored_triples") if variants == "authored" else _read(variants).reset_index(drop=True)


def load_anchors(file: str | Path) -> pd.DataFrame:
    """The anchors of notebook 03: as `load_variants`, with their split. StudyError: no such file, a held-out anchor to train on,
    or as `load_variants`."""
    if not paths.resolve(file).is_file():
        raise StudyError(f"{file} isn't there. Make it: nblib run 03 out.ipynb (its run_dir says where it goes).")
    table = _read(file, "split")
    for place, name in table.split.items():
        one_of(name, ("train", "dev", "held out"), f"split ({file}, {place})")
    if leaked := set(table.id[table.split != "held out"]) & set(authored.held_out_ids()):
        raise StudyError(f"{file} would train on {len(leaked)} held-out anchors, the first of them {min(leaked)}.")
    return table.reset_index(drop=True)


def _read(file: str | Path, *columns: str) -> pd.DataFrame:
    """A file of anchors with their variants. StudyError: an anchor twice, or the id or the text of a held-out one alone."""
    optional = ("entailment", *(f"{hedge}_cue" for hedge in HEDGES))
    table = files.table(file, ("id", "anchor", *VARIANTS, *columns), optional)
    held = authored.held_out_anchors()
    shared = table.id.isin(held.id) | table.anchor.isin(held.anchor)
    other = shared & (table.id.map(dict(zip(held.id, held.anchor, strict=True))) != table.anchor)
    if (faulty := other | table.duplicated("anchor")).any():
        place = faulty.idxmax()
        what = "the id or the anchor of one held out of training" if other[place] else "the anchor of an earlier row"
        raise StudyError(f"{file}, {place}: {table.id[place]} has {what}. Change it, or remove the row.")
    return table
