"""Granularity: can a printed percentage be a share of n items at all? (The GRIM test of Brown and Heathers, 2017.)

A percentage with two decimals over n items must be the rounded value of some k/n. With n far below 10,000 most percentages are
impossible, so several of them together tell which n they were taken over.
"""

from collections.abc import Sequence

import pandas as pd

from nblib import paths, shipped
from nblib.results import published
from nblib.results.measurements import ResultsError

FILE = paths.DATA / "published" / "granularity.yaml"
MOST = 5000  # the largest n that `smallest_n` tries


def fits(printed: str, n: int) -> bool:
    """Whether some k of n items, as a percentage, rounds to a printed number.

    Args:
        printed: the number with its digits ("31.32").

    Raises:
        ValueError: n isn't positive.
    """
    if n < 1:
        raise ValueError(f"A share needs items: n = {n}.")
    digits = len(printed.partition(".")[2])
    nearest = round(float(printed) * n / 100)
    half = 0.5 * 10**-digits + 1e-9  # a half may be rounded either way
    return any(0 <= k <= n and abs(100 * k / n - float(printed)) <= half for k in (nearest - 1, nearest, nearest + 1))


def smallest_n(printed: Sequence[str]) -> int | None:
    """The smallest n over which all of these can have been taken; None where none up to `MOST` fits."""
    if not printed:
        return None
    return next((n for n in range(1, MOST + 1) if all(fits(one, n) for one in printed)), None)


def table() -> pd.DataFrame:
    """Every group of `data/published/granularity.yaml` with each n that comes into question for it.

    Returns:
        paper, group, numbers (how many), n, fitting (how many of them fit), smallest (the smallest n that fits all; NaN where
        none up to `MOST` does), note.

    Raises:
        ResultsError: a group names no printed number.
    """
    rows = []
    for group in shipped.read_yaml(FILE):
        numbers = _numbers(group)
        least = smallest_n(numbers)
        for n in group["n"]:
            fitting = sum(fits(one, n) for one in numbers)
            rows.append((group["paper"], group["group"], len(numbers), n, fitting, least, group.get("note", "")))
    columns = ["paper", "group", "numbers", "n", "fitting", "smallest", "note"]
    return pd.DataFrame(rows, columns=columns).astype({"smallest": float})


def _numbers(group: dict) -> list[str]:
    printed = published.load(group["paper"])
    chosen = printed.exhibit.isin(group["exhibits"]) & printed.metric.isin(group["metrics"])
    chosen &= printed.value.notna() & printed.unit.eq("percent")
    for column in ("benchmark", "system"):
        if column in group:
            chosen &= printed[column].isin(group[column])
    chosen &= ~printed.system.str.startswith(("Average", "chance"))
    rows = printed[chosen].drop_duplicates(["system", "benchmark", "metric", "printed"])
    if rows.empty:
        raise ResultsError(f"{FILE}: group {group['group']!r} names no printed number.")
    return rows.printed.tolist()
