"""Ask a language model through lm-eval and score its answers item by item.

The tasks are the negation benchmarks, and the harness's own MMLU, HellaSwag and GSM8K, which read the official files where
they are here and the hub elsewhere.
"""

import hashlib
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import cache
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import lm_eval
import numpy as np
import pandas as pd
import torch
from lm_eval.defaults import DEFAULT_OTHER_SEED
from lm_eval.tasks import TaskManager
from scipy.stats import ConstantInputWarning

from nblib import corpora, paths
from nblib.benchmarks import catalogue
from nblib.benchmarks.llm import functions
from nblib.benchmarks.llm.reader import Reader
from nblib.errors import StudyError, one_of
from nblib.models import llm_adapters
from nblib.models.language_models import LanguageModel
from nblib.models.onednn import linear_by_onednn

OURS = Path(functions.__file__).parent
HARNESS = Path(lm_eval.__file__).parent / "tasks"
MMLU_SHOTS = 5
# Truong §5.2: "high school/college/elementary mathematics, statistics"
MATHEMATICS = (
    "abstract_algebra", "college_mathematics", "elementary_mathematics", "high_school_mathematics", "high_school_statistics",
)  # fmt: skip
# The mini set's subjects that the harness calls otherwise
HARNESS_SUBJECTS = {"world_history": "high_school_world_history", "computer_science": "high_school_computer_science"}


class LlmTaskError(StudyError):
    """A task that is unknown, or can't be asked in this way."""


@dataclass(frozen=True)
class LlmTask:
    """A benchmark for language models.

    Attributes:
        kind: how an item is asked and scored: one of `OWN_KINDS`, or mmlu, hellaswag, gsm8k.
        source: what it reads: a task of `nblib.benchmarks.catalogue` (`OWN_KINDS`), else a registered corpus.
        benchmark, metric: its label, and the metric that stands beside the printed numbers.
    """

    kind: str
    source: str
    benchmark: str
    metric: str

    @property
    def corpus(self) -> str:
        return catalogue.get(self.source).corpus if self.kind in OWN_KINDS else self.source


OWN_KINDS = ("ranking", "similarity", "choice")  # each a YAML file in this folder
HARNESS_TASKS = {"mmlu": "MMLU", "hellaswag": "HellaSwag", "gsm8k": "GSM8K"}
DATA = ("official", "mini")


def _negation(data: str) -> dict[str, LlmTask]:
    """The benchmarks of the catalogue that a language model is asked, those of Truong's Table 3 first."""
    entries, found = catalogue.BENCHMARKS, {}
    asked = {key: one for key, one in catalogue.main_tasks().items() if one.llm and data in entries[key].tasks}
    for key in sorted(asked, key=lambda key: all(one.paper != "truong" for one in asked[key].printed())):
        source = entries[key].tasks[data]
        found[f"llm_{source}"] = LlmTask(asked[key].llm, source, asked[key].label, asked[key].headline())
    return found


def _general(data: str) -> dict[str, LlmTask]:
    corpora_of = {kind: kind if data == "official" else f"{kind}_mini" for kind in HARNESS_TASKS}
    return {corpus: LlmTask(kind, corpus, HARNESS_TASKS[kind], "accuracy") for kind, corpus in corpora_of.items()}


def names(data: str, kind: Literal["all", "negation", "general"] = "all") -> tuple[str, ...]:
    """The tasks of a form, "official" or "mini": the negation benchmarks, then general ability.

    Raises:
        StudyError: no such form.
    """
    one_of(data, DATA, "data for language models")
    found = {"negation": tuple(_negation(data)), "general": tuple(_general(data))}
    return found.get(kind) or found["negation"] + found["general"]


def tasks() -> dict[str, LlmTask]:
    """All of them by name."""
    return {name: one for data in DATA for name, one in {**_negation(data), **_general(data)}.items()}


def mmlu_groups() -> dict[str, list[str]]:
    """MMLU's groups of subjects (stem, humanities, social sciences, other), as the harness has them; the mini set's names
    included."""
    from lm_eval.tasks.mmlu._generate_configs import SUBJECTS  # part of the harness, which takes seconds to import

    ours = {harness: subject for subject, harness in HARNESS_SUBJECTS.items()}
    groups: dict[str, list[str]] = {}
    for subject, group in SUBJECTS.items():
        groups.setdefault(group.replace("_", " "), []).extend(filter(None, [subject, ours.get(subject)]))
    return groups


def task(name: str) -> LlmTask:
    """Raises:
    LlmTaskError: no such task; lists the known ones.
    """
    known = tasks()
    if name not in known:
        raise LlmTaskError(f"No LLM task called {name!r}. Known: {', '.join(known)}.")
    return known[name]


