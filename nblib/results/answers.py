"""The declared mapping from printed cells to measurements: which measurement answers a cell, and how nearly.

`data/published/answers.yaml` has three lists. `cells`: a printed benchmark and metric, and what of ours answers it. `systems`:
where not the printed system itself was measured, but others in its place. `pictures`: exhibits without numbers, and the figure
or table of ours that shows them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from nblib import paths, shipped
from nblib.results import published
from nblib.results.measurements import ResultsError

FILE = paths.DATA / "published" / "answers.yaml"


@dataclass(frozen=True)
class Answer:
    """What of ours answers a printed benchmark and metric.

    Attributes:
        paper, benchmark, metric: as printed.
        exhibits: which of the paper's; () for all.
        label, measured: our benchmark's label, and our metric.
        data: what `data` of the measurement begins with, where the official items are its own; "" for any.
        n: the items behind the printed number; 0 where the paper doesn't say and nothing tells.
        protocol: how our protocol differs from the paper's; "" where it doesn't.
        stand_in: why the items are not the paper's at all; "" where they are.
        note: a remark on the printed number.
        suffix: what the name of the measured system has besides the system's own (an adapter).
        compared: whether a difference between the two numbers means anything; not for counts and descriptions.
    """

    paper: str
    benchmark: str
    metric: str
    label: str
    measured: str
    exhibits: tuple[str, ...] = ()
    data: str = ""
    n: int = 0
    protocol: str = ""
    stand_in: str = ""
    note: str = ""
    suffix: str = ""
    compared: bool = True


@dataclass(frozen=True)
class Picture:
    """What of ours shows an exhibit that prints no numbers.

    Attributes:
        paper, exhibit: which one.
        notebook: whose results' sidecar says on which data it was made.
        file: the figure or table without its ending, below `figures/`; "*" stands for any model's name, "{system}" for the
            name of the system shown.
        measured: how nearly, on the official data: full, sample, stand-in or other protocol.
        note: what differs from the paper's.
    """

    paper: str
    exhibit: str
    notebook: str
    file: str
    measured: str
    note: str = ""


@cache
def _file() -> dict[str, list[Mapping]]:
    return shipped.read_yaml(FILE)


def _made(kind: type, entry: Mapping) -> object:
    try:
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})
    except TypeError as error:
        raise ResultsError(
            f"{FILE}: an entry of {kind.__name__.lower()}s can't be read ({error}): {dict(entry)}"
        ) from error


@cache
def cells() -> tuple[Answer, ...]:
    """Every answer, in the file's order.

    Raises:
        ResultsError: an entry has a key that `Answer` lacks, or lacks one.
    """
    return tuple(_made(Answer, entry) for entry in _file()["cells"])


@cache
def pictures() -> tuple[Picture, ...]:
    """Every picture.

    Raises:
        ResultsError: an entry has a key that `Picture` lacks, or lacks one.
    """
    return tuple(_made(Picture, entry) for entry in _file()["pictures"])


def of(paper: str, exhibit: str, benchmark: str, metric: str) -> Answer | None:
    """The answer to a printed cell; None where the study measures nothing of the kind."""
    for answer in cells():
        named = (answer.paper, answer.benchmark, answer.metric) == (paper, benchmark, metric)
        if named and (not answer.exhibits or exhibit in answer.exhibits):
            return answer
    return None


def of_benchmark(label: str, data: str) -> tuple[Answer, ...]:
    """Where the papers print scores of a benchmark's items as they are.

    Args:
        data: the official items, as "nevir test".
    """
    return tuple(one for one in cells() if one.label == label and one.data in ("", data) and one.compared)


def printed_system(paper: str, exhibit: str, model: str) -> str:
    """The printed system that a model is, or in whose place it is measured; the model's own name where it is neither."""
    table = published.load(paper)
    for system in table.system[table.exhibit == exhibit].unique():
        if model in [name for name, _ in candidates(paper, exhibit, system)]:
            return system
    return model


def candidates(paper: str, exhibit: str, system: str) -> list[tuple[str, bool]]:
    """The names under which a printed system may have been measured, best first, and whether each is a stand-in."""
    own = [(name, False) for name in published.models_named(paper, system)]
    for entry in _file()["systems"]:
        if entry["paper"] == paper and system in entry["printed"] and exhibit in entry.get("exhibits", [exhibit]):
            own += [(name, True) for name in entry["stand_ins"]]
    return own
