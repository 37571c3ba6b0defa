"""SemAntoNeg (Vahtola et al.) from per-item predictions: which candidate a system chooses, on which antonyms all systems fail,
and which family of models does best."""

import string
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from nblib import artefacts, corpora, paths, results
from nblib.analysis import systems
from nblib.benchmarks import scoring
from nblib.results import plotting, published

# The three candidates in their order; what Figure 2 calls labels 0, 1 and 2
OPTIONS = ("only the antonym", "only the negation", "both: the paraphrase")
FAMILIES = {"Table 3": "general purpose", "Table 4": "paraphrase", "Table 5": "NLI", "Table 6": "STSB"}
_ARTICLES = {"a", "an", "the"}


def choices(predictions: pd.DataFrame) -> pd.DataFrame:
    """Figure 2: how often each option is the nearest: option, n, share (percent); a tie goes to the wrong one."""
    chosen = predictions.nearest_negative.where(~predictions.correct, len(OPTIONS) - 1).astype(int)
    counts = chosen.value_counts().reindex(range(len(OPTIONS)), fill_value=0)
    n = counts.to_numpy()
    return pd.DataFrame({"option": OPTIONS, "n": n, "share": 100 * n / len(predictions)})


def draw_families(families: pd.DataFrame, ax: Axes) -> None:
    """Draw Figure 1: the published accuracies of each family, ours on top."""
    sns.boxplot(families, x="published", y="family", color="#dddddd", fliersize=0, ax=ax)
    sns.stripplot(families, x="published", y="family", color=plotting.PUBLISHED, alpha=0.5, ax=ax)
    scored = families.dropna(subset="ours")
    ax.plot(scored.ours, scored.family, "o", color=plotting.OURS)
    ax.set(xlabel="SemAntoNeg accuracy (%), published", ylabel="")
    median = families.groupby("family").published.median().sort_values()
    least, most = (f"{median.iloc[end]:.0f} % ({median.index[end]})" for end in (0, -1))
    plotting.state(ax, f"The medians of the paper's families go from {least} to {most}")


def draw_choices(shares: pd.DataFrame, ax: Axes) -> None:
    """Draw Figure 2: a bar for each system (the index) with the shares of `OPTIONS` (the columns, percent)."""
    shares.plot.barh(stacked=True, color=[plotting.PARAPHRASE, plotting.NEGATION, plotting.OURS], ax=ax, width=0.8)
    ax.set(xlabel="closest to the input (%)", ylabel="")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8)
    right = shares[OPTIONS[-1]]
    plotting.state(ax, f"Our encoders choose the paraphrase in {right.min():.1f} to {right.max():.1f} %")


def antonym_pairs(table: pd.DataFrame) -> pd.Series:
    """The two antonyms of each item of `semantoneg.load`, as "bad – good" in alphabetical order, by id: the words (articles
    aside) that are only in the input or only in the candidate with the antonym."""
    pairs = []
    for row in table.itertuples():
        first, second = _words(row.input), _words(row.negatives[0])
        pairs.append(" – ".join(sorted([_only_in(first, second), _only_in(second, first)])))
    return pd.Series(pairs, index=table.idx.astype(str))


def _words(text: str) -> list[str]:
    return [word.strip(string.punctuation) for word in text.lower().split()]


def _only_in(words: list[str], others: list[str]) -> str:
    return " ".join(word for word in words if word not in {*others, *_ARTICLES})


