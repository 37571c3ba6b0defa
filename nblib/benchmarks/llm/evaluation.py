"""Score a language model: its benchmarks with n and an interval on every score; per-item predictions are kept.

Under `<run_dir>/scores/<model>/` a model leaves, as an encoder does (`nblib.benchmarks.scoring`), `<task>_test.parquet` with its
per-item predictions. `<task>_test.json` identifies what was asked: the rendered prompts and decoding settings, the model's
fingerprint, the data. Stored answers are read and not asked for again.
"""

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

from nblib import corpora, paths, results
from nblib.benchmarks import catalogue, scoring
from nblib.benchmarks.llm import harness
from nblib.benchmarks.llm.harness import MATHEMATICS, LlmTaskError, ask, prompts_sha256, task
from nblib.models import llm_adapters
from nblib.models.language_models import LanguageModel
from nblib.results import published

CODE_VERSION = 1  # raise it when the scoring of items changes: all is then asked anew


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
    """Evaluate a language model on tasks of `harness`; what the same model has answered in the same way is read, not asked again.

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
    fingerprint, rows, predictions = llm_adapters.fingerprint(model), [], {}
    for name in tqdm(names, desc=model.name, leave=False):
        how = {"limit": limits.get(name, 0), "seed": seed, "chat_template": chat_template}
        asked = _asked(model, fingerprint, name, how)
        found = _stored(asked, run_dir, model.name, name)
        if found is None:
            started = time.perf_counter()
            table = ask(model, name, **how, batch_size=batch_size)
            found = table, time.perf_counter() - started
            _store(asked, *found, run_dir, model.name, name)
        predictions[name], seconds = found
        rows += [{**row, "seconds": seconds} for row in summarise(name, predictions[name], sampled=how["limit"] > 0)]
    return LlmScores(pd.DataFrame(rows), predictions)


def _asked(model: LanguageModel, fingerprint: str, name: str, how: Mapping[str, Any]) -> dict[str, Any]:
    """What answers to a task depend on: they are valid as long as this is the same."""
    return {
        "recipe": CODE_VERSION, "model": fingerprint, "prompts": prompts_sha256(model, name, **how),
        "lm_eval": version("lm_eval"), "chat_template": how["chat_template"],
        "data": [split.sha256 for split in corpora.describe(task(name).corpus).splits.values()],  # has the right answers
    }  # fmt: skip


def _stored(asked: dict[str, Any], run_dir: str | Path, model: str, name: str) -> tuple[pd.DataFrame, float] | None:
    """The predictions from those answers, and the seconds that asking took."""
    note = scoring.folder_of(run_dir, model) / f"{name}_test.json"
    if not (note.is_file() and note.with_suffix(".parquet").is_file()):
        return None
    found = json.loads(note.read_text(encoding="utf-8"))
    return (scoring.load_predictions(run_dir, model, name), found["seconds"]) if found.get("asked") == asked else None


def _store(
    asked: dict[str, Any], table: pd.DataFrame, seconds: float, run_dir: str | Path, model: str, name: str
) -> None:
    note = scoring.folder_of(run_dir, model) / f"{name}_test.json"
    note.unlink(missing_ok=True)  # it must never describe other predictions
    scoring.save_predictions(table, run_dir, model, name)
    with paths.write_atomically(note) as draft:
        draft.write_text(json.dumps({"asked": asked, "seconds": seconds}, indent=2) + "\n", encoding="utf-8")


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
    metric = scoring.METRICS.get(described.metric, described.metric)
    return [
        {
            "task": name, "view": view, "benchmark": corpus.label, "metric": metric, **scoring.measure(part),
            "official": corpus.official and not sampled, "data": f"{corpus.name}, sample" if sampled else corpus.name,
        }
        for view, part in views.items()
    ]  # fmt: skip


def response_biases(name: str, table: pd.DataFrame) -> list[dict[str, Any]]:
    """Response biases: task, bias (what is counted), value, fair (the share without the bias), in percent.

    Rankings: the share of prompts answered with the first document, and of items where all prompts, in both orders, got the
    same place. Choices: how often the favourite option was chosen, and how often it was right. Similarities and GSM8K: the
    share of answers from which no number can be read.
    """
    kind = task(name).kind
    found = []
    if kind == "ranking":
        same_place = table.chose_first.isin([0, 1]).mean()
        found = [
            ("chose the first document (%)", table.chose_first.mean(), 0.5),
            ("one place to all of an item's prompts (%)", same_place, math.nan),
        ]
    elif kind == "similarity":
        distinct = table.similarity.nunique()
        answers = "one answer" if distinct == 1 else f"{distinct} answers"
        found = [(f"{answers} for {len(table)} pairs; unreadable (%)", (~table.parsed).mean(), 0.0)]
    elif kind in ("choice", "mmlu"):
        commonest = table.chosen.value_counts(normalize=True)
        right = (table.target == commonest.index[0]).mean()
        found = [(f"chose option {commonest.index[0] + 1}, its favourite (%)", commonest.iloc[0], right)]
    elif kind == "gsm8k":
        found = [("no answer in the asked form (%)", (table.strict == "[invalid]").mean(), 0.0)]
    return [{"task": name, "bias": bias, "value": 100 * value, "fair": 100 * fair} for bias, value, fair in found]


def result_rows(scored: pd.DataFrame, model: str, scale: str, system: str | None = None) -> list[dict]:
    """The scores as rows of the results schema, in Truong's Table 3: a ranking counts where both orders of the documents are
    answered right; other views have their own metric name.

    Args:
        model: the name of what was run.
        system: the paper's system if that is what was run; else the row is one of the model's own, and the paper's stays
            "not run".
    """
    rows = []
    for item in scored[scored.value.notna()].itertuples():  # one answer to every pair has no ρ, so no result
        described = task(item.task)
        caveat = _caveat(described) if corpora.describe(described.corpus).official else ""
        data = f"{item.data}, {caveat}" if caveat else item.data
        metric = described.metric if item.view == "test" else f"{described.metric} ({item.view})"
        rows.append(results.row(
            "truong", "Table 3", system or model, described.benchmark, metric, item.value, n=item.n, scale=scale, data=data,
            official=item.official and not caveat, interval=(item.ci_low, item.ci_high), model=model,
        ))  # fmt: skip
    return rows


def _caveat(described: harness.LlmTask) -> str:
    """Why a score on the official files isn't the paper's quantity itself; "" where it is."""
    if described.kind == "hellaswag":
        return "preprocessed texts"
    return catalogue.get(described.source).caveat if described.kind in harness.OWN_KINDS else ""


SYSTEMS = {"Llama-3-8B-Instruct": "none", "Only negation": "only negation", "Only hedging": "only hedging",
           "Llama-3-8B-Hedge": "both"}  # fmt: skip


def _printed_llms() -> pd.DataFrame:
    table = published.load("truong")
    return table[(table.exhibit == "Table 3") & table.system.isin(SYSTEMS)]


def published_scores(scored: pd.DataFrame) -> pd.DataFrame:
    """The scores of the paper's LLMs for the `test` rows of official scores: system, benchmark, view, value, row (its
    place in `scored`). Miniatures have no published counterpart."""
    printed = _printed_llms()
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
    bounds = zip(recorded.ci_low, recorded.ci_high, strict=True)
    intervals = [f"{low:.1f} – {high:.1f}" if math.isfinite(low) else "" for low, high in bounds]
    mine = recorded.assign(interval=intervals, command="")
    printed = _printed_llms()
    printed = printed[printed.metric != "benchmark_average"]
    done = set(zip(mine.system, mine.benchmark, mine.metric, strict=True))
    absent = printed[[key not in done for key in zip(printed.system, printed.benchmark, printed.metric, strict=True)]]
    absent = absent.rename(columns={"value": "published"}).assign(
        ours=math.nan, n=math.nan, interval="", data="", status="not run", command=absent.system.map(_command)
    )
    return pd.concat([mine[columns], absent[columns]], ignore_index=True)


def _command(system: str) -> str:
    """What would run one of the paper's systems on a machine with a hub and a GPU; an adapter is trained first."""
    base, run_dir = "-p base Llama-3-8B-Instruct", "-p run_dir runs/paper"
    score = f"nblib run 11 out.ipynb {base} {run_dir} -p data official"
    training_data = SYSTEMS[system]
    if training_data == "none":
        return score
    name = system.lower().replace(" ", "-")
    train = f"nblib run 05 out.ipynb {base} {run_dir} -p name {name} -p training_data '{training_data}' -p size 0 -p epochs 20"
    return f"{train}; {score} -p adapter runs/paper/llms/{name}"
