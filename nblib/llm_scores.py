"""Score a language model: its benchmarks with n and an interval on every score, per-item predictions kept.

Under `<run_dir>/scores/<model>/` a model leaves, as an encoder does (`nblib.scores`), `<task>_test.parquet` with its per-item
predictions, and `<task>_test.json`, which says what made them. What is there, and was made by the same model in the same way, is
not computed again.
"""

import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from nblib import corpora, llm_benchmarks, paths, published, results, scores, tasks, tuned_llm
from nblib.language_models import LanguageModel
from nblib.llm_benchmarks import MATHEMATICS, OURS, LlmTaskError, ask, task


@dataclass(frozen=True)
class LlmScores:
    """What `score` gives.

    Attributes:
        summary: task, view, benchmark, metric, value, ci_low, ci_high (percent), n, clusters, official, data, seconds.
        predictions: per-item predictions by task.
    """

    summary: pd.DataFrame
    predictions: dict[str, pd.DataFrame]


def score(
    model: LanguageModel, names: Sequence[str], run_dir: str | Path, *, limits: Mapping[str, int] | None = None, seed: int = 0,
    chat_template: bool = False, batch_size: int = 0,
) -> LlmScores:  # fmt: skip
    """Evaluate a language model on tasks of `TASKS`; what the same model has answered in the same way is read, not asked again.

    Args:
        limits: task → items of its random sample (of MMLU: a subject); tasks that aren't named are run in full.

    Raises:
        LlmTaskError: a limit for a task that isn't run; see `ask`.
        CorpusError: see `corpora.load`.
    """
    limits = dict(limits or {})
    if strangers := sorted(set(limits) - set(names)):
        raise LlmTaskError(
            f"Limits for {', '.join(strangers)}, which this run doesn't ask. It asks {', '.join(names)}."
        )
    who, rows, predictions = tuned_llm.fingerprint(model), [], {}
    for name in tqdm(names, desc=model.name, leave=False):
        how = {"limit": limits.get(name, 0), "seed": seed, "chat_template": chat_template}
        table, seconds = _answered(model, who, name, run_dir, how, batch_size)
        predictions[name] = table
        rows += [{**row, "seconds": seconds} for row in summarise(name, table, sampled=how["limit"] > 0)]
    return LlmScores(pd.DataFrame(rows), predictions)


def _answered(
    model: LanguageModel, who: str, name: str, run_dir: str | Path, how: dict[str, Any], batch_size: int
) -> tuple[pd.DataFrame, float]:
    """Predictions, from the disk or the model, and the seconds they took when they were made."""
    asking = [file for file in sorted(OURS.iterdir()) if file.is_file()] + [Path(llm_benchmarks.__file__)]
    code = b"".join(file.read_bytes() for file in asking)
    hashes = [split.sha256 for split in corpora.describe(task(name).corpus).splits.values()]
    made = {"model": who, "task": name, **how, "data": hashes, "lm_eval": version("lm_eval"),
            "questions": hashlib.sha256(code).hexdigest()}  # fmt: skip
    note = scores.folder_of(run_dir, model.name) / f"{name}_test.json"
    if note.is_file():
        found = json.loads(note.read_text(encoding="utf-8"))
        if found["made"] == made and note.with_suffix(".parquet").is_file():
            return scores.load_predictions(run_dir, model.name, name), found["seconds"]
    started = time.perf_counter()
    table = ask(model, name, **how, batch_size=batch_size)
    seconds = time.perf_counter() - started
    note.unlink(missing_ok=True)  # it must never stand beside the predictions of another
    scores.save_predictions(table, run_dir, model.name, name)
    with paths.write_atomically(note) as draft:
        draft.write_text(json.dumps({"made": made, "seconds": seconds}, indent=2) + "\n", encoding="utf-8")
    return table, seconds


def summarise(name: str, table: pd.DataFrame, sampled: bool = False) -> list[dict]:
    """The scores of a task's predictions, one row per view: `test`; of a ranking also each order and their sum; of MMLU also
    each subject and the mathematics subset; of HellaSwag also what isn't normalised; of GSM8K the flexible extraction."""
    described, corpus = task(name), corpora.describe(task(name).corpus)
    views = {"test": table}
    if described.kind == "ranking":
        views |= {f"{order} order": table.assign(correct=table[f"correct_{order}"]) for order in ("given", "swapped")}
        views["orders summed"] = table.assign(correct=table.correct_summed)
    elif described.kind == "mmlu":
        mathematics = table[table.subject.isin(MATHEMATICS)]
        views |= {"mathematics": mathematics} if len(mathematics) else {}
        views |= {subject: part for subject, part in table.groupby("subject")}
    elif described.kind == "hellaswag":
        views["not normalised"] = table.assign(correct=table.correct_raw)
    elif described.kind == "gsm8k":
        views["flexible"] = table.assign(correct=table.correct_flexible)
    metric = scores.METRICS.get(described.metric, described.metric)
    return [
        {
            "task": name, "view": view, "benchmark": corpus.label, "metric": metric, **scores.measure(part),
            "official": corpus.official and not sampled, "data": f"{corpus.name}, sample" if sampled else corpus.name,
        }
        for view, part in views.items()
    ]  # fmt: skip


