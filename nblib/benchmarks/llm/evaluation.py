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

from nblib import artefacts, corpora
from nblib.benchmarks import scoring
from nblib.benchmarks.llm.harness import HARNESS_SUBJECTS, ask, task
from nblib.errors import StudyError
from nblib.models import language_models
from nblib.models.language_models import LanguageModel

CODE_VERSION = 2  # raise it when prompts or the scoring of items change: all is then asked anew
# Truong §5.2: "high school/college/elementary", with statistics
MATHEMATICS = "abstract_algebra|mathematics|statistics"
# What is counted beside a task's main score, as protocol → column of its predictions, after "correct_"
PROTOCOLS = {
    "ranking": {"given_order": "given", "swapped_order": "swapped", "orders_summed": "summed"},
    "hellaswag": {"not_normalised": "raw"},
    "gsm8k": {"flexible": "flexible"},
}


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
            `harness.ask`.

    Returns:
        `summarise`'s rows with the seconds that a task took, and the per-item predictions by task.
    """
    if strangers := sorted(set(limits) - set(names)):
        raise StudyError(f"Limits for {', '.join(strangers)}, which this run doesn't ask. It asks {', '.join(names)}.")
    fingerprint, rows, predictions = language_models.fingerprint(model), [], {}
    for name in tqdm(names, desc=model.name, leave=False):
        options = {"limit": limits.get(name, 0), "seed": seed, "chat_template": chat_template}
        asked = {**options, "code_version": CODE_VERSION, "model": fingerprint, "lm_eval": version("lm_eval")}
        asked["data"] = [split.sha256 for split in corpora.describe(task(name).corpus).splits.values()]
        file = scoring.predictions_file(run_dir, model.name, name)
        if not file.is_file() or artefacts.about(file).get("asked") != asked:
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
