"""Printed numbers as data (`data/published/`): of the four papers, of MTEB's results repository, and of NevIR's literature."""

import json
import math
from collections.abc import Collection
from functools import cache

import pandas as pd

from nblib import paths

FOLDER = paths.DATA / "published"
PAPERS = {
    "truong": "Truong et al., Learning Robust Negation Text Representations",
    "cao": "Cao, Semantic Adapter for Universal Text Embeddings",
    "vahtola": "Vahtola et al., It Is Not Easy To Detect Paraphrases (SemAntoNeg)",
    "weller": "Weller et al., NevIR: Negation in Neural Information Retrieval",
}
# Which rows Cao's printed averages are over: exhibit → name of the average → systems
_UNIVERSAL = "gte-base-en-v1.5 gte-large-en-v1.5 bge-base-en-v1.5 bge-large-en-v1.5 e5-base-v2 e5-large-v2"
_BOTH = {
    "Average (Universal)": [*_UNIVERSAL.split(), "multilingual-e5", "mxbai-embed-large-v1"],
    "Average (Contextual)": ["all-mpnet-base-v2", "all-roBERTa-large-v1"],
}
_DECODERS = ["SFR-Embedding-2_R", "gte-Qwen2-7B-instruct", "gte-Qwen2-1.5B-instruct"]
AVERAGES = {"Table 1": _BOTH, "Table 2": _BOTH, "Table 3": _BOTH, "Table 4": {"Average": _DECODERS}}


@cache
def system_names() -> dict[tuple[str, str], str]:
    """What is called otherwise in a paper than here: paper and our name → the paper's."""
    return {(row.paper, row.model): row.name for row in read("system_names.csv").itertuples(index=False)}


def system_name(paper: str, model: str) -> str:
    """The paper's name of a model."""
    return system_names().get((paper, model), model)


def models_named(paper: str, system: str) -> list[str]:
    """Our names of a paper's system: its own, unless the paper has another name for a model."""
    return [model for (where, model), name in system_names().items() if (where, name) == (paper, system)] or [system]


def read(name: str, *numbers: str) -> pd.DataFrame:
    """A table of `data/published` as text, the columns `numbers` as numbers (NaN where a cell has none)."""
    table = pd.read_csv(FOLDER / name, dtype=str, keep_default_na=False)
    return table.assign(**{column: pd.to_numeric(table[column], errors="coerce") for column in numbers})


@cache
def load(paper: str) -> pd.DataFrame:
    """A paper's numbers: paper, exhibit, system, benchmark, metric, value (NaN for a word), printed (its digits, as text), std,
    unit, note."""
    return read(f"{paper}.csv", "value", "std").assign(printed=read(f"{paper}.csv").value)


def printed(paper: str, exhibit: str, column: str = "value", **keys: str) -> float:
    """One printed number (column "std": its standard deviation) by system, metric, benchmark; NaN where the paper prints none,
    a KeyError where several fit."""
    table = load(paper)
    fits = (table[["exhibit", *keys]] == [exhibit, *keys.values()]).all(axis=1)
    numbers = table.loc[fits, column].unique()
    if len(numbers) > 1:
        raise KeyError(f"{paper}, {exhibit}, {', '.join(keys.values())}: {len(numbers)} numbers")
    return float(numbers[0]) if len(numbers) else math.nan


def averages() -> pd.DataFrame:
    """Cao's printed averages and the means of their rows: exhibit, average, metric, printed, recomputed."""
    rows = []
    for exhibit, groups in AVERAGES.items():
        own = load("cao").query("exhibit == @exhibit and not metric.str.endswith('_delta')")
        for name, members in groups.items():
            means = own[own.system.isin(members)].groupby("metric").value.mean()
            of_name = own[own.system == name].itertuples()
            rows += [(exhibit, name, one.metric, one.value, means[one.metric]) for one in of_name]
    return pd.DataFrame(rows, columns=["exhibit", "average", "metric", "printed", "recomputed"])


@cache
def prompts() -> dict[str, dict]:
    """Truong's prompts by name: template, and example where one is printed."""
    return json.loads((FOLDER / "prompts.json").read_text(encoding="utf-8"))


@cache
def hedge_cues() -> dict[str, list[str]]:
    """Truong's Appendix A: the cues by kind of hedge."""
    return json.loads((FOLDER / "hedge_cues.json").read_text(encoding="utf-8"))


@cache
def exhibits() -> pd.DataFrame:
    """Every exhibit of the four papers: paper, exhibit, title, notebook (the number of the notebook that makes it), systems."""
    return read("exhibits.csv")


@cache
def mteb() -> pd.DataFrame:
    """Published scores on MTEB's tasks: model (organisation/name), revision, task, score (percent), parameters (millions),
    source ("run", with mteb; "restored", a run whose file was deleted later; "self-reported", from the model's card)."""
    table = read("mteb_results.csv", "score", "parameters")
    return table.assign(parameters=table.parameters / 1e6)


def mteb_model(name: str) -> str | None:
    """The full name of a model on MTEB, given that or its last part, of several first sentence-transformers' own; None where
    nothing is published of it."""
    models = mteb().model.unique()
    same = [model for model in models if name in (model, model.partition("/")[2])]
    return min(same, key=lambda model: (model != name, not model.startswith("sentence-transformers/")), default=None)


def mteb_scores(name: str) -> pd.Series:
    """A model's published scores in percent, by task; empty where there are none."""
    return mteb()[mteb().model == mteb_model(name)].set_index("task").score


def mteb_averages(tasks: Collection[str]) -> pd.DataFrame:
    """The mean over the tasks for every model that has them all: model, parameters (millions), value (percent), self_reported
    (how many of its scores are), the highest value first."""
    table = mteb()[mteb().task.isin(tasks)].assign(self_reported=mteb().source == "self-reported")
    by_model = table.groupby("model").filter(lambda rows: len(rows) == len(set(tasks))).groupby("model")
    columns = {"parameters": ("parameters", "first"), "value": ("score", "mean")}
    means = by_model.agg(**columns, self_reported=("self_reported", "sum")).reset_index()
    return means.sort_values(["value", "model"], ascending=[False, True], ignore_index=True)


def nevir() -> pd.DataFrame:
    """NevIR's published scores without training on it: system, kind (as in Weller's Table 2), parameters (millions), value
    (pairwise accuracy, percent), source."""
    table = load("weller").query("exhibit == 'Table 2'")
    rows = table[(table.metric == "pairwise_accuracy") & (table.system != "Random")].set_index("system")
    sizes = table[table.metric == "parameters"].set_index("system")
    in_millions = sizes.value.where(sizes.unit != "billion", sizes.value * 1000)
    kinds = rows.note.str.extract(r"^type: ([^;]+);")[0]
    own = rows[["value"]].assign(kind=kinds, parameters=in_millions, source="Weller et al., Table 2").reset_index()
    columns = ["system", "kind", "parameters", "value", "source"]
    return pd.concat([own[columns], read("nevir_literature.csv", "parameters", "value")[columns]], ignore_index=True)
