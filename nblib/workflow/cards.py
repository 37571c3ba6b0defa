"""The cards of the adapters that ship: their test scores, from the record, in the form that the Hugging Face hub reads.

Prose, training data and settings stand in the cards themselves (`data/adapters/<name>/README.md`).
"""

import pandas as pd

from nblib import paths
from nblib.benchmarks.scoring import METRICS
from nblib.results import matrix, tables

START, END = "<!-- made: scores -->\n", "<!-- end -->"


def update(measured: pd.DataFrame) -> list[str]:
    """Write each shipped adapter's test scores into its card; return the names of the cards that changed.

    Args:
        measured: the measurements of the record.
    """
    changed = []
    for file in sorted((paths.PROJECT_ROOT / "data" / "adapters").glob("*/README.md")):
        old = file.read_text(encoding="utf-8")
        new = card(old, file.parent.name, official_scores(measured, file.parent.name))
        if new != old:
            with paths.write_atomically(file) as draft:
                draft.write_text(new, encoding="utf-8")
            changed.append(file.relative_to(paths.PROJECT_ROOT).as_posix())
    return changed


def official_scores(measured: pd.DataFrame, system: str) -> pd.DataFrame:
    """A system's scores on whole official test sets: those of the matrix, then MTEB's tasks, as they were measured."""
    rows = measured[measured.system == system]
    wanted = rows.benchmark.map(lambda name: matrix.SCORES.get(name, ("",))[0])
    whole = (rows.metric == wanted) & rows.data.str.fullmatch(r"\w+ test")
    return pd.concat([rows[whole], rows[rows.benchmark.str.startswith("MTEB ")]], ignore_index=True)


def card(text: str, system: str, scores: pd.DataFrame) -> str:
    """A card with these scores in its head (the hub's `model-index`) and in its table.

    Args:
        scores: from `official_scores`.
    """
    from huggingface_hub import EvalResult, ModelCard

    interval = tables.interval_text(scores.ci_low, scores.ci_high, 1)
    items = [
        (row.benchmark, METRICS.get(row.metric, row.metric), row.value, f"{row.n:,.0f}", between, row.metric)
        for row, between in zip(scores.itertuples(), interval, strict=True)
    ]
    lines = [f"| {name} | {metric} | {value:.1f} | {between} | {n} |" for name, metric, value, n, between, _ in items]
    table = "\n".join(["| test set | metric | score | 95 % interval | n |", "|---|---|---|---|---|", *lines])
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    found = ModelCard(f"{before}{START}{table}\n{END}{after}", ignore_metadata_errors=False)
    found.data.model_name = system
    found.data.eval_results = [
        EvalResult(
            task_type="sentence-similarity", dataset_type=name.lower().replace(" ", "-"), dataset_name=f"{name} test",
            metric_type=key, metric_value=value, metric_name=f"{metric}, n = {n}, 95 % interval {between}",
        )
        for name, metric, value, n, between, key in items
    ]  # fmt: skip
    return str(found)
