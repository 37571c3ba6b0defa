"""Ask a language model through lm-eval and score its answers item by item.

Tasks are the catalogue's negation benchmarks ("llm_nevir", "llm_nevir_mini") and the harness's own MMLU, HellaSwag and GSM8K
("mmlu", "mmlu_mini"), from the official files or else the hub.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from functools import cache
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import lm_eval
import numpy as np
import pandas as pd
import torch
from lm_eval.defaults import DEFAULT_OTHER_SEED
from lm_eval.tasks import TaskManager
from lm_eval.tasks.mmlu._generate_configs import SUBJECTS

from nblib import corpora, paths
from nblib.benchmarks import catalogue
from nblib.benchmarks.llm import functions
from nblib.benchmarks.llm.reader import Reader, float32_logits
from nblib.errors import StudyError, one_of
from nblib.models.language_models import LanguageModel
from nblib.models.onednn import linear_by_onednn

logging.getLogger("lm_eval").setLevel(logging.ERROR)  # its advice is for its own command line
HARNESS_TYPES = ("mmlu", "hellaswag", "gsm8k")  # the others have a YAML file in this folder
# The mini set's subjects that the harness calls otherwise
HARNESS_SUBJECTS = {"world_history": "high_school_world_history", "computer_science": "high_school_computer_science"}


class LlmTask(NamedTuple):
    """A benchmark for language models, with its names in measurements, and its metrics, its own first."""

    task_type: str  # a key of `SCORE_ITEMS`
    benchmark: str
    corpus: str
    metrics: tuple[str, ...] = ("accuracy",)
    source: str = ""  # the benchmark's name in the catalogue; lm-eval's own tasks have none
    protocol: str = ""  # where it isn't the benchmark's first


def tasks(form: str, ability: Literal["all", "negation", "general"] = "all") -> dict[str, LlmTask]:
    """The tasks of a form by name: the negation benchmarks (a second protocol has its name at the end), then general ability."""
    known = {}
    for source in catalogue.names(form, "negation") if ability != "general" else ():
        one = catalogue.get(source)
        for task_type in one.llm:
            protocol = "" if task_type == one.llm[0] else task_type
            name = "_".join(filter(None, ["llm", source, protocol]))
            known[name] = LlmTask(task_type, one.key, one.corpus, one.metrics, source, protocol)
    for task_type in HARNESS_TYPES if ability != "negation" else ():
        name = task_type if form == "official" else f"{task_type}_mini"
        known[name] = LlmTask(task_type, task_type, corpus=name)
    return known


def names(form: str, ability: Literal["all", "negation", "general"] = "all") -> tuple[str, ...]:
    """The names of `tasks`."""
    return tuple(tasks(form, ability))


def task(name: str) -> LlmTask:
    """A task by its name; a StudyError where there is none."""
    known = tasks("official") | tasks("mini")
    return known[one_of(name, known, "LLM task")]


@cache
def _manager() -> TaskManager:
    # lm-eval's whole index takes ten seconds to read
    folders = [Path(lm_eval.__file__).parent / "tasks" / name for name in ("mmlu/default", "hellaswag", "gsm8k")]
    return TaskManager(include_path=[Path(__file__).parent, *folders], include_defaults=False)


def _specs(name: str, limit: int, seed: int) -> list[dict]:
    """What lm-eval is asked to load for a task: its YAML, with where the rows come from."""
    described = task(name)
    task_type, corpus = described.task_type, described.corpus
    if described.source:
        options = {"source": described.source, "limit": limit, "seed": seed}
        return [{"task": f"llm_{task_type}", "dataset_kwargs": options}]
    here = not corpora.describe(corpus).official or paths.official_data() is not None
    parts = {task_type: {}}
    if task_type == "mmlu":
        subjects = sorted(corpora.load(corpus, "test").subject.unique() if here else SUBJECTS)
        parts = {f"mmlu_{HARNESS_SUBJECTS.get(subject, subject)}": {"subject": subject} for subject in subjects}
    # HellaSwag's training split would be read, and none of it shown
    changes = {"mmlu": {"num_fewshot": 5}, "hellaswag": {"training_split": None}}.get(task_type, {})
    if here:
        changes["custom_dataset"] = getattr(functions, task_type)
    rows = {part: {"dataset_kwargs": {"corpus": corpus, **chosen}} if here else {} for part, chosen in parts.items()}
    return [{"task": part, **changes, **rows[part]} for part in parts]


def ask(
    model: LanguageModel, name: str, *, limit: int = 0, seed: int = 0, chat_template: bool = False, batch_size: int = 0
) -> pd.DataFrame:
    """Run one task through lm-eval; per-item predictions as in `SCORE_ITEMS`.

    Args:
        limit: a random sample of this many items (of MMLU: a subject); 0 for all.
        chat_template: put prompts as a user's turns.
        batch_size: prompts at once; 0: on a CPU one where probabilities are read (see `reader`) and 8 where text is generated,
            on a GPU 32 and 128.

    Raises:
        StudyError: unknown task, no chat template, or no data.
    """
    task_type = task(name).task_type
    if chat_template and not model.tokenizer.chat_template:
        raise StudyError(f"{model.name} has no chat template. Set chat_template to False.")
    generated = task_type in ("similarity", "gsm8k")
    read, generate = (32, 128) if model.model.device.type == "cuda" else (1, 8)
    batch_size = batch_size or (generate if generated else read)
    quiet = redirect_stderr(StringIO())  # lm-eval's bars for every step: a notebook keeps what is printed
    with quiet:
        reader = Reader(pretrained=model.model, tokenizer=model.tokenizer, batch_size=batch_size)
        # only within a group does lm-eval take a registered task with changes
        loaded = _manager().load({"group": name, "task": _specs(name, limit, seed)})["tasks"]
    samples = {}
    for number, (part, lm_eval_task) in enumerate(loaded.items()):
        # As `simple_evaluate` does, which also asks pip for a list of all packages each time
        lm_eval_task.set_fewshot_seed(seed=DEFAULT_OTHER_SEED)
        order = np.random.default_rng([seed, number]).permutation(len(lm_eval_task.eval_docs))
        samples[part] = np.sort(order[: limit or None]).tolist()
    options = {"apply_chat_template": chat_template, "fewshot_as_multiturn": True, "bootstrap_iters": 0}
    if task_type in HARNESS_TYPES:  # the study's own tasks sample whole items, not prompts
        options["samples"] = samples
    with quiet, float32_logits(model.model), linear_by_onednn(model.model), torch.inference_mode():
        logged = lm_eval.evaluate(reader, {"tasks": loaded}, **options)["samples"]
    return SCORE_ITEMS[task_type](list(chain(*logged.values())))


def score_choices(samples: list[dict], columns: Sequence[str] = ("id", "cluster")) -> pd.DataFrame:
    """The document's columns, target and chosen (the likeliest answer; indices), margin (log-likelihood of the right answer minus
    the best other), correct (a tie is not)."""
    rows = []
    for sample in samples:
        likelihood = np.array([float(one[0]) for one in sample["filtered_resps"]])
        target = int(sample["doc"].get("target", sample["target"]))
        margin = likelihood[target] - np.delete(likelihood, target).max()
        rows.append((*(sample["doc"][column] for column in columns), target, int(likelihood.argmax()), margin))
    table = pd.DataFrame(rows, columns=[*columns, "target", "chosen", "margin"])
    return table.assign(correct=table.margin > 0)


def score_rankings(samples: list[dict]) -> pd.DataFrame:
    """id, cluster, correct_given and correct_swapped (all the item's questions right in that order of the documents), correct
    (in both), correct_summed (by both orders' margins, which cancels position bias), chose_first (share of answers "1")."""
    prompts = score_choices(samples, ["id", "cluster", "question", "order"])
    prompts["chose_first"] = prompts.chosen == 0
    by_order = prompts.pivot_table(index="id", columns="order", values="correct", aggfunc="all", sort=False)
    summed = prompts.groupby(["id", "question"], sort=False).margin.sum() > 0
    items = prompts.groupby("id", sort=False).agg(cluster=("cluster", "first"), chose_first=("chose_first", "mean"))
    items = items.join(by_order.astype(bool).add_prefix("correct_"))
    items["correct_summed"] = summed.groupby("id", sort=False).all()
    return items.assign(correct=items.correct_given & items.correct_swapped).reset_index()


def score_pointwise(samples: list[dict]) -> pd.DataFrame:
    """id, cluster, margin_q1, margin_q2 (by how much "Yes" is likelier of a question's own passage than of the other; log odds),
    margin (the smaller), said_yes (share of prompts), correct."""
    prompts = score_choices(samples, ["id", "cluster", "question"])
    prompts["said_yes"] = prompts.chosen == 0
    # `margin` is that of the right answer: the odds of "Yes" are its negative where "No" is right
    by_question = prompts.groupby(["id", "question"], sort=False).margin.sum().unstack().add_prefix("margin_")
    items = prompts.groupby("id", sort=False).agg(cluster=("cluster", "first"), said_yes=("said_yes", "mean"))
    items = items.join(by_question).assign(margin=by_question.min(axis=1))
    return items.assign(correct=items.margin > 0).reset_index()


def score_similarities(samples: list[dict]) -> pd.DataFrame:
    """id, cluster, part, score, response, parsed (whether it is a number from −1 to 1), similarity (that number, or 0)."""
    table = pd.DataFrame([sample["doc"] for sample in samples])[["id", "cluster", "part", "score"]]
    table["response"] = [sample["filtered_resps"][0] for sample in samples]
    value = table.response.map(functions.parse_score)
    return table.assign(parsed=value.notna(), similarity=value.fillna(0.0).astype(float))


def score_mmlu(samples: list[dict]) -> pd.DataFrame:
    """id (subject and index), subject, cluster (the question's), target, chosen, margin, correct."""
    table = score_choices(samples, ["subject", "question"])
    table["id"] = table.subject + "/" + pd.Series([sample["doc_id"] for sample in samples], dtype=str)
    table["cluster"] = pd.factorize(table.pop("question"))[0]
    return table


def score_hellaswag(samples: list[dict]) -> pd.DataFrame:
    """id, cluster, correct (the harness's acc_norm: likelihood over the ending's length), correct_raw (its acc)."""
    rows = [(str(one["doc_id"]), k, bool(one["acc_norm"]), bool(one["acc"])) for k, one in enumerate(samples)]
    return pd.DataFrame(rows, columns=["id", "cluster", "correct", "correct_raw"])


def score_gsm8k(samples: list[dict]) -> pd.DataFrame:
    """id (the index in the test set), cluster, response, strict and flexible (the answers that the harness's two filters find),
    correct (the strict one), correct_flexible."""
    items: dict[int, dict] = {}
    for sample in samples:
        number = sample["doc_id"]
        item = items.setdefault(number, {"id": str(number), "cluster": number})
        item["response"] = sample["resps"][0][0]
        extraction = sample["filter"].partition("-")[0]  # strict-match, flexible-extract
        item[extraction] = sample["filtered_resps"][0]
        item["correct" if extraction == "strict" else "correct_flexible"] = bool(sample["exact_match"])
    return pd.DataFrame(items.values())


SCORE_ITEMS: dict[str, Callable[[list[dict]], pd.DataFrame]] = {
    "ranking": score_rankings,
    "pointwise": score_pointwise,
    "similarity": score_similarities,
    "choice": score_choices,
    "mmlu": score_mmlu,
    "hellaswag": score_hellaswag,
    "gsm8k": score_gsm8k,
}
