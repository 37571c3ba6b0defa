"""The verdict on an encoder: one card with its negation-type profile, its benchmarks beside the nearest published systems, its
general ability, and which cure helps where that was measured."""

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

import pandas as pd
from IPython.display import HTML

from nblib import negation_profile, published, scores, tasks, tuned
from nblib.models import Encoder
from nblib.negation_adapter import NegationAdapter, adapt
from nblib.negation_profile import HEDGES, NEGATIONS, weakest

STYLE = (
    "border:1px solid #bbb;border-radius:6px;padding:1em 1.4em;max-width:62em;font-family:sans-serif;line-height:1.45"
)
PROFILE = "NegationProfile"
CHANCE = 50.0  # percent: which of two variants is nearer
# Percent: the one of three; both questions with two documents each; one question with two documents
GUESSED = {"SemAntoNeg": 100 / 3, "NevIR": 25.0, "ExcluIR": 50.0}


def published_scores(task: str) -> pd.DataFrame:
    """What the papers' tables print for a benchmark: paper, system, value (percent), ascending; nothing for a miniature or a
    set of our own."""
    judged = tasks.get(task)
    tables = []
    for paper, _, benchmark, metric in judged.printed:
        table = published.load(paper)
        fits = (table.benchmark == benchmark) & (table.metric == metric) & table.exhibit.str.startswith("Table")
        theirs = judged.official and not judged.own_set
        tables.append(table.loc[fits & table.value.notna() & theirs, ["paper", "system", "value"]])
    return pd.concat(tables).drop_duplicates(["system", "value"]).sort_values("value", kind="stable", ignore_index=True)


def nearest_published(task: str, value: float) -> pd.DataFrame:
    """The published systems whose scores lie next to a value (percent): those just below or equal, those just above."""
    known = published_scores(task)
    below, above = known.value[known.value <= value].max(), known.value[known.value > value].min()
    return known[known.value.isin([below, above])].reset_index(drop=True)


def beside_published(scored: pd.DataFrame) -> pd.DataFrame:
    """The test scores with the nearest published systems.

    Args:
        scored: `Scores.summary`.

    Returns:
        benchmark, metric, ours, interval, chance (see `chance`), n, nearest (as text), note (why the two may not be the same
        quantity), task.
    """
    rows = []
    for item in scored[scored["view"] == "test"].itertuples():
        near = nearest_published(item.task, item.value)
        said = ", ".join(f"{row.system} {row.value:g} ({row.paper})" for row in near.itertuples())
        note = tasks.get(item.task).reservation if item.official else "authored miniature"
        interval = f"{item.ci_low:.1f} – {item.ci_high:.1f}"
        rows.append(
            (item.benchmark, item.metric, item.value, interval, chance(item.task), item.n, said, note, item.task)
        )
    columns = ["benchmark", "metric", "ours", "interval", "chance", "n", "nearest", "note", "task"]
    return pd.DataFrame(rows, columns=columns)


def chance(task: str) -> float:
    """What guessing gets on a task (percent; of correlations 0); NaN where that can't be said."""
    judged = tasks.get(task)
    return 0.0 if judged.paper_metric == "spearman" else GUESSED.get(judged.printed[0][2], math.nan)


def score_profile(encoder: Encoder, run_dir: str | Path) -> pd.DataFrame:
    """The negation-type profile's predictions, kept beside those of the tasks."""
    judged = negation_profile.predictions(negation_profile.load(), encoder)
    scores.save_predictions(judged, run_dir, encoder.name, PROFILE)
    return judged


def measure_cures(encoder: Encoder, cures: Sequence[str], names: Sequence[str], run_dir: str | Path) -> pd.DataFrame:
    """What each cure changes on the tasks and the profile.

    Args:
        encoder: what is to be cured; scored before on `names`, with its profile.
        cures: files of negation adapters (scored here, from the cached embeddings), or names of encoders scored before.

    Returns:
        The columns of `scores.compare_all`, and `effect`.

    Raises:
        AdapterError: no such adapter, or one of another encoder.
        ScoreError: an encoder that has left no scores in this run.
    """
    tables = [pd.DataFrame(columns=scores.CHANGES)]
    for cure in cures:
        name = cure
        if Path(cure).suffix == ".safetensors":
            adapted = adapt(encoder, NegationAdapter.load(cure))
            scores.score(adapted, names, run_dir)
            score_profile(adapted, run_dir)
            name = adapted.name
        tables.append(scores.compare_all(run_dir, encoder.name, name, [*names, PROFILE]))
    changes = pd.concat(tables[1:] or tables, ignore_index=True)
    return changes.assign(effect=[effect(row.low, row.high) for row in changes.itertuples()])


