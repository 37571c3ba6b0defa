"""Which claims of the four papers hold? Each claim of `data/published/claims.yaml` is checked against what this run measured.

A claim has checks. A check compares two systems on the same items, a score with a bound, two scores with each other, a printed
number with ours, or two printed numbers. Two scores differ only where an interval shows it. The verdict follows from the
checks: all hold, some, or none; a claim whose only outcomes are printed numbers was not measured. Where the evidence is a
stand-in, the file says what the best verdict can be (`most`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from nblib import paths, shipped
from nblib.analysis import training_comparison
from nblib.benchmarks import catalogue, general_ability, scoring
from nblib.errors import StudyError
from nblib.results import comparison, published

if TYPE_CHECKING:
    from nblib.benchmarks.base import LocalTask

FILE = paths.DATA / "published" / "claims.yaml"
SUPPORTED, PARTLY, NOT_SUPPORTED, NOT_TESTABLE = VERDICTS = (
    "supported",
    "partly",
    "not supported",
    "not testable here",
)
NOT_MEASURED = "not measured in this run"
SEEDS = 10  # at most, of a variant of the sweep
SIDES = ("before", "after")
COLUMNS = [
    "id",
    "short",
    "paper",
    "section",
    "claim",
    "measured",
    "verdict",
    "because",
    "refuted_by",
    "needs",
    "exhibit",
]


class ClaimError(StudyError):
    """A claim that can't be read."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, in our words.

    Attributes:
        id, paper: its key, and whose it is.
        short: the claim in at most ten words.
        section: where the paper says it.
        exhibit: the exhibit it belongs to, as in `exhibits.csv`.
        claim: what is claimed.
        refuted_by: what would refute it.
        checks: see `_CHECKS`.
        because: what limits the evidence.
        needs: what a better test would take.
        most: the best verdict that the evidence allows.
    """

    id: str
    short: str
    paper: str
    section: str
    exhibit: str
    claim: str
    refuted_by: str
    because: str
    needs: str
    checks: tuple[Mapping, ...] = ()
    most: str = SUPPORTED


@dataclass(frozen=True)
class Outcome:
    """A check's outcome: a sentence with the numbers, whether what is claimed holds, the systems that it is about, and whether
    this study measured it (two printed numbers were not)."""

    sentence: str
    holds: bool
    systems: tuple[str, ...] = ()
    measured: bool = True


@dataclass(frozen=True)
class Evidence:
    """What claims are checked against: a run's predictions, measurements and scoreboard."""

    run_dir: Path
    measured: pd.DataFrame
    board: pd.DataFrame

    def score(self, system: str, benchmark: str, metric: str, data: str) -> pd.Series | None:
        """A measurement; None where it wasn't taken."""
        table = self.measured
        fits = (
            (table.system == system) & (table.benchmark == benchmark) & (table.metric == metric) & (table.data == data)
        )
        return table[fits].iloc[0] if fits.any() else None

    def trained_on(self, systems: Iterable[str]) -> str:
        """A sentence on what those of the systems that this study trained were trained on; "" where it trained none."""
        table = self.measured[self.measured.system.isin(list(systems)) & (self.measured.trained_on != "")]
        texts = table.drop_duplicates("system").set_index("system").trained_on
        return f" Trained on: {'; '.join(f'{name}: {text}' for name, text in texts.items())}." if len(texts) else ""


@cache
def load() -> tuple[Claim, ...]:
    """Every claim, in the file's order.

    Raises:
        ClaimError: an entry lacks a key, has one too many, or names an unknown exhibit, verdict or check.
    """
    known = set(published.exhibits()[["paper", "exhibit"]].itertuples(index=False, name=None))
    found = []
    for entry in shipped.read_yaml(FILE):
        try:
            claim = Claim(**{**entry, "checks": tuple(entry.get("checks", ()))})
        except TypeError as error:
            raise ClaimError(f"{FILE}: the claim {entry.get('id', entry)} can't be read ({error}).") from error
        if (claim.paper, claim.exhibit) not in known:
            raise ClaimError(
                f"{FILE}: {claim.id} names an exhibit that exhibits.csv lacks: {claim.paper}, {claim.exhibit}."
            )
        if claim.most not in VERDICTS:
            raise ClaimError(f"{FILE}: {claim.id} has the verdict {claim.most!r}; known: {', '.join(VERDICTS)}.")
        if unknown := {str(check.get("kind")) for check in claim.checks} - _CHECKS.keys():
            raise ClaimError(f"{FILE}: {claim.id} has an unknown check {unknown}; known: {', '.join(_CHECKS)}.")
        found.append(claim)
    return tuple(found)


