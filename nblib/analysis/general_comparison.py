"""General ability beside what is published: task by task, in Truong's columns, over model size, and against NevIR.

Averages are compared over the very same tasks only. No model is loaded here.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from nblib import artefacts
from nblib.analysis import systems
from nblib.benchmarks import general_ability, mteb_catalogue, scoring
from nblib.benchmarks.general_ability import BY_CATEGORY, BY_TASK
from nblib.results import plotting, published, published_mteb
from nblib.results.measurements import DECIMALS

STS = tuple(name for name, task in mteb_catalogue.TASKS.items() if task.category == "STS")
TOLERANCE = {"STS": 0.1, "Retrieval": 0.2, "Classification": 0.5}  # points that versions and sampling may make

# Encoders that the papers use, to be named among the published
NAMED = ("bge-base-en-v1.5", "gte-large-en-v1.5", "e5-base-v2", "mxbai-embed-large-v1", "SFR-Embedding-2_R")
# Truong's printed columns: table → category → mteb's tasks of it, where the table's set is small enough to list
_LITE = set(mteb_catalogue.MTEB_LITE)
COLUMNS = {
    "Table 1": {
        "Classification": ("MTEB-Classification", 12), "PairClassification": ("MTEB-PairClassification", 3),
        "Retrieval": ("MTEB-Retrieval", 15), "STS": ("MTEB-STS", 10), "Summarization": ("MTEB-Summarization", 1),
    },
    "Table 2": {
        "Classification": ("MTEB-Classification-lite", 3), "Retrieval": ("MTEB-Retrieval", 3), "STS": ("MTEB-STS", 3),
        "Summarization": ("MTEB-Summarization", 1),
    },
}  # fmt: skip
TOTAL = {"Table 1": 56, "Table 2": 16}


def beside_published(measured: pd.DataFrame, model: str) -> pd.DataFrame:
    """The measured scores with the published ones of the same model on the same tasks.

    Args:
        measured: from `general_ability.score` or `load`.
        model: its published name, or the last part of it.

    Returns:
        category, task, metric, published (NaN where nothing is), ours, difference, ci_low, ci_high, n, note (why the two may
        differ).
    """
    table = measured.rename(columns={"value": "ours", "caveat": "note"})
    table["published"] = table.task.map(published_mteb.scores(model)).astype(float)
    table["difference"] = (table.ours - table.published).round(DECIMALS) + 0.0  # no "-0.0"
    columns = ["category", "task", "metric", "published", "ours", "difference", "ci_low", "ci_high", "n", "note"]
    return table[columns].reset_index(drop=True)


def outside(compared: pd.DataFrame) -> pd.DataFrame:
    """The tasks whose score lies further from the published one than `TOLERANCE`; those without one have no tolerance.

    Args:
        compared: from `beside_published`.
    """
    allowed = compared.category.map(TOLERANCE).astype(float)
    return compared[compared.difference.abs() > allowed].reset_index(drop=True)


def averages(compared: pd.DataFrame) -> pd.DataFrame:
    """Averages by category and over all, ours and published, each over the tasks that have both.

    Args:
        compared: from `beside_published`.

    Returns:
        average, tasks, ours; of a model with published scores also compared (how many tasks have both), ours_compared, published.
    """
    ours = general_ability.averages(compared, "ours").rename(columns={"value": "ours"})
    both = compared.dropna(subset="published")
    if both.empty:
        return ours
    there = [
        general_ability.averages(both, column).rename(columns={"tasks": "compared", "value": name})
        for column, name in (("ours", "ours_compared"), ("published", "published"))
    ]
    return ours.merge(there[0].merge(there[1], on=["average", "compared"]), on="average", how="left")


def missing(measured: Sequence[str]) -> str:
    """Which tasks of Truong's 16 were not measured, in words."""
    absent = mteb_catalogue.missing_of_lite(measured)
    there = len(mteb_catalogue.MTEB_LITE) - len(absent)
    if not absent:
        return "All 16 tasks of MTEB-lite were measured."
    return f"{there} of the 16 tasks of MTEB-lite were measured; missing: {', '.join(absent)}."


