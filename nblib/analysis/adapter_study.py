"""Cao's experiments with the negation adapter (§5): on STSB, from STSB to SemAntoNeg, and within SemAntoNeg."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from tqdm.auto import tqdm

from nblib import artefacts, paths, stats
from nblib.errors import check_numbers
from nblib.models import embeddings, negation_adapter
from nblib.models.encoders import Encoder
from nblib.models.negation_adapter import DEFAULT_WEIGHTING, GRID, WEIGHTINGS, NegationAdapter, ScoredPairs

TEST_SHARE = 2152 / 3152  # §5.3: 1000 items to learn from, 2152 to test on
BY_ROW, BY_SET = "by row (the paper's)", "by sentence set"
CONSTRAINED = "correlation-constrained"  # a loses at most a point of correlation (see `NegationAdapter`)
UNWEIGHTED = "none"  # the plain cosine: with equal weights, the weighted one
FORMULAS = {UNWEIGHTED: "weighted cosine"} | {weighting: weighting for weighting in WEIGHTINGS}

Triplets = tuple[np.ndarray, np.ndarray, np.ndarray]  # anchors [n, d], positives [n, d], negatives [n, m, d]


class EmbeddedPairs(NamedTuple):
    """STSB: triplets of the paraphrases and their negations, and all pairs with human similarity."""

    triplets: Triplets
    scored: ScoredPairs


def embed_pairs(pairs: pd.DataFrame, encoder: Encoder) -> EmbeddedPairs:
    """Embed pairs from `diagnosis.with_negations`, rows without NegS1 dropped; those of group 5 are paraphrases."""
    vectors = embeddings.encode(encoder, [*pairs.sentence1, *pairs.sentence2, *pairs.negated])
    first, second, negated = np.split(vectors, 3)
    chosen = (pairs.group == 5).to_numpy()
    triplets = first[chosen], second[chosen], negated[chosen][:, None]
    return EmbeddedPairs(triplets, (first, second, pairs.score.to_numpy()))


def on_stsb(train: EmbeddedPairs, test: EmbeddedPairs) -> pd.DataFrame:
    """Table 1 for every weighting, with a chosen on the training part under both rules, and first the unweighted embedding:
    weighting, rule, a, weights ([1, dimension]), train_accuracy, train_pearson, accuracy, pearson (percent, on test), n
    (triplets), n_pairs."""
    learnt = [(UNWEIGHTED, "", 0.0, _uniform(train.scored[0]))]
    for weighting, (rule, scored) in product(WEIGHTINGS, [("accuracy", None), (CONSTRAINED, train.scored)]):
        adapter = NegationAdapter(weighting).fit(*train.triplets, scored=scored)
        learnt.append((weighting, rule, adapter.a_, adapter.weights_[None, :]))
    table = pd.DataFrame(learnt, columns=["weighting", "rule", "a", "weights"])
    for prefix, pairs in [("train_", train), ("", test)]:
        measured = [_measure(pairs, row.weights, row.weighting) for row in table.itertuples()]
        table[[f"{prefix}accuracy", f"{prefix}pearson"]] = np.concatenate(measured, axis=1).T
    return table.assign(n=len(test.triplets[0]), n_pairs=len(test.scored[0]))


def changes(learnt: pd.DataFrame, test: EmbeddedPairs) -> pd.DataFrame:
    """What the weights of `on_stsb` change against the unweighted embedding on the same test pairs: weighting, rule, metric
    (accuracy_change, pearson_change), value, ci_low, ci_high (points, 95 % by paired bootstrap over pairs), n."""
    how = [(row.weights, row.weighting) for row in learnt.itertuples()]
    right = [100.0 * _choices(test.triplets, *one)[:, 0] for one in how]
    first, second, truth = test.scored
    similar = [negation_adapter.weighted_similarity(first, second, w, FORMULAS[name])[:, 0] for w, name in how]
    pearson = 100 * stats.correlation_replicates("pearson", *similar, truth=truth)
    rows = []
    for k, row in enumerate(learnt.itertuples()):
        gain, bounds = right[k] - right[0], stats.percentile_interval(pearson[k] - pearson[0])
        of = (row.weighting, row.rule)
        rows.append((*of, "accuracy_change", gain.mean(), *stats.cluster_bootstrap(gain), len(gain)))
        rows.append((*of, "pearson_change", row.pearson - learnt.pearson[0], *bounds, len(truth)))
    columns = ["weighting", "rule", "metric", "value", "ci_low", "ci_high", "n"]
    return pd.DataFrame(rows[2:], columns=columns)  # the first two are the unweighted embedding's own


def encode(items: pd.DataFrame, encoder: Encoder) -> Triplets:
    """Embed the items of `semantoneg.load`: inputs [n, d], positives [n, d] and negatives [n, 2, d]."""
    texts = [*items.input, *items.positive, *items.negatives.explode()]
    vectors, n = embeddings.encode(encoder, texts), len(items)
    return vectors[:n], vectors[n : 2 * n], vectors[2 * n :].reshape(n, 2, -1)


def unweighted(vectors: Triplets) -> np.ndarray:
    """Whether the plain cosine prefers the positive to both negatives (a tie is wrong), bool [n]."""
    return _choices(vectors, _uniform(vectors[0]), UNWEIGHTED)[:, 0]


def _uniform(vectors: np.ndarray) -> np.ndarray:
    return np.full((1, vectors.shape[1]), 1 / vectors.shape[1])


def _choices(vectors: Triplets, weights: np.ndarray, weighting: str) -> np.ndarray:
    """Whether each item is right under each row of weights, bool [n, len(weights)]."""
    return negation_adapter.choices(*vectors, weights, FORMULAS[weighting])


def _measure(pairs: EmbeddedPairs, weights: np.ndarray, weighting: str) -> np.ndarray:
    """Accuracy and Pearson (percent) under each row of weights, [2, len(weights)]."""
    accuracy = _choices(pairs.triplets, weights, weighting).mean(axis=0)
    return 100 * np.stack([accuracy, negation_adapter.correlations(*pairs.scored, weights, FORMULAS[weighting])])


def trade_off(train: EmbeddedPairs, test: EmbeddedPairs) -> pd.DataFrame:
    """Accuracy against correlation over a: weighting, part (train or test), a, accuracy, pearson (percent)."""
    weights = negation_adapter.softmax_weights(negation_adapter.contributions(*train.triplets), GRID)
    tables = []
    for weighting, (part, pairs) in product(WEIGHTINGS, [("train", train), ("test", test)]):
        accuracy, pearson = _measure(pairs, weights, weighting)
        curve = {"weighting": weighting, "part": part, "a": GRID, "accuracy": accuracy, "pearson": pearson}
        tables.append(pd.DataFrame(curve))
    return pd.concat(tables, ignore_index=True)


def transfer(learnt: pd.DataFrame, vectors: Triplets, *, repeats: int = 10, seed: int = 0) -> pd.DataFrame:
    """Table 2: the weights of `on_stsb` on SemAntoNeg: weighting, rule, a, accuracy on all items, n; mean and sd over random
    samples of `TEST_SHARE` of them, sample_n. For errors see `random_splits`."""
    n = len(vectors[0])
    samples = [test for _, test in random_splits(range(n), repeats, seed)[BY_ROW]]
    rows = []
    for row in learnt.itertuples():
        right = 100 * _choices(vectors, row.weights, row.weighting)[:, 0]
        sampled = [right[sample].mean() for sample in samples]
        spread = (np.mean(sampled), np.std(sampled, ddof=1))
        rows.append((row.weighting, row.rule, row.a, right.mean(), n, *spread, len(samples[0])))
    return pd.DataFrame(rows, columns=["weighting", "rule", "a", "accuracy", "n", "mean", "sd", "sample_n"])


def random_splits(
    sentence_sets: Sequence[int], repeats: int, seed: int
) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Shuffled training and test rows of each repetition: `BY_ROW` as in the paper; `BY_SET` keeps sentence sets whole. A
    StudyError: no repetition, or a seed that NumPy doesn't take."""
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit  # a second to import

    check_numbers(seed, repeats=repeats)
    options = {"n_splits": repeats, "test_size": TEST_SHARE, "random_state": seed}
    sets = np.asarray(sentence_sets)
    parts = {BY_ROW: ShuffleSplit(**options).split(sets), BY_SET: GroupShuffleSplit(**options).split(sets, groups=sets)}
    # GroupShuffleSplit returns rows in file order; the first K of them would be whole sets from the top of the file.
    return {
        split: [(np.random.default_rng([seed, k]).permutation(train), test) for k, (train, test) in enumerate(found)]
        for split, found in parts.items()
    }