# --- asking -----------------------------------------------------------------------------------------------------------


class _PromptRecorder(Reader):
    """Keeps what a model would be asked, and asks it nothing."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.prompts = hashlib.sha256()

    def _record(self, requests: list) -> None:
        for request in requests:
            self.prompts.update(json.dumps([request.request_type, request.args], sort_keys=True).encode() + b"\n")

    def loglikelihood(self, requests: list, disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        self._record(requests)
        return [(0.0, False)] * len(requests)

    def generate_until(self, requests: list, disable_tqdm: bool = False) -> list[str]:
        self._record(requests)
        return [""] * len(requests)


@cache
def _manager() -> TaskManager:
    """Only the folders needed: lm-eval's whole index takes ten seconds to read."""
    own = [HARNESS / folder for folder in ("mmlu/default", "hellaswag", "gsm8k")]
    return TaskManager(include_path=[OURS, *own], include_defaults=False)


def _specs(name: str, limit: int, seed: int) -> list[dict]:
    """What lm-eval is asked to load for a task: its YAML, with where the rows come from."""
    described = task(name)
    if described.kind in OWN_KINDS:
        options = {"source": described.source, "limit": limit, "seed": seed}
        return [{"task": f"llm_{described.kind}", "dataset_kwargs": options}]
    here = not corpora.describe(described.corpus).official or paths.official_data() is not None
    kwargs = {"corpus": described.source}
    local = {"custom_dataset": getattr(functions, described.kind), "dataset_kwargs": kwargs} if here else {}
    if described.kind != "mmlu":
        unread = {"training_split": None} if described.kind == "hellaswag" else {}  # no examples are shown
        return [{"task": described.kind, **local, **unread}]
    if here:
        subjects = sorted(corpora.load(described.source, "test").subject.unique())
    else:
        subjects = [name.removeprefix("mmlu_") for name in _manager().all_subtasks if name.startswith("mmlu_")]
    return [
        {
            "task": f"mmlu_{HARNESS_SUBJECTS.get(subject, subject)}", "num_fewshot": MMLU_SHOTS,
            **({**local, "dataset_kwargs": {**kwargs, "subject": subject}} if here else {}),
        }
        for subject in subjects
    ]  # fmt: skip


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


def prompts_sha256(
    model: LanguageModel, name: str, *, limit: int = 0, seed: int = 0, chat_template: bool = False
) -> str:
    """SHA-256 of what `ask` would ask, with the decoding settings, in order; the model computes nothing.

    Args, Raises: see `ask`.
    """
    recorder = _PromptRecorder(pretrained=model.model, tokenizer=model.tokenizer, batch_size=1)
    _evaluate(model, recorder, name, limit, seed, chat_template)
    return recorder.prompts.hexdigest()


def ask(
    model: LanguageModel, name: str, *, limit: int = 0, seed: int = 0, chat_template: bool = False, batch_size: int = 0
) -> pd.DataFrame:
    """Run one task through lm-eval.

    Args:
        limit: a random sample of this many items (of MMLU: a subject); 0 for all.
        chat_template: put prompts as a user's turns.
        batch_size: prompts at once; 0: one where probabilities are read (see `reader`), eight where text is generated.

    Returns:
        Per-item predictions; see the functions below.

    Raises:
        LlmTaskError: unknown task, or a chat template asked of a model without one.
        CorpusError: see `corpora.load`.
    """
    kind = task(name).kind
    batch_size = batch_size or (8 if kind in ("similarity", "gsm8k") else 1)
    reader = Reader(pretrained=model.model, tokenizer=model.tokenizer, batch_size=batch_size)
    with torch.inference_mode(), llm_adapters.exact_logits(model.model), linear_by_onednn(model.model):
        return SCORE_ITEMS[kind](_evaluate(model, reader, name, limit, seed, chat_template))


def _evaluate(
    model: LanguageModel, reader: Reader, name: str, limit: int, seed: int, chat_template: bool
) -> dict[str, list[dict]]:
    """lm-eval's logged samples by subtask; `reader` is given the prompts."""
    described = task(name)
    if chat_template and not model.tokenizer.chat_template:
        raise LlmTaskError(f"{model.name} has no chat template. Set chat_template to False.")
    with _quiet():
        # only within a group does lm-eval take a registered task with changes
        loaded = _manager().load({"group": name, "task": _specs(name, limit, seed)})["tasks"]
        chosen = None
        if described.kind not in OWN_KINDS:  # those sample whole items, not prompts
            chosen = {
                part: np.sort(np.random.default_rng([seed, place]).permutation(len(one.eval_docs))[: limit or None]).tolist()
                for place, (part, one) in enumerate(loaded.items())
            }  # fmt: skip
        # As `simple_evaluate` does, which also asks pip for a list of all packages each time
        for one in loaded.values():
            one.set_fewshot_seed(seed=DEFAULT_OTHER_SEED)
        found = lm_eval.evaluate(
            reader, {"tasks": loaded}, samples=chosen, apply_chat_template=chat_template, fewshot_as_multiturn=True,
            bootstrap_iters=0, log_samples=True,
        )  # fmt: skip
    return found["samples"]


