"""Two authored mini sets of the study's own: passages that differ in one polarity, and queries that leave something out.

They are held out of the training data of the same collections, so they share voice and construction with these.
"""

import pandas as pd
from mteb.types import PromptType

from nblib.benchmarks.base import DevSet, metadata
from nblib.benchmarks.pairwise import PairwiseTask
from nblib.corpora import twins


class ContrastPassages(PairwiseTask):
    """Two passages that differ in one polarity and a query for each, as in NevIR; both must be ranked right."""

    label = "Contrast passages"
    corpus = "contrast_mini"
    metric = "right_rank"
    roles = (PromptType.query, PromptType.document)
    chance = 25.0  # both questions with two documents each
    dev_sets = (DevSet("contrast_mini", "dev", ("official",)),)
    metadata = metadata("contrast_mini", corpus, type="Reranking", main_score="accuracy")

    def rows(self, split: str) -> pd.DataFrame:
        return _questions(twins.contrast(split))


class Exclusions(PairwiseTask):
    """A query that leaves something out and its twin that leaves out the other: both must be ranked right."""

    label = "Exclusions"
    corpus = "exclusions_mini"
    metric = "right_rank"
    roles = (PromptType.query, PromptType.document)
    chance = 25.0
    dev_sets = (DevSet("exclusions_mini", "dev", ("official",)),)
    metadata = metadata("exclusions_mini", corpus, type="Reranking", main_score="accuracy")

    def rows(self, split: str) -> pd.DataFrame:
        return _questions(twins.exclusions(split))


def _questions(table: pd.DataFrame) -> pd.DataFrame:
    asked = twins.questions(table).rename(columns={"anchor": "query"})
    places = [*range(len(table))] * 2
    return asked.assign(cluster=places, negatives=asked.negative.map(lambda text: [text])).drop(columns="negative")


FORMS = (ContrastPassages, Exclusions)
