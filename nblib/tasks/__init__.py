"""The benchmarks as mteb tasks: negation, its authored miniatures, and general ability.

`get(name)` gives a task that `mteb.evaluate` runs like any of its own; `SUITES` says which belong together. The official
tasks and their miniatures are the same classes on other corpora: a miniature is called mini everywhere, and is never to
be compared with an official score.
"""

from mteb.abstasks import AbsTask

from nblib.tasks import general, negation

NEGATION = {
    "mini": ("SemAntoNegMini", "NevIRMini", "ExcluIRMini", "CannotMini", "M3Mini"),
    "official": ("SemAntoNeg", "NevIR", "ExcluIR", "CannotWMT", "M3Derived"),
}
GENERAL = {
    "mini": ("STSBMini", "IntentsMini", "TopicsMini", "RetrievalMini"),
    "official": ("STSB",),
}
SUITES = {data: NEGATION[data] + GENERAL[data] for data in NEGATION}

_CLASSES: dict[str, type[AbsTask]] = {
    task.metadata.name: task for module in (negation, general) for task in module.TASKS
}  # fmt: skip


def get(name: str) -> AbsTask:
    """A fresh task of this package, data not yet loaded.

    Raises:
        ValueError: no such task; lists the known ones.
    """
    if name not in _CLASSES:
        raise ValueError(
            f"No task called {name!r}. Known: {', '.join(_CLASSES)}; hub benchmarks: {', '.join(general.HUB)}."
        )
    return _CLASSES[name]()