# --- scoring: lm-eval's logged samples as per-item predictions --------------------------------------------------------


def _choices(samples: Mapping[str, list[dict]], *columns: str) -> pd.DataFrame:
    """Multiple-choice samples: the document's columns, target, chosen (the likeliest answer, from 0), margin (log-likelihood
    of the right answer minus the best other)."""
    rows = []
    for sample in chain(*samples.values()):
        likelihood = np.array([float(one[0]) for one in sample["filtered_resps"]])
        target = int(sample["doc"]["target"] if "target" in sample["doc"] else sample["target"])
        margin = likelihood[target] - np.delete(likelihood, target).max()
        rows.append((*(sample["doc"][column] for column in columns), target, int(likelihood.argmax()), margin))
    return pd.DataFrame(rows, columns=[*columns, "target", "chosen", "margin"])


def score_rankings(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id, cluster, correct_given and correct_swapped (all the item's questions right in that order of the documents, ties
    wrong), correct (in both orders), correct_summed (by the sum of both orders' margins, which cancels position bias),
    chose_first (share of the item's prompts answered "1": 0.5 without a bias)."""
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


def score_similarities(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id, cluster, part, score, response, parsed (whether it is a number from −1 to 1), similarity (that number, or 0)."""
    rows = []
    for sample in chain(*samples.values()):
        response = sample["filtered_resps"][0]
        value = functions.parse_score(response)
        rows.append((*(sample["doc"][key] for key in ("id", "cluster", "part", "score")), response, value))
    table = pd.DataFrame(rows, columns=["id", "cluster", "part", "score", "response", "similarity"])
    table["parsed"] = table.similarity.notna()
    return table.assign(similarity=table.similarity.fillna(functions.NEUTRAL).astype(float))


def score_choices(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id, cluster, target and chosen (places of the options, from 0), margin, correct."""
    return _choices(samples, "id", "cluster").assign(correct=lambda table: table.margin > 0)


def score_mmlu(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id (subject and place), subject, cluster (the question's), target, chosen, margin, correct."""
    table = _choices(samples, "subject", "question")
    place = [sample["doc_id"] for sample in chain(*samples.values())]
    table["id"] = table.subject + "/" + pd.Series(place, dtype=str)
    table["cluster"] = pd.factorize(table.question)[0]
    return table.drop(columns="question").assign(correct=table.margin > 0)


def score_hellaswag(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id, cluster, correct (by likelihood over the ending's length in characters, the harness's acc_norm, as is usual),
    correct_raw (by likelihood, its acc)."""
    rows = list(chain(*samples.values()))
    table = pd.DataFrame({"id": [str(sample["doc_id"]) for sample in rows], "cluster": range(len(rows))})
    return table.assign(
        correct=[bool(sample["acc_norm"]) for sample in rows], correct_raw=[bool(sample["acc"]) for sample in rows]
    )


def score_gsm8k(samples: Mapping[str, list[dict]]) -> pd.DataFrame:
    """id (the place in the test set), cluster, question, gold (the solution), response, strict and flexible (the answers that
    the harness's two filters extract), correct (strict-match, its first), correct_flexible."""
    both = {}
    for sample in chain(*samples.values()):
        item = both.setdefault(sample["doc_id"], {
            "id": str(sample["doc_id"]), "cluster": sample["doc_id"], "question": sample["doc"]["question"],
            "gold": sample["doc"]["answer"], "response": sample["resps"][0][0],
        })  # fmt: skip
        how = sample["filter"].partition("-")[0]
        item[how] = sample["filtered_resps"][0]
        item["correct" if how == "strict" else "correct_flexible"] = bool(sample["exact_match"])
    return pd.DataFrame(both.values())


SCORE_ITEMS: dict[str, Callable[[Mapping[str, list[dict]]], pd.DataFrame]] = {
    "ranking": score_rankings, "similarity": score_similarities, "choice": score_choices, "mmlu": score_mmlu,
    "hellaswag": score_hellaswag, "gsm8k": score_gsm8k,
}  # fmt: skip