def errors_by_antonyms(predictions: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """A system's errors by antonyms: antonyms, n (items), errors, share (percent of the items), most errors first."""
    failed = ~predictions.set_index("id").correct
    by_pair = failed.groupby(antonym_pairs(table).reindex(failed.index))
    found = by_pair.agg(n="size", errors="sum").rename_axis("antonyms").reset_index()
    found["share"] = 100 * found.errors / found.n
    return found.sort_values(["errors", "antonyms"], ascending=[False, True], ignore_index=True)


def common_errors(predictions: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The items that all systems get wrong (§6): id; `attrs["expected"]` is their number if errors were independent.

    Args:
        predictions: name → predictions on the same items.

    Raises:
        ValueError: the systems have different items.
    """
    correct = pd.DataFrame({name: table.set_index("id").correct for name, table in predictions.items()})
    if correct.isna().any(axis=None):
        raise ValueError(f"Predictions of {', '.join(predictions)} are not about the same items.")
    found = pd.DataFrame({"id": correct.index[~correct.astype(bool).any(axis=1)]})
    found.attrs["expected"] = float(len(correct) * (~correct.astype(bool)).mean().prod())
    return found


def families(measured: Mapping[str, float] | None = None) -> pd.DataFrame:
    """Figure 1: the models of Tables 3 to 6: family, system, published, ours (percent; NaN where not measured).

    Args:
        measured: our scores on the official SemAntoNeg, by the paper's name of the system.
    """
    printed = published.load("vahtola")
    # Table 8 alone has no row for chance
    models = printed.system[(printed.exhibit == "Table 8") & (printed.metric == "accuracy")]
    rows = printed[printed.exhibit.isin(FAMILIES) & printed.system.isin(models)]
    return pd.DataFrame({
        "family": rows.exhibit.map(FAMILIES), "system": rows.system, "published": rows.value,
        "ours": rows.system.map(dict(measured or {})).astype(float),
    }).reset_index(drop=True)  # fmt: skip


def families_on_one_base(
    run_dir: str | Path, names: Sequence[str], base: str, task: str = "semantoneg"
) -> pd.DataFrame:
    """The paper's comparison of families on one base: trainings of `nblib train` on each family's data, against the base.

    Returns:
        system, family, seed, value, low, high (percent, 95 % by cluster), difference, difference_low, difference_high (points
        to the base, paired), n.

    Raises:
        ScoreError: predictions of a training or of the base are missing, or a training's family is unknown.
    """
    untrained, rows = scoring.load_predictions(run_dir, base, task), []
    for name in names:
        predictions = scoring.load_predictions(run_dir, name, task)
        about = artefacts.about(paths.inside(run_dir, "results", f"07_{name}.csv"))
        if "family" not in about:
            how = f"nblib train {name} --architecture bi-encoder --data nli --base {base} --run-dir {run_dir}"
            raise scoring.ScoreError(f"{name} was not trained on a family's pairs. Train it, for example on NLI: {how}")
        change = scoring.change(untrained, predictions)
        rows.append({
            **systems.accuracies({name: predictions}).iloc[0], "family": about["family"], "seed": about["seed"],
            "difference": change["difference"], "difference_low": change["low"], "difference_high": change["high"],
        })  # fmt: skip
    columns = ["system", "family", "seed", "value", "low", "high"]
    columns += ["difference", "difference_low", "difference_high", "n"]
    return pd.DataFrame(rows, columns=columns)


def common_error_rows(
    common: pd.DataFrame, by_antonyms: pd.DataFrame, encoders: int, scale: str, corpus: str
) -> list[dict]:
    """Section 6 as measurements: how many items every encoder gets wrong, in all and on two pairs of antonyms.

    Args:
        common: from `common_errors`.
        by_antonyms: from `errors_by_antonyms`, of those items.
        encoders: how many encoders.
    """
    of_pair = by_antonyms.set_index("antonyms").errors
    counts = {"shared_errors": len(common)}
    counts |= {
        f"shared_errors_{first}_{second}": int(of_pair.get(" – ".join(sorted((first, second))), 0))
        for first, second in [("possible", "actual"), ("same", "other")]
    }
    mini = " (mini)" if corpora.describe(corpus).official is False else ""
    where = {"data": f"{corpus}, {encoders} encoders", "n": int(by_antonyms.n.sum()), "scale": scale}
    return [
        results.row("every encoder of this run", f"SemAntoNeg errors{mini}", metric, count, **where)
        for metric, count in counts.items()
    ]
