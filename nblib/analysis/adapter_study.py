"""Cao's experiments with the negation adapter (§5): on STSB, from STSB to SemAntoNeg, and within SemAntoNeg."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from tqdm.auto import tqdm

from nblib import artefacts, corpora, paths, results, stats
from nblib.analysis import diagnosis
from nblib.errors import StudyError
from nblib.models import embeddings
from nblib.models.encoders import Encoder
from nblib.models.negation_adapter import (
    DEFAULT_WEIGHTING,
    GRID,
    WEIGHTINGS,
    NegationAdapter,
    NoNegationSensitiveDimension,
    choices,
    contributions,
    correlations,
    softmax_weights,
)
from nblib.results import plotting

TEST_SHARE = 2152 / 3152  # §5.3: 1000 items to learn from, 2152 to test on
TWO_SIDED = 1.96  # standard deviations either side hold 95 % of samples
BY_ROW, BY_SET = "by row (the paper's)", "by sentence set"
CONSTRAINED = "correlation-constrained"  # a loses at most a point of correlation (see `NegationAdapter`)
COSINE = "weighted cosine"  # with equal weights, the plain cosine

Triplets = tuple[np.ndarray, np.ndarray, np.ndarray]  # anchors [n, d], positives [n, d], negatives [n, m, d]


@dataclass(frozen=True)
class Pairs:
    """Embedded STSB pairs: `first`, `second`, `negated` [n, d], human `score` [n], and which pairs are paraphrases (group 5)."""

    first: np.ndarray
    second: np.ndarray
    negated: np.ndarray
    score: np.ndarray
    is_paraphrase: np.ndarray

    @property
    def triplets(self) -> Triplets:
        """Anchors, positives [n, d] and negatives [n, 1, d]."""
        keep = self.is_paraphrase
        return self.first[keep], self.second[keep], self.negated[keep][:, None]

    @property
    def scored(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the correlation is computed on: first and second sentences, human similarity."""
        return self.first, self.second, self.score


def embed_pairs(pairs: pd.DataFrame, encoder: Encoder) -> Pairs:
    """Embed pairs from `diagnosis.with_negations`, rows without NegS1 dropped.

    Raises:
        ValueError: no pair of group 5 is among them.
    """
    is_paraphrase = (pairs.group == max(diagnosis.GROUPS)).to_numpy()
    if not is_paraphrase.any():
        raise ValueError("No pair of similarity group 5 has a usable negation: the adapter can't be fitted or tested.")
    vectors = embeddings.encode(encoder, [*pairs.sentence1, *pairs.sentence2, *pairs.negated])
    return Pairs(*np.split(vectors, 3), pairs.score.to_numpy(), is_paraphrase)


def on_stsb(train: Pairs, test: Pairs) -> pd.DataFrame:
    """Table 1 for every weighting, with a chosen on the training part under both rules.

    Returns:
        weighting, rule ("accuracy" or `CONSTRAINED`), adapter, a, train_accuracy, train_pearson, accuracy, pearson (percent,
        on test), n (triplets), n_pairs. The first row is the unweighted embedding (weighting "none", no adapter).
    """
    plain = _uniform(train.first)
    rows = [("none", "", None, 0.0, *_measure(train, plain, COSINE), *_measure(test, plain, COSINE))]
    for weighting in WEIGHTINGS:
        for rule, scored in [("accuracy", None), (CONSTRAINED, train.scored)]:
            adapter = NegationAdapter(weighting).fit(*train.triplets, scored=scored)
            weights = adapter.weights_[None, :]
            measured = (*_measure(train, weights, weighting), *_measure(test, weights, weighting))
            rows.append((weighting, rule, adapter, adapter.a_, *measured))
    columns = ["weighting", "rule", "adapter", "a", "train_accuracy", "train_pearson", "accuracy", "pearson"]
    return pd.DataFrame(rows, columns=columns).assign(n=int(test.is_paraphrase.sum()), n_pairs=len(test.score))


