"""How a table of texts becomes training examples, and which of them share a batch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from sentence_transformers.base.sampler import BatchSamplers, DefaultBatchSampler

from nblib.corpora import authored
from nblib.corpora.triples import check
from nblib.errors import StudyError
from nblib.models import embeddings
from nblib.models.encoders import Encoder

BUCKET = 8  # batches' worth of anchors that are sorted by length


def examples(triples: pd.DataFrame, together: bool = False) -> pd.DataFrame:
    """Triples as contrastive examples: anchor, positive_1, … negative_1, …; one for each anchor and positive, or for each anchor
    (`together`). StudyError: unusable triples, or anchors with different numbers of positives or negatives."""
    table, key = check(triples), ["id", "anchor"] if together else ["id", "anchor", "positive"]
    columns = []
    for side, variant in [("positive", "hedge"), ("negative", "negation")]:
        distinct = table.drop_duplicates([*key, variant if variant in table else side])
        texts = distinct.groupby(key, sort=False)[side].agg(list)
        sizes = texts.map(len)
        if sizes.nunique() > 1:
            raise StudyError(f"Anchors have between {sizes.min()} and {sizes.max()} {side}s, not equally many.")
        columns.append(pd.DataFrame(texts.tolist()).rename(columns=lambda number, side=side: f"{side}_{number + 1}"))
    anchors = texts.index.to_frame(index=False)[["anchor"]]
    return pd.concat([anchors, *columns], axis=1)


def labelled(triples: pd.DataFrame) -> pd.DataFrame:
    """Triples as pairs: query (the anchor), document, label (1.0: its positive, 0.0: its negative)."""
    pairs = triples.melt("anchor", ["positive", "negative"], "label", "document").rename(columns={"anchor": "query"})
    pairs["label"] = pairs.label.map({"positive": 1.0, "negative": 0.0})
    return pairs[["query", "document", "label"]].drop_duplicates(ignore_index=True)


def groups(pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs of related texts (anchor, related) as examples of eight texts, that is four pairs of similar length: anchor, text_2,
    …; a remainder is left out."""
    related = pairs[["anchor", "related"]]
    by_length = related.loc[related.map(len).max(axis=1).sort_values(kind="stable").index]
    texts = by_length.to_numpy().reshape(-1)
    rows = texts[: len(texts) // 8 * 8].reshape(-1, 8)
    return pd.DataFrame(rows, columns=["anchor", *(f"text_{number}" for number in range(2, 9))])


def with_base_embeddings(examples: Dataset, base: Encoder) -> Dataset:
    """Examples of the layout "texts" with the base's embeddings as labels, [columns, dimension] a row."""
    texts = [text for row in examples for text in row.values()]
    vectors = embeddings.encode(base, texts).reshape(len(examples), len(examples.column_names), -1)
    return examples.add_column("label", vectors.tolist())


class AnchorBatches(DefaultBatchSampler):
    """Batches without two examples of one anchor (its hedge would become another's negative), of similar lengths: else half of
    what a CPU multiplies is padding. Seed and epoch alone give the order, so an interrupted training finds its place again."""

    def __init__(self, dataset: Dataset, **options: Any) -> None:
        super().__init__(dataset, **options)
        anchors = pd.Series(list(dataset["anchor"]))
        self.codes, self.lengths = pd.factorize(anchors)[0], anchors.str.len().to_numpy()

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.Generator().manual_seed(self.seed + self.epoch)
        shuffled = torch.randperm(len(self.codes), generator=order).numpy()
        turn = _turns(self.codes[shuffled])  # the first of an anchor's examples changes from epoch to epoch
        batches, chunk = [], BUCKET * self.batch_size
        for number in range(int(turn.max()) + 1):
            examples = shuffled[turn == number]
            for start in range(0, len(examples), chunk):
                alike = sorted(examples[start : start + chunk].tolist(), key=lambda index: self.lengths[index])
                batches += [alike[at : at + self.batch_size] for at in range(0, len(alike), self.batch_size)]
        yield from (batches[index] for index in torch.randperm(len(batches), generator=order).tolist())

    def __len__(self) -> int:
        return sum(-(-int(size) // self.batch_size) for size in np.bincount(_turns(self.codes)))


def _turns(codes: np.ndarray) -> np.ndarray:
    """Whether an example is its anchor's first (0), second (1), …"""
    return pd.Series(codes).groupby(codes).cumcount().to_numpy()


@dataclass(frozen=True)
class Layout:
    """A way to form training examples."""

    column: str  # that only such examples have; a table that has it is left as it is
    form: Callable[[pd.DataFrame], pd.DataFrame]
    sampler: Any = AnchorBatches  # which examples share a batch


LAYOUTS = {
    "positive": Layout("positive_1", examples),
    "anchor": Layout("positive_1", partial(examples, together=True)),
    "paired queries": Layout("", lambda table: table[authored.PAIRED[1:]]),
    "texts": Layout("text_2", groups),
    "scored": Layout("score", lambda table: table[["anchor", "other", "score"]]),
    "labelled": Layout("label", labelled, BatchSamplers.BATCH_SAMPLER),
}


def lay_out(table: pd.DataFrame, layout: str) -> Dataset:
    """Training examples in one of the `LAYOUTS`, of triples (`triples.build`), paired queries (`authored.PAIRED`), pairs of
    related texts (anchor, related), or what has the layout already. StudyError, if these can't be laid out so."""
    chosen = LAYOUTS[layout]
    if chosen.column not in table:
        if "twin" in table and layout != "paired queries":
            table = authored.questions(table)
        try:
            table = chosen.form(table)
        except KeyError as error:
            raise StudyError(f"A loss on the layout {layout!r} can't learn from these texts: {error}.") from error
    return Dataset.from_pandas(table, preserve_index=False)
