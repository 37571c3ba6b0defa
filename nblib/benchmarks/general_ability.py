"""General ability: the tasks of MTEB at hand, measured on a system, resumed where a run was stopped, averaged, compared.

Below `<run_dir>/scores/<system>/` it leaves what `scoring` leaves, a file of predictions for each task, and `general.csv`.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from nblib import artefacts, paths, results, stats
from nblib.benchmarks import mteb_catalogue, scoring
from nblib.benchmarks.mteb_catalogue import TASKS, Choice, GeneralError
from nblib.models import embeddings
from nblib.models.encoders import Encoder
from nblib.models.registry import Role
from nblib.models.systems import BiEncoder, StoredSystem, System

if TYPE_CHECKING:
    from nblib.benchmarks.mteb_tasks import LocalRows

FILE = "general.csv"
COLUMNS = ["task", "category", "metric", "value", "ci_low", "ci_high", "n", "seconds", "caveat"]
BY_TASK, BY_CATEGORY = "mean of tasks", "mean of categories"
PROBES = 3  # lengths of text at which the speed is measured


@dataclass(frozen=True)
class Plan:
    """What a run will encode.

    Attributes:
        table: task, category, texts (distinct), new (those that no earlier run has encoded), tokens (of the new ones, after
            truncation; NaN where the model has no tokenizer to ask).
        seconds: how long encoding should take, by what a few texts take now.
    """

    table: pd.DataFrame
    seconds: float

    @property
    def sentence(self) -> str:
        """The plan in words."""
        if not len(self.table):
            return "Its weights aren't here: what was measured of it before is shown."
        texts, new, tokens = (self.table[column].sum(skipna=False) for column in ("texts", "new", "tokens"))
        if not new:
            return f"{len(self.table)} tasks, {texts:,} texts: all encoded before, so minutes at most."
        pace = f"{new / self.seconds:,.0f} texts" if np.isnan(tokens) else f"{tokens / self.seconds:,.0f} tokens"
        return (
            f"{len(self.table)} tasks, {new:,} of {texts:,} texts to encode: about {self.seconds / 60:.0f} minutes at {pace} a "
            "second (measured now), and a few minutes to score."
        )


def plan(system: System, choice: Choice, run_dir: str | Path) -> Plan:
    """What measuring general ability will encode, and how long that should take; finished tasks count nothing.

    Raises:
        GeneralError: no such choice, or a system without embeddings.
        CorpusError: data that are not there.
    """
    if isinstance(system, StoredSystem):
        return Plan(pd.DataFrame(), 0.0)
    from nblib.benchmarks import mteb_tasks  # mteb takes seconds, which those who read scores don't need

    encoder, rows, planned, by_role = _encoder(system), [], set(), defaultdict(list)
    for name in mteb_catalogue.names(choice):
        task, tokens, texts, new = mteb_tasks.get(name), 0.0, 0, 0
        if _finished(system, task, run_dir) is None:
            for role, found in task.texts().items():
                prefix = (encoder.query_tower is not None and role == "query", encoder.spec.prompt(role))
                missing = [text for text in embeddings.not_encoded(encoder, found, role=role) if text.strip()]
                missing = [text for text in missing if (prefix, text) not in planned]
                planned.update((prefix, text) for text in missing)
                counts = embeddings.token_counts(encoder, missing, role)
                amounts = np.minimum(counts, encoder.model.max_seq_length or np.inf)
                texts, new, tokens = texts + len(set(found)), new + len(missing), tokens + amounts.sum()
                by_role[role] += zip(missing, amounts, strict=True)
        rows.append((name, TASKS[name].category, texts, new, tokens))
    seconds = sum(_expected_seconds(encoder, role, pairs) for role, pairs in by_role.items() if pairs)
    return Plan(pd.DataFrame(rows, columns=["task", "category", "texts", "new", "tokens"]), seconds)


def _expected_seconds(encoder: Encoder, role: Role, texts: Sequence[tuple[str, float]]) -> float:
    """How long encoding should take: short, middling and long texts, a third of all tokens each, at the speed of a few of each.

    Args:
        texts: each with its tokens (or NaN, then characters stand for them).
    """
    amounts = pd.Series(
        [len(text) if np.isnan(tokens) else tokens for text, tokens in texts], dtype=float
    ).sort_values()
    done, total, seconds = amounts.cumsum().to_numpy(), amounts.sum(), 0.0
    embeddings.seconds_to_encode(encoder, [texts[amounts.index[0]][0]], role=role)  # the first call is slower
    for third in range(PROBES):
        middle = int(np.searchsorted(done, total * (third + 0.5) / PROBES))
        size = max(2, min(64, int(embeddings.CPU_BATCH // max(1, amounts.iloc[middle]))))
        start = max(0, min(middle - size // 2, len(amounts) - size))
        near = amounts.iloc[start : start + size]
        took = embeddings.seconds_to_encode(encoder, [texts[place][0] for place in near.index], role=role)
        seconds += took * total / PROBES / near.sum()
    return seconds


def score(system: System, choice: Choice, run_dir: str | Path, *, batch_size: int = 64) -> pd.DataFrame:
    """Measure general ability; a task that this system has finished in this run is read, not run again.

    Args:
        batch_size: texts encoded at once.

    Returns:
        A row for each task (`COLUMNS`): value with its 95 % interval in percent, n items, the seconds it took when it was run,
        and why a score may differ from one on MTEB's own copy of the data.

    Raises:
        GeneralError: no such choice, or a system without embeddings.
        CorpusError, EmbeddingError: see `corpora.load` and `embeddings.encode`.
    """
    if isinstance(system, StoredSystem):
        return load(run_dir, system.name) if system.name in systems(run_dir) else pd.DataFrame(columns=COLUMNS)
    from nblib.benchmarks import mteb_tasks
    from nblib.benchmarks.mteb_encoder import MtebEncoder

    names, wrapped = mteb_catalogue.names(choice), MtebEncoder(_encoder(system), batch_size=batch_size)
    folder = paths.writable_folder(scoring.folder_of(run_dir, system.name))
    scoring.describe(system, run_dir)
    took, rows = _seconds(folder), []
    for name in (progress := tqdm(names, desc=f"{system.name}: general ability", unit="task", disable=not names)):
        progress.set_postfix_str(name)
        task, started = mteb_tasks.get(name), time.perf_counter()
        predictions = _finished(system, task, run_dir)
        if predictions is None:
            scoring.evaluate(wrapped, task, folder)
            predictions = task.predictions["test"]
            took[name] = time.perf_counter() - started
        measured = scoring.measure(predictions)
        about = {"task": name, "category": TASKS[name].category, "metric": task.metric, "caveat": TASKS[name].caveat}
        rows.append({**about, **measured, "seconds": took.get(name, np.nan)})
        _write(folder, pd.DataFrame(rows, columns=COLUMNS))  # task by task, so that a stopped run has left what it did
    return pd.DataFrame(rows, columns=COLUMNS)


def load(run_dir: str | Path, system: str) -> pd.DataFrame:
    """What `score` found of a system, all its runs together.

    Raises:
        ScoreError: nothing was measured.
    """
    file = scoring.folder_of(run_dir, system) / FILE
    if not file.is_file():
        raise scoring.ScoreError(
            f"No general ability of {system} at {file}. Measure it: nblib score {system} --general short --run-dir {run_dir}"
        )
    table = artefacts.read_table(file, dtype={"caveat": "str"})
    return table.assign(caveat=table.caveat.fillna(""))


def result_rows(measured: pd.DataFrame, system: str, scale: str, **about: str) -> list[dict]:
    """The scores as measurements (`results.row`). STSBenchmark is left out: it is STSB, which notebook 07 measures anyway.

    Args:
        measured: from `score` or `load`.
        about: trained_on and fingerprint.
    """
    return [
        results.row(
            system, f"MTEB {item.task}", item.metric, item.value, data=f"{item.task} test", n=item.n, scale=scale,
            interval=(item.ci_low, item.ci_high), **about,
        )
        for item in measured.itertuples()
        if item.task != "STSBenchmark"
    ]  # fmt: skip


def systems(run_dir: str | Path) -> list[str]:
    """The systems whose general ability was measured in a run."""
    return sorted(file.parent.name for file in (paths.resolve(run_dir) / "scores").glob(f"*/{FILE}"))


def averages(measured: pd.DataFrame, value: str = "value") -> pd.DataFrame:
    """The mean of each category, and of all tasks and all categories (Truong's "Average" is of categories).

    Args:
        measured: task, category, and a score in percent.

    Returns:
        average (a category, `BY_TASK`, `BY_CATEGORY`), tasks (how many), value.
    """
    by_category = measured.groupby("category", sort=False)[value].agg(["size", "mean"])
    rows = [(category, int(row["size"]), row["mean"]) for category, row in by_category.iterrows()]
    rows.append((BY_TASK, len(measured), measured[value].mean()))
    rows.append((BY_CATEGORY, len(measured), by_category["mean"].mean()))
    return pd.DataFrame(rows, columns=["average", "tasks", "value"])


def changes(run_dir: str | Path, baseline: str, other: str, *, others_dir: str | Path | None = None) -> pd.DataFrame:
    """What general ability a system has gained or lost against a baseline: by category and on average, with paired intervals.

    Each task's items are resampled (by cluster, the same for both systems), and the tasks' changes are averaged resample by
    resample. Tasks of equally many clusters get the same resamples, so that two tasks on the same texts stay paired.

    Args:
        others_dir: the run of the other system, where that isn't the baseline's.

    Returns:
        average, tasks, before, after, difference, low, high (percentage points); over the tasks that both were measured on.

    Raises:
        ScoreError: one of them was not measured.
    """
    first, second = load(run_dir, baseline), load(others_dir or run_dir, other)
    both = first.merge(second, on=["task", "category"], suffixes=("_before", "_after"))
    replicates = {}
    for name in both.task:
        before = scoring.load_predictions(run_dir, baseline, name)
        after = scoring.load_predictions(others_dir or run_dir, other, name)
        replicates[name] = 100 * scoring.change_replicates(before, after, seed=before.cluster.nunique())
    old, new = (averages(both, f"value_{side}") for side in scoring.SIDES)
    members = {category: list(part.task) for category, part in both.groupby("category", sort=False)}
    drawn = {category: _mean([replicates[name] for name in names]) for category, names in members.items()}
    drawn |= {BY_TASK: _mean(list(replicates.values())), BY_CATEGORY: _mean([drawn[name] for name in members])}
    table = old.rename(columns={"value": "before"}).assign(after=new.value, difference=new.value - old.value)
    return table.assign(
        low=[stats.percentile_interval(drawn[name])[0] for name in table.average],
        high=[stats.percentile_interval(drawn[name])[1] for name in table.average],
    )


def _mean(replicates: Sequence[np.ndarray]) -> np.ndarray:
    return np.mean(replicates, axis=0) if len(replicates) else np.array([np.nan])


def _encoder(system: System) -> Encoder:
    if not isinstance(system, BiEncoder):
        raise GeneralError(f"{system.name} ({system.kind}) has no embeddings: MTEB's tasks are for encoders.")
    return system.encoder


def _finished(system: BiEncoder, task: "LocalRows", run_dir: str | Path) -> pd.DataFrame | None:
    """The predictions of a task that this very system has finished on these very data in this run, else None."""
    import mteb

    from nblib.benchmarks.mteb_encoder import MtebEncoder

    folder, name = scoring.folder_of(run_dir, system.name), task.metadata.name
    file = folder / f"{name}_test.parquet"
    found = mteb.ResultCache(folder / "mteb").load_task_result(name, MtebEncoder(system.encoder).mteb_model_meta)
    if found is None or not file.is_file() or found.dataset_revision != task.metadata.revision:
        return None
    predictions = artefacts.read_table(file)
    # Predictions of other weights under the same name don't give the score that these weights got
    agrees = np.isclose(scoring.point(predictions), found.get_score(), atol=1e-4)
    return predictions if agrees else None


def _seconds(folder: Path) -> dict[str, float]:
    file = folder / FILE
    return artefacts.read_table(file).set_index("task").seconds.to_dict() if file.is_file() else {}


def _write(folder: Path, rows: pd.DataFrame) -> None:
    """Write the rows, and those of other tasks that a run of another choice has left, in the catalogue's order."""
    file = folder / FILE
    earlier = artefacts.read_table(file).query("task not in @rows.task") if file.is_file() else rows.iloc[:0]
    whole = pd.concat([earlier, rows]) if len(earlier) else rows
    artefacts.write_table(whole.sort_values("task", key=lambda names: names.map(list(TASKS).index)), file)
