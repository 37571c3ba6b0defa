"""A training on several kinds of batches at once, each with its own loss and weight: the recipe of the study's own encoder.

    kinds:
      statements: {loss: symmetric-supcon, repeats: 2}                       # authored anchors, hedges and negations
      contrast: {loss: twins}                                                # passages that differ in one polarity
      exclusions: {loss: twins}                                              # queries that leave something out
      retention: {loss: retention, weight: 0.3, sizes: {general: 4000}}      # what the base says of other texts
      passages: {loss: retention}                                            # and of queries and passages

stands in a configuration and is notebook 04's parameter `kinds`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from datasets import Dataset, DatasetDict, concatenate_datasets

from nblib.corpora import retention, triples, twins
from nblib.models.folders import FinetuningError
from nblib.training import batches
from nblib.training.losses import LOSSES


@dataclass(frozen=True)
class Kind:
    """One kind of batch.

    Attributes:
        loss: one of `losses.LOSSES`.
        weight: what its loss is multiplied with.
        repeats: how often an epoch takes each example.
        share: of the examples to take, the first of a random order: smaller shares lie within larger ones.
        only: contrast passages: of this kind of negation alone, or "rule-based", negated by rule instead of by an author;
            statements: as `triples.build` takes it.
        sizes: retention: source → number of pairs (`retention.texts`).
    """

    loss: str
    weight: float = 1.0
    repeats: int = 1
    share: float = 1.0
    only: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise FinetuningError(f"Unknown loss {self.loss!r}; known: {', '.join(LOSSES)}.")
        if self.weight <= 0 or self.repeats < 1 or not 0 < self.share <= 1:
            raise FinetuningError(
                f"A kind of batch has a weight above 0, at least one repeat and a share up to 1, not {self.weight}, "
                f"{self.repeats} and {self.share}. To do without a kind, leave it out."
            )


def _statements(kind: Kind, split_anchors: pd.DataFrame, seed: int) -> pd.DataFrame:
    train = split_anchors[split_anchors.split == "train"]
    return triples.build(train.head(round(kind.share * len(train))), kind.only or "both", seed)


def _contrast(kind: Kind, split_anchors: pd.DataFrame, seed: int) -> pd.DataFrame:
    table = twins.rule_based_contrast() if kind.only == twins.RULE_BASED else twins.contrast("train")
    if kind.only:
        table = table[table.negation == kind.only]
    return _part(table.drop(columns="negation"), kind, seed)


def _exclusions(kind: Kind, split_anchors: pd.DataFrame, seed: int) -> pd.DataFrame:
    return _part(twins.exclusions("train"), kind, seed)


def _retention(kind: Kind, split_anchors: pd.DataFrame, seed: int) -> pd.DataFrame:
    return retention.texts(kind.sizes, split_anchors, seed)


def _passages(kind: Kind, split_anchors: pd.DataFrame, seed: int) -> pd.DataFrame:
    return _part(retention.passages(), kind, seed)


# Kind → its table: triples, twins, or pairs of related texts
TABLES: dict[str, Callable[[Kind, pd.DataFrame, int], pd.DataFrame]] = {
    "statements": _statements, "contrast": _contrast, "exclusions": _exclusions, "retention": _retention,
    "passages": _passages,
}  # fmt: skip


# Kind → the settings that mean nothing for it
UNUSED = {
    "statements": {"sizes"}, "contrast": {"sizes"}, "exclusions": {"only", "sizes"}, "retention": {"only", "share"},
    "passages": {"only", "sizes"},
}  # fmt: skip


# Kinds without positives and negatives: the base's cosines are their target
UNLABELLED = {"retention", "passages"}

_TRIPLE = ["anchor", "positive_1", "negative_1"]


def _part(table: pd.DataFrame, kind: Kind, seed: int) -> pd.DataFrame:
    order = np.random.default_rng(seed).permutation(len(table))
    return table.iloc[order[: round(kind.share * len(table))]]


def read(kinds: Mapping[str, Mapping[str, Any]]) -> dict[str, Kind]:
    """The kinds of a configuration.

    Raises:
        FinetuningError: an unknown kind, setting or loss.
    """
    if unknown := [name for name in kinds if name not in TABLES]:
        raise FinetuningError(f"Unknown kind of batch {', '.join(unknown)}; known: {', '.join(TABLES)}.")
    for name, settings in kinds.items():
        if unused := sorted(UNUSED[name] & settings.keys()):
            raise FinetuningError(f"{name} takes no {' and no '.join(unused)}. Leave it out.")
    try:
        return {name: Kind(**settings) for name, settings in kinds.items()}
    except TypeError as error:
        known = ", ".join(Kind.__dataclass_fields__)
        raise FinetuningError(f"A kind of batch takes the settings {known} ({error}).") from error


def data_sets(kinds: Mapping[str, Kind], split_anchors: pd.DataFrame, seed: int) -> DatasetDict:
    """The examples of a training by kind, each in the layout of its loss.

    Args:
        split_anchors: from notebook 03 (`triples.load_anchors`).
        seed: of shares and of the texts for retention.

    Raises:
        FinetuningError: a loss that wants another layout than the kind has.
        PairError, TripleError, AnchorError, CorpusError: the texts aren't there.
    """
    parts = {}
    for name, kind in kinds.items():
        examples = _laid_out(TABLES[name](kind, split_anchors, seed), name, LOSSES[kind.loss].layout)
        part = Dataset.from_pandas(examples, preserve_index=False)
        parts[name] = concatenate_datasets([part] * kind.repeats)
    return DatasetDict(parts)


def describe(kinds: Mapping[str, Kind], data: DatasetDict) -> str:
    """One line on what a training learns from, for a model card."""
    parts = [
        f"{len(data[name]) // kind.repeats:,} examples of {name} ({kind.loss}, weight {kind.weight:g}"
        f"{f', {kind.repeats} times an epoch' if kind.repeats > 1 else ''})"
        for name, kind in kinds.items()
    ]
    return f"{'; '.join(parts)}."


def _laid_out(table: pd.DataFrame, name: str, layout: str) -> pd.DataFrame:
    if name == "retention" and layout == "texts":
        return batches.groups(table)
    if name == "passages" and layout == "texts":
        return batches.groups(table, size=2)  # passages are long
    if name == "statements" and batches.LAYOUTS[layout].form:
        return batches.LAYOUTS[layout].form(table)
    if name in ("contrast", "exclusions") and layout == "twins":
        return table[["anchor", "twin", "positive", "negative"]]
    if name in ("contrast", "exclusions") and layout in ("positive", "labelled"):
        asked = twins.questions(table)
        if layout == "labelled":
            return batches.labelled(asked)
        return asked.rename(columns={"positive": "positive_1", "negative": "negative_1"})[_TRIPLE]
    raise FinetuningError(f"{name} can't be laid out as {batches.LAYOUTS[layout].title}. Choose another loss for it.")
