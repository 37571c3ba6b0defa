"""One card for a system: its negation-type profile, its benchmark scores with the nearest published systems, its general
ability, and which intervention helps."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure

from nblib import artefacts
from nblib.benchmarks import catalogue, negation_profile, scoring
from nblib.benchmarks.negation_profile import weakest
from nblib.corpora import hedgetriple
from nblib.corpora.hedgetriple import HEDGES, NEGATIONS
from nblib.models.negation_adapter import AdapterError, NegationAdapter, adapt
from nblib.models.systems import ADAPTER, BiEncoder, StoredSystem, System
from nblib.results import plotting, published

if TYPE_CHECKING:
    from nblib.benchmarks.base import LocalTask

STYLE = (
    "border:1px solid #bbb;border-radius:6px;padding:1em 1.4em;max-width:62em;font-family:sans-serif;line-height:1.45"
)
COLUMNS = ["benchmark", "metric", "ours", "interval", "chance", "n", "nearest", "note"]  # of the table of scores
SIDES = {"high": "above guessing", "low": "below guessing", "even": "no differently from guessing"}
CHANCE = 50.0  # percent: which of two variants is closer


def published_scores(task: str) -> pd.DataFrame:
    """What the papers' tables print for a benchmark: paper, system, metric (ours, that the printed one is compared with), value
    (percent), ascending; nothing for a mini set or a set of our own."""
    benchmark = catalogue.get(task)
    tables = [pd.DataFrame(columns=["paper", "system", "metric", "value"])]
    for answer in benchmark.printed() if benchmark.official else ():
        table = published.load(answer.paper)
        fits = (
            (table.benchmark == answer.benchmark)
            & (table.metric == answer.metric)
            & table.exhibit.str.startswith("Table")
        )
        if not answer.stand_in:
            found = table.loc[fits & table.value.notna(), ["paper", "system", "value"]]
            tables.append(found.assign(metric=answer.measured))
    known = pd.concat(tables).astype({"value": float})
    return known.drop_duplicates(["system", "value"]).sort_values("value", kind="stable", ignore_index=True)


def nearest_published(task: str, metric: str, value: float) -> pd.DataFrame:
    """The published systems whose scores lie next to a value (percent): those just below or equal, those just above."""
    known = published_scores(task).query("metric == @metric")
    below, above = known.value[known.value <= value].max(), known.value[known.value > value].min()
    return known[known.value.isin([below, above])].reset_index(drop=True)


def landmarks(known: pd.DataFrame) -> pd.DataFrame:
    """Of the published scores on each line of a figure those to name: the best, and Truong's encoder before and after training.

    Args:
        known: system, value, line.
    """
    best = known.value == known.groupby("line").value.transform("max")
    named = known[best | known.system.isin(["MPNet", "HedgeMPNet", "all-mpnet-base-v2"])]
    return named.drop_duplicates(["line", "value"])


def with_published(scored: pd.DataFrame) -> pd.DataFrame:
    """The test scores with the nearest published systems.

    Args:
        scored: `Scores.summary`.

    Returns:
        `COLUMNS` (chance in percent, or NaN; nearest as text; note: why the two may not be the same quantity), then task, key (of
        the metric), ci_low, ci_high, data.
    """
    rows = []
    for item in scored[scored["view"] == "test"].itertuples():
        near, benchmark = nearest_published(item.task, item.metric, item.value), catalogue.get(item.task)
        nearest = ", ".join(f"{row.system} {row.value:g} ({row.paper})" for row in near.itertuples())
        note = _remark(benchmark, item.metric) if item.official else "authored mini set"
        metric = scoring.METRICS[item.metric]
        score = (item.benchmark, metric, item.value, f"{item.ci_low:.1f} – {item.ci_high:.1f}", benchmark.chance)
        rows.append((*score, item.n, nearest, note, item.task, item.metric, item.ci_low, item.ci_high, item.data))
    return pd.DataFrame(rows, columns=[*COLUMNS, "task", "key", "ci_low", "ci_high", "data"])


def verdict(name: str, shown: pd.DataFrame) -> str:
    """On how many negation benchmarks a system's interval lies above guessing, below it, or around it.

    Args:
        shown: benchmark, chance, ci_low, ci_high; a row a score, a benchmark's own metric first.
    """
    judged = shown[shown.chance.notna()].drop_duplicates("benchmark")
    if judged.empty:
        return f"No negation benchmark of {name} was measured here."
    side = (
        (judged.ci_low > judged.chance).map({True: "high", False: "even"}).mask(judged.ci_high < judged.chance, "low")
    )
    groups = {kind: judged.benchmark[side == kind].to_list() for kind in SIDES}
    if len(groups["high"]) == len(judged):
        return f"{name} scores above guessing on all {len(judged)} negation benchmarks."
    parts = [f"{SIDES[kind]} on {len(found)} ({', '.join(found)})" for kind, found in groups.items() if found]
    return f"Of {len(judged)} negation benchmarks, {name} scores {', '.join(parts)}."


def draw(shown: pd.DataFrame, title: str) -> tuple[Figure, pd.DataFrame]:
    """The scores of a system with their intervals, guessing and the printed scores, a few of these named.

    Args:
        shown: from `with_published`.

    Returns:
        The figure, and what is drawn: line, system ("" for ours), value, low, high.
    """
    lines = shown.assign(line=shown.benchmark + ", " + shown.metric, system="", value=shown.ours)
    height = dict(zip(lines.line, range(len(lines)), strict=True))
    figure, ax = plt.subplots(figsize=(8, 0.45 * len(lines) + 1.4))
    printed = [
        published_scores(row.task).query("metric == @row.key").assign(line=row.line) for row in lines.itertuples()
    ]
    known = pd.concat(printed)[["line", "system", "value"]]
    if len(known):
        place = known.line.map(height)
        ax.plot(known.value, place, "|", ms=12, color=plotting.PUBLISHED, alpha=0.3, label="printed")
    ax.plot(lines.chance, lines.line.map(height), "|", ms=14, mew=2, color=plotting.MUTED, label="guessing")
    plotting.interval_plot(ax, lines, label="line", low="ci_low", high="ci_high")
    ax.set_xlabel("percent, or correlation × 100; 95 % intervals")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    plotting.state(ax, title.rstrip("."))
    if len(named := landmarks(known)):
        plotting.label_points(ax, named.value, named.line.map(height), named.system)
    drawn = lines.rename(columns={"ci_low": "low", "ci_high": "high"})[["line", "system", "value", "low", "high"]]
    return figure, pd.concat([drawn, known], ignore_index=True)


def _remark(benchmark: "LocalTask", metric: str) -> str:
    """What to know before a score on official items is compared with the printed ones."""
    answers = [one for one in benchmark.printed() if one.measured == metric]
    remarks = [remark for one in answers[:1] for remark in (one.stand_in, one.protocol, one.note) if remark]
    return "; ".join(filter(None, [benchmark.sampled, *remarks]))


def score_profile(system: System, run_dir: str | Path, size: int = 0) -> pd.DataFrame:
    """The negation-type profile's predictions, saved with those of the tasks; of a system without its weights as they were.

    Args:
        size: of the held-out anchors only the first so many; 0: all.
    """
    if isinstance(system, StoredSystem):
        return scoring.load_predictions(run_dir, system.name, negation_profile.TASK)
    predicted = negation_profile.predictions(hedgetriple.load().head(size or None), system)
    scoring.save_predictions(predicted, run_dir, system.name, negation_profile.TASK)
    return predicted


def with_adapters(system: System, interventions: Sequence[str]) -> list[BiEncoder | StoredSystem]:
    """The system with each of the interventions that are files of negation adapters.

    Raises:
        AdapterError: no such adapter, an adapter of another encoder, or a system without embeddings.
    """
    files = [name for name in interventions if name.endswith(ADAPTER)]
    if isinstance(system, StoredSystem):
        return [scoring.stored_system(system.run_dir, f"{system.name}+adapter") for _ in files]
    if files and not isinstance(system, BiEncoder):
        raise AdapterError(f"{system.name} ({system.kind}) has no embeddings that {files[0]} could reweight.")
    return [BiEncoder(adapt(system.encoder, NegationAdapter.load(file))) for file in files]


def compare_interventions(
    system: System, interventions: Sequence[str], names: Sequence[str], run_dir: str | Path, profile_size: int = 0
) -> pd.DataFrame:
    """What each intervention changes on the tasks and the profile.

    Args:
        system: scored before on `names`, with its profile.
        interventions: files of negation adapters (scored here, from the cached embeddings), or names of systems scored before.
        profile_size: the `size` of the system's profile.

    Returns:
        The columns of `scoring.compare`, and `effect`.

    Raises:
        AdapterError: see `with_adapters`.
        ScoreError: a system without scores in this run.
    """
    adapted = with_adapters(system, interventions)
    for variant in adapted:
        scoring.score(variant, names, run_dir)
        score_profile(variant, run_dir, profile_size)
    by_file = iter(adapted)
    others = [next(by_file).name if name.endswith(ADAPTER) else name for name in interventions]
    changes = scoring.compare(run_dir, system.name, others, [*names, negation_profile.TASK])
    return changes.assign(effect=[effect(row.low, row.high) for row in changes.itertuples()])


def effect(low: float, high: float) -> str:
    """What an interval of a change says: "helps", "harms" or "no clear change"."""
    return "helps" if low > 0 else "harms" if high < 0 else "no clear change"


def points(difference: float) -> str:
    """A change in percentage points, with a second digit where the first would be 0 and it isn't 0."""
    return f"{difference:+.1f}" if abs(difference) >= 0.05 or not difference else f"{difference:+.2f}"