def encode(items: pd.DataFrame, encoder: Encoder) -> Triplets:
    """Embed SemAntoNeg's items: inputs [n, d], positives [n, d] and negatives [n, 2, d].

    Args:
        items: from `semantoneg.load`.
    """
    texts = [*items.input, *items.positive, *(text for pair in items.negatives for text in pair)]
    vectors, n = embeddings.encode(encoder, texts), len(items)
    return vectors[:n], vectors[n : 2 * n], vectors[2 * n :].reshape(n, 2, -1)


def unweighted(vectors: Triplets) -> np.ndarray:
    """Whether the plain cosine prefers the positive to both negatives (a tie is wrong), bool [n]."""
    return choices(*vectors, _uniform(vectors[0]), COSINE)[:, 0]


def _uniform(vectors: np.ndarray) -> np.ndarray:
    """Equal weights for all dimensions: one row."""
    return np.full((1, vectors.shape[1]), 1 / vectors.shape[1])


def _measure(pairs: Pairs, weights: np.ndarray, weighting: str) -> tuple[float, float]:
    """Accuracy and Pearson (percent) under one row of weights."""
    accuracy = choices(*pairs.triplets, weights, weighting).mean()
    return 100 * accuracy, 100 * correlations(*pairs.scored, weights, weighting)[0]


def by_reason(pairs: pd.DataFrame, encoder: Encoder) -> pd.DataFrame:
    """The unweighted accuracy (percent) on paraphrase triplets, with n, by the negator's output ("plain negation" or the
    reason).

    Args:
        pairs: from `diagnosis.with_negations`, rows without NegS1 dropped.
    """
    paraphrases = pairs[pairs.group == max(diagnosis.GROUPS)]
    compared = diagnosis.compare(paraphrases, encoder)
    reasons = paraphrases.reason.replace("", "plain negation").to_numpy()
    right = 100 * (compared.sim_12 > compared.sim_1neg1)
    table = right.groupby(reasons).agg(accuracy="mean", n="size").rename_axis("NegS1 is from a")
    return table.sort_values("n", ascending=False).reset_index()


def plain_correlation(pairs: pd.DataFrame, encoder: Encoder) -> float:
    """Pearson × 100 of the unweighted similarity with human scores."""
    first, second = np.split(embeddings.encode(encoder, [*pairs.sentence1, *pairs.sentence2]), 2)
    return 100 * float(np.corrcoef(embeddings.similarity(first, second, encoder.spec.similarity), pairs.score)[0, 1])


def trade_off(train: Pairs, test: Pairs, grid: Sequence[float] = GRID) -> pd.DataFrame:
    """Accuracy against correlation over a, for each weighting: a, accuracy and Pearson (percent) on train and on test."""
    mean = contributions(*train.triplets)
    weights = softmax_weights(mean, grid)
    rows = []
    for weighting in WEIGHTINGS:
        for name, pairs in [("train", train), ("test", test)]:
            right = choices(*pairs.triplets, weights, weighting).mean(axis=0)
            pearson = correlations(*pairs.scored, weights, weighting)
            rows += [(weighting, name, a, 100 * right[k], 100 * pearson[k]) for k, a in enumerate(grid)]
    return pd.DataFrame(rows, columns=["weighting", "part", "a", "accuracy", "pearson"])


def transfer(learnt: pd.DataFrame, vectors: Triplets, *, repeats: int = 10, seed: int = 0) -> pd.DataFrame:
    """Table 2: the adapters of `on_stsb` on SemAntoNeg.

    Returns:
        weighting, rule, a, accuracy on all items, n; mean and sd over random samples of `TEST_SHARE` of them, sample_n.

    Raises:
        StudyError: see `_check_splits`.
    """
    from sklearn.model_selection import ShuffleSplit  # a second to import

    _check_splits(repeats, seed)
    n = len(vectors[0])
    samples = [test for _, test in ShuffleSplit(repeats, test_size=TEST_SHARE, random_state=seed).split(vectors[0])]
    rows = []
    for row in learnt.itertuples():
        if row.adapter is None:
            right = 100 * unweighted(vectors)
        else:
            right = 100 * choices(*vectors, row.adapter.weights_[None, :], row.weighting)[:, 0]
        sampled = [right[sample].mean() for sample in samples]
        spread = (np.mean(sampled), np.std(sampled, ddof=1))
        rows.append((row.weighting, row.rule, row.a, right.mean(), n, *spread, len(samples[0])))
    return pd.DataFrame(rows, columns=["weighting", "rule", "a", "accuracy", "n", "mean", "sd", "sample_n"])


