"""The scoreboard: every printed number with the measurement that answers it, how nearly it does, and whether the two agree.

`data/published/answers.yaml` declares what answers what: `cells`, for a printed benchmark and metric; `systems`, what stands in
for a printed system that isn't at hand; `pictures`, our figures for exhibits without numbers.

`measured` says how nearly: the same system on the same items by the paper's protocol is "full". `agrees` says whether the two
numbers are the same. Only what is measured in full and agrees is "reproduced".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from nblib import artefacts, paths, shipped
from nblib.results import measurements, published

ANSWERS = published.FOLDER / "answers.yaml"
CELL = ["paper", "exhibit", "system", "benchmark", "metric"]
WHERE = ["base", "variant", "seed", "adapter", "corpus", "split", "part", "sample", "protocol"]
KEPT = ["value", "ci_low", "ci_high", *WHERE, "trained_on", "training_items", "n"]  # of a measurement
TEXTS = ["agrees", "measured_system", *WHERE, "measured_metric", "trained_on", "figure", "note"]
COLUMNS = [*CELL, "published", "value", "ci_low", "ci_high", "difference", "measured", *TEXTS[:-2]]
COLUMNS += ["training_items", "n", "n_printed", "figure", "note", "scale"]
EMPTY = dict.fromkeys(["variant", "adapter", "part", "protocol", "layer"], "")  # unless a mapping names them
MEASURED = ("full", "sample", "other protocol", "stand-in", "not run")
ROUNDING, INTERVAL, NOTHING = "within rounding", "within our interval", "nothing printed"
AGREEING = (ROUNDING, INTERVAL)
SHOWN, WHOLE = "shown", "the exhibit"  # metric of an exhibit without numbers, and its system where it shows none


@dataclass(frozen=True)
class CellMapping:
    """What of ours answers a printed benchmark and metric."""

    paper: str
    benchmark: str
    metrics: tuple[str, ...]
    ours: Mapping[str, str]  # column → value; what isn't named: of `EMPTY` empty, the metric as printed, another any
    exhibits: tuple[str, ...] = ()  # of the paper; (): all
    n: int = 0  # items behind the printed number; 0: the paper doesn't say
    protocol: str = ""  # how ours differs from the paper's
    stand_in: str = ""  # why the items are not the paper's at all
    note: str = ""  # on the printed number
    compared: bool = True  # whether a difference means anything: not that of counts


@cache
def _declared() -> dict[str, list[dict]]:
    return shipped.read_yaml(ANSWERS)


@cache
def cells() -> tuple[CellMapping, ...]:
    """Every mapping of a cell, in the file's order; a StudyError where an entry is malformed."""
    return shipped.read_declared(ANSWERS, tuple[CellMapping, ...], CellMapping, _declared()["cells"])


def pictures() -> list[dict]:
    """What of ours shows each exhibit that prints no numbers: paper, exhibit; file (below `figures/`, without its ending; "*":
    any model's name, "{system}": the shown system's); notebook (whose results' sidecar says on which data it was made);
    measured (how nearly, on official data); note."""
    return _declared()["pictures"]


def mapping(paper: str, exhibit: str, benchmark: str, metric: str) -> CellMapping | None:
    """What answers a printed cell; None where the study measures nothing of the kind."""
    of_benchmark = (one for one in cells() if (one.paper, one.benchmark) == (paper, benchmark))
    fits = (one for one in of_benchmark if metric in one.metrics and exhibit in (one.exhibits or [exhibit]))
    return next(fits, None)


def mappings_of(benchmark: str) -> list[CellMapping]:
    """Where the papers print scores of the whole test split of a benchmark, given by its key, as it is."""
    whole = {"benchmark": benchmark, "split": "test"}
    return [one for one in cells() if one.compared and {**one.ours, "metric": ""} == {**whole, "metric": ""}]


