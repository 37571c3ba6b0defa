"""The types of error of Truong's Table 5, and how many errors of each there are."""

import pandas as pd
from scipy.stats import binomtest

from nblib import published, results

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
SYSTEM = "Llama-3-8B-Hedge"  # whose errors the paper judged
LABELS = [*CATEGORIES, UNDECIDED]
MINIMUM = 30  # errors, below which no share is given


def metric(category: str) -> str:
    """The name of a category's share in the papers' numbers."""
    return "share_" + CATEGORIES[category].lower().replace(" ", "_")


def breakdown(categories: pd.Series) -> pd.DataFrame:
    """How many errors are of each type, undecided last.

    Args:
        categories: one per error, keys of `CATEGORIES` or undecided.

    Returns:
        category, type (the paper's name), published (percent of its 100 errors), errors; and from `MINIMUM` errors on share,
        low, high (percent, Wilson's 95 %), else NaN.
    """
    n = len(categories)
    rows = []
    for category in [*CATEGORIES, UNDECIDED]:
        hits = int((categories == category).sum())
        share, low, high = (float("nan"),) * 3
        if n >= MINIMUM:  # Wilson's interval: a bootstrap of a type that never occurs would be sure of it
            share, (low, high) = hits / n, binomtest(hits, n).proportion_ci(method="wilson")
        printed = float("nan")
        if category in CATEGORIES:
            printed = published.value("truong", "Table 5", SYSTEM, metric(category))
        paper = CATEGORIES.get(category, "")
        rows.append((category, paper, printed, hits, 100 * share, 100 * low, 100 * high))
    return pd.DataFrame(rows, columns=["category", "type", "published", "errors", "share", "low", "high"])


def coverage(categories: pd.Series) -> str:
    """In words: how many errors are decided, with the share where there are enough."""
    decided, n = int((categories != UNDECIDED).sum()), len(categories)
    return f"{decided} of {n} errors decided" + (f" ({100 * decided / n:.0f} %)" if n >= MINIMUM else "")


def result_rows(categories: pd.Series, judged_by: str, model: str, **about: object) -> list[dict]:
    """The shares as rows of the results schema, for Truong's Table 5; none where there are too few errors for shares.

    Args:
        judged_by: rules, a judge or an annotator's pass.
        model: the tuned model.
        about: what else `results.row` wants: scale, data, official, stand_in.
    """
    table = breakdown(categories)
    table = table[(table.category != UNDECIDED) & table.share.notna()]
    named = f"{model}, judged by {judged_by}, {coverage(categories)}"
    return [
        results.row(
            "truong", "Table 5", SYSTEM, "GSM8K", metric(row.category), row.share, n=len(categories), model=named,
            interval=(row.low, row.high), **about,
        )
        for row in table.itertuples()
    ]  # fmt: skip
