"""Published scores: of models on MTEB's tasks, from its results repository, and of systems on NevIR.

`data/published/mteb_results.csv` has one score a model and task; where there are several runs, by the rule of the data card.
`data/published/nevir_literature.csv` has scores that were looked up in their source, beside those of Weller's Table 2.
"""

from collections.abc import Collection
from functools import cache

import pandas as pd

from nblib.results import published

OURS_FIRST = "sentence-transformers"  # whose model is meant by a bare name that several organisations use
MILLION = 1e6


@cache
def load() -> pd.DataFrame:
    """Every score: model (organisation/name), revision, task, score (percent), parameters (millions), source.

    `source` is "run" (with mteb, by its maintainers or contributors), "restored" (a run whose file was deleted later), or
    "self-reported" (copied from the model's card).
    """
    table = published.read("mteb_results.csv", "score", "parameters")
    return table.assign(parameters=table.parameters / MILLION)


def find(name: str) -> str | None:
    """The full name of a model, given that or its last part; None where nothing is published of it."""
    models = load().model.unique()
    if name in models:
        return name
    found = [model for model in models if model.partition("/")[2] == name]
    preferred = [model for model in found if model.startswith(f"{OURS_FIRST}/")]
    return next(iter(preferred or found), None)


def scores(name: str) -> pd.Series:
    """A model's published scores in percent, by task; empty where there are none."""
    table = load()
    return table[table.model == find(name)].set_index("task").score


def averages(tasks: Collection[str]) -> pd.DataFrame:
    """The mean over the very same tasks for every model that has them all: an average over others would be another quantity.

    Returns:
        model, parameters (millions), value (percent), self_reported (how many of its scores are), the highest value first.
    """
    table = load()
    table = table[table.task.isin(tasks)]
    whole = table.groupby("model").filter(lambda rows: len(rows) == len(set(tasks)))
    by_model = whole.assign(self_reported=whole.source == "self-reported").groupby("model")
    found = by_model.agg(
        parameters=("parameters", "first"), value=("score", "mean"), self_reported=("self_reported", "sum")
    )
    return found.reset_index().sort_values(["value", "model"], ascending=[False, True], ignore_index=True)


def nevir() -> pd.DataFrame:
    """NevIR's published scores without training on it: system, kind (as in Weller's Table 2), parameters (millions), value
    (pairwise accuracy, percent), source. A rank holds within this collection only."""
    table = published.load("weller")
    rows = table[(table.exhibit == "Table 2") & (table.metric == "pairwise_accuracy") & (table.system != "Random")]
    kinds = rows.note.str.extract(r"^type: ([^;]+);")[0]
    printed = rows[["system", "value"]].assign(kind=kinds, source="Weller et al., Table 2")
    sizes = table[(table.exhibit == "Table 2") & (table.metric == "parameters")]
    in_millions = sizes["value"].where(sizes.unit != "billion", sizes["value"] * 1000)
    printed["parameters"] = printed.system.map(dict(zip(sizes.system, in_millions, strict=True)))
    columns = ["system", "kind", "parameters", "value", "source"]
    looked_up = published.read("nevir_literature.csv", "parameters", "value")
    return pd.concat([printed[columns], looked_up[columns]], ignore_index=True)
