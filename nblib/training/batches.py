"""The data of a step: how a table of texts becomes training examples, and which of them share a batch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from datasets import Dataset, DatasetDict
from sentence_transformers.base.sampler import BatchSamplers, DefaultBatchSampler, ProportionalBatchSampler

from nblib.corpora.triples import EXCLUSION, TripleError, check
from nblib.models import embeddings
from nblib.models.encoders import Encoder
from nblib.models.folders import FinetuningError

GROUP = 8  # sentences of an example for retention; of queries and passages, which are longer, two
BUCKET = 8  # batches' worth of anchors among which those of similar length go into one batch


def examples(triples: pd.DataFrame, together: bool = False) -> pd.DataFrame:
    """Triples as contrastive examples: anchor, positive_1, negative_1, … negative_k, one for each anchor and positive; or
    `together`, one for each anchor: anchor, positive_1, … positive_p, negative_1, … negative_k.

    Raises:
        TripleError: unusable triples, or anchors with different numbers of positives or negatives.
    """
    table, key = check(triples), ["id", "anchor"] if together else ["id", "anchor", "positive"]
    columns = []
    for side, variant in [("positive", "hedge"), ("negative", "negation")]:
        texts = table.drop_duplicates([*key, variant]).groupby(key, sort=False)[side].agg(list)
        sizes = texts.map(len)
        if sizes.nunique() > 1:
            raise TripleError(
                f"There are between {sizes.min()} and {sizes.max()} {side}s for an anchor"
                f"{'' if together else ' and a positive'}; a step needs equally many. Keep only anchors with every "
                "variant (triples.filtered)."
            )
        columns.append(pd.DataFrame(texts.tolist()).rename(columns=lambda number, side=side: f"{side}_{number + 1}"))
    anchors = texts.index.to_frame(index=False)[["anchor"]]
    return pd.concat([anchors, *columns], axis=1)


def labelled(triples: pd.DataFrame) -> pd.DataFrame:
    """Triples as pairs with a label: query, document, and 1.0 for anchor and positive or 0.0 for anchor and negative."""
    sides = [
        triples[["anchor", side]].set_axis(["query", "document"], axis=1).assign(label=label)
        for side, label in [("positive", 1.0), ("negative", 0.0)]
    ]
    return pd.concat(sides).drop_duplicates(ignore_index=True)


def groups(pairs: pd.DataFrame, size: int = GROUP) -> pd.DataFrame:
    """Pairs of related texts as examples of several pairs of similar length: anchor, text_2, … text_8; a remainder is left out.

    Args:
        pairs: anchor, related.
        size: texts of an example, an even number.
    """
    longest = pairs[["anchor", "related"]].map(len).max(axis=1)
    by_length = pairs.loc[longest.sort_values(kind="stable").index]
    texts = by_length[["anchor", "related"]].to_numpy().reshape(-1)
    rows = texts[: len(texts) // size * size].reshape(-1, size)
    return pd.DataFrame(rows, columns=["anchor", *(f"text_{place}" for place in range(2, size + 1))])


def with_base_embeddings(part: Dataset, base: Encoder) -> Dataset:
    """Examples of the layout "texts" with the base's embeddings of them as labels, [columns, dimension] a row."""
    texts = [text for row in part for text in row.values()]
    vectors = embeddings.encode(base, texts).reshape(len(part), len(part.column_names), -1)
    return part.add_column("label", vectors.tolist())