def _check_splits(repeats: int, seed: int) -> None:
    if repeats < 1 or seed < 0:
        raise StudyError(f"Random splits need at least 1 repeat and a seed of at least 0, not {repeats} and {seed}.")


def random_splits(
    sentence_sets: Sequence[int], repeats: int, seed: int
) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Shuffled training and test rows of each repetition: `BY_ROW` as in the paper; `BY_SET` keeps sentence sets whole.

    Raises:
        StudyError: see `_check_splits`.
    """
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

    _check_splits(repeats, seed)
    options = {"n_splits": repeats, "test_size": TEST_SHARE, "random_state": seed}
    sets = np.asarray(sentence_sets)
    parts = {BY_ROW: ShuffleSplit(**options).split(sets), BY_SET: GroupShuffleSplit(**options).split(sets, groups=sets)}
    # GroupShuffleSplit returns rows in file order; the first K of them would be whole sets from the top of the file.
    splits = {}
    for split, repetitions in parts.items():
        numbered = enumerate(repetitions)
        splits[split] = [(np.random.default_rng([seed, k]).permutation(train), test) for k, (train, test) in numbered]
    return splits


def within_semantoneg(
    vectors: Triplets, sentence_sets: Sequence[int], train_sizes: Sequence[int], *, repeats: int = 10, seed: int = 0
) -> pd.DataFrame:
    """Learn and test within SemAntoNeg over random splits (§5.3), by row and by sentence set, for every weighting.

    Args:
        vectors: inputs, positives, negatives from `encode`.
        train_sizes: K; the first K items of the shuffled training part (all of them, where it has fewer) are learnt from.

    Returns:
        split, repeat, weighting ("none": unweighted), k (0 there), a (NaN for k = 0 or no result), n_train, n_test, accuracy
        (percent; NaN where max(V̄) ≤ 0), and the error in that case.

    Raises:
        StudyError: no training size, or one that is no number of items; or see `_check_splits`.
    """
    if not train_sizes or not all(type(k) is int and k > 0 for k in train_sizes):
        raise StudyError(f"train_sizes must be numbers of items such as [200, 500], not {list(train_sizes)}.")
    rows = []
    for split, parts in random_splits(sentence_sets, repeats, seed).items():
        for repeat, (train, test) in enumerate(tqdm(parts, desc=f"splits {split}")):
            held_out = [part[test] for part in vectors]
            plain = 100 * unweighted(held_out).mean()
            rows.append((split, repeat, "none", 0, np.nan, 0, len(test), plain, ""))
            for weighting in WEIGHTINGS:
                for k in train_sizes:
                    learnt = train[:k]
                    try:
                        adapter = NegationAdapter(weighting).fit(*(part[learnt] for part in vectors))
                        accuracy = 100 * choices(*held_out, adapter.weights_[None, :], weighting).mean()
                        a, fault = adapter.a_, ""
                    except NoNegationSensitiveDimension as error:
                        a, accuracy, fault = np.nan, np.nan, str(error)
                    rows.append((split, repeat, weighting, k, a, len(learnt), len(test), accuracy, fault))
    columns = ["split", "repeat", "weighting", "k", "a", "n_train", "n_test", "accuracy", "error"]
    return pd.DataFrame(rows, columns=columns)


def metric_name(k: int) -> str:
    """The name in Tables 3 and 4 of the accuracy for a training size (0: unweighted); our own sizes have no published number."""
    return "accuracy" if k == 0 else f"accuracy_w_anto_{k}"


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and sd over the splits: split, weighting, k, n_train, n_test (rounded means), answers (splits with a result),
    accuracy, sd. An accuracy is given only where every split has a result."""
    groups = runs.groupby(["split", "weighting", "k"], sort=False)
    table = groups.agg(
        n_train=("n_train", "mean"), n_test=("n_test", "mean"), answers=("accuracy", "count"), splits=("accuracy", "size"),
        accuracy=("accuracy", "mean"), sd=("accuracy", "std"),
    ).reset_index()  # fmt: skip
    # The splits on which an adapter exists are not a fair sample of all splits.
    table.loc[table.answers < table.splits, ["accuracy", "sd"]] = np.nan
    return table.round({"n_train": 0, "n_test": 0}).drop(columns="splits")


