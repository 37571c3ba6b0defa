"""A system's card: its negation profile, its scores beside the nearest published ones, its largest errors, and what it doesn't
read of the texts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import corpora
from nblib.benchmarks import catalogue, scoring
from nblib.benchmarks.base import Benchmark, Choice
from nblib.benchmarks.negation_profile import NegationProfile
from nblib.models import embeddings
from nblib.models.encoders import Encoder
from nblib.models.systems import System
from nblib.results import published, scoreboard


def score_profile(system: System, run_dir: str | Path, size: int = 0) -> pd.DataFrame:
    """The predictions of the negation profile, saved with those of the benchmarks; `size`: of how many anchors (0: all)."""
    profile = NegationProfile()
    rows = profile.rows()
    wanted = rows.cluster.drop_duplicates().head(size or None)
    predicted = profile.predict(system, rows[rows.cluster.isin(wanted)].reset_index(drop=True))
    scoring.save_predictions(predicted, run_dir, system.name, profile.name)
    return predicted


def describe_profile(system: str, profiled: pd.DataFrame) -> str:
    """What `negation_profile.profile` gives, in a sentence."""
    overall, chance = profiled[profiled.negation == "all"].iloc[0], NegationProfile.chance
    low, high = overall.correct_low, overall.correct_high
    outcome = "mostly keeps the hedge closer than the negation"
    if high < chance:
        outcome = "mostly puts the negation closer than the hedge"
    elif low <= chance:
        outcome = "tells hedging from negation no better than chance"
    share = f"{overall.correct:.1f} % of {overall.n:,} comparisons (95 % interval {low:.1f} – {high:.1f}; chance: {chance:.0f} %)"
    return f"{system} {outcome}: the hedge is closer in {share}."


def published_scores(benchmark: Benchmark) -> pd.DataFrame:
    """What the papers' tables print for a benchmark that is no mini set: paper, system, metric (ours), value (percent)."""
    columns = ["paper", "system", "metric", "value"]
    tables = [pd.DataFrame(columns=columns)]
    for mapping in scoreboard.mappings_of(benchmark.key) if benchmark.official else ():
        table = published.load(mapping.paper)
        fits = (table.benchmark == mapping.benchmark) & table.metric.isin(mapping.metrics) & table.value.notna()
        if not mapping.stand_in:
            printed = table.loc[fits & table.exhibit.str.startswith("Table")]
            ablation = printed.system.str.startswith("Only ")  # of the encoder in Table 2, of the LLM in Table 3
            printed = printed.assign(system=printed.system + (", " + printed.exhibit).where(ablation, ""))[columns]
            tables.append(printed.assign(metric=mapping.ours.get("metric", printed.metric)))
    printed = pd.concat(tables).astype({"value": float})
    return printed.drop_duplicates(["system", "value"]).sort_values("value", kind="stable", ignore_index=True)


def with_published(scored: pd.DataFrame) -> pd.DataFrame:
    """The scores of `Scores.summary` on whole test splits, benchmark and metric in words, with key (of the metric), ability,
    chance (percent, or NaN), nearest (the published systems just below or equal, and above), note (why they may not compare)."""
    rows = []
    for item in scored[(scored.split == "test") & (scored.part == "")].to_dict("records"):
        benchmark, value, key = catalogue.get(item["task"]), item["value"], item["metric"]
        printed = published_scores(benchmark).query("metric == @key")
        below, above = printed.value[printed.value <= value].max(), printed.value[printed.value > value].min()
        near = printed[printed.value.isin([below, above])].itertuples()
        item |= {"key": key, "metric": scoring.METRICS[key], "ability": benchmark.ability, "chance": benchmark.chance}
        item |= {"benchmark": corpora.describe(benchmark.corpus).label, "note": _note(benchmark, key)}
        rows.append(item | {"nearest": ", ".join(f"{row.system} {row.value:g} ({row.paper})" for row in near)})
    return pd.DataFrame(rows)


def _note(benchmark: Benchmark, metric: str) -> str:
    """What to know before a score is compared with the printed ones."""
    if not benchmark.official:
        return "authored mini set: no published score is comparable"
    for mapping in scoreboard.mappings_of(benchmark.key):
        if mapping.ours.get("metric", mapping.metrics[0]) == metric:
            return "; ".join(filter(None, [mapping.stand_in, mapping.protocol, mapping.note]))
    return ""


def largest_errors(name: str, predictions: pd.DataFrame, count: int) -> pd.DataFrame:
    """The test items of a benchmark that a system gets most wrong. Of a choice: id, query, positive, negative, margin (of the
    item's worst question). Of a correlation: id, sentence1, sentence2, score, similarity, rank_gap (of similarity and score,
    over n)."""
    benchmark = catalogue.get(name)
    texts = benchmark.rows()
    if isinstance(benchmark, Choice):
        worst = predictions[~predictions.correct].nsmallest(count, "margin")
        margins = {name: name.removeprefix("margin_") for name in worst if name.startswith("margin_")}
        margins = margins or {"margin": texts.question.iloc[0]}
        long = worst[["id", *margins]].rename(columns=margins).melt("id", var_name="question", value_name="margin")
        shown = long.sort_values("margin").drop_duplicates("id").merge(texts, on=["id", "question"])
        shown["negative"] = shown.negatives.map(" / ".join)
        return shown[["id", "query", "positive", "negative", "margin"]]
    gap = (predictions.similarity.rank() - predictions.score.rank()) / len(predictions)
    worst = predictions.assign(rank_gap=gap).loc[gap.abs().nlargest(count).index]
    columns = ["id", "sentence1", "sentence2", "score", "similarity", "rank_gap"]
    return worst.merge(texts[["id", "sentence1", "sentence2"]], on="id")[columns]


def truncation(encoder: Encoder, names: Sequence[str]) -> pd.DataFrame:
    """How much of a benchmark's texts is cut off: task, texts (distinct), tokens, longest, max_length, truncated (texts
    longer than that), share (percent); NaN where the model has no tokenizer to ask."""
    limit, rows = encoder.model.max_seq_length, []
    for benchmark in map(catalogue.get, names):
        texts = pd.concat(map(pd.Series, benchmark.pairs(benchmark.rows())), keys=benchmark.roles)
        by_role = texts.groupby(level=0, sort=False).unique().items()
        counts = np.concatenate([embeddings.token_counts(encoder, found, role) for role, found in by_role])
        longer = counts > (limit or np.inf)
        rows.append((benchmark.name, len(counts), counts.sum(), counts.max(), limit, longer.sum(), 100 * longer.mean()))
    table = pd.DataFrame(rows, columns="task texts tokens longest max_length truncated share".split())
    return table.assign(**table[["truncated", "share"]].where(table.tokens.notna()))
