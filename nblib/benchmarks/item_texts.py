"""The texts of a benchmark's items by the ids of their predictions: what `nblib items` prints."""

from collections.abc import Sequence

import pandas as pd

from nblib import corpora
from nblib.benchmarks import catalogue, mteb_catalogue, negation_profile
from nblib.corpora import hedgetriple
from nblib.errors import StudyError


class ItemError(StudyError):
    """A benchmark or an item that doesn't exist."""


def find(task: str, ids: Sequence[str]) -> pd.DataFrame:
    """The rows of some items with all their columns, in the order of the ids.

    Args:
        task: as its predictions are named: nevir, llm_m3, STS12, mmlu, negation_profile.

    Raises:
        ItemError: no such benchmark, or an item that it doesn't have.
        CorpusError: its data are not at hand.
    """
    table = _items(task.removeprefix("llm_"))
    if unknown := [one for one in ids if one not in set(table.id)]:
        examples = ", ".join(table.id.head(3))
        raise ItemError(f"{task} has no item {', '.join(unknown)}. Its {table.id.nunique():,} ids are like {examples}.")
    order = {one: place for place, one in enumerate(ids)}
    return table[table.id.isin(ids)].sort_values("id", key=lambda column: column.map(order), kind="stable")


def _items(name: str) -> pd.DataFrame:
    if name == negation_profile.TASK:
        table = hedgetriple.load()
        pairs = [(negation, hedge) for negation in hedgetriple.NEGATIONS for hedge in hedgetriple.HEDGES]
        return pd.concat([table.assign(id=table.id + "/" + "/".join(pair)) for pair in pairs])
    if name in (known := catalogue.tasks()):
        table = known[name]().rows("test")
        return table.assign(id=table.id.astype(str)).drop(columns="cluster", errors="ignore")
    read = mteb_catalogue.TASKS[name].corpora if name in mteb_catalogue.TASKS else (name,)
    corpus = next((one for one in read if one.endswith("_queries")), read[0])
    if corpus not in corpora.entries():
        raise ItemError(f"No benchmark called {name!r}. See the list at the foot of the report's items.html.")
    about = corpora.describe(corpus)
    table = corpora.load(corpus, "test" if "test" in about.splits else list(about.splits)[-1])
    if name.startswith("mmlu"):  # numbered within a subject
        return table.assign(id=table.subject + "/" + table.groupby("subject").cumcount().astype(str))
    return table.assign(id=table[about.key].astype(str).agg("/".join, axis=1))