def by_method(runs: pd.DataFrame, weighting: str = DEFAULT_WEIGHTING, split: str = BY_ROW) -> pd.DataFrame:
    """Scores for a rank diagram: a row per split, a column per training size with a result on every split."""
    chosen = runs[runs.weighting.isin(["none", weighting]) & (runs.split == split)]
    wide = chosen.pivot(index="repeat", columns="k", values="accuracy").dropna(axis="columns")
    return wide.rename(columns=lambda k: "unweighted" if k == 0 else f"K = {k}")


def pooled_methods(run_dir: str | Path) -> pd.DataFrame:
    """`by_method` over all encoders of a run; those without a result for every training size and split are left out.

    Raises:
        FileNotFoundError: notebook 06 has left no splits in the run.
    """
    tables = {}
    for file in sorted((paths.resolve(run_dir) / "scores").glob("*/adapter_splits.csv")):
        runs = artefacts.read_table(file)
        scores = by_method(runs)
        if len(scores.columns) == runs.k.nunique():
            tables[file.parent.name] = scores
    if not tables:
        raise FileNotFoundError(
            f"There is no encoder with adapter results in {run_dir}/scores. Run notebook 06, or make study."
        )
    return pd.concat(tables, names=["encoder"])


def smallest_p(scores: pd.DataFrame) -> float:
    """The smallest corrected p value these repetitions can give: all of one sign, times the number of comparisons (Holm)."""
    systems = len(scores.columns)
    return min(1.0, 2.0 ** (1 - len(scores)) * systems * (systems - 1) / 2)


def not_told_apart(ranks: pd.DataFrame, alpha: float) -> str:
    """The outcome of `draw_ranks` in words: the order of the methods, and which of them are not told apart at this level."""
    ordered = ranks.sort_values("rank")
    order = ", ".join(f"{row.system} ({row.rank:.1f})" for row in ordered[["system", "rank"]].itertuples(index=False))
    pairs = [f"{first} and {second}" for first, second in _alike(ranks, alpha)]
    return f"mean ranks {order}; not told apart at α = {alpha:g}: {'; '.join(pairs) or 'none'}"


def best_and_worst(ranks: pd.DataFrame, alpha: float) -> str:
    """The outcome of `draw_ranks` in few words: the first and the last method, and how many pairs are not told apart."""
    first, *_, last = ranks.sort_values("rank")[["system", "rank"]].itertuples(index=False)
    pairs = f"{len(_alike(ranks, alpha))} of {len(ranks) * (len(ranks) - 1) // 2} pairs"
    ends = f"{first.system} ranks first ({first.rank:.1f}), {last.system} last ({last.rank:.1f})"
    return f"{ends}; not told apart at α = {alpha:g}: {pairs}"


def _alike(ranks: pd.DataFrame, alpha: float) -> list[tuple[str, str]]:
    p_values, ordered = ranks.set_index("system"), ranks.sort_values("rank").system
    return [(one, other) for one, other in combinations(ordered, 2) if p_values.loc[one, f"p against {other}"] >= alpha]


def draw_trade_off(curves: pd.DataFrame, chosen: pd.DataFrame, ax: Axes) -> None:
    """Draw accuracy against correlation for every `a` of a weighting; squares and circles mark the chosen ones.

    Args:
        curves: of `trade_off`, one weighting.
        chosen: of `on_stsb`, the unweighted embedding and that weighting.
    """
    for part, curve in curves.groupby("part"):
        colour = {"train": plotting.MUTED, "test": plotting.OURS}[part]
        ax.plot(curve.pearson, curve.accuracy, ".-", label=part, color=colour)
    before, *rules = chosen.itertuples()
    for row, (marker, size) in zip(rules, [("s", 12), ("o", 8)], strict=True):
        label = f"{row.rule}, a = {row.a:g}"
        ax.plot(row.pearson, row.accuracy, marker, ms=size, mfc="none", mec=plotting.PUBLISHED, label=label)
    ax.set_xlabel("Pearson × 100 with human scores")
    ax.legend(title="a from 0 (lowest) to 5", loc="upper center", bbox_to_anchor=(0.5, -0.2))
    moved = f"accuracy {before.accuracy:.0f} → {rules[0].accuracy:.0f}, r {before.pearson:.0f} → {rules[0].pearson:.0f}"
    plotting.state(ax, f"{rules[0].weighting}: {moved}")


