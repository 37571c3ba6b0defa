"""Ask a language model lm-eval's tasks and judge what it answers: the negation benchmarks of `nblib.tasks.llm`, and the harness's
own MMLU, HellaSwag and GSM8K, which read the official files where they are here and the hub elsewhere.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import lm_eval
import numpy as np
import pandas as pd
import torch
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from scipy.stats import ConstantInputWarning

from nblib import corpora, paths, tasks, tuned_llm
from nblib.language_models import LanguageModel
from nblib.tasks.llm import functions

OURS = Path(functions.__file__).parent
HARNESS = Path(lm_eval.__file__).parent / "tasks"
MMLU_SHOTS = 5
# Truong §5.2: "high school/college/elementary mathematics, statistics"
MATHEMATICS = (
    "abstract_algebra", "college_mathematics", "elementary_mathematics", "high_school_mathematics", "high_school_statistics",
)  # fmt: skip
# The miniature's subjects that the harness calls otherwise
HARNESS_SUBJECTS = {"world_history": "high_school_world_history", "computer_science": "high_school_computer_science"}


class LlmTaskError(ValueError):
    """A task that is unknown, or can't be asked in this way."""


@dataclass(frozen=True)
class LlmTask:
    """A benchmark for language models.

    Attributes:
        kind: how an item is asked and judged: ranking, similarity, choice, mmlu, hellaswag, gsm8k.
        source: what it reads: a task of `nblib.tasks` (the first three kinds), else a registered corpus.
        benchmark, metric: in Truong's Table 3 (SemAntoNeg isn't there).
    """

    kind: str
    source: str
    benchmark: str
    metric: str

    @property
    def corpus(self) -> str:
        return tasks.get(self.source).corpus if self.kind in ("ranking", "similarity", "choice") else self.source


TASKS = {
    "llm_nevir": LlmTask("ranking", "NevIR", "NevIR", "right_rank"),
    "llm_excluir": LlmTask("ranking", "ExcluIR", "ExcluIR", "right_rank"),
    "llm_cannot": LlmTask("similarity", "CannotWMT", "Cannot", "spearman"),
    "llm_m3": LlmTask("similarity", "M3Derived", "M3-Counterfactual", "spearman"),
    "llm_semantoneg": LlmTask("choice", "SemAntoNeg", "SemAntoNeg", "accuracy"),
    "mmlu": LlmTask("mmlu", "mmlu", "MMLU", "accuracy"),
    "hellaswag": LlmTask("hellaswag", "hellaswag", "HellaSwag", "accuracy"),
    "gsm8k": LlmTask("gsm8k", "gsm8k", "GSM8K", "accuracy"),
    "llm_nevir_mini": LlmTask("ranking", "NevIRMini", "NevIR", "right_rank"),
    "llm_excluir_mini": LlmTask("ranking", "ExcluIRMini", "ExcluIR", "right_rank"),
    "llm_cannot_mini": LlmTask("similarity", "CannotMini", "Cannot", "spearman"),
    "llm_m3_mini": LlmTask("similarity", "M3Mini", "M3-Counterfactual", "spearman"),
    "llm_semantoneg_mini": LlmTask("choice", "SemAntoNegMini", "SemAntoNeg", "accuracy"),
    "mmlu_mini": LlmTask("mmlu", "mmlu_mini", "MMLU", "accuracy"),
    "hellaswag_mini": LlmTask("hellaswag", "hellaswag_mini", "HellaSwag", "accuracy"),
    "gsm8k_mini": LlmTask("gsm8k", "gsm8k_mini", "GSM8K", "accuracy"),
}
NEGATION = {
    "official": ("llm_nevir", "llm_excluir", "llm_cannot", "llm_m3", "llm_semantoneg"),
    "mini": ("llm_nevir_mini", "llm_excluir_mini", "llm_cannot_mini", "llm_m3_mini", "llm_semantoneg_mini"),
}
GENERAL = {"official": ("mmlu", "hellaswag", "gsm8k"), "mini": ("mmlu_mini", "hellaswag_mini", "gsm8k_mini")}
SUITES = {data: NEGATION[data] + GENERAL[data] for data in NEGATION}


def task(name: str) -> LlmTask:
    """Raises:
    LlmTaskError: no such task; lists the known ones.
    """
    if name not in TASKS:
        raise LlmTaskError(f"No LLM task called {name!r}. Known: {', '.join(TASKS)}.")
    return TASKS[name]


# --- asking -----------------------------------------------------------------------------------------------------------