def training_caveat(encoder: str) -> str:
    """What limits the profile of an encoder of notebook 04 (a folder), which was trained on such texts; "" for any other."""
    if artefacts.about(encoder).get("training_data", "") in ("", "NevIR"):
        return ""
    return (
        "The profile is of the kind this encoder was trained on (other anchors of the same authors), and so are the "
        "mini sets; the official benchmarks are the harder test."
    )


def sentence(encoder: str, profiled: pd.DataFrame) -> str:
    """The profile in one sentence."""
    overall = profiled[profiled.negation == "all"].iloc[0]
    miss = weakest(profiled)
    by_type = profiled[profiled.negation != "all"].groupby("negation").correct.mean()
    best = by_type.idxmax()
    by_kind = (
        f"It is right least often with {miss} negation ({by_type[miss]:.1f} %) and most often with {best} negation "
        f"({by_type[best]:.1f} %)."
        if by_type[miss] < by_type[best]
        else "It is right as often with every type of negation."
    )
    outcome = (
        "tells hedging from negation no better than chance" if overall.correct_low <= CHANCE <= overall.correct_high
        else "puts the negation closer more often than the hedge" if overall.correct_high < CHANCE
        else "keeps the hedge closer than the negation" if overall.correct == 100
        else "mostly keeps the hedge closer than the negation"
    )  # fmt: skip
    return (
        f"{encoder} {outcome}: in {overall.correct:.1f} % of the comparisons (95 % interval {overall.correct_low:.1f} – "
        f"{overall.correct_high:.1f}; chance: {CHANCE:.0f} %). {by_kind}"
    )