def candidates(paper: str, exhibit: str, system: str) -> list[tuple[Mapping[str, str], bool]]:
    """The columns by which a printed system may have been measured, best first, and whether each is a stand-in."""
    own = [({"system": name}, False) for name in published.models_named(paper, system)]
    for entry in _declared()["systems"]:
        if entry["paper"] == paper and system in entry["printed"] and exhibit in entry.get("exhibits", [exhibit]):
            own += [(columns, True) for columns in entry["stand_ins"]]
    return own


def printed_system(paper: str, exhibit: str, model: str) -> str:
    """The printed system that a model is, or in whose place it is measured; the model's own name where it is neither."""
    table = published.load(paper)
    for system in table.system[table.exhibit == exhibit].unique():
        if {"system": model} in [columns for columns, _ in candidates(paper, exhibit, system)]:
            return system
    return model


def expected() -> pd.DataFrame:
    """A row per printed score of every exhibit (without derived differences), and per system shown of those without numbers:
    CELL, published, printed (the number's digits)."""
    listed = published.exhibits()
    table = pd.concat(map(published.load, published.PAPERS)).merge(listed[["paper", "exhibit"]])
    derived = (table.metric == "confidence_interval") | table.metric.str.endswith("_delta")
    scores = table.unit.isin(["percent", "cosine", "pairs", "words", "items"]) & table.value.notna()
    table = table[scores & ~derived & (table.system != "chance")].drop_duplicates(CELL)
    numbered = set(zip(table.paper, table.exhibit, strict=True))
    shown = [
        {"paper": one.paper, "exhibit": one.exhibit, "system": system.strip(), "benchmark": "", "metric": SHOWN}
        for one in listed.itertuples()
        if (one.paper, one.exhibit) not in numbered
        for system in (one.systems or WHOLE).split(";")
    ]
    table = table.rename(columns={"value": "published"})[[*CELL, "printed", "published"]]
    return pd.concat([table, pd.DataFrame(shown).assign(printed="")], ignore_index=True)