def truong_columns(measured: pd.DataFrame, model: str, table: str, system: str = "MPNet") -> pd.DataFrame:
    """Truong's printed MTEB columns beside what can be measured of them.

    The printed number is over all tasks of the column. `published` is MTEB's own score of the model, averaged over the tasks that
    were measured, and so is `ours`: the two compare, and their distance from the printed one is the choice of tasks.

    Args:
        measured: from `general_ability.score` or `load`.
        model: the published model that stands behind the printed row.
        table: "Table 1" (56 tasks) or "Table 2" (16).
        system: the printed row.

    Returns:
        column, coverage ("9 of 10"), printed, published, ours; the last row is the average of the columns.
    """
    inside = measured if table == "Table 1" else measured[measured.task.isin(_LITE)]
    known, rows = published_mteb.scores(model), []
    for category, (column, size) in COLUMNS[table].items():
        part = inside[inside.category == category]
        if part.empty:
            continue
        printed = published.value_or_nan("truong", table, system, "mteb_category_average", column)
        theirs = part.task.map(known).mean() if part.task.isin(known.index).all() else np.nan
        rows.append((column, f"{len(part)} of {size}", printed, theirs, part["value"].mean()))
    found = pd.DataFrame(rows, columns=["column", "coverage", "printed", "published", "ours"])
    average = {column: found[column].mean(skipna=False) for column in ("printed", "published", "ours")}
    name = f"mean of these {len(found)} columns"
    last = {"column": name, "coverage": f"{len(inside)} of {TOTAL[table]}", **average}
    return pd.concat([found, pd.DataFrame([last])], ignore_index=True)


def sts_by_size(run_dir: str | Path) -> pd.DataFrame:
    """The average over the STS tasks at hand against size: published models, and every system of ours measured on all of them.

    Returns:
        system, parameters (millions), value, ours (whether it is), rank (by value among all, 1 is the best), label (of ours, of
        `NAMED` and of the best published one; "" for the rest).
    """
    others = published_mteb.averages(STS)[["model", "parameters", "value"]].rename(columns={"model": "system"})
    known = others.system.isin([published_mteb.find(name) for name in NAMED]) | (others.index == 0)
    others["label"] = others.system.str.partition("/")[2].where(known, "")
    names = general_ability.systems(run_dir)
    rows = [(name, scoring.about(run_dir, name).get("parameters"), sts_average(run_dir, name), name) for name in names]
    ours = pd.DataFrame(rows, columns=["system", "parameters", "value", "label"]).dropna(subset="value")
    table = pd.concat([others.assign(ours=False), ours.assign(ours=True)], ignore_index=True)
    return table.assign(rank=table.value.rank(ascending=False, method="min").astype(int))


def sts_average(run_dir: str | Path, system: str) -> float:
    """A system's average over the STS tasks at hand; NaN where it was not measured on all of them."""
    try:
        measured = general_ability.load(run_dir, system).set_index("task").value
    except scoring.ScoreError:
        return np.nan
    return float(measured.reindex(STS).mean(skipna=False))


def nevir_and_sts(run_dir: str | Path, names: Sequence[str]) -> pd.DataFrame:
    """NevIR against the STS average: published bi-encoders that have both on the same tasks, and ours.

    Args:
        names: systems of ours; those without predictions on NevIR, or not measured on all STS tasks, are left out.

    Returns:
        system, nevir, sts, source (a publication, or "ours"), best (whether no other system is at least as good at both and
        better at one).
    """
    rows = []
    for item in published_mteb.nevir().itertuples():
        known = published_mteb.scores(item.system)
        if set(STS) <= set(known.index):
            rows.append((item.system, item.value, known[list(STS)].mean(), item.source))
    for name in names:
        file = scoring.folder_of(run_dir, name) / "nevir_test.parquet"
        sts = sts_average(run_dir, name)
        if file.is_file() and np.isfinite(sts):
            found = systems.accuracies({name: artefacts.read_table(file)})
            rows.append((name, found.value.item(), sts, "ours"))
    same = pd.DataFrame(rows, columns=["system", "nevir", "sts", "source"])
    return same.assign(best=pareto(same.nevir, same.sts))