def card(system: str, profiled: pd.DataFrame, scored: pd.DataFrame, changes: pd.DataFrame, note: str = "") -> HTML:
    """The whole card.

    Args:
        profiled: from `negation_profile.profile`.
        scored: `Scores.summary`.
        changes: from `compare_interventions`; empty where none was measured.
        note: what limits the profile (`training_caveat`).
    """
    listed = with_published(scored)
    general = listed.task.isin([name for data in catalogue.DATA for name in catalogue.names(data, "general")])
    parts = [
        f"<h3 style='margin-top:0'>Does {escape(system)} understand <em>not</em>?</h3>",
        f"<p>{escape(sentence(system, profiled))}</p>",
        profile_table(profiled), f"<p>{escape(note)}</p>" if note else "",
        "<h4>Negation benchmarks</h4>", _list(listed[~general]),
        "<h4>General ability</h4>", _list(listed[general]),
        "<h4>Interventions</h4>", _interventions(changes),
    ]  # fmt: skip
    return HTML(f"<div style='{STYLE}'>{''.join(parts)}</div>")


def profile_table(profiled: pd.DataFrame) -> str:
    """How often each kind of hedge is closer than each type of negation, as HTML."""
    wide = profiled.pivot(index="hedge", columns="negation", values="correct").loc[list(HEDGES), list(NEGATIONS)]
    head = "".join(f"<th style='padding:.2em 1em;text-align:right'>{negation}</th>" for negation in NEGATIONS)
    rows = ""
    for hedge, row in zip(HEDGES, wide.to_numpy(), strict=True):
        style = "padding:.2em 1em;text-align:right;background:"
        cells = "".join(f"<td style='{style}{_shade(value)}'>{value:.1f} %</td>" for value in row)
        rows += f"<tr><th style='text-align:left'>{hedge} hedge</th>{cells}</tr>"
    return f"<table><tr><th style='text-align:left'>hedged variant closer than …</th>{head}</tr>{rows}</table>"


def _shade(value: float) -> str:
    """Orange below chance, blue above it: the study's colours for negation and paraphrase, pale enough to read on."""
    strength = min(abs(value - CHANCE) / CHANCE, 1.0)
    red, green, blue = (213, 94, 0) if value < CHANCE else (0, 114, 178)
    return f"rgba({red},{green},{blue},{0.45 * strength:.2f})"


def _list(listed: pd.DataFrame) -> str:
    if listed.empty:
        return "<p>Not measured in this run.</p>"
    items = [
        f"<li><b>{escape(row.benchmark)}</b> {row.ours:.1f} ({escape(row.metric)}; {row.interval}; n = {row.n:,}"
        + (f"; chance {row.chance:.1f})" if row.chance == row.chance else ")")
        + (f"; nearest published: {escape(row.nearest)}" if row.nearest else "")
        + (f"; <em>{escape(row.note)}</em>" if row.note and row.nearest else "")
        + "</li>"
        for row in listed.itertuples()
    ]
    mini = "<p><em>Mini sets: no published score is comparable.</em></p>"
    return f"<ul>{''.join(items)}</ul>" + mini * bool(listed.note.eq("authored mini set").any())


def _interventions(changes: pd.DataFrame) -> str:
    if changes.empty:
        return (
            "<p>None measured in this run. Fit an encoder's adapter with notebook 06 and name the file in the parameter "
            "<code>interventions</code>, or name any system scored before in this run.</p>"
        )
    items = [
        f"<li><b>{escape(row.encoder)}</b> on {escape(row.task)}: {row.before:.1f} → {row.after:.1f} ({points(row.difference)}; "
        f"{points(row.low)} – {points(row.high)}): <b>{row.effect}</b></li>"
        for row in changes.itertuples()
    ]
    return f"<ul>{''.join(items)}</ul>"
