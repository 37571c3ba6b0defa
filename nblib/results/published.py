"""The four papers' printed numbers and the list of their exhibits, as data (`data/published/`).

`data/published/DOUBTS.md` says where a paper's numbers disagree with each other.
"""

import json
import math
import re
from collections.abc import Collection, Sequence
from functools import cache

import pandas as pd

from nblib import paths

PAPERS = {
    "truong": "Truong et al., Learning Robust Negation Text Representations",
    "cao": "Cao, Semantic Adapter for Universal Text Embeddings",
    "vahtola": "Vahtola et al., It Is Not Easy To Detect Paraphrases (SemAntoNeg)",
    "weller": "Weller et al., NevIR: Negation in Neural Information Retrieval",
}

# Models whose name in a paper is not the registry's.
SYSTEM_NAMES = {
    ("truong", "all-mpnet-base-v2"): "MPNet",
    ("vahtola", "all-roBERTa-large-v1"): "all-roberta-large-v1",
    ("weller", "msmarco-bert-co-condensor"): "coCondenser",
    ("weller", "splade-ensemble-distill"): "SPLADEv2 ensemble-distill",
    ("weller", "splade-self-distill"): "SPLADEv2 self-distill",
    ("weller", "stsb-roberta-large-cross"): "stsb-roberta-large",
    ("weller", "stsb-roberta-large"): "stsb-roberta-large (bi-encoder)",  # Vahtola's of the same name
    ("weller", "rocketqa-v1"): "RocketQA v1",
    ("weller", "rocketqa-v2"): "RocketQA v2",
    ("weller", "rocketqa-v1-cross"): "RocketQA v1 (cross-encoder)",
    ("weller", "rocketqa-v2-cross"): "RocketQA v2 (cross-encoder)",
    ("weller", "monot5-small"): "MonoT5 small",
    ("weller", "monot5-base"): "MonoT5 base (default)",
    ("weller", "monot5-large"): "MonoT5 large",
    ("weller", "monot5-3b"): "MonoT5 3B",
}


def system_name(paper: str, model: str) -> str:
    """The paper's name of a model."""
    return SYSTEM_NAMES.get((paper, model), model)


def models_named(paper: str, system: str) -> list[str]:
    """The registry's names of a paper's system: its own, unless the paper has another name for a model."""
    renamed = [model for (where, model), name in SYSTEM_NAMES.items() if where == paper and name == system]
    return renamed or [system]


def metric_words(metric: str) -> str:
    """A printed metric's key in words: accuracy_w_anto_200 is "accuracy with weights from 200 items"."""
    words = re.sub(r"_w_anto_(\d+)$", r" with weights from \1 items", metric)
    return words.replace("_w_sts", " with weights from STSB").replace("_", " ")


def read(name: str, *numbers: str) -> pd.DataFrame:
    """A table of `data/published` as text, the columns `numbers` as numbers (NaN where a cell has none)."""
    table = pd.read_csv(paths.DATA / "published" / name, dtype=str, keep_default_na=False)
    return table.assign(**{column: pd.to_numeric(table[column], errors="coerce") for column in numbers})


@cache
def load(paper: str) -> pd.DataFrame:
    """A paper's numbers: paper, exhibit, system, benchmark, metric, value (NaN for a word), printed (its digits, as text), std,
    unit, note.

    Raises:
        ValueError: no such paper.
    """
    if paper not in PAPERS:
        raise ValueError(f"No published numbers for {paper!r}. Papers: {', '.join(PAPERS)}.")
    file = f"{paper}.csv"
    return read(file, "value", "std").assign(printed=read(file).value)


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


def value_or_nan(paper: str, exhibit: str, system: str, metric: str, benchmark: str | None = None) -> float:
    """One printed number, or NaN where the paper prints none for this system."""
    try:
        return value(paper, exhibit, system, metric, benchmark)
    except KeyError:
        return math.nan


def values(paper: str, exhibit: str, system: str, metrics: Sequence[str], column: str = "value") -> list[float]:
    """The printed numbers of a system by metric, or what stands in another column ("std"); NaN where nothing is printed."""
    table = load(paper)
    rows = table[(table.exhibit == exhibit) & (table.system == system)].set_index("metric")
    return rows[column].reindex(list(metrics)).tolist()


def recomputed_average(paper: str, exhibit: str, members: Collection[str], metric: str) -> float:
    """The mean of the members' printed values, which a table's "Average" row should equal.

    Raises:
        KeyError: a member's value isn't printed.
    """
    table = load(paper)
    rows = table[(table.exhibit == exhibit) & (table.metric == metric) & table.system.isin(members)]
    if missing := set(members) - set(rows.system):
        raise KeyError(f"{paper}, {exhibit}, {metric}: nothing printed for {', '.join(sorted(missing))}")
    return float(rows.value.mean())


# Which rows a printed average is over: paper → exhibit → name of the average → members.
_CAO_CONTEXTUAL = {"all-mpnet-base-v2", "all-roBERTa-large-v1"}
_CAO_UNIVERSAL = {
    "gte-base-en-v1.5", "gte-large-en-v1.5", "bge-base-en-v1.5", "bge-large-en-v1.5", "e5-base-v2", "e5-large-v2",
    "multilingual-e5", "mxbai-embed-large-v1",
}  # fmt: skip
_CAO_DECODERS = {"SFR-Embedding-2_R", "gte-Qwen2-7B-instruct", "gte-Qwen2-1.5B-instruct"}
_BOTH = {"Average (Universal)": _CAO_UNIVERSAL, "Average (Contextual)": _CAO_CONTEXTUAL}
AVERAGES = {"cao": {"Table 1": _BOTH, "Table 2": _BOTH, "Table 3": _BOTH, "Table 4": {"Average": _CAO_DECODERS}}}


def averages(paper: str) -> pd.DataFrame:
    """Every printed average of a paper and the mean of its rows: exhibit, average, metric, printed, recomputed."""
    table = load(paper)
    rows = []
    for exhibit, groups in AVERAGES[paper].items():
        for name, members in groups.items():
            printed = table[(table.exhibit == exhibit) & (table.system == name) & ~table.metric.str.endswith("_delta")]
            for item in printed.itertuples():
                recomputed = recomputed_average(paper, exhibit, members, item.metric)
                rows.append((exhibit, name, item.metric, item.value, recomputed))
    return pd.DataFrame(rows, columns=["exhibit", "average", "metric", "printed", "recomputed"])


@cache
def prompts() -> dict[str, dict]:
    """Truong's prompts by name: template, and example where one is printed."""
    return json.loads((paths.DATA / "published" / "prompts.json").read_text(encoding="utf-8"))


@cache
def hedge_cues() -> dict[str, list[str]]:
    """Truong's Appendix A: the cues by kind of hedge."""
    return json.loads((paths.DATA / "published" / "hedge_cues.json").read_text(encoding="utf-8"))


@cache
def exhibits() -> pd.DataFrame:
    """Every exhibit of the four papers: paper, exhibit, title, notebook (the number of the notebook that makes it), systems."""
    return read("exhibits.csv")
