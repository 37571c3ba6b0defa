"""Which of MTEB's tasks the study has the data of, by category, and which choices of them are measured as general ability.

Whoever plans runs can import this module without mteb, which takes seconds; `mteb_tasks.get` makes the tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nblib.errors import StudyError

Category = Literal["STS", "Classification", "Retrieval", "Summarization", "PairClassification"]
Choice = Literal["none", "lite", "short", "all"]
CHOICES: tuple[Choice, ...] = ("none", "lite", "short", "all")

# Truong §4.2.2: the 15 tasks of LLM2Vec and SummEval
MTEB_LITE = (
    "Banking77Classification", "EmotionClassification", "MassiveIntentClassification",
    "BiorxivClusteringS2S", "MedrxivClusteringS2S", "TwentyNewsgroupsClustering",
    "SprintDuplicateQuestions", "SciDocsRR", "StackOverflowDupQuestions",
    "ArguAna", "NFCorpus", "SciFact", "STS17", "SICK-R", "STSBenchmark", "SummEval",
)  # fmt: skip


class GeneralError(StudyError):
    """A choice of tasks, or a task of MTEB, that the study doesn't have."""


@dataclass(frozen=True)
class MtebTask:
    """A task of MTEB(eng, v1) whose data are at hand.

    Attributes:
        name: mteb's.
        category: mteb's type of it.
        corpora: what it reads of `data/registries/corpora.yaml`.
        subset: the English part of a task in several languages, by mteb's name.
        caveat: why a score may differ from one on MTEB's own copy of the data; "" where the data agree.
    """

    name: str
    category: Category
    corpora: tuple[str, ...]
    subset: str | None = None
    caveat: str = ""


def _beir(name: str) -> MtebTask:
    return MtebTask(name, "Retrieval", tuple(f"{name.lower()}_{part}" for part in ("corpus", "queries", "qrels")))


_SPACED = "the texts are token-spaced copies of MTEB's"
_LOWERED = "42,200 of the 51,534 pairs are lower-cased copies of MTEB's; all are read lower-cased"
_EDITED = "the authors' release, from which MTEB's copy differs in small edits of the texts and in one annotation"
TASKS = {
    task.name: task
    for task in (
        *(MtebTask(f"STS{year}", "STS", (f"sts{year}",)) for year in range(12, 17)),
        MtebTask("STS17", "STS", ("sts17",), "en-en"),
        MtebTask("STSBenchmark", "STS", ("stsb",)),
        MtebTask("SICK-R", "STS", ("sick_r",)),
        MtebTask("BIOSSES", "STS", ("biosses",), caveat=_EDITED),
        MtebTask("AmazonCounterfactualClassification", "Classification", ("amazon_counterfactual",), "en"),
        MtebTask("Banking77Classification", "Classification", ("banking77",)),
        MtebTask("EmotionClassification", "Classification", ("emotion",)),
        MtebTask("MassiveIntentClassification", "Classification", ("massive_intent",), "en"),
        MtebTask("MassiveScenarioClassification", "Classification", ("massive_scenario",), "en"),
        MtebTask("TweetSentimentExtractionClassification", "Classification", ("tweet_sentiment",)),
        MtebTask("SummEval", "Summarization", ("summeval",), caveat=_SPACED),
        MtebTask("TwitterURLCorpus", "PairClassification", ("twitter_url",), caveat=_LOWERED),
        *map(_beir, ("NFCorpus", "SciFact", "ArguAna")),
    )
}


def names(choice: Choice) -> tuple[str, ...]:
    """The tasks of a choice: none; `lite`, those of Truong's 16 at hand; `short`, similarity and classification, which need no
    corpus; or `all`.

    Raises:
        GeneralError: no such choice.
    """
    if choice not in CHOICES:
        raise GeneralError(f"No choice of general tasks called {choice!r}. Known: {', '.join(CHOICES)}.")
    short = ("STS", "Classification")
    return tuple(
        task.name
        for task in TASKS.values()
        if choice == "all"
        or (choice == "lite" and task.name in MTEB_LITE)
        or (choice == "short" and task.category in short)
    )


def corpora_of(choice: Choice) -> tuple[str, ...]:
    """The registered corpora that the tasks of a choice read.

    Raises:
        GeneralError: no such choice.
    """
    return tuple(corpus for name in names(choice) for corpus in TASKS[name].corpora)


def missing_of_lite(measured: Sequence[str] = tuple(TASKS)) -> tuple[str, ...]:
    """Those of Truong's 16 tasks that are not among the measured ones."""
    return tuple(name for name in MTEB_LITE if name not in measured)
