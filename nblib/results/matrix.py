"""Systems × benchmarks at a glance: what was measured, and the printed number of the same system on the same items."""

import pandas as pd

# Which score of a benchmark stands for it, and what guessing scores (percent; a correlation: 0)
SCORES = {
    "NevIR": ("right_rank", 25.0), "ExcluIR": ("right_rank", 50.0), "SemAntoNeg": ("accuracy", 100 / 3),
    "CANNOT-WMT": ("pearson", 0.0), "M3-derived": ("spearman", 0.0), "STSB": ("spearman", 0.0),
}  # fmt: skip
WHOLE = r"\w+( test)?(, (a )?sample[^,]*)?"  # data of a score over all items asked, not of a part or another split
MINI = " (mini)"


def matrix(measured: pd.DataFrame, board: pd.DataFrame) -> pd.DataFrame:
    """A row for each system and benchmark of `SCORES`: of several sets of items the largest.

    Args:
        measured: from `measurements.load`.
        board: a scoreboard; a stand-in has no printed number.

    Returns:
        system, trained_on, benchmark (with "(mini)" where it was a mini set), value, ci_low, ci_high, n, data, published,
        agrees; the systems in the order of training data and name, those of a sweep (a base + a variant) left out.
    """
    table = measured.assign(of=measured.benchmark.str.removesuffix(MINI))
    table = table[
        table.of.isin(SCORES) & table.data.str.fullmatch(WHOLE) & ~table.system.str.contains(" + ", regex=False)
    ]
    table = table[table.metric == table.of.map(lambda name: SCORES[name][0])]
    table = table.sort_values("n", ascending=False, kind="stable").drop_duplicates(["system", "of"])
    answered = board[board.measured.isin(["full", "sample", "other protocol"]) & board.published.notna()]
    key = {"measured_system": "system", "measured_metric": "metric", "data": "data"}
    printed = answered[[*key, "published", "agrees"]].rename(columns=key).drop_duplicates([*key.values()])
    table = table.merge(printed, on=[*key.values()], how="left", validate="m:1")
    columns = ["system", "trained_on", "benchmark", "value", "ci_low", "ci_high", "n", "data", "published", "agrees"]
    return table.sort_values(["trained_on", "system"], kind="stable", ignore_index=True)[columns]


def chances(table: pd.DataFrame) -> dict[str, float]:
    """What guessing scores on each benchmark of a matrix, mini or not, in the order of `SCORES`."""
    measured = set(table.benchmark)
    labels = [(name + mini, chance) for name, (_, chance) in SCORES.items() for mini in ("", MINI)]
    return {label: chance for label, chance in labels if label in measured}
