"""SemAntoNeg (Vahtola et al.) from per-item predictions: which candidate a system chooses, on which antonyms it fails, and which
family of models does best."""

import math
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from nblib import stats
from nblib.benchmarks import scoring
from nblib.results import published

# The three candidates in their order; what Figure 2 calls labels 0, 1 and 2
OPTIONS = ("only the antonym", "only the negation", "both: the paraphrase")
CHOSEN = dict(zip(OPTIONS, ("chose_antonym", "chose_negation", "chose_paraphrase"), strict=True))  # their metrics
HARDEST = ("actual – possible", "other – same")  # of the paper's twelve best models (§6)
HARDEST_SHARES = ("shared_errors_on_two_pairs", "two_pairs_failed_by_all", "other_pairs_failed_by_all")
FAMILIES = {"Table 3": "general purpose", "Table 4": "paraphrase", "Table 5": "NLI", "Table 6": "STSB"}
TRAINED_FAMILIES = {"paraphrases": "paraphrase", "nli": "NLI", "stsb": "STSB"}  # by the data that a base is trained on


def choices(predictions: pd.DataFrame) -> pd.DataFrame:
    """Figure 2: how often each option is the nearest: option, n, share (percent), low, high (95 %, by cluster); a tie goes
    to the wrong one."""
    chosen = predictions.nearest_negative.where(~predictions.correct, len(OPTIONS) - 1).astype(int)
    n = chosen.value_counts().reindex(range(len(OPTIONS)), fill_value=0).to_numpy()
    table = pd.DataFrame({"option": OPTIONS, "n": n, "share": 100 * n / len(predictions)})
    bounds = [stats.share_interval(chosen == option, predictions.cluster) for option in range(len(OPTIONS))]
    return table.assign(**pd.DataFrame(bounds, columns=["low", "high"]).mul(100))


def antonym_pairs(items: pd.DataFrame) -> pd.Series:
    """The two antonyms of each item of `semantoneg.load`, as "bad – good" in alphabetical order, by id: the words (articles
    aside) that are only in the input or only in the candidate with the antonym."""
    pairs = []
    for row in items.itertuples():
        texts = [
            [word.strip(string.punctuation) for word in text.lower().split()] for text in (row.input, row.negatives[0])
        ]
        only = [[w for w in own if w not in {*other, "a", "an", "the"}] for own, other in (texts, texts[::-1])]
        pairs.append(" – ".join(sorted(map(" ".join, only))))
    return pd.Series(pairs, index=items.idx.astype(str))


def errors_by_antonyms(correct: pd.Series, items: pd.DataFrame) -> pd.DataFrame:
    """Errors by antonyms, from whether an item is right, by id: antonyms, n (items), errors, share (percent of the items), most
    errors first."""
    by_pair = (~correct).groupby(antonym_pairs(items).reindex(correct.index))
    table = by_pair.agg(n="size", errors="sum").rename_axis("antonyms").reset_index()
    table["share"] = 100 * table.errors / table.n
    return table.sort_values(["errors", "antonyms"], ascending=[False, True], ignore_index=True)


def on_hardest(any_right: pd.Series, items: pd.DataFrame, metric: str) -> dict[str, float]:
    """By whether any system gets an item right, by id: the share of the shared errors that lie on the antonyms `HARDEST`, or the
    share of the items with these antonyms, or with others, that are shared errors (`metric`: one of `HARDEST_SHARES`): value,
    ci_low, ci_high (percent, 95 % by sentence set), n; NaN where there are no such items."""
    hardest = antonym_pairs(items).isin(HARDEST).reindex(any_right.index)
    sides = [(~any_right, hardest), (hardest, ~any_right), (~hardest, ~any_right)]
    of, counted = sides[HARDEST_SHARES.index(metric)]
    sets = pd.Series(items.sentence_set.to_numpy(), items.idx.astype(str)).reindex(any_right.index)
    low, high = stats.share_interval(counted[of], sets[of]) if of.any() else (math.nan, math.nan)
    return {"value": 100 * counted[of].mean(), "ci_low": 100 * low, "ci_high": 100 * high, "n": int(of.sum())}


def families(measured: Mapping[str, float]) -> pd.DataFrame:
    """Figure 1: the models of Tables 3 to 6, and our scores by their names there: family, system, published, ours (percent, or
    NaN)."""
    printed = published.load("vahtola")
    # Table 8 alone has no row for chance
    models = printed.system[(printed.exhibit == "Table 8") & (printed.metric == "accuracy")]
    rows = printed[printed.exhibit.isin(FAMILIES) & printed.system.isin(models)]
    scores = {"published": rows.value, "ours": rows.system.map(measured).astype(float)}
    return pd.DataFrame({"family": rows.exhibit.map(FAMILIES), "system": rows.system, **scores}).reset_index(drop=True)


def families_on_one_base(run_dir: str | Path, names: Sequence[str], base: str, task: str) -> pd.DataFrame:
    """The paper's comparison of families on one base: scored trainings on each family's data, against the base.

    Returns:
        system, family, seed, value, low, high (percent, 95 % by cluster), difference, difference_low, difference_high (points
        to the base, paired), n.

    Raises:
        ScoreError: there are no predictions. KeyError: a training is on no family's data.
    """
    table = scoring.accuracies({name: scoring.load_predictions(run_dir, name, task) for name in names})
    known = [scoring.about(run_dir, name) for name in names]
    table["family"] = [TRAINED_FAMILIES[one["trained_on"]] for one in known]
    table["seed"] = [one.get("seed") for one in known]
    changes = scoring.compare(run_dir, base, names, [task], complete=True)
    table["difference"] = changes.difference
    table["difference_low"], table["difference_high"] = changes.low, changes.high
    columns = "system family seed value low high difference difference_low difference_high n"
    return table[columns.split()]
