"""Score a language model: its benchmarks with n and an interval on every score; per-item predictions are kept.

Under `<run_dir>/scores/<model>/` a model leaves, as an encoder does (`nblib.benchmarks.scoring`), `<task>_test.parquet` with its
per-item predictions. `<task>_test.json` identifies what was asked: the rendered prompts and decoding settings, the model's
fingerprint, the data. Stored answers are read and not asked for again.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from nblib import artefacts, corpora, paths, results
from nblib.benchmarks import scoring
from nblib.benchmarks.llm import harness
from nblib.benchmarks.llm.harness import MATHEMATICS, LlmTaskError, ask, prompts_sha256, task
from nblib.models import language_models, llm_adapters
from nblib.models.language_models import Dtype, LanguageModel
from nblib.results import answers, published

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


@dataclass(frozen=True)
class StoredModel(LanguageModel):
    """A language model with a LoRA of this run whose weights are gone: the base, which renders the prompts, and the fingerprint
    of the whole, by which its answers are known."""

    fingerprint: str


def find_model(
    base: str, adapter: str | Path | None, run_dir: str | Path, *, dtype: Dtype = "bfloat16"
) -> LanguageModel:
    """A language model, with the LoRA of a folder if one is given; or, where a LoRA of this run is gone and its answers are
    there, what they are read by.

    Raises:
        LlmTaskError: its answers name several fingerprints.
        LoraError, LanguageModelError: see `llm_adapters.load`.
    """
    folder = paths.resolve(adapter or "none")
    if folder.parent == paths.resolve(run_dir) / "llms" and not folder.is_dir():
        sidecars = [artefacts.about(file) for file in scoring.folder_of(run_dir, folder.name).glob("*.parquet")]
        known = {about["asked"]["model"] for about in sidecars if "asked" in about}
        if len(known) > 1:
            raise LlmTaskError(
                f"The answers of {folder.name} in {run_dir} are of {len(known)} models. Remove them, and ask anew."
            )
        if known:
            loaded = language_models.load(base, dtype=dtype)
            return StoredModel(folder.name, folder, loaded.model, loaded.tokenizer, known.pop())
    return llm_adapters.load(base, adapter, dtype=dtype)


def fingerprint(model: LanguageModel) -> str:
    """The fingerprint of a language model (`llm_adapters.fingerprint`), also of one whose LoRA is gone."""
    return model.fingerprint if isinstance(model, StoredModel) else llm_adapters.fingerprint(model)


def score(
    model: LanguageModel, names: Sequence[str], run_dir: str | Path, *, limits: Mapping[str, int] | None = None, seed: int = 0,
    chat_template: bool = False, batch_size: int = 0,
) -> LlmScores:  # fmt: skip
    """Evaluate a language model on tasks of `harness`; what the same model has answered in the same way is read, not asked again.

    Where its LoRA is gone, a task whose answers aren't kept has the scores that this run's results have of it.

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
    known_by, rows, predictions = fingerprint(model), [], {}
    with ExitStack() as prepared:
        for name in tqdm(names, desc=model.name, leave=False):
            how = {"limit": limits.get(name, 0), "seed": seed, "chat_template": chat_template}
            asked = _asked(model, known_by, name, how)
            found = _stored(asked, run_dir, model.name, name)
            if found is None and isinstance(model, StoredModel):
                rows += _measured_before(model, name, run_dir)
                continue
            if found is None:
                prepared.enter_context(llm_adapters.exact_logits(model.model))  # once, and only to ask
                started = time.perf_counter()
                table = ask(model, name, **how, batch_size=batch_size)
                found = table, time.perf_counter() - started
                scoring.save_predictions(found[0], run_dir, model.name, name, asked=asked, seconds=found[1])
            predictions[name], seconds = found
            rows += [
                {**row, "seconds": seconds} for row in summarise(name, predictions[name], sampled=how["limit"] > 0)
            ]
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
    file = scoring.predictions_file(run_dir, model, name)
    if not file.is_file() or (about := artefacts.about(file)).get("asked") != asked:
        return None
    return artefacts.read_table(file), about["seconds"]


def _measured_before(model: StoredModel, name: str, run_dir: str | Path) -> list[dict]:
    """The scores of a task in this run's results, as `summarise` has them."""
    described, file = task(name), paths.inside(run_dir, "results", f"11_{model.name}.csv")
    label, official = corpora.describe(described.corpus).label, corpora.describe(described.corpus).official
    table = artefacts.read_table(file).query("benchmark == @label") if file.is_file() else pd.DataFrame()
    if table.empty:
        raise LlmTaskError(
            f"Neither the LoRA {model.name} is here nor its answers to {name}. Train it: nblib run 05 out.ipynb"
        )
    data = min(table.data, key=len)
    return [
        {
            "task": name, "view": row.data.removeprefix(data).removeprefix(", ") or "test", "benchmark": label,
            "metric": row.metric, "value": row.value, "ci_low": row.ci_low, "ci_high": row.ci_high, "n": int(row.n),
            "clusters": math.nan, "official": official and "sample" not in data, "data": data, "seconds": math.nan,
        }
        for row in table.itertuples()
    ]  # fmt: skip