def draw_nevir_and_sts(table: pd.DataFrame, ax: Axes) -> None:
    """Draw `nevir_and_sts`: published systems, ours, and their Pareto front."""
    front = table[table.best].sort_values("sts")
    ax.plot(front.sts, front.nevir, "--", color=plotting.MUTED, lw=1, label="Pareto front")
    ours = table.source == "ours"
    for part, colour, label in [(table[~ours], plotting.PUBLISHED, "published"), (table[ours], plotting.OURS, "ours")]:
        ax.plot(part.sts, part.nevir, "o", color=colour, label=label)
    ax.axhline(25, color=plotting.MUTED, ls=":", lw=1)
    ax.legend()


def nevir_ranks(measured: pd.DataFrame, run_dir: str | Path) -> pd.DataFrame:
    """Where systems of ours stand on NevIR within one collection: Weller's Table 2 and the scores looked up since. Systems that
    were trained on NevIR's pairs have no rank among those that were not.

    Args:
        measured: system and value (percent) on all of NevIR's test pairs, from `systems.accuracies`.

    Returns:
        system, value, source, trained_on, rank (1 is the best) among `of` systems: each of ours with the published ones alone.
    """
    others = published_mteb.nevir().value
    ours = measured[["system", "value"]].assign(source="ours")
    ours["trained_on"] = [scoring.trained_on(run_dir, system) for system in ours.system]
    ranks = [1 + int((others > value).sum()) for value in ours.value]
    ours["rank"] = pd.Series(ranks, dtype=float).where(~ours.trained_on.str.contains("NevIR"))
    return ours.assign(of=len(others) + 1).sort_values("rank", ignore_index=True)


def pareto(first: Sequence[float], second: Sequence[float]) -> list[bool]:
    """Whether no other point is at least as high in both and higher in one; shape [n]."""
    points = np.column_stack([first, second]).reshape(-1, 2)
    beaten = [((points >= point).all(axis=1) & (points > point).any(axis=1)).any() for point in points]
    return [not one for one in beaten]


def changes(run_dir: str | Path, baseline: str, others: Sequence[str]) -> pd.DataFrame:
    """What each system has gained or lost against a baseline, by category: system and `general_ability.changes`' columns.

    Systems whose general ability was not measured in the run are left out.
    """
    there = [name for name in others if name in general_ability.systems(run_dir)]
    tables = [general_ability.changes(run_dir, baseline, name).assign(system=name) for name in there]
    columns = ["system", "average", "tasks", "before", "after", "difference", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


def sentence(system: str, compared: pd.DataFrame) -> str:
    """General ability in a sentence or two, for the findings."""
    means = averages(compared).set_index("average")
    of_tasks, of_categories = means.loc[BY_TASK], means.loc[BY_CATEGORY]
    text = (
        f"General ability of {system}: {of_tasks.ours:.1f} on average over {len(compared)} tasks of MTEB, "
        f"{of_categories.ours:.1f} over {compared.category.nunique()} categories"
    )
    if "published" not in means or not np.isfinite(of_tasks.published):
        return f"{text}. MTEB's results have no scores of it."
    far = outside(compared)
    named = ", ".join(f"{row.task} ({row.difference:+.2f})" for row in far.itertuples())
    return (
        f"{text}. On the {int(of_tasks.compared)} tasks with a published score ours average {of_tasks.ours_compared:.2f}, the "
        f"published {of_tasks.published:.2f}; outside the tolerance: {named or 'none'}."
    )
