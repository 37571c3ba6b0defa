"""Which benchmarks there are, and in which forms: official, authored mini set (mini), sample for many encoders.

A benchmark is a file of this package with its forms in `FORMS`, and an entry here. `get(name)` gives a form as a task that
`mteb.evaluate` runs like any of its own. A form is named after its benchmark's key: `nevir`, `nevir_mini`, `nevir_sample`.
Whoever plans runs can import this module without mteb, which takes seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from nblib.errors import StudyError

if TYPE_CHECKING:  # the modules of the entries, so that the import graph, and with it the workflow, knows of them
    from nblib.benchmarks import cannot, contrast, excluir, general, m3, nevir, semantoneg, stsb  # noqa: F401
    from nblib.benchmarks.base import LocalTask

DATA = ("mini", "official", "sample")


class BenchmarkError(StudyError):
    """A benchmark, or a form of one, that doesn't exist."""


@dataclass(frozen=True)
class Benchmark:
    """An entry of the catalogue.

    Attributes:
        module: where its forms are: a tuple `FORMS` of tasks.
        kind: what it measures.
        tasks: for each of `DATA` the task that stands for it; a sample may be the whole.
    """

    module: str
    kind: Literal["negation", "general"]
    tasks: Mapping[str, str]

    def forms(self) -> tuple[type["LocalTask"], ...]:
        """Its tasks, and those of other benchmarks of the same file."""
        return import_module(self.module).FORMS


def _in_all(key: str, file: str, sample: str | None = None) -> Benchmark:
    tasks = {"mini": f"{key}_mini", "official": key, "sample": sample or f"{key}_sample"}
    return Benchmark(f"nblib.benchmarks.{file}", "negation", tasks)


BENCHMARKS = {
    "semantoneg": _in_all("semantoneg", "semantoneg", sample="semantoneg"),
    "nevir": _in_all("nevir", "nevir"),
    "excluir": _in_all("excluir", "excluir"),
    "cannot_wmt": _in_all("cannot_wmt", "cannot"),
    "m3": Benchmark("nblib.benchmarks.m3", "negation", {"mini": "m3_mini", "official": "m3"}),
    "contrast": Benchmark("nblib.benchmarks.contrast", "negation", {"mini": "contrast_mini"}),
    "exclusions": Benchmark("nblib.benchmarks.contrast", "negation", {"mini": "exclusions_mini"}),
    "stsb": Benchmark("nblib.benchmarks.stsb", "general", {"mini": "stsb_mini", "official": "stsb", "sample": "stsb"}),
    "intents": Benchmark("nblib.benchmarks.general", "general", {"mini": "intents_mini"}),
    "topics": Benchmark("nblib.benchmarks.general", "general", {"mini": "topics_mini"}),
    "retrieval": Benchmark("nblib.benchmarks.general", "general", {"mini": "retrieval_mini"}),
}


def names(
    data: str, kind: Literal["all", "negation", "general"] = "all", keys: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The tasks of a form, as results list them.

    Args:
        keys: only of these benchmarks.

    Raises:
        BenchmarkError: no such form, no such benchmark, or one that has no such form.
    """
    if data not in DATA:
        raise BenchmarkError(f"No data called {data!r}. Known: {', '.join(DATA)}.")
    there = {key: one for key, one in BENCHMARKS.items() if data in one.tasks}
    if unknown := [key for key in keys or [] if key not in there]:
        raise BenchmarkError(f"No benchmark called {', '.join(unknown)} among the {data} ones: {', '.join(there)}.")
    wanted = there if keys is None else keys
    return tuple(one.tasks[data] for key, one in there.items() if key in wanted and kind in ("all", one.kind))


def corpora_of(data: str) -> tuple[str, ...]:
    """The registered corpora that the tasks of a form read."""
    return tuple(name.removesuffix("_sample") for name in names(data))


def tasks() -> dict[str, type["LocalTask"]]:
    """Every task by its name, all forms of a benchmark together."""
    modules = {one.module: one for one in BENCHMARKS.values()}
    return {task.metadata.name: task for one in modules.values() for task in one.forms()}


def main_tasks() -> dict[str, type["LocalTask"]]:
    """Every benchmark's own task by its key: the official form, or the mini set where there is no other."""
    known = tasks()
    return {key: known[one.tasks.get("official") or one.tasks["mini"]] for key, one in BENCHMARKS.items()}


def get(name: str) -> "LocalTask":
    """A fresh task of this package, data not yet loaded.

    Raises:
        BenchmarkError: no such task; lists the known ones.
    """
    known = tasks()
    if name not in known:
        raise BenchmarkError(f"No task called {name!r}. Known: {', '.join(known)}.")
    return known[name]()
