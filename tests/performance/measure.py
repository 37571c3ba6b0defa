"""Times and peak memory of several ways to do the same, alternately in one process.

pyperf and pytest-benchmark time one way after the other, each in its own process or test. On a machine whose speed changes from
minute to minute only neighbouring times compare, so here every round runs every way once, in turning order, and a ratio is
taken within a round.
"""

import gc
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

STOCK = "stock"
COLUMNS = ["case", "n", "way", "seconds", "times", "lowest", "highest", "peak_mib", "difference", "remark"]


@dataclass(frozen=True)
class Case:
    """Something to do, in several ways.

    Attributes:
        label: what is done, and to what.
        n: how many (texts, triples, …), with the unit.
        ways: name → function that does it and returns its scores; `STOCK` is what people use today.
        allowed: the largest difference of a way's scores from the stock way's (`by_way`: of that one); None: not compared.
        remark: after the rounds, what else there is to say of a way, from its median seconds.
    """

    label: str
    n: str
    ways: Mapping[str, Callable[[], object]]
    allowed: float | None = 0.0
    by_way: Mapping[str, float] | None = None
    remark: Callable[[str, float], str] = lambda way, seconds: ""


def machine() -> dict[str, object]:
    """For a table's sidecar."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return {"cores": os.cpu_count(), "processor": names[0] if names else "unknown"}


def peak(run: Callable[[], object]) -> tuple[object, float, float]:
    """What a function returns, the seconds it took, and the process's peak memory meanwhile in MiB (NaN where the system
    doesn't say: Linux does)."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    gc.collect()
    gc.freeze()  # what stays need not be looked through again, which empties the processor's caches before each measurement
    if reset.exists():
        reset.write_text("5")  # the peak starts anew
    started = time.perf_counter()
    found = run()
    seconds = time.perf_counter() - started
    lines = status.read_text().splitlines() if status.exists() else []
    most = next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), math.nan)
    return found, seconds, most


def compare(case: Case, rounds: int) -> pd.DataFrame:
    """A row a way: the median of its seconds, how many times as fast as the stock way it is (median, lowest and highest of the
    rounds), its peak memory, the largest difference of a score.

    Raises:
        SystemExit: a way's scores differ by more than is allowed.
    """
    names, taken, memory, scores = list(case.ways), [], {}, {}
    for turn in range(rounds):
        seconds = {}
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            found, seconds[name], most = peak(case.ways[name])
            memory[name] = max(most, memory.get(name, 0.0))
            scores[name] = found
        taken.append(seconds)
    times, rows = pd.DataFrame(taken), []
    for name in names:
        ratio, difference = times[STOCK] / times[name], math.nan
        if case.allowed is not None:
            difference = float(np.abs(np.asarray(scores[name], float) - np.asarray(scores[STOCK], float)).max())
            if difference > (case.by_way or {}).get(name, case.allowed):
                raise SystemExit(f"{case.label}: {name} differs from the stock way by {difference:.2g}.")
        middle = times[name].median()
        row = (case.label, case.n, name, middle, ratio.median(), ratio.min(), ratio.max(), memory[name], difference)
        rows.append((*row, case.remark(name, middle)))
    return pd.DataFrame(rows, columns=COLUMNS)