class AnchorBatches(DefaultBatchSampler):
    """Batches without two examples of one anchor (its hedge would become another's negative), of similar lengths.

    Without the second, half of what a CPU multiplies is padding. The order depends on seed and epoch alone, so that an
    interrupted training finds its place again.
    """

    def __init__(self, dataset: Dataset, **options: Any) -> None:
        super().__init__(dataset, **options)
        anchors = pd.Series(list(dataset["anchor"]))
        self.codes = pd.factorize(anchors)[0]
        self.lengths = anchors.str.len().to_numpy()

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.Generator().manual_seed(self.seed + self.epoch)
        batches = self._batches(order)
        yield from (batches[place] for place in torch.randperm(len(batches), generator=order).tolist())

    def _batches(self, order: torch.Generator) -> list[list[int]]:
        shuffled = torch.randperm(len(self.codes), generator=order).numpy()
        # The first of an anchor's examples changes from epoch to epoch
        turn = _turns(self.codes[shuffled])
        batches = []
        for number in range(int(turn.max()) + 1):
            examples, chunk = shuffled[turn == number], BUCKET * self.batch_size
            for start in range(0, len(examples), chunk):
                alike = sorted(examples[start : start + chunk].tolist(), key=lambda place: self.lengths[place])
                batches += [alike[at : at + self.batch_size] for at in range(0, len(alike), self.batch_size)]
        return batches

    def __len__(self) -> int:
        sizes = np.bincount(_turns(self.codes))
        return int(sum(-(-size // self.batch_size) for size in sizes))


class StatementsLast(ProportionalBatchSampler):
    """Batches of several kinds in random order, in which those of one kind come after those of the others.

    Args:
        last: the number of that kind.
        throughout: the numbers of the kinds that are spread over all of the epoch.
        options: of `ProportionalBatchSampler`.
    """

    def __init__(self, *given: Any, last: int, throughout: set[int], **options: Any) -> None:
        super().__init__(*given, **options)
        self.last, self.throughout = last, throughout

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.Generator().manual_seed(self.seed + self.epoch)
        kinds = np.repeat(np.arange(len(self.batch_samplers)), [len(sampler) for sampler in self.batch_samplers])
        shuffled = kinds[torch.randperm(len(kinds), generator=order).numpy()]
        ordered = ~np.isin(shuffled, list(self.throughout))
        shuffled[ordered] = sorted(shuffled[ordered], key=lambda kind: kind == self.last)
        starts = np.cumsum([0, *map(len, self.dataset.datasets)])
        batches = [iter(sampler) for sampler in self.batch_samplers]
        for kind in shuffled:
            yield [int(starts[kind]) + place for place in next(batches[kind])]


def _turns(codes: np.ndarray) -> np.ndarray:
    """For each example whether it is its anchor's first (0), its second (1), …"""
    return pd.Series(codes).groupby(codes).cumcount().to_numpy()


@dataclass(frozen=True)
class Layout:
    """A way to form training examples.

    Attributes:
        title: what an example is, for messages.
        form: makes examples of triples; None where triples don't have that layout.
        sampler: which examples share a batch.
    """

    title: str
    form: Callable[[pd.DataFrame], pd.DataFrame] | None
    sampler: Any = AnchorBatches


LAYOUTS = {
    "positive": Layout("an anchor, a positive and its negatives", examples),
    "anchor": Layout("an anchor, all its positives and negatives", partial(examples, together=True)),
    "twins": Layout("two contrasting queries and the passage that answers each", None),
    "texts": Layout("some texts without labels", None),
    "scored": Layout("a pair with a score", None),
    "labelled": Layout("a pair with a label", labelled, BatchSamplers.BATCH_SAMPLER),
}


def data_sets(table: pd.DataFrame, layout: str) -> DatasetDict:
    """The examples of a training by kind; a batch holds one kind.

    Args:
        table: triples (`triples.build`), whose statements and exclusions become two kinds, because they have different numbers
            of positives and negatives; or examples that have the layout already.
        layout: one of `LAYOUTS`.

    Raises:
        TripleError: see `examples`.
        FinetuningError: triples can't be laid out so.
    """
    if "negation" not in table:
        return DatasetDict({"examples": Dataset.from_pandas(table, preserve_index=False)})
    chosen = LAYOUTS[layout]
    if chosen.form is None:
        raise FinetuningError(f"The loss learns from {chosen.title}; triples have none. Choose another loss.")
    kinds = check(table).hedge.eq(EXCLUSION).map({False: "statements", True: "exclusions"})
    return DatasetDict({
        kind: Dataset.from_pandas(chosen.form(part), preserve_index=False)
        for kind, part in table.groupby(kinds, sort=False)
    })  # fmt: skip
