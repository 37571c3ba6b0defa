"""The types of error of Truong's Table 5, and how many errors of each type every label pass finds."""

import pandas as pd

from nblib import paths, results, shipped, stats
from nblib.corpora import registry
from nblib.results import published

CATEGORIES = {
    "wrong calculation": "Wrong calculation",
    "missing information": "Fail to include all information",
    "unit or parsing": "Wrong unit",
    "commonsense quantity": "Fail to reason with multiplication",
    "inverted operands": "Invert calculation",
    "hallucination": "Hallucination",
    "base or gold wrong": "Base model is wrong",
    "repetition": "Repetition",
}
UNDECIDED = "undecided"
SYSTEM = "Llama-3-8B-Hedge"  # whose errors the paper labelled
LABELS = [*CATEGORIES, UNDECIDED]
MINIMUM = 30  # errors, below which no share is given


def paper_types() -> pd.DataFrame:
    """The paper's types: category, type (its name), percent (of its 100 errors), description, example (a tuned model's
    solution)."""
    folder = paths.DATA / "published"
    pairs = registry.read_jsonl(folder / "truong_table5_examples.jsonl")
    examples = {pair["error_type"]: pair["tuned"] for pair in pairs}
    table = shipped.read_table("truong_table5.csv", ("error_type", "description", "percent"), ("percent",))
    table = table.rename(columns={"error_type": "type"})
    categories = {name: category for category, name in CATEGORIES.items()}
    table = table.assign(category=table.type.map(categories), example=table.type.map(examples))
    return table[["category", "type", "percent", "description", "example"]]


def metric(category: str) -> str:
    """The name of a category's share in the papers' numbers."""
    return "share_" + CATEGORIES[category].lower().replace(" ", "_")


def count_types(labels: pd.DataFrame, base_correct: pd.Series) -> pd.DataFrame:
    """How many errors are of each type, by label pass; undecided last.

    Args:
        labels: a row per error, a column per pass.
        base_correct: whether the base model was right, for each error.

    Returns:
        labelled_by, category, type (the paper's name), published (percent of its 100 errors), errors, base_right (how many of
        them the base model solved), share, low, high (percent, Wilson's 95 %; NaN below `MINIMUM` labelled errors). Without a
        pass, the paper's shares with no errors.
    """
    passes = {name: labels[name].dropna() for name in labels} or {"": pd.Series(dtype=object)}
    rows = []
    for name, given in passes.items():
        for category in LABELS:
            found, title, percent = given.index[given == category], "", float("nan")
            if category in CATEGORIES:
                title = CATEGORIES[category]
                percent = published.value("truong", "Table 5", SYSTEM, metric(category))
            counts = (len(found), int(base_correct[found].sum()))
            rows.append((name, category, title, percent, *counts, *_share(len(found), len(given))))
    columns = ["labelled_by", "category", "type", "published", "errors", "base_right", "share", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _share(hits: int, n: int) -> tuple[float, float, float]:
    if n < MINIMUM:
        return (float("nan"),) * 3
    # Wilson's interval: for a type that never occurs a bootstrap has no width
    return 100 * hits / n, *stats.wilson(100 * hits / n, n)


def coverage(labels: pd.Series) -> str:
    """How many errors are decided, in words, with the share where there are enough."""
    decided, n = int((labels != UNDECIDED).sum()), len(labels)
    return f"{decided} of {n} errors decided" + (f" ({100 * decided / n:.0f} %)" if n >= MINIMUM else "")


def result_rows(labels: pd.Series, labelled_by: str, model: str, **about: object) -> list[dict]:
    """The shares as measurements; none where there are too few errors for shares.

    Args:
        labels: one per error.
        labelled_by: an annotator's pass.
        model: the tuned model.
        about: scale, data and trained_on of `results.row`.
    """
    if len(labels) < MINIMUM:
        return []
    system = f"{model}, errors labelled by {labelled_by}"
    rows = []
    for category in CATEGORIES:
        share, low, high = _share(int((labels == category).sum()), len(labels))
        where = {"n": len(labels), "interval": (low, high), **about}
        rows.append(results.row(system, "GSM8K errors", metric(category), share, **where))
    return rows