def effect(low: float, high: float) -> str:
    """What an interval of a change says: "helps", "harms" or "no clear change"."""
    return "helps" if low > 0 else "harms" if high < 0 else "no clear change"


def points(difference: float) -> str:
    """A change in percentage points, with a second digit where the first would be 0 and it isn't 0."""
    return f"{difference:+.1f}" if abs(difference) >= 0.05 or not difference else f"{difference:+.2f}"


def familiar(encoder: str) -> str:
    """What the profile of an encoder of notebook 04 has to be read with, as it was trained on such texts; "" for any other.

    Args:
        encoder: as notebook 07 is given it, where a folder names an encoder of notebook 04.
    """
    if tuned.recipe(encoder) in ("", "NevIR"):
        return ""
    return (
        "The profile is of the kind this encoder was trained on (other anchors of the same authors), and so are the "
        "miniatures; the official benchmarks are the harder test."
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
    tells = (
        "tells hedging from negation no better than a coin" if overall.correct_low <= CHANCE <= overall.correct_high
        else "puts the negation nearer more often than the hedge" if overall.correct_high < CHANCE
        else "keeps the hedge nearer than the negation" if overall.correct == 100
        else "mostly keeps the hedge nearer than the negation"
    )  # fmt: skip
    return (
        f"{encoder} {tells}: in {overall.correct:.1f} % of the comparisons (95 % interval {overall.correct_low:.1f} – "
        f"{overall.correct_high:.1f}; a coin: {CHANCE:.0f} %). {by_kind}"
    )


def card(encoder: str, profiled: pd.DataFrame, scored: pd.DataFrame, changes: pd.DataFrame, note: str = "") -> HTML:
    """The verdict as one card.

    Args:
        profiled: from `negation_profile.profile`.
        scored: `Scores.summary`.
        changes: from `measure_cures`, one row per task and cure; empty where no cure was measured.
        note: what the profile has to be read with (`familiar`).
    """
    listed = beside_published(scored)
    general = listed.task.isin([*tasks.GENERAL["mini"], *tasks.GENERAL["official"]])
    parts = [
        f"<h3 style='margin-top:0'>Does {escape(encoder)} understand <em>not</em>?</h3>",
        f"<p>{escape(sentence(encoder, profiled))}</p>",
        _profile(profiled), f"<p>{escape(note)}</p>" if note else "",
        "<h4>Negation benchmarks</h4>", _list(listed[~general]),
        "<h4>General ability</h4>", _list(listed[general]),
        "<h4>Cures</h4>", _cures(changes),
    ]  # fmt: skip
    return HTML(f"<div style='{STYLE}'>{''.join(parts)}</div>")


def _profile(profiled: pd.DataFrame) -> str:
    wide = profiled.pivot(index="hedge", columns="negation", values="correct").loc[list(HEDGES), list(NEGATIONS)]
    head = "".join(f"<th style='padding:.2em 1em;text-align:right'>{negation}</th>" for negation in NEGATIONS)
    rows = "".join(
        f"<tr><th style='text-align:left'>{hedge} hedge</th>"
        + "".join(
            f"<td style='padding:.2em 1em;text-align:right;background:{_shade(value)}'>{value:.1f} %</td>"
            for value in row
        )
        + "</tr>"
        for hedge, row in zip(HEDGES, wide.to_numpy(), strict=True)
    )
    return f"<table><tr><th style='text-align:left'>hedged variant nearer than …</th>{head}</tr>{rows}</table>"


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
    mini = listed.note.eq("authored miniature").any()
    return f"<ul>{''.join(items)}</ul>" + (
        "<p><em>Miniatures: no published score is comparable.</em></p>" if mini else ""
    )


def _cures(changes: pd.DataFrame) -> str:
    if changes.empty:
        return (
            "<p>None measured for this encoder in this run. Fit its adapter with notebook 06 and name the file in the parameter "
            "<code>cures</code>; so for any encoder scored before in this run.</p>"
        )
    items = [
        f"<li><b>{escape(row.encoder)}</b> on {escape(row.task)}: {row.before:.1f} → {row.after:.1f} ({points(row.difference)}; "
        f"{points(row.low)} – {points(row.high)}): <b>{row.effect}</b></li>"
        for row in changes.itertuples()
    ]
    return f"<ul>{''.join(items)}</ul>"
