"""Which claims of the four papers hold? Each claim of `data/published/claims.yaml` is checked against what this run measured.

A claim has checks of five kinds (`_CHECKS`). A check holds, contradicts the claim, or decides nothing; two scores differ only
where an interval shows it, and a change shown to be none contradicts a claimed rise or fall. The verdict follows from the
checks: all hold; some do, and no more contradict; or else it is not supported. A claim whose only outcomes are printed numbers
was not measured.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from scipy.stats import t

from nblib import artefacts, paths, shipped
from nblib.analysis import general_comparison, training_comparison
from nblib.benchmarks import catalogue, mteb, scoring
from nblib.results import published, scoreboard, words

FILE = published.FOLDER / "claims.yaml"
Verdict = Literal["supported", "partly", "not supported", "not testable here"]
Side = (
    str | Sequence[str] | Mapping[str, str]
)  # of a comparison: a system, one by seeds, or a variant of a sweep (its seeds)
VERDICTS = SUPPORTED, PARTLY, NOT_SUPPORTED, NOT_TESTABLE = Verdict.__args__
NOT_MEASURED = "not measured in this run"
MARGIN = 1.0  # points: a change is none ("same") where its whole interval lies within this margin of equivalence
COLUMNS = "id short paper section claim measured verdict holds because refuted_by needs exhibit".split()


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, in our words."""

    id: str
    short: str  # the claim in at most ten words
    paper: str
    section: str
    exhibit: str  # as in `exhibits.csv`
    claim: str
    refuted_by: str
    because: str  # what limits the evidence
    needs: str  # what a better test would take
    checks: tuple[Mapping[str, Any], ...] = ()  # each with its `kind`, and what the function of that name below takes
    most: Verdict = SUPPORTED  # the best that the evidence allows


@dataclass(frozen=True)
class Outcome:
    """A check's outcome."""

    sentence: str  # with the numbers
    holds: bool
    against: bool  # whether it contradicts the claim; of neither it decides nothing
    systems: tuple[str, ...] = ()
    measured: bool = True  # two printed numbers are not


@dataclass(frozen=True)
class Evidence:
    """What claims are checked against: a run's predictions, measurements and scoreboard."""

    run_dir: Path
    measured: pd.DataFrame
    board: pd.DataFrame

    def score(self, of: Mapping[str, str]) -> pd.Series | None:
        """The measurement with these columns, on the whole of the official corpus unless they say otherwise, if it was taken."""
        rows = self.scores(of)
        return rows.iloc[0] if len(rows) else None

    def scores(self, of: Mapping[str, str]) -> pd.DataFrame:
        """The measurements with these columns, as `score`."""
        wanted = {**scoreboard.EMPTY, "sample": "", "corpus": of["benchmark"], **of}
        return self.measured[(self.measured[list(wanted)] == list(wanted.values())).all(axis=1)]

    @cached_property
    def variants(self) -> dict[str, list[str]]:
        """Variant of a training → the systems trained so, one a seed."""
        systems: dict[str, list[str]] = {}
        for file in sorted(self.run_dir.glob("scores/*/system.json")):
            known = artefacts.read_json(file)
            if known.get("variant"):
                systems.setdefault(known["variant"], []).append(known["name"])
        return systems

    def systems(self, side: Side) -> list[str]:
        """The systems of one side of a comparison."""
        if isinstance(side, Mapping):
            return self.variants.get(side["variant"], [])
        return [side] if isinstance(side, str) else list(side)

    def predictions(self, side: Side, task: str) -> list[pd.DataFrame]:
        """The predictions on a task of those systems of one side that were scored on it."""
        tables = []
        for name in self.systems(side):
            with suppress(scoring.ScoreError):
                tables.append(scoring.load_predictions(self.run_dir, name, task))
        return tables

    def trained_on(self, systems: Iterable[str]) -> str:
        """A sentence on what those of the systems that this study trained were trained on; "" where it trained none."""
        own = self.measured[(self.measured.variant == "") & (self.measured.trained_on != "")]
        rows = own[own.system.isin(list(systems))].drop_duplicates("system")
        texts = [f"{row.system}: {words.training(row.trained_on, row.training_items)}" for row in rows.itertuples()]
        return f" Trained on: {'; '.join(texts)}." if texts else ""


@cache
def load() -> tuple[Claim, ...]:
    """Every claim, in the file's order; a StudyError where an entry is malformed."""
    return shipped.read_declared(FILE, tuple[Claim, ...], Claim)