def habits(name: str, table: pd.DataFrame) -> list[dict[str, Any]]:
    """How a model answers, beside how well: task, habit (what is counted), value, fair (what it would be without the habit).

    Rankings: the share of prompts answered with the first document, and of items where all prompts, in both orders, got the
    same place; choices: how often the favourite option was chosen, and how often it was right; similarities and GSM8K: the
    share of answers that have no number to read.
    """
    kind, found = task(name).kind, []
    if kind == "ranking":
        by_place = table.chose_first.isin([0, 1]).mean()
        found = [
            ("chose the first document (%)", table.chose_first.mean(), 0.5),
            ("one place to all of an item's prompts (%)", by_place, math.nan),
        ]
    elif kind == "similarity":
        many = table.similarity.nunique()
        said = "one answer" if many == 1 else f"{many} answers"
        found = [(f"{said} for {len(table)} pairs; unreadable (%)", (~table.parsed).mean(), 0.0)]
    elif kind in ("choice", "mmlu"):
        commonest = table.chosen.value_counts(normalize=True)
        right = (table.target == commonest.index[0]).mean()
        found = [(f"chose option {commonest.index[0] + 1}, its favourite (%)", commonest.iloc[0], right)]
    elif kind == "gsm8k":
        found = [("no answer in the asked form (%)", (table.strict == "[invalid]").mean(), 0.0)]
    return [{"task": name, "habit": habit, "value": 100 * value, "fair": 100 * fair} for habit, value, fair in found]


def result_rows(scored: pd.DataFrame, model: str, scale: str, system: str | None = None) -> list[dict]:
    """The scores as rows of the results schema, in Truong's Table 3: a ranking counts where both orders of the documents are
    answered right; other views have their own metric name.

    Args:
        model: the name of what was run.
        system: the paper's system if that is what was run; else the row is one of the model's own, and the paper's stays
            "not run".
    """
    rows = []
    for item in scored[scored.value.notna()].itertuples():  # one number said of every pair has no ρ: there is no result
        described = task(item.task)
        reservation = _reservation(described) if corpora.describe(described.corpus).official else ""
        data = f"{item.data}, {reservation}" if reservation else item.data
        metric = described.metric if item.view == "test" else f"{described.metric} ({item.view})"
        rows.append(results.row(
            "truong", "Table 3", system or model, described.benchmark, metric, item.value, n=item.n, scale=scale, data=data,
            official=item.official and not reservation, interval=(item.ci_low, item.ci_high), model=model,
        ))  # fmt: skip
    return rows


def _reservation(described: llm_benchmarks.LlmTask) -> str:
    """Why a score on the official files isn't the paper's quantity itself; "" where it is."""
    if described.kind == "hellaswag":
        return "preprocessed texts"
    return tasks.get(described.source).reservation if described.kind in ("ranking", "similarity", "choice") else ""


SYSTEMS = {"Llama-3-8B-Instruct": "none", "Only negation": "only negation", "Only hedging": "only hedging",
           "Llama-3-8B-Hedge": "both"}  # fmt: skip


def printed_beside(scored: pd.DataFrame) -> pd.DataFrame:
    """What the paper's LLMs have, for the `test` rows of official scores: system, benchmark, view, value, row (its place in
    `scored`). Nothing for miniatures, which have no published counterpart."""
    printed = published.load("truong")
    printed = printed[(printed.exhibit == "Table 3") & printed.system.isin(SYSTEMS)]
    found = []
    for place, item in enumerate(scored.itertuples()):
        if item.view == "test" and corpora.describe(task(item.task).corpus).official:
            fits = printed[printed.benchmark == task(item.task).benchmark]
            found += [(one.system, item.benchmark, item.view, one.value, place) for one in fits.itertuples()]
    return pd.DataFrame(found, columns=["system", "benchmark", "view", "value", "row"])


def table_3(recorded: pd.DataFrame) -> pd.DataFrame:
    """Truong's Table 3: what this run has measured, and every printed row of an LLM that it hasn't, with what would run it.

    Args:
        recorded: rows of the results schema.

    Returns:
        system, benchmark, metric, published, ours, interval, n, data, status, command.
    """
    columns = ["system", "benchmark", "metric", "published", "ours", "interval", "n", "data", "status", "command"]
    mine = recorded.assign(
        interval=[
            f"{row.ci_low:.1f} – {row.ci_high:.1f}" if math.isfinite(row.ci_low) else "" for row in recorded.itertuples()
        ],
        command="",
    )  # fmt: skip
    printed = published.load("truong")
    printed = printed[
        (printed.exhibit == "Table 3") & printed.system.isin(SYSTEMS) & (printed.metric != "benchmark_average")
    ]
    done = set(zip(mine.system, mine.benchmark, mine.metric, strict=True))
    absent = printed[[key not in done for key in zip(printed.system, printed.benchmark, printed.metric, strict=True)]]
    absent = absent.rename(columns={"value": "published"}).assign(
        ours=math.nan, n=math.nan, interval="", data="", status="not run", command=absent.system.map(_command)
    )
    return pd.concat([mine[columns], absent[columns]], ignore_index=True)


def _command(system: str) -> str:
    """What would run one of the paper's systems: a hub, a GPU, and for an adapter its training first."""
    base, run_dir = "-p base Llama-3-8B-Instruct", "-p run_dir runs/paper"
    score = f"python -m nblib.execution 09 out.ipynb {base} {run_dir} -p suite official"
    name, recipe = system.lower().replace(" ", "-"), SYSTEMS[system]
    if recipe == "none":
        return score
    train = f"python -m nblib.execution 05 out.ipynb {base} {run_dir} -p name {name} -p recipe '{recipe}' -p size 0 -p epochs 20"
    return f"{train}; {score} -p adapter runs/paper/llms/{name}"