def table(run_dir: str | Path, measured: pd.DataFrame, board: pd.DataFrame) -> pd.DataFrame:
    """Every claim with what was measured and the verdict: COLUMNS.

    Args:
        measured: from `results.load`.
        board: a scoreboard.
    """
    evidence = Evidence(paths.resolve(run_dir), measured, board)
    rows = []
    for claim in load():
        outcomes = [_CHECKS[check["kind"]](check, evidence) for check in claim.checks]
        taken = [outcome for outcome in outcomes if outcome]
        said = " ".join(f"{outcome.sentence}." for outcome in taken)
        said += evidence.trained_on({system for outcome in taken for system in outcome.systems})
        row = {name: getattr(claim, name) for name in COLUMNS if hasattr(claim, name)}
        rows.append({**row, "measured": said or "–", "verdict": verdict(claim, taken)})
    return pd.DataFrame(rows, columns=COLUMNS)


def verdict(claim: Claim, outcomes: list[Outcome]) -> str:
    """The verdict on a claim by its checks' outcomes, at best `claim.most`. Printed numbers alone give none."""
    if claim.most == NOT_TESTABLE:
        return NOT_TESTABLE
    if not any(outcome.measured for outcome in outcomes):
        return NOT_MEASURED
    holding = sum(outcome.holds for outcome in outcomes)
    reached = SUPPORTED if holding == len(outcomes) else PARTLY if holding else NOT_SUPPORTED
    return max(reached, claim.most, key=VERDICTS.index)


def counts(claims: pd.DataFrame) -> str:
    """How many claims have which verdict, in words."""
    by_verdict = claims.verdict.value_counts()
    listed = [f"{by_verdict[name]} {name}" for name in (*VERDICTS, NOT_MEASURED) if name in by_verdict]
    return f"Of {len(claims)} claims of the four papers: {', '.join(listed)}."


# --- checks: each takes its entry and the evidence, and gives an outcome, or None where something wasn't measured ------------


def _change(check: Mapping, evidence: Evidence) -> Outcome | None:
    """Two systems on the same items, by paired bootstrap over clusters: `after` is higher, lower or the same."""
    before, after, task = check["before"], check["after"], check["task"]
    if not all(_scored(evidence.run_dir, system, task) for system in (before, after)):
        return None
    tables = [scoring.load_predictions(evidence.run_dir, system, task) for system in (before, after)]
    found = scoring.change(*tables, catalogue.get(task).headline())
    return _changed(check, catalogue.get(task), before, after, found, (before, after))


def _general(check: Mapping, evidence: Evidence) -> Outcome | None:
    """A category of MTEB's tasks, or the mean of all, before and after: `after` is higher, lower or the same."""
    before, after, average = check["before"], check["after"], check["average"]
    try:
        table = _general_changes(evidence.run_dir, before, after)
    except scoring.ScoreError:  # one of them was not measured
        return None
    rows = table[table.average == average]
    if rows.empty:
        return None
    found = rows.iloc[0]
    what = f"{average}, {found.tasks} of MTEB's tasks" if found.tasks > 1 else f"{average}, one of MTEB's tasks"
    sentence = (
        f"{what}: {before} {found.before:.1f}, {after} {found.after:.1f} ({found.difference:+.1f}, {found.low:+.1f} to "
        f"{found.high:+.1f})"
    )
    return Outcome(sentence, _holds(check, found.low, found.high), (before, after))


@cache
def _general_changes(run_dir: Path, before: str, after: str) -> pd.DataFrame:
    return general_ability.changes(run_dir, before, after)


def _holds(check: Mapping, low: float, high: float) -> bool:
    """Whether the interval of a change shows what is expected."""
    return bool({"higher": low > 0, "lower": high < 0, "same": low <= 0 <= high}[check["expect"]])


def _seeds(check: Mapping, evidence: Evidence) -> Outcome | None:
    """As `_change`, of trainings of the sweep over their seeds. `before` and `after` name variants, or a system of the run."""
    task, sides = check["task"], []
    for name in (check["before"], check["after"]):
        sweep = evidence.run_dir / "sweep"
        of_seeds = [(sweep, f"{name}-s{seed}") for seed in range(SEEDS) if _scored(sweep, f"{name}-s{seed}", task)]
        of_run = [(evidence.run_dir, name)] if _scored(evidence.run_dir, name, task) else []
        sides.append(of_seeds or of_run)
    if not all(sides):
        return None
    tables = [[scoring.load_predictions(run_dir, name, task) for run_dir, name in side] for side in sides]
    found = training_comparison.change_over_seeds(*tables, catalogue.get(task).headline())
    names = [
        f"{check[side]}{f' ({len(part)} seeds)' * (len(part) > 1)}" for side, part in zip(SIDES, sides, strict=True)
    ]
    return _changed(check, catalogue.get(task), *names, found, ())


def _scored(run_dir: Path, system: str, task: str) -> bool:
    folder = scoring.folder_of(run_dir, system)
    return any((folder / f"{name}_test.parquet").is_file() for name in (task, task.removesuffix("_sample")))


