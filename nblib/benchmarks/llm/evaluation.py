"""Score a language model, which leaves predictions as any system does (`scoring`); their sidecar says what they depend on."""

import math
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from lm_eval.tasks.mmlu._generate_configs import SUBJECTS
from tqdm import tqdm

from nblib import artefacts, corpora, paths
from nblib.benchmarks import scoring
from nblib.benchmarks.llm.harness import HARNESS_SUBJECTS, ask, task
from nblib.errors import StudyError
from nblib.models import language_models
from nblib.models.language_models import Dtype, LanguageModel

CODE_VERSION = 2  # raise it when prompts or the scoring of items change: all is then asked anew
# Truong §5.2: "high school/college/elementary", with statistics
MATHEMATICS = "abstract_algebra|mathematics|statistics"
# What is counted beside a task's main score, as protocol → column of its predictions, after "correct_"
PROTOCOLS = {
    "ranking": {"given_order": "given", "swapped_order": "swapped", "orders_summed": "summed"},
    "hellaswag": {"not_normalised": "raw"},
    "gsm8k": {"flexible": "flexible"},
}


def load(base: str, lora: str | Path | None, run_dir: str | Path, dtype: Dtype) -> LanguageModel:
    """A language model, alone or with a LoRA (`language_models.load`, also for errors); where a run's LoRA is gone, but not its
    answers (`scoring.outlive_weights`), one without weights, for these."""
    if not lora or not scoring.outlive_weights(run_dir, folder := paths.resolve(lora)):
        return language_models.load(base, lora, dtype=dtype)
    return LanguageModel(folder.name, folder, None, language_models.load_tokenizer(language_models.folder(base)))


def fingerprint(model: LanguageModel, run_dir: str | Path) -> str:
    """That of `language_models`; of one without weights that in the first of its answers."""
    if model.model:
        return language_models.fingerprint(model)
    answers = sorted(scoring.folder_of(run_dir, model.name).glob("*_test.parquet"))
    return artefacts.about(answers[0])["asked"]["model"]


def score(
    model: LanguageModel,
    names: Sequence[str],
    run_dir: str | Path,
    *,
    limits: Mapping[str, int],
    seed: int = 0,
    chat_template: bool = False,
    batch_size: int = 0,
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Evaluate a language model on tasks of `harness`; what the same model was asked in the same way is not asked again.

    Args:
        limits: task → items of its random sample (of MMLU: a subject); a StudyError where it isn't run. For others see
            `harness.ask`. Or the model has no weights, and wasn't asked this before.

    Returns:
        `summarise`'s rows with the seconds that a task took, and the per-item predictions by task.
    """
    if strangers := sorted(set(limits) - set(names)):
        raise StudyError(f"Limits for {', '.join(strangers)}, which this run doesn't ask. It asks {', '.join(names)}.")
    known, rows, predictions = fingerprint(model, run_dir), [], {}
    for name in tqdm(names, desc=model.name, leave=False):
        options = {"limit": limits.get(name, 0), "seed": seed, "chat_template": chat_template}
        asked = {**options, "code_version": CODE_VERSION, "model": known, "lm_eval": version("lm_eval")}
        asked["data"] = [split.sha256 for split in corpora.describe(task(name).corpus).splits.values()]
        file = scoring.predictions_file(run_dir, model.name, name)
        if not file.is_file() or artefacts.about(file).get("asked") != asked:
            if not model.model:
                again = "Remove its training's record, and train it again with notebook 05."
                raise StudyError(f"{model.folder} is gone, and has no answers to {name} as it is asked now. {again}")
            started = time.perf_counter()
            table = ask(model, name, **options, batch_size=batch_size)
            artefacts.write_table(table, file, {"asked": asked, "seconds": time.perf_counter() - started})
        predictions[name], seconds = artefacts.read_table(file), artefacts.about(file)["seconds"]
        scores = summarise(name, predictions[name], sampled=options["limit"] > 0)
        rows += [{**row, "seconds": seconds} for row in scores]
    return pd.DataFrame(rows), predictions


def summarise(name: str, table: pd.DataFrame, sampled: bool = False) -> list[dict]:
    """The scores of a task's predictions: task, benchmark, corpus, split, sample (number of items), part, protocol, metric, and
    `scoring.measure`'s. The first row is the task's, others those of `PROTOCOLS` and of MMLU's groups of subjects."""
    described = task(name)
    chosen = {("", described.protocol): table}
    for protocol, column in PROTOCOLS.get(described.task_type, {}).items():
        chosen["", protocol] = table.assign(correct=table[f"correct_{column}"])
    if described.task_type == "mmlu":
        chosen["mathematics", ""] = table[table.subject.str.contains(MATHEMATICS)]
        groups = table.subject.replace(HARNESS_SUBJECTS).map(SUBJECTS)
        chosen |= {(group, ""): part for group, part in table.groupby(groups, sort=False)}
    items = {"benchmark": described.benchmark, "corpus": described.corpus, "split": "test"}
    items["sample"] = str(len(table)) if sampled else ""
    return [
        {"task": name, **items, "part": part, "protocol": protocol, "metric": metric, **scoring.measure(rows, metric)}
        for (part, protocol), rows in chosen.items()
        if len(rows)
        for metric in described.metrics
    ]


def response_biases(name: str, table: pd.DataFrame) -> list[dict[str, Any]]:
    """Response biases of a task's predictions: task, bias (what is counted), value, fair (what it is without one), in percent."""
    task_type, biases = task(name).task_type, []
    if task_type == "ranking":
        one_position = table.chose_first.isin([0, 1]).mean()
        biases.append(("chose the first document (%)", table.chose_first.mean(), 0.5))
        biases.append(("one position to all of an item's prompts (%)", one_position, math.nan))
    elif task_type == "pointwise":
        biases.append(("said Yes (%)", table.said_yes.mean(), 0.5))
    elif task_type == "similarity":
        distinct = table.similarity.nunique()
        answers = f"{distinct} answer{'s' * (distinct > 1)} for {len(table)} pairs"
        biases.append((f"{answers}; unreadable (%)", (~table.parsed).mean(), 0.0))
    elif task_type in ("choice", "mmlu"):
        shares = table.chosen.value_counts(normalize=True)
        favourite = shares.index[0]
        right = (table.target == favourite).mean()
        biases.append((f"chose option {favourite + 1}, its favourite (%)", shares[favourite], right))
    elif task_type == "gsm8k":
        biases.append(("no answer in the asked form (%)", (table.strict == "[invalid]").mean(), 0.0))
    return [{"task": name, "bias": bias, "value": 100 * value, "fair": 100 * fair} for bias, value, fair in biases]