def table(run_dir: str | Path, measured: pd.DataFrame, board: pd.DataFrame) -> pd.DataFrame:
    """Every claim with what was measured (of `results.load` and a scoreboard), the verdict, how many of the checks
    hold, contradict the claim, and were not measured ("2 of 4, 1 against, 1 not measured"): COLUMNS."""
    evidence, rows = Evidence(paths.resolve(run_dir), measured, board), []
    for claim in load():
        outcomes = [outcome for check in claim.checks if (outcome := _CHECKS[check["kind"]](check, evidence))]
        missing = len(claim.checks) - len(outcomes)
        said = " ".join(f"{outcome.sentence}." for outcome in outcomes)
        said += evidence.trained_on({system for outcome in outcomes for system in outcome.systems})
        counted = [outcome for outcome in outcomes if outcome.measured] if claim.most != NOT_TESTABLE else []
        holding, against = (sum(getattr(outcome, how) for outcome in counted) for how in ("holds", "against"))
        parts = [
            f"{holding} of {len(counted)}",
            f"{against} against" * bool(against),
            f"{missing} not measured" * bool(missing),
        ]
        holds = ", ".join(filter(None, parts)) * bool(counted)
        reached = verdict(claim, outcomes, missing)
        rows.append({**vars(claim), "measured": said or "–", "verdict": reached, "holds": holds})
    return pd.DataFrame(rows, columns=COLUMNS)


def verdict(claim: Claim, outcomes: Sequence[Outcome], missing: int = 0) -> str:
    """The verdict on a claim by its checks' outcomes, at best `claim.most`, and partly where checks are `missing` as something
    wasn't measured. Two printed numbers decide nothing."""
    if claim.most == NOT_TESTABLE:
        return NOT_TESTABLE
    counted = [outcome for outcome in outcomes if outcome.measured]
    if not counted:
        return NOT_MEASURED
    holding, against = (sum(getattr(outcome, how) for outcome in counted) for how in ("holds", "against"))
    partly = PARTLY if holding and holding >= against else NOT_SUPPORTED
    reached = SUPPORTED if holding == len(counted) and not missing else partly
    return max(reached, claim.most, key=VERDICTS.index)


def counts(claims: pd.DataFrame) -> str:
    """How many claims have which verdict, in words."""
    by_verdict = claims.verdict.value_counts()
    listed = [f"{by_verdict[name]} {name}" for name in (*VERDICTS, NOT_MEASURED) if by_verdict.get(name)]
    return f"Of {len(claims)} claims of the four papers: {', '.join(listed)}."


# The checks: each takes its entry and the evidence, and gives an outcome, or None where something wasn't measured


def _change(check: Mapping, evidence: Evidence) -> Outcome | None:
    """Two systems, or two trainings over their seeds, on the same items: `after` is higher, lower, the same or kept (not lower),
    the last two `within` a margin, by paired bootstrap over clusters. On a `task` (the name of a benchmark's form, or a language
    model's with `words` for it, which decides nothing where one is unusable), or an `average` of MTEB's tasks."""
    sides, unusable = [check["before"], check["after"]], []
    names = [side["variant"] if isinstance(side, Mapping) else evidence.systems(side)[0] for side in sides]
    if "average" in check:
        scored = mteb.systems(evidence.run_dir)
        found = [tuple(name for name in evidence.systems(side) if name in scored) for side in sides]
        if not all(found):
            return None
        try:
            changes = _general_changes(evidence.run_dir, *found)
            change = changes[(changes.average == check["average"]) & changes.low.notna()].iloc[0]
        except (scoring.ScoreError, IndexError):  # one of them was not measured
            return None
        tasks = f"{change.tasks} of MTEB's tasks" if change.tasks > 1 else "one of MTEB's tasks"
        what, ending = f"{check['average']}, {tasks}", ""
    else:
        found = [evidence.predictions(side, check["task"]) for side in sides]
        if not all(found):
            return None
        benchmark = catalogue.every_form().get(check["task"])
        metric = scoring.main_metric(check["task"])
        unusable = [name for name, part in zip(names, found, strict=True) if not all(map(scoring.is_usable, part))]
        change = training_comparison.change_over_seeds(*found, metric)
        correlation = ", Pearson's r × 100" * (metric == "pearson")
        what = f"{benchmark.label}{correlation}" if benchmark else ""
        ending = f", n = {change['n']:,}"
    names = [f"{name} ({len(part)} seeds)" if len(part) > 1 else name for name, part in zip(names, found, strict=True)]
    low, high, margin = change["low"], change["high"], check.get("within", MARGIN)
    holds, against = _decide(check["expect"], low, high, margin) if not unusable else (False, False)
    before, after = (f"{name} {change[side]:.1f}" for name, side in zip(names, ("before", "after"), strict=True))
    numbers = f"{change['difference']:+.1f}, {low:+.1f} to {high:+.1f}{ending}"
    sentence = f"{check.get('words', '')}{what}: {before}, {after} ({numbers})"
    sentence += f"; decides nothing, as {' and '.join(unusable)} gave one answer to nearly all" * bool(unusable)
    systems = [name for side in sides if not isinstance(side, Mapping) for name in evidence.systems(side)]
    return Outcome(sentence, holds, against, tuple(systems))


def _decide(expected: str, low: float, high: float, margin: float) -> tuple[bool, bool]:
    """Whether an interval of a change shows what is `expected`, and whether it shows the contrary: of a rise or a fall also that
    there is none, its whole within the margin."""
    kept, fallen, rise, fall = low >= -margin, high < -margin, low > 0, high < 0
    none = kept and high <= margin
    decided = {"higher": (rise, fall or (none and not rise)), "lower": (fall, rise or (none and not fall))}
    decided |= {"kept": (kept, fallen), "same": (none, fallen or low > margin)}
    holds, against = decided[expected]
    return bool(holds), bool(against)