class _Reader(HFLM):
    """lm-eval's own model; one prompt at a time, it computes the vocabulary's logits only where the answer stands. With a
    vocabulary of 262,144 the others are most of the work, and gigabytes."""

    kept = 0  # all

    def _loglikelihood_tokens(self, requests: list, *arguments: Any, **options: Any) -> list:
        # lm-eval counts from the end what the model returns, however much that is
        self.kept = max((len(answer) for _, _, answer in requests), default=0) if self.batch_size == 1 else 0
        return super()._loglikelihood_tokens(requests, *arguments, **options)

    def _model_call(self, inps: torch.Tensor, attn_mask: Any = None, labels: Any = None) -> torch.Tensor:
        with torch.inference_mode():
            return self.model(inps, logits_to_keep=self.kept).logits


@cache
def _manager() -> TaskManager:
    """Only the folders needed: lm-eval's whole index takes ten seconds to read."""
    own = [HARNESS / folder for folder in ("mmlu/default", "hellaswag", "gsm8k")]
    return TaskManager(include_path=[OURS, *own], include_defaults=False)


def _specs(name: str, limit: int, seed: int) -> list[dict]:
    """What lm-eval is asked to load for a task: its YAML, with where the rows come from."""
    described = task(name)
    if described.kind in ("ranking", "similarity", "choice"):
        return [
            {
                "task": name.removesuffix("_mini"),
                "dataset_kwargs": {"source": described.source, "limit": limit, "seed": seed},
            }
        ]
    here = not corpora.describe(described.corpus).official or paths.official_data() is not None
    local = (
        {"custom_dataset": getattr(functions, described.kind), "dataset_kwargs": {"corpus": described.source}}
        if here
        else {}
    )
    if described.kind != "mmlu":
        unread = {"training_split": None} if described.kind == "hellaswag" else {}  # no examples are shown
        return [{"task": described.kind, **local, **unread}]
    subjects = _subjects(described.source) if here else _harness_subjects()
    return [
        {
            "task": f"mmlu_{HARNESS_SUBJECTS.get(subject, subject)}", "num_fewshot": MMLU_SHOTS,
            **({**local, "dataset_kwargs": {"corpus": described.source, "subject": subject}} if here else {}),
        }
        for subject in subjects
    ]  # fmt: skip


def _subjects(corpus: str) -> list[str]:
    return sorted(corpora.load(corpus, "test").subject.unique())


def _harness_subjects() -> list[str]:
    return [name.removeprefix("mmlu_") for name in _manager().all_subtasks if name.startswith("mmlu_")]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without lm-eval's advice and its bars for every step: a notebook keeps what is printed."""
    logger = logging.getLogger("lm_eval")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with redirect_stderr(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstantInputWarning)  # a model that gives one answer to everything
            yield
    finally:
        logger.setLevel(level)


def ask(
    model: LanguageModel, name: str, *, limit: int = 0, seed: int = 0, chat_template: bool = False, batch_size: int = 0
) -> pd.DataFrame:
    """Run one task through lm-eval.

    Args:
        limit: a random sample of this many items (of MMLU: a subject); 0 for all.
        chat_template: put prompts as a user's turns.
        batch_size: prompts at once; 0: one where probabilities are read (see `_Reader`), eight where text is generated.

    Returns:
        Per-item predictions; see the functions below.

    Raises:
        LlmTaskError: unknown task, or a chat template asked of a model without one.
        CorpusError: see `corpora.load`.
    """
    described = task(name)
    if chat_template and not model.tokenizer.chat_template:
        raise LlmTaskError(f"{model.name} has no chat template. Set chat_template to False.")
    # only within a group does lm-eval take a registered task with changes
    with _quiet():
        loaded = _manager().load({"group": name, "task": _specs(name, limit, seed)})["tasks"]
    generates = described.kind in ("similarity", "gsm8k")
    reader = _Reader(
        pretrained=model.model, tokenizer=model.tokenizer, batch_size=batch_size or (8 if generates else 1)
    )
    own = described.kind in ("ranking", "similarity", "choice")  # which sample items, not prompts
    chosen = {
        part: np.sort(np.random.default_rng([seed, place]).permutation(len(one.eval_docs))[: limit or None]).tolist()
        for place, (part, one) in enumerate(loaded.items())
    }
    with torch.inference_mode(), tuned_llm.exact_logits(model.model), _quiet():
        found = lm_eval.simple_evaluate(
            model=reader, tasks=list(loaded.values()), task_manager=_manager(), samples=None if own else chosen,
            apply_chat_template=chat_template, bootstrap_iters=0, log_samples=True,
        )  # fmt: skip
    return JUDGES[described.kind](found["samples"])


# --- judging: lm-eval's logged samples as per-item predictions --------------------------------------------------------