def _changed(
    check: Mapping, task: "LocalTask", before: str, after: str, found: Mapping, systems: tuple[str, ...]
) -> Outcome:
    low, high = found["low"], found["high"]
    sampled = f", {task.sampled}" * bool(task.sampled) + ", Pearson's r × 100" * (task.headline() == "pearson")
    sentence = (
        f"{task.label}{sampled}: {before} {found['before']:.1f}, {after} {found['after']:.1f} ({found['difference']:+.1f}, "
        f"{low:+.1f} to {high:+.1f}, n = {found['n']:,})"
    )
    return Outcome(check.get("words", "") + sentence, _holds(check, low, high), systems)


def _bound(check: Mapping, evidence: Evidence) -> Outcome | None:
    """A score's interval lies below or above a bound, or (not above) doesn't lie above it."""
    item = evidence.score(check["system"], check["benchmark"], check["metric"], check["data"])
    if item is None:
        return None
    bound = check["bound"]
    found = {"below": item.ci_high < bound, "above": item.ci_low > bound, "not above": item.ci_low <= bound}
    holds = bool(found[check["expect"]])
    what = check.get("words", item.benchmark)
    said = "below" if found["below"] else "above" if found["above"] else "not told apart from"
    said = f"{said} {bound:g}"
    return Outcome(f"{what}: {_score(item)}, {said}", holds, (item.system,))


def _apart(check: Mapping, evidence: Evidence) -> Outcome | None:
    """Two scores with intervals of their own: the second is higher or lower, or the two overlap."""
    where = {key: check[key] for key in ("system", "benchmark", "metric", "data") if key in check}
    first, second = (evidence.score(**{**where, **check[side]}) for side in ("first", "second"))
    if first is None or second is None:
        return None
    higher, lower = second.ci_low > first.ci_high, second.ci_high < first.ci_low
    holds = {"higher": higher, "lower": lower, "overlap": not higher and not lower}[check["expect"]]
    said = "the intervals overlap" if not higher and not lower else "the intervals are disjoint"
    what = check.get("words", first.benchmark)
    systems = (first.system, second.system)
    return Outcome(f"{what}: {_score(first)} and {_score(second)}; {said}", bool(holds), systems)


def _score(item: pd.Series) -> str:
    return f"{item.system} {item.value:.1f} ({item.ci_low:.1f} to {item.ci_high:.1f}, n = {item.n:,.0f})"


def _agrees(check: Mapping, evidence: Evidence) -> Outcome | None:
    """Our measurement of printed cells agrees with them (`comparison`)."""
    board = evidence.board
    chosen = board.measured.isin(["full", "sample", "other protocol"]) & board.published.notna()
    for column in ("paper", "exhibit", "system", "benchmark", "metric"):
        if column in check:
            wanted = check[column] if isinstance(check[column], list) else [check[column]]
            chosen &= board[column].isin(wanted)
    rows = board[chosen].drop_duplicates(["system", "benchmark", "metric"])
    if rows.empty:
        return None
    agree = rows.agrees.isin(comparison.AGREEING)
    each = [
        f"{row.system}, {published.metric_words(row.metric)}: {row.published:g} printed, {row.value:.2f} measured "
        f"(n = {row.n:,.0f}, {row.agrees})"
        for row in rows.itertuples()
    ]
    return Outcome(f"{'; '.join(each)}", bool(agree.all()))


def _near(check: Mapping, evidence: Evidence) -> Outcome | None:
    """A measurement that answers no printed cell (by a rule of ours, say) lies within some points of a printed number."""
    item = evidence.score(check["system"], check["benchmark"], check["metric"], check["data"])
    if item is None:
        return None
    holds = abs(item.value - check["printed"]) <= check["within"]
    sentence = f"{check['words']}: {item.value:.2f} (n = {item.n:,.0f}; printed: {check['printed']:g})"
    return Outcome(sentence, bool(holds), (item.system,))


def _printed(check: Mapping, evidence: Evidence) -> Outcome | None:
    """Two systems in a table of the paper itself, by the mean over benchmarks: the second is higher."""
    table = published.load(check["paper"])
    table = table[(table.exhibit == check["exhibit"]) & table.benchmark.isin(check["benchmarks"])]
    first, second = (table.value[table.system == check[side]].mean() for side in ("first", "second"))
    what = ", ".join(check["benchmarks"])
    sentence = f"Printed, mean over {what}: {check['first']} {first:.2f}, {check['second']} {second:.2f}"
    return Outcome(sentence, bool(second > first), measured=False)


_CHECKS = {
    "change": _change,
    "general": _general,
    "seeds": _seeds,
    "bound": _bound,
    "apart": _apart,
    "agrees": _agrees,
    "near": _near,
    "printed": _printed,
}