def agreement(printed: str, value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Whether a value (with an interval) agrees with a number as printed ("34.91", or ""): "within rounding" (it rounds to the
    printed digits), "within our interval", "differs by …", or "nothing printed"."""
    if not printed:
        return NOTHING
    number = float(printed)
    digits = len(printed.partition(".")[2])
    if abs(value - number) <= 0.5 * 10**-digits + 1e-9:
        return ROUNDING
    return INTERVAL if low <= number <= high else f"differs by {value - number:+.{max(digits, 1)}f}"


def build(measured: pd.DataFrame, run_dir: str | Path, scale: str) -> pd.DataFrame:
    """Every expected row with its answer from `measurements.load` or the run's figures; else it is "not run": COLUMNS."""
    measured = measured.assign(mini=measurements.is_mini(measured))
    by_system = {name: list(rows.itertuples(index=False)) for name, rows in measured.groupby("system")}
    rows = []
    for cell in expected().itertuples(index=False):
        answer = _shown(cell, by_system, run_dir) if cell.metric == SHOWN else _answered(cell, by_system)
        rows.append({"measured": "not run", "scale": scale, **cell._asdict(), **answer})
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    return table.assign(**table[TEXTS].astype(object).fillna(""))


def _answered(cell: tuple, by_system: Mapping[str, list[tuple]]) -> dict[str, object]:
    answer = mapping(cell.paper, cell.exhibit, cell.benchmark, cell.metric)
    if answer is None:
        return {}
    for columns, stands_in in candidates(cell.paper, cell.exhibit, cell.system):
        wanted = EMPTY | {"metric": cell.metric} | answer.ours | columns
        rows = by_system.get(wanted["system"], [])
        rows = [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]
        if rows:  # on as many official items as printed, else on most of them, else on a mini set
            item = min(rows, key=lambda row: (row.mini, row.n != answer.n, -row.n))
            return _compared(cell, answer, item, stands_in)
    return {"n_printed": answer.n or math.nan}


def _compared(cell: tuple, answer: CellMapping, item: tuple, stands_in: bool) -> dict[str, object]:
    if stands_in or answer.stand_in or item.mini:
        measured, agrees = "stand-in", ""
    else:
        in_full = "full" if not answer.n or item.n == answer.n else "sample"
        measured = "other protocol" if answer.protocol else in_full
        agrees = agreement(cell.printed, item.value, item.ci_low, item.ci_high)
        if not answer.compared and agrees != ROUNDING:
            agrees = "differs"
    mini = "a mini set, which no printed number compares with" if item.mini else ""
    return {
        **{name: getattr(item, name) for name in KEPT},
        "measured": measured,
        "measured_system": item.system,
        "measured_metric": item.metric,
        "agrees": agrees,
        "difference": item.value - cell.published if answer.compared and measured != "stand-in" else math.nan,
        "n_printed": answer.n or math.nan,
        "note": "; ".join(filter(None, [answer.stand_in, answer.protocol, answer.note, mini])),
    }


def _shown(cell: tuple, by_system: Mapping[str, list[tuple]], run_dir: str | Path) -> dict[str, object]:
    """What shows an exhibit without numbers: for an exhibit of systems, those of them that were measured at all."""
    picture = next(one for one in pictures() if (one["paper"], one["exhibit"]) == (cell.paper, cell.exhibit))
    run, names = paths.resolve(run_dir), [""]
    if cell.system != WHOLE:
        names = [columns["system"] for columns, _ in candidates(cell.paper, cell.exhibit, cell.system)]
        names = [name for name in names if name in by_system]
    patterns = [f"{picture['file'].replace('{system}', name)}.csv" for name in names]
    files = [file for pattern in patterns for file in sorted((run / "figures").glob(pattern))]
    if not files:
        return {}
    made = (run / "results").glob(f"{picture['notebook']}_*.csv")
    mini = any(artefacts.about(file).get("form") == "mini" for file in made)
    note = "; ".join(filter(None, [picture.get("note"), "drawn from a mini set" * mini]))
    about = {"measured": "stand-in" if mini else picture["measured"], "agrees": NOTHING, "note": note}
    return {**about, "figure": f"{files[0].parent.name}/{files[0].stem}"}


def read(file: str | Path) -> pd.DataFrame:
    """A scoreboard that was written as CSV; an empty text stays a text."""
    numbers = "published value ci_low ci_high difference training_items n n_printed".split()
    empty = {name: [""] for name in numbers}
    return artefacts.read_table(file, keep_default_na=False, na_values=empty, dtype={"sample": str})


def coverage(board: pd.DataFrame) -> pd.DataFrame:
    """A scoreboard by exhibit: paper, exhibit, title, notebook, rows, how many of them are full, sample, other_protocol,
    stand_in, not_run and reproduced, verdict (one phrase), command (which runs the rest)."""
    kinds = {name: name.replace(" ", "_").replace("-", "_") for name in MEASURED}
    rows = board[["paper", "exhibit"]].assign(
        **{column: board.measured == name for name, column in kinds.items()},
        reproduced=board.measured.eq("full") & board.agrees.isin(AGREEING),
        printed=board.metric != SHOWN,
        rows=1,
    )
    counts = rows.groupby(["paper", "exhibit"], as_index=False).sum()
    table = published.exhibits().merge(counts, on=["paper", "exhibit"], validate="1:1")
    scales = ["official", "paper"] if "quick" in set(board.scale) else ["paper"]
    command = "; ".join(f"make study SCALE={scale}" for scale in scales)
    table["verdict"] = [_verdict(row) for row in table.itertuples()]
    table["command"] = ["" if row.full == row.rows else command for row in table.itertuples()]
    order = ["paper", "exhibit", "title", "notebook", "rows", *kinds.values(), "reproduced", "verdict", "command"]
    return table[order]


def _verdict(row: tuple) -> str:
    if row.full == row.rows and not row.printed:
        return "shown in full"
    if row.full == row.rows:
        agree = row.reproduced == row.rows
        return "reproduced" if agree else f"measured in full, {row.reproduced} of {row.rows} agree"
    if row.full + row.sample + row.other_protocol:
        return "measured in part"
    return "stand-ins alone" if row.stand_in else "not run"