def within_semantoneg(
    vectors: Triplets, sentence_sets: Sequence[int], train_sizes: Sequence[int], *, repeats: int = 10, seed: int = 0
) -> pd.DataFrame:
    """Learn from so many items of each training part and test within SemAntoNeg (vectors from `encode`) over random splits
    (§5.3), for every weighting.

    Returns:
        split, repeat, weighting, k (0 where unweighted), a, n_train, n_apart (items of the training part, of which n_train
        are learnt from), n_test, accuracy (percent; NaN where max(V̄) ≤ 0), error.

    Raises:
        StudyError: a training size of 0 or less; or see `random_splits`.
    """
    check_numbers(seed, **{"Every one of train_sizes": min(train_sizes, default=0)})
    learnt, plain = [], _uniform(vectors[0])[0]
    for split, repetitions in random_splits(sentence_sets, repeats, seed).items():
        for repeat, (train, test) in enumerate(tqdm(repetitions, desc=f"splits {split}")):
            learnt.append((split, repeat, UNWEIGHTED, 0, np.nan, plain, 0, len(train), test, ""))
            for weighting, k in product(WEIGHTINGS, train_sizes):
                a, weights, error = np.nan, None, ""
                try:
                    adapter = NegationAdapter(weighting).fit(*(part[train[:k]] for part in vectors))
                    a, weights = adapter.a_, adapter.weights_
                except negation_adapter.NoNegationSensitiveDimension as fault:
                    error = str(fault)
                learnt.append((split, repeat, weighting, k, a, weights, len(train[:k]), len(train), test, error))
    table = pd.DataFrame(learnt, columns="split repeat weighting k a weights n_train n_apart test error".split())
    table["n_test"], table["accuracy"] = table.test.map(len), np.nan
    # Every item once, under all weights together, is several times faster than each test part under its own
    for weighting, part in table[table.weights.notna()].groupby("weighting"):
        right = _choices(vectors, np.stack([*part.weights]), weighting)
        table.loc[part.index, "accuracy"] = [100 * right[test, column].mean() for column, test in enumerate(part.test)]
    return table["split repeat weighting k a n_train n_apart n_test accuracy error".split()]


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Over the splits: split, weighting, k, n_train, n_test (means), answers (splits with a result), accuracy, sd; of adapters
    gain, low, high (points above the unweighted cosine on the same splits, `stats.corrected_resampled_t`). NaN unless every
    split has a result."""
    groups = runs.groupby(["split", "weighting", "k"], sort=False)
    table = groups[["n_train", "n_apart", "n_test"]].mean().round()
    table["answers"] = groups.accuracy.count()
    # The splits on which an adapter exists are not a fair sample of all splits.
    complete = table.answers == groups.size()
    table["accuracy"], table["sd"] = groups.accuracy.mean().where(complete), groups.accuracy.std().where(complete)
    plain = runs[runs.k == 0].set_index(["split", "repeat"]).accuracy
    gains = runs.accuracy - plain.reindex(pd.MultiIndex.from_frame(runs[["split", "repeat"]])).to_numpy()
    table[["gain", "low", "high"]] = np.nan
    for key in table.index[complete & (table.n_train > 0)]:
        gain, sizes = gains.loc[groups.groups[key]], table.loc[key, ["n_apart", "n_test"]]
        table.loc[key, ["gain", "low", "high"]] = gain.mean(), *stats.corrected_resampled_t(gain, *sizes)
    return table.drop(columns="n_apart").reset_index()


def by_method(runs: pd.DataFrame) -> pd.DataFrame:
    """Accuracies by row: a row per repetition, a column per training size with a result on every split."""
    chosen = runs[runs.weighting.isin([UNWEIGHTED, DEFAULT_WEIGHTING]) & (runs.split == BY_ROW)]
    wide = chosen.pivot(index="repeat", columns="k", values="accuracy").dropna(axis="columns")
    return wide.rename(columns=lambda k: "unweighted" if k == 0 else f"K = {k}")


def pooled_methods(run_dir: str | Path) -> pd.DataFrame:
    """`by_method` over those encoders of a run that have a result for every training size; a FileNotFoundError without any."""
    tables = {}
    for file in sorted((paths.resolve(run_dir) / "scores").glob("*/adapter_splits.csv")):
        runs = artefacts.read_table(file)
        scores = by_method(runs)
        if len(scores.columns) == runs.k.nunique():
            tables[file.parent.name] = scores
    if not tables:
        raise FileNotFoundError(f"No encoder with adapter results in {run_dir}/scores. Run notebook 06, or make study.")
    return pd.concat(tables, names=["encoder"])


def draw_ranks(scores: pd.DataFrame, ax: Axes, alpha: float) -> pd.DataFrame:
    """Draw Figure 3, the critical-difference diagram (Wilcoxon–Holm) of scores, a row per repetition and a column per system:
    system, the corrected p value against each system, mean rank (1 = best)."""
    import scikit_posthocs

    p_values = stats.wilcoxon_holm(scores)
    ranks = scores.rank(axis=1, ascending=False).mean()
    drawn = scikit_posthocs.critical_difference_diagram(ranks, p_values, alpha=alpha, ax=ax)
    for (crossbar,) in drawn["crossbars"]:  # its points come from a set; in order, the file is the same in every run
        crossbar.set_xdata(sorted(crossbar.get_xdata()))
    return p_values.rename_axis("system").add_prefix("p against ").reset_index().assign(rank=ranks.to_numpy())


def describe_ranks(ranks: pd.DataFrame, alpha: float) -> str:
    """The outcome of `draw_ranks` in words."""
    p_values = ranks.filter(like="p against ").to_numpy()[np.triu_indices(len(ranks), 1)]
    best, worst = ranks.loc[ranks["rank"].idxmin()], ranks.loc[ranks["rank"].idxmax()]
    ends = f"{best.system} ranks first ({best['rank']:.1f}), {worst.system} last ({worst['rank']:.1f})"
    return f"{ends}; {(p_values < alpha).sum()} of {len(p_values)} pairs differ at α = {alpha:g}"
