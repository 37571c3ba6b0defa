"""Granularity: can a printed percentage be a share of n items at all? (The GRIM test of Brown and Heathers, 2017.)

A percentage with two decimals over n items must be the rounded value of some k/n. With n far below 10,000 most percentages are
impossible, so several of them together tell which n they were taken over.
"""

from collections.abc import Sequence

import pandas as pd

from nblib import shipped
from nblib.results import published


def fits(printed: str, n: int) -> bool:
    """Whether some k of n items, as a percentage, rounds to a printed number, given with its digits ("31.32")."""
    half = 0.5 * 10 ** -len(printed.partition(".")[2]) + 1e-9  # a half may be rounded either way
    nearest = round(float(printed) * n / 100)
    return any(0 <= k <= n and abs(100 * k / n - float(printed)) <= half for k in (nearest - 1, nearest, nearest + 1))


def smallest_n(printed: Sequence[str]) -> int | None:
    """The smallest n over which all of these can have been taken; None where none up to 5,000 fits."""
    return next((n for n in range(1, 5001) if all(fits(one, n) for one in printed)), None)


def table() -> pd.DataFrame:
    """Every group of `data/published/granularity.yaml` with each n that comes into question for it: paper, group, numbers (how
    many), n, fitting (how many of them fit), smallest (`smallest_n`, or NaN), note."""
    rows = []
    for group in shipped.read_yaml(published.FOLDER / "granularity.yaml"):
        numbers = _numbers(group)
        about = {"paper": group["paper"], "group": group["group"], "numbers": len(numbers)}
        known = {"smallest": smallest_n(numbers), "note": group.get("note", "")}
        rows += [{**about, "n": n, "fitting": sum(fits(one, n) for one in numbers), **known} for n in group["n"]]
    return pd.DataFrame(rows).astype({"smallest": float})


def _numbers(group: dict) -> list[str]:
    printed = published.load(group["paper"])
    chosen = printed.value.notna() & printed.unit.eq("percent") & ~printed.system.str.startswith(("Average", "chance"))
    keys = {"exhibit": "exhibits", "metric": "metrics", "benchmark": "benchmark", "system": "system"}
    for column, key in keys.items():
        chosen &= printed[column].isin(group[key]) if key in group else True
    return printed[chosen].drop_duplicates(["system", "benchmark", "metric", "printed"]).printed.tolist()
