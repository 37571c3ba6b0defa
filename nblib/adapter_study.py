"""Cao's experiments with the negation adapter (§5): on STSB, from STSB to SemAntoNeg, and within SemAntoNeg."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from tqdm.auto import tqdm

from nblib import diagnosis, embeddings, paths, results, stats
from nblib.models import Encoder
from nblib.negation_adapter import (
    DEFAULT_READING,
    GRID,
    READINGS,
    NegationAdapter,
    NoNegationSensitiveDimension,
    choices,
    contributions,
    correlations,
    softmax_weights,
)

TEST_SHARE = 2152 / 3152  # §5.3: 1000 items to learn from, 2152 to test on
BY_ROW, BY_SET = "by row (the paper's)", "by sentence set"


@dataclass(frozen=True)
class Pairs:
    """Embedded STSB pairs: `first`, `second`, `negated` [n, d], human `score` [n], and which of them are paraphrases
    (group 5), the anchors of the paraphrase-or-negation items of §5.1."""

    first: np.ndarray
    second: np.ndarray
    negated: np.ndarray
    score: np.ndarray
    is_paraphrase: np.ndarray

    @property
    def triplets(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Anchors, positives [n, d] and negatives [n, 1, d]."""
        keep = self.is_paraphrase
        return self.first[keep], self.second[keep], self.negated[keep][:, None]

    @property
    def scored(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First and second sentences with their human similarity: what the correlation is computed on."""
        return self.first, self.second, self.score


def embed_pairs(pairs: pd.DataFrame, encoder: Encoder) -> Pairs:
    """Embed pairs from `diagnosis.with_negations`, rows without NegS1 dropped.

    Raises:
        ValueError: no pair of group 5 is among them.
    """
    is_paraphrase = (pairs.group == max(diagnosis.GROUPS)).to_numpy()
    if not is_paraphrase.any():
        raise ValueError(
            "No pair of similarity group 5 has a usable negation: nothing to learn or test the adapter on."
        )
    first, second, negated = np.split(
        embeddings.encode(encoder, [*pairs.sentence1, *pairs.sentence2, *pairs.negated]), 3
    )
    return Pairs(first, second, negated, pairs.score.to_numpy(), is_paraphrase)


def on_stsb(train: Pairs, test: Pairs) -> pd.DataFrame:
    """Table 1 in every reading, with a chosen on the training part under both rules.

    Returns:
        reading, rule ("accuracy" alone, or "guarded": see `NegationAdapter`), adapter, a, train_accuracy, train_pearson,
        accuracy, pearson (percent, on test), n (triplets), n_pairs. The first row is the unweighted embedding (reading
        "none", no adapter).
    """
    plain = np.full((1, train.first.shape[1]), 1 / train.first.shape[1])
    rows = [
        ("none", "", None, 0.0, *_measure(train, plain, "weighted cosine"), *_measure(test, plain, "weighted cosine"))
    ]
    for reading in READINGS:
        for rule, scored in [("accuracy", None), ("guarded", train.scored)]:
            adapter = NegationAdapter(reading).fit(*train.triplets, scored=scored)
            weights = adapter.weights_[None, :]
            measured = (*_measure(train, weights, reading), *_measure(test, weights, reading))
            rows.append((reading, rule, adapter, adapter.a_, *measured))
    columns = ["reading", "rule", "adapter", "a", "train_accuracy", "train_pearson", "accuracy", "pearson"]
    return pd.DataFrame(rows, columns=columns).assign(n=int(test.is_paraphrase.sum()), n_pairs=len(test.score))


def _measure(pairs: Pairs, weights: np.ndarray, reading: str) -> tuple[float, float]:
    """Accuracy and Pearson (percent) under one row of weights."""
    accuracy = choices(*pairs.triplets, weights, reading).mean()
    return 100 * accuracy, 100 * correlations(*pairs.scored, weights, reading)[0]


def by_reason(pairs: pd.DataFrame, encoder: Encoder) -> pd.DataFrame:
    """The unweighted accuracy on paraphrase triplets by what the negator's output is worth: reason ("plain negation", or why
    it isn't trusted), accuracy (percent), n.

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
    """Accuracy against correlation over a, for each reading: a, accuracy and Pearson (percent) on train and on test."""
    mean = contributions(*train.triplets)
    weights = softmax_weights(mean, grid)
    rows = []
    for reading in READINGS:
        for name, pairs in [("train", train), ("test", test)]:
            right = choices(*pairs.triplets, weights, reading).mean(axis=0)
            pearson = correlations(*pairs.scored, weights, reading)
            rows += [(reading, name, a, 100 * right[k], 100 * pearson[k]) for k, a in enumerate(grid)]
    return pd.DataFrame(rows, columns=["reading", "part", "a", "accuracy", "pearson"])


def transfer(
    learnt: pd.DataFrame, vectors: tuple[np.ndarray, np.ndarray, np.ndarray], *, repeats: int = 10, seed: int = 0
) -> pd.DataFrame:
    """Table 2: the adapters of `on_stsb` on SemAntoNeg.

    Returns:
        reading, rule, a, accuracy on all items, n; mean and sd over random samples of `TEST_SHARE` of them, sample_n.
    """
    n, dimension = vectors[0].shape
    samples = [test for _, test in ShuffleSplit(repeats, test_size=TEST_SHARE, random_state=seed).split(vectors[0])]
    plain = np.full((1, dimension), 1 / dimension)
    rows = []
    for row in learnt.itertuples():
        weights, reading = (
            (plain, "weighted cosine") if row.adapter is None else (row.adapter.weights_[None, :], row.reading)
        )
        right = 100 * choices(*vectors, weights, reading)[:, 0]
        sampled = [right[sample].mean() for sample in samples]
        rows.append(
            (row.reading, row.rule, row.a, right.mean(), n, np.mean(sampled), np.std(sampled, ddof=1), len(samples[0]))
        )
    return pd.DataFrame(rows, columns=["reading", "rule", "a", "accuracy", "n", "mean", "sd", "sample_n"])


def random_splits(
    sentence_sets: Sequence[int], repeats: int, seed: int
) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Shuffled training and test rows of each repetition: `BY_ROW` as in the paper, `BY_SET` with every sentence set whole on
    one side."""
    options = {"n_splits": repeats, "test_size": TEST_SHARE, "random_state": seed}
    sets = np.asarray(sentence_sets)
    parts = {BY_ROW: ShuffleSplit(**options).split(sets), BY_SET: GroupShuffleSplit(**options).split(sets, groups=sets)}
    # GroupShuffleSplit returns rows in file order; the first K of them would be whole sets from the top of the file.
    return {
        split: [
            (np.random.default_rng([seed, k]).permutation(train), test) for k, (train, test) in enumerate(repetitions)
        ]
        for split, repetitions in parts.items()
    }


def in_domain(
    vectors: tuple[np.ndarray, np.ndarray, np.ndarray],
    sentence_sets: Sequence[int],
    train_sizes: Sequence[int],
    *,
    repeats: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Learn and test within SemAntoNeg over random splits (§5.3), by row and by sentence set, in every reading.

    Args:
        vectors: inputs, positives, negatives from `semantoneg.encode`.
        train_sizes: K; the first K items of the shuffled training part (all of them, where it has fewer) are learnt from.

    Returns:
        split, repeat, reading ("none" for the unweighted embedding), k (0 there), a (NaN for k = 0 or no result),
        n_train, n_test, accuracy (percent; NaN where max(V̄) ≤ 0), and the error in that case.
    """
    rows = []
    for split, parts in random_splits(sentence_sets, repeats, seed).items():
        for repeat, (train, test) in enumerate(tqdm(parts, desc=f"splits {split}")):
            held_out = [part[test] for part in vectors]
            plain = np.full((1, vectors[0].shape[1]), 1 / vectors[0].shape[1])
            unweighted = 100 * choices(*held_out, plain, "weighted cosine").mean()
            rows.append((split, repeat, "none", 0, np.nan, 0, len(test), unweighted, ""))
            for reading in READINGS:
                for k in train_sizes:
                    learnt = train[:k]
                    try:
                        adapter = NegationAdapter(reading).fit(*(part[learnt] for part in vectors))
                    except NoNegationSensitiveDimension as error:
                        rows.append((split, repeat, reading, k, np.nan, len(learnt), len(test), np.nan, str(error)))
                        continue
                    right = choices(*held_out, adapter.weights_[None, :], reading)
                    rows.append((split, repeat, reading, k, adapter.a_, len(learnt), len(test), 100 * right.mean(), ""))
    columns = ["split", "repeat", "reading", "k", "a", "n_train", "n_test", "accuracy", "error"]
    return pd.DataFrame(rows, columns=columns)


def metric_name(k: int) -> str:
    """What the paper's Tables 3 and 4 call the accuracy for a training size (0: unweighted); a size of our own gets a name of
    its own, and so no published number beside it."""
    return "accuracy" if k == 0 else f"accuracy_w_anto_{k}"


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and sd over the splits: split, reading, k, n_train, n_test (rounded means), answers (splits with a result),
    accuracy, sd. An accuracy is given only where every split has a result."""
    groups = runs.groupby(["split", "reading", "k"], sort=False)
    table = groups.agg(
        n_train=("n_train", "mean"), n_test=("n_test", "mean"), answers=("accuracy", "count"), splits=("accuracy", "size"),
        accuracy=("accuracy", "mean"), sd=("accuracy", "std"),
    ).reset_index()  # fmt: skip
    # The splits on which an adapter exists are not a fair sample of all splits.
    table.loc[table.answers < table.splits, ["accuracy", "sd"]] = np.nan
    return table.round({"n_train": 0, "n_test": 0}).drop(columns="splits")


def by_method(runs: pd.DataFrame, reading: str = DEFAULT_READING, split: str = BY_ROW) -> pd.DataFrame:
    """Scores for a rank diagram: a row per split, a column per training size with a result on every split."""
    chosen = runs[runs.reading.isin(["none", reading]) & (runs.split == split)]
    wide = chosen.pivot(index="repeat", columns="k", values="accuracy").dropna(axis="columns")
    return wide.rename(columns=lambda k: "unweighted" if k == 0 else f"K = {k}")


def pooled_methods(run_dir: str | Path) -> pd.DataFrame:
    """`by_method` over all encoders of a run; those without a result for every training size and split are left out.

    Raises:
        FileNotFoundError: notebook 06 has left no splits in the run.
    """
    tables = {}
    for file in sorted((paths.resolve(run_dir) / "scores").glob("*/adapter_splits.csv")):
        runs = pd.read_csv(file)
        scores = by_method(runs)
        if len(scores.columns) == runs.k.nunique():
            tables[file.parent.name] = scores
    if not tables:
        raise FileNotFoundError(
            f"No encoder with adapter results in {run_dir}/scores. `make study` makes them (notebook 06)."
        )
    return pd.concat(tables, names=["encoder"])


def smallest_p(scores: pd.DataFrame) -> float:
    """The smallest corrected p value these repetitions can give: all of one sign, times the number of comparisons (Holm)."""
    systems = len(scores.columns)
    return min(1.0, 2.0 ** (1 - len(scores)) * systems * (systems - 1) / 2)


def draw_ranks(scores: pd.DataFrame, ax: Axes, alpha: float) -> pd.DataFrame:
    """Figure 3: the critical-difference diagram of systems over repetitions (Wilcoxon–Holm).

    Args:
        scores: one row per repetition, one column per system.

    Returns:
        system, mean rank (1 = best), and the corrected p value against each other system.
    """
    import scikit_posthocs

    p_values = stats.wilcoxon_holm(scores)
    ranks = scores.rank(axis=1, ascending=False).mean()
    scikit_posthocs.critical_difference_diagram(ranks, p_values, alpha=alpha, ax=ax)
    return p_values.rename_axis("system").add_prefix("p against ").reset_index().assign(rank=ranks.to_numpy())


def result_rows(
    encoder: str,
    *,
    table1: pd.DataFrame,
    table2: pd.DataFrame,
    table3: pd.DataFrame,
    ranks: pd.DataFrame | None,
    exhibit: str,
    interval: tuple[float, float],
    scale: str,
    sts: str,
    benchmark: str,
    official: bool,
    stand_in: bool,
) -> list[dict]:
    """The notebook's tables as rows of the results schema: one row per printed cell and per way to read the method, which
    is named in `model`."""
    about = {"scale": scale, "official": official, "stand_in": stand_in}
    rows = []
    for item in table1.itertuples():
        data = f"{sts} dev+test, {item.negations} negations"
        weighted = "" if item.reading == "none" else "_w_sts"
        for metric, value, n in [("accuracy", item.accuracy, item.n), ("pearson", item.pearson, item.n_pairs)]:
            where = ("cao", "Table 1", encoder, "STSB", f"{metric}{weighted}")
            rows.append(results.row(*where, value, n=n, data=data, model=_variant(encoder, item), **about))
    for item in table2.itertuples():
        plain = item.reading == "none"
        where = ("cao", "Table 2", encoder, "SemAntoNeg", "accuracy" if plain else "accuracy_w_sts")
        own = {"model": _variant(encoder, item), **about}
        spread = (item.mean - item.sd, item.mean + item.sd)
        rows.append(
            results.row(
                *where, item.accuracy, n=item.n, data=benchmark, interval=interval if plain else (np.nan,) * 2, **own
            )
        )
        data = f"{benchmark}, {table3.answers.max()} samples"
        rows.append(results.row(*where, item.mean, n=item.sample_n, data=data, interval=spread, **own))
    for item in table3.itertuples():
        where = ("cao", exhibit, encoder, "SemAntoNeg", metric_name(item.k))
        model = encoder if item.k == 0 else f"{encoder} + adapter ({item.reading}, K = {item.n_train:.0f})"
        spread = (item.accuracy - item.sd, item.accuracy + item.sd)
        data = f"{benchmark}, {item.answers} splits {item.split}"
        if not np.isnan(item.accuracy):
            rows.append(
                results.row(*where, item.accuracy, n=item.n_test, data=data, model=model, interval=spread, **about)
            )
    for item in ranks.itertuples() if ranks is not None else ():
        where = ("cao", "Figure 3", encoder, "SemAntoNeg", f"mean rank, {item.system}")
        data = f"{benchmark}, {table3.answers.max()} splits {BY_ROW}"
        alone = {**about, "model": f"{encoder} alone; the paper pools ten encoders", "stand_in": True}
        rows.append(results.row(*where, item.rank, n=table3.answers.max(), data=data, **alone))
    return rows


def _variant(encoder: str, item: tuple) -> str:
    return encoder if item.reading == "none" else f"{encoder} + adapter ({item.reading}, a = {item.a:g}, {item.rule})"