def _choices(samples: Mapping[str, list[dict]], *columns: str) -> pd.DataFrame:
    """Multiple-choice samples: the document's columns, target, chosen (the likeliest answer, from 0), margin (log-likelihood of
    the right one minus the best other)."""
    rows = []
    for sample in (sample for part in samples.values() for sample in part):
        likelihood = np.array([float(one[0]) for one in sample["filtered_resps"]])
        target = int(sample["doc"]["target"] if "target" in sample["doc"] else sample["target"])
        margin = likelihood[target] - np.delete(likelihood, target).max()
        rows.append((*(sample["doc"][column] for column in columns), target, int(likelihood.argmax()), margin))
    return pd.DataFrame(rows, columns=[*columns, "target", "chosen", "margin"])


def judge_ranking(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id, cluster, correct_given and correct_swapped (all the item's questions right in that order of the documents, ties
    wrong), correct (in both orders), correct_summed (by the two orders' margins added up, which takes a liking for the first
    document out), chose_first (share of the item's prompts answered "1": 0.5 without a bias)."""
    prompts = _choices(samples, "id", "cluster", "question", "order").assign(
        right=lambda table: table.margin > 0, chose_first=lambda table: table.chosen == 0
    )
    by_order = prompts.pivot_table(index="id", columns="order", values="right", aggfunc="all", sort=False)
    summed = prompts.groupby(["id", "question"], sort=False).margin.sum() > 0
    items = prompts.groupby("id", sort=False).agg(cluster=("cluster", "first"), chose_first=("chose_first", "mean"))
    items = items.join(by_order.astype(bool).add_prefix("correct_"))
    items["correct_summed"] = summed.groupby("id", sort=False).all()
    items = items.reset_index()
    return items.assign(correct=items.correct_given & items.correct_swapped)


def judge_similarity(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id, cluster, part, score, response, parsed (whether it is a number from −1 to 1), similarity (that number, or 0)."""
    rows = []
    for sample in (sample for part in samples.values() for sample in part):
        response = sample["filtered_resps"][0]
        value = functions.parse_score(response)
        rows.append((*(sample["doc"][key] for key in ("id", "cluster", "part", "score")), response, value))
    table = pd.DataFrame(rows, columns=["id", "cluster", "part", "score", "response", "similarity"])
    table["parsed"] = table.similarity.notna()
    return table.assign(similarity=table.similarity.fillna(functions.NEUTRAL).astype(float))


def judge_choice(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id, cluster, target and chosen (places of the options, from 0), margin, correct."""
    return _choices(samples, "id", "cluster").assign(correct=lambda table: table.margin > 0)


def judge_mmlu(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id (subject and place), subject, cluster (the question's), target, chosen, margin, correct."""
    table = _choices(samples, "subject", "question")
    place = [sample["doc_id"] for part in samples.values() for sample in part]
    table["id"] = table.subject + "/" + pd.Series(place, dtype=str)
    table["cluster"] = pd.factorize(table.question)[0]
    return table.drop(columns="question").assign(correct=table.margin > 0)


def judge_hellaswag(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id, cluster, correct (by likelihood over the ending's length in characters, the harness's acc_norm, as is usual),
    correct_raw (by likelihood, its acc)."""
    rows = [sample for part in samples.values() for sample in part]
    table = pd.DataFrame({"id": [str(sample["doc_id"]) for sample in rows], "cluster": range(len(rows))})
    return table.assign(
        correct=[bool(sample["acc_norm"]) for sample in rows], correct_raw=[bool(sample["acc"]) for sample in rows]
    )


def judge_gsm8k(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id (the place in the test set), cluster, question, gold (the solution), response, strict and flexible (the answer that the
    harness's two filters extract), correct (strict-match, its first), correct_flexible."""
    both = {}
    for sample in (sample for part in samples.values() for sample in part):
        item = both.setdefault(sample["doc_id"], {
            "id": str(sample["doc_id"]), "cluster": sample["doc_id"], "question": sample["doc"]["question"],
            "gold": sample["doc"]["answer"], "response": sample["resps"][0][0],
        })  # fmt: skip
        how = sample["filter"].partition("-")[0]
        item[how] = sample["filtered_resps"][0]
        item["correct" if how == "strict" else "correct_flexible"] = bool(sample["exact_match"])
    return pd.DataFrame(both.values())


JUDGES: dict[str, Callable[[Mapping[str, list[dict]]], pd.DataFrame]] = {
    "ranking": judge_ranking, "similarity": judge_similarity, "choice": judge_choice, "mmlu": judge_mmlu,
    "hellaswag": judge_hellaswag, "gsm8k": judge_gsm8k,
}  # fmt: skip
