"""Systems × benchmarks at a glance: what was measured, and the printed number of the same system on the same items."""

import pandas as pd

from nblib.benchmarks import catalogue
from nblib.results import words

# The benchmarks, in this order, each with its main metric and what guessing scores (percent; a correlation: 0)
KEYS = ("nevir", "excluir", "semantoneg", "cannot_wmt", "m3", "stsb")
SCORES = {key: (catalogue.get(key).main_metric, catalogue.get(key).chance) for key in KEYS}
ITEMS = ["corpus", "split", "part", "sample", "protocol"]


def matrix(measured: pd.DataFrame, board: pd.DataFrame) -> pd.DataFrame:
    """A row for each system (without variants, or language models that answer in two orders, by chance right less often) and
    benchmark of `SCORES` on a whole test split or else its largest sample, from `measurements.load` and a scoreboard: system,
    trained_on, training_items, key (the benchmark's), benchmark (its label), chance, value, ci_low, ci_high, n, `ITEMS`,
    published, agrees."""
    known = pd.DataFrame([(key, *score) for key, score in SCORES.items()], columns=["benchmark", "metric", "chance"])
    whole = (measured[["variant", "part", "protocol"]] == "").all(axis=1) & (measured.split == "test")
    whole &= ~measured.system.isin(measured.system[measured.protocol == "given_order"])
    table = measured[whole].merge(known).sort_values("n", ascending=False, kind="stable")
    table = table.drop_duplicates(["system", "benchmark"]).rename(columns={"benchmark": "key"})
    answered = board[board.measured.isin(["full", "sample", "other protocol"]) & board.published.notna()]
    answered = answered.assign(system=answered.measured_system, metric=answered.measured_metric)
    shared = ["system", "metric", *ITEMS]
    printed = answered[[*shared, "published", "agrees"]].drop_duplicates(shared)
    table = table.merge(printed, on=shared, how="left", validate="m:1")
    table["benchmark"] = [words.benchmark(*pair) for pair in zip(table.key, table.corpus, strict=True)]
    columns = "system trained_on training_items key benchmark chance value ci_low ci_high n".split()
    table = table.sort_values(["trained_on", "system"], kind="stable", ignore_index=True)
    return table[[*columns, *ITEMS, "published", "agrees"]]


def chances(table: pd.DataFrame) -> dict[str, float]:
    """What guessing scores on each benchmark of a matrix, by its label, in the order of `SCORES`."""
    ordered = table.sort_values("key", key=lambda keys: keys.map(list(SCORES).index), kind="stable")
    return dict(zip(ordered.benchmark, ordered.chance, strict=True))