def highest_mean(runs: pd.DataFrame) -> str:
    """The weighting and K with the highest mean accuracy against the unweighted encoder, in words.

    Args:
        runs: of `within_semantoneg`, one way to split.
    """
    means = runs.groupby(["weighting", "k"]).accuracy.mean()
    weighting, k = means.idxmax()
    return f"{means['none', 0]:.0f} % unweighted, at most {means.max():.0f} % ({weighting}, K = {k})"


def draw_ranks(scores: pd.DataFrame, ax: Axes, alpha: float) -> pd.DataFrame:
    """Draw Figure 3, the critical-difference diagram of systems (Wilcoxon–Holm).

    Args:
        scores: one row per repetition, one column per system.

    Returns:
        system, mean rank (1 = best), and the corrected p value against each other system.
    """
    import scikit_posthocs

    p_values = stats.wilcoxon_holm(scores)
    ranks = scores.rank(axis=1, ascending=False).mean()
    drawn = scikit_posthocs.critical_difference_diagram(ranks, p_values, alpha=alpha, ax=ax)
    for (crossbar,) in drawn["crossbars"]:  # its points come from a set; in order, the file is the same in every run
        crossbar.set_xdata(sorted(crossbar.get_xdata()))
    return p_values.rename_axis("system").add_prefix("p against ").reset_index().assign(rank=ranks.to_numpy())


def result_rows(
    encoder: str,
    *,
    table1: pd.DataFrame,
    table2: pd.DataFrame,
    table3: pd.DataFrame,
    sts: str,
    benchmark: str,
    **about: object,
) -> list[dict]:
    """The notebook's tables as measurements. A variant of the method is a system of its own: the encoder with an adapter of a
    weighting, whose `a` was chosen by a rule or whose weights were learnt on K samples. The encoder itself on all of SemAntoNeg
    is notebook 07's to measure. Over samples and splits the interval holds 95 % of them, as it should the paper's one.

    Args:
        sts, benchmark: the corpora's names.
        about: scale, trained_on and fingerprint of every row (see `results.row`).
    """
    rows = []
    labels = [corpora.describe(name).label for name in (sts, benchmark)]
    for item in table1.itertuples():
        data = f"{sts} dev+test, {item.negations} negations"
        for metric, value, n in [("accuracy", item.accuracy, item.n), ("pearson", item.pearson, item.n_pairs)]:
            rows.append(results.row(_variant(encoder, item), labels[0], metric, value, n=n, data=data, **about))
    for item in table2.itertuples():
        where = (_variant(encoder, item), labels[1], "accuracy")
        if item.weighting != "none":
            rows.append(results.row(*where, item.accuracy, n=item.n, data=f"{benchmark} test", **about))
        spread = (item.mean - TWO_SIDED * item.sd, item.mean + TWO_SIDED * item.sd)
        data = f"{benchmark}, {table3.answers.max()} samples"
        rows.append(results.row(*where, item.mean, n=item.sample_n, data=data, interval=spread, **about))
    for item in table3.itertuples():
        by_sample = item.k == 0 and item.split == BY_ROW  # the same as in table 2
        if not np.isnan(item.accuracy) and not by_sample:
            system = encoder if item.k == 0 else f"{encoder} + adapter ({item.weighting}, K = {item.n_train:.0f})"
            spread = (item.accuracy - TWO_SIDED * item.sd, item.accuracy + TWO_SIDED * item.sd)
            where, data = (
                (system, labels[1], "accuracy", item.accuracy),
                f"{benchmark}, {item.answers} splits {item.split}",
            )
            rows.append(results.row(*where, n=item.n_test, data=data, interval=spread, **about))
    return rows


def _variant(encoder: str, item: tuple) -> str:
    if item.weighting == "none":
        return encoder
    return f"{encoder} + adapter ({item.weighting}, a by {item.rule})"
