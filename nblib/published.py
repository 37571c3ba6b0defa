"""The four papers' printed numbers and the list of their exhibits, as data (`data/published/`).

`data/published/DOUBTS.md` says where a paper's numbers disagree with each other.
"""

import math
from collections.abc import Collection

import pandas as pd

from nblib import paths

PAPERS = {
    "truong": "Truong et al., Learning Robust Negation Text Representations",
    "cao": "Cao, Semantic Adapter for Universal Text Embeddings",
    "vahtola": "Vahtola et al., It Is Not Easy To Detect Paraphrases (SemAntoNeg)",
    "weller": "Weller et al., NevIR: Negation in Neural Information Retrieval",
}

# Where a paper calls a model by another name than the registry.
SYSTEM_NAMES = {("truong", "all-mpnet-base-v2"): "MPNet"}


def system_name(paper: str, model: str) -> str:
    """What the paper calls a model."""
    return SYSTEM_NAMES.get((paper, model), model)


def load(paper: str) -> pd.DataFrame:
    """A paper's numbers in long form: paper, exhibit, system, benchmark, metric, value (float or NaN where the paper
    prints a word), std, unit, note.

    Raises:
        ValueError: no such paper.
    """
    if paper not in PAPERS:
        raise ValueError(f"No published numbers for {paper!r}. Papers: {', '.join(PAPERS)}.")
    # Two of Truong's hyperparameters are the word "None": without keep_default_na=False pandas would lose them.
    table = pd.read_csv(paths.DATA / "published" / f"{paper}.csv", dtype=str, keep_default_na=False)
    for column in ("value", "std"):
        table[column] = pd.to_numeric(table[column], errors="coerce")
    return table


def value(paper: str, exhibit: str, system: str, metric: str, benchmark: str | None = None) -> float:
    """One printed number.

    Raises:
        KeyError: it isn't printed, or the description fits several numbers.
    """
    table = load(paper)
    fits = (table.exhibit == exhibit) & (table.system == system) & (table.metric == metric)
    if benchmark is not None:
        fits &= table.benchmark == benchmark
    values = table.loc[fits, "value"].unique()
    if len(values) != 1:
        raise KeyError(f"{paper}, {exhibit}, {system}, {benchmark or 'any benchmark'}, {metric}: {len(values)} numbers")
    return float(values[0])


def value_or_nan(paper: str, exhibit: str, system: str, metric: str) -> float:
    """One printed number, or NaN where the paper prints none for this system."""
    try:
        return value(paper, exhibit, system, metric)
    except KeyError:
        return math.nan


def recomputed_average(paper: str, exhibit: str, members: Collection[str], metric: str) -> float:
    """The mean of the members' printed values: what a table's own "Average" row should say."""
    table = load(paper)
    rows = table[(table.exhibit == exhibit) & (table.metric == metric) & table.system.isin(members)]
    missing = set(members) - set(rows.system)
    if missing:
        raise KeyError(f"{paper}, {exhibit}, {metric}: nothing printed for {', '.join(sorted(missing))}")
    return float(rows.value.mean())


def exhibits() -> pd.DataFrame:
    """Every exhibit of the four papers: paper, exhibit, title, notebook (the number of the notebook that makes it)."""
    return pd.read_csv(paths.DATA / "published" / "exhibits.csv", dtype=str, keep_default_na=False)