@cache
def _general_changes(run_dir: Path, before: tuple[str, ...], after: tuple[str, ...]) -> pd.DataFrame:
    return general_comparison.changes(run_dir, before, after)


def _bound(check: Mapping, evidence: Evidence) -> Outcome | None:
    """The score `of` the given columns: its interval lies below or above a `bound`, or (not above) at most `MARGIN` above it,
    or (around) lies `within` some points of it."""
    item = evidence.score(check["of"])
    if item is None:
        return None
    bound, what = check["bound"], check.get("words", words.benchmark(item.benchmark, item.corpus))
    low, high = item.ci_low - bound, item.ci_high - bound
    said = "below" if high < 0 else "above" if low > 0 else "not told apart from"
    known = {"below": "lower", "above": "higher", "around": "same"}
    holds, against = high <= MARGIN, low > 0  # not above
    if check["expect"] in known:
        holds, against = _decide(known[check["expect"]], low, high, check.get("within", 0))
    if check["expect"] == "around":
        where = "within" if holds else "beyond" if against else "neither within nor beyond"
        said = f"{where} {check['within']:g} points of"
    return Outcome(f"{what}: {_score(item)}, {said} {bound:g}", bool(holds), bool(against), (item.system,))


def _apart(check: Mapping, evidence: Evidence) -> Outcome | None:
    """Two scores of different items with intervals of their own, `first` and `second`, that have the columns `of` in common: the
    second is higher, lower or the same (`MARGIN`), by the interval of the difference of independent scores."""
    first, second = (evidence.score(check["of"] | check[side]) for side in ("first", "second"))
    if first is None or second is None:
        return None
    difference = second.value - first.value
    low = difference - math.hypot(second.value - second.ci_low, first.ci_high - first.value)
    high = difference + math.hypot(second.ci_high - second.value, first.value - first.ci_low)
    what = check.get("words", words.benchmark(first.benchmark, first.corpus))
    sentence = f"{what}: {_score(first)} and {_score(second)}; {difference:+.1f}, {low:+.1f} to {high:+.1f}"
    return Outcome(sentence, *_decide(check["expect"], low, high, MARGIN), (first.system, second.system))


def _over_systems(check: Mapping, evidence: Evidence) -> Outcome | None:
    """The difference between two scores, `first` and `second`, that have the columns `of` in common, over those of the `systems`
    that have both: by a t interval over the systems their mean is higher than 0, or the same (`MARGIN`)."""
    first, second = (evidence.scores(check["of"] | check[side]) for side in ("first", "second"))
    differences = second.set_index("system").value - first.set_index("system").value
    differences = differences.reindex(check["systems"]).dropna()
    if len(differences) < 3:  # of two, a t interval spans everything
        return None
    mean, spread = differences.mean(), differences.sem() * t.ppf(0.975, len(differences) - 1)
    low, high = mean - spread, mean + spread
    each = ", ".join(f"{name} {value:+.1f}" for name, value in differences.items())
    sentence = f"{check['words']}: mean {mean:+.1f} ({low:+.1f} to {high:+.1f}): {each}"
    return Outcome(sentence, *_decide(check["expect"], low, high, MARGIN), tuple(differences.index))


def _score(item: pd.Series) -> str:
    return f"{words.system(item)} {item.value:.1f} ({item.ci_low:.1f} to {item.ci_high:.1f}, n = {item.n:,.0f})"


def _printed(check: Mapping, evidence: Evidence) -> Outcome | None:
    """Our measurements of the printed cells of these keys agree with them; or, of two systems printed in a table, the `second`
    has the higher mean over benchmarks."""
    if "second" in check:
        rows = published.load(check["paper"])
        rows = rows[(rows.exhibit == check["exhibit"]) & rows.benchmark.isin(check["benchmarks"])]
        first, second = (rows.value[rows.system == check[side]].mean() for side in ("first", "second"))
        what = f"Printed, mean over {', '.join(check['benchmarks'])}"
        said = f"{what}: {check['first']} {first:.2f}, {check['second']} {second:.2f}"
        return Outcome(said, bool(second > first), bool(second < first), measured=False)
    rows = evidence.board
    rows = rows[rows.measured.isin(["full", "sample", "other protocol"]) & rows.published.notna()]
    for column in scoreboard.CELL:
        rows = rows[rows[column].isin(check[column])] if column in check else rows
    each = [
        f"{row.system}, {words.metric(row.metric)}: {row.published:g} printed, {row.value:.2f} measured "
        f"(n = {row.n:,.0f}, {row.agrees})"
        for row in rows.drop_duplicates(["system", "benchmark", "metric"]).itertuples()
    ]
    agree = bool(rows.agrees.isin(scoreboard.AGREEING).all())
    return Outcome("; ".join(each), agree, not agree) if each else None


_CHECKS = {"change": _change, "bound": _bound, "apart": _apart, "printed": _printed, "over_systems": _over_systems}
