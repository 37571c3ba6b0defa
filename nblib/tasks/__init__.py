"""The benchmarks as mteb tasks: negation, its authored miniatures, samples for sweeps, and general ability.

`get(name)` gives a task that `mteb.evaluate` runs like any of its own; `SUITES` says which belong together. The official
tasks and their miniatures are the same classes on other corpora: a miniature is called mini everywhere, and is never to
be compared with an official score.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nblib.tasks.local import LocalTask

NEGATION = {
    "mini": ("SemAntoNegMini", "NevIRMini", "ExcluIRMini", "CannotMini", "M3Mini"),
    "official": ("SemAntoNeg", "NevIR", "ExcluIR", "CannotWMT", "M3Derived"),
    "sample": ("SemAntoNeg", "NevIRSample", "ExcluIRSample", "CannotWMTSample"),
}
GENERAL = {
    "mini": ("STSBMini", "IntentsMini", "TopicsMini", "RetrievalMini"),
    "official": ("STSB",),
    "sample": ("STSB",),
}
SUITES = {data: NEGATION[data] + GENERAL[data] for data in NEGATION}
# What a suite reads, for whoever plans runs: asking the tasks themselves means importing mteb, which takes seconds.
CORPORA = {
    "mini": (
        "semantoneg_mini", "nevir_mini", "excluir_mini", "cannot_mini", "m3_mini", "sts_mini", "intents_mini",
        "topics_mini", "retrieval_mini",
    ),
    "official": ("semantoneg", "nevir", "excluir", "cannot_wmt", "m3", "stsb"),
    "sample": ("semantoneg", "nevir", "excluir", "cannot_wmt", "stsb"),
}  # fmt: skip


@cache
def _classes() -> dict[str, type["LocalTask"]]:
    from nblib.tasks import general, pairwise, similarity  # see CORPORA

    return {task.metadata.name: task for module in (pairwise, similarity, general) for task in module.TASKS}


def get(name: str) -> "LocalTask":
    """A fresh task of this package, data not yet loaded.

    Raises:
        ValueError: no such task; lists the known ones.
    """
    if name not in _classes():
        raise ValueError(f"No task called {name!r}. Known: {', '.join(_classes())}.")
    return _classes()[name]()