def summarise(name: str, table: pd.DataFrame, sampled: bool = False) -> list[dict]:
    """The scores of a task's predictions, one row per view: `test`; of a ranking also each order and their sum; of MMLU also
    the mathematics subset and the four groups of subjects; of HellaSwag also what isn't normalised; of GSM8K the flexible
    extraction."""
    described, corpus = task(name), corpora.describe(task(name).corpus)
    views = {"test": table}
    if described.kind == "ranking":
        views |= {f"{order} order": table.assign(correct=table[f"correct_{order}"]) for order in ("given", "swapped")}
        views["orders summed"] = table.assign(correct=table.correct_summed)
    elif described.kind == "mmlu":
        groups = {"mathematics": table.subject.isin(MATHEMATICS)}
        groups |= {group: table.subject.isin(subjects) for group, subjects in harness.mmlu_groups().items()}
        views |= {group: table[chosen] for group, chosen in groups.items() if chosen.any()}
    elif described.kind == "hellaswag":
        views["not normalised"] = table.assign(correct=table.correct_raw)
    elif described.kind == "gsm8k":
        views["flexible"] = table.assign(correct=table.correct_flexible)
    metrics = tuple(scoring.CORRELATIONS) if described.kind == "similarity" else (described.metric,)
    return [
        {
            "task": name, "view": view, "benchmark": corpus.label, "metric": metric, **scoring.measure(part, metric),
            "official": corpus.official and not sampled, "data": f"{corpus.name}, sample" if sampled else corpus.name,
        }
        for view, part in views.items()
        for metric in metrics
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


def result_rows(
    scored: pd.DataFrame, model: str, scale: str, *, trained_on: str = "", fingerprint: str = ""
) -> list[dict]:
    """The scores as measurements (`results.row`). A ranking counts where both orders of the documents are answered right; other
    views say in `data` what they are."""
    rows = []
    for item in scored[scored.value.notna()].itertuples():  # one answer to every pair has no ρ, so no result
        data = item.data if item.view == "test" else f"{item.data}, {item.view}"
        rows.append(
            results.row(
                model, item.benchmark, item.metric, item.value, data=data, n=item.n, scale=scale,
                interval=(item.ci_low, item.ci_high), trained_on=trained_on, fingerprint=fingerprint,
            )
        )  # fmt: skip
    return rows


SYSTEMS = {"Llama-3-8B-Instruct": "none", "Only negation": "only negation", "Only hedging": "only hedging",
           "Llama-3-8B-Hedge": "both"}  # fmt: skip


def _printed() -> list[tuple[Any, answers.Answer]]:
    """The rows of Table 3 for the paper's LLMs, averages aside, each with what of ours answers it."""
    table = published.load("truong")
    rows = table[(table.exhibit == "Table 3") & table.system.isin(SYSTEMS)]
    found = [(row, answers.of("truong", "Table 3", row.benchmark, row.metric)) for row in rows.itertuples()]
    return [(row, answer) for row, answer in found if answer]


def published_scores(scored: pd.DataFrame) -> pd.DataFrame:
    """The scores of the paper's LLMs for the `test` rows of official scores: system, benchmark, view, value, row (its
    place in `scored`). Mini sets and sets of our own have no published counterpart."""
    found = []
    for place, item in enumerate(scored.itertuples()):
        if item.view == "test" and corpora.describe(task(item.task).corpus).official:
            fits = [
                row
                for row, answer in _printed()
                if (answer.label, answer.measured) == (item.benchmark, item.metric) and not answer.stand_in
            ]
            found += [(row.system, item.benchmark, item.view, row.value, place) for row in fits]
    return pd.DataFrame(found, columns=["system", "benchmark", "view", "value", "row"])


def table_3(recorded: pd.DataFrame) -> pd.DataFrame:
    """Truong's Table 3: every printed score of an LLM, this model's on the same benchmark, and what would run the printed system.

    Args:
        recorded: this model's measurements.

    Returns:
        system, benchmark, metric, published, this_model, interval, n, data, command.
    """
    rows = []
    for row, answer in _printed():
        mine = recorded[(recorded.benchmark == answer.label) & (recorded.metric == answer.measured)].head(1)
        own = (
            mine.iloc[0] if len(mine) else pd.Series({"value": math.nan, "n": math.nan, "data": "", "ci_low": math.nan})
        )
        interval = f"{own.ci_low:.1f} – {own.ci_high:.1f}" if own.ci_low == own.ci_low else ""
        found = (row.system, answer.label, answer.measured, row.value, own.value, interval, own.n, own.data)
        rows.append((*found, _command(row.system)))
    columns = ["system", "benchmark", "metric", "published", "this_model", "interval", "n", "data", "command"]
    return pd.DataFrame(rows, columns=columns)


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
