"""Systems of every architecture beside each other, over the predictions they have left: encoders (notebook 07) and rankers
(`nblib.ranking`) alike. No model is loaded here."""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import paths, published, results, scores

# Weller's Table 2 names its kinds in the plural
KINDS = {
    "chance": "Random", "tf-idf": "Sparse", "sparse": "Sparse", "late-interaction": "Late Interaction",
    "cross-encoder": "Cross-Encoders", "monot5": "Cross-Encoders",
}  # fmt: skip
ENCODERS = "Bi-Encoders"
NUMBERED = "Table 2"


def left_by(run_dir: str | Path, names: Sequence[str], task: str) -> dict[str, pd.DataFrame]:
    """Name → test predictions, of those systems that were scored on the whole of the task (a sample's aren't comparable).

    Raises:
        ScoreError: none was.
    """
    there = [name for name in names if (scores.folder_of(run_dir, name) / f"{task}_test.parquet").is_file()]
    for name in there or names[:1]:  # none: the first one's absence is the error to show
        scores.load_predictions(run_dir, name, task)
    return {name: scores.load_predictions(run_dir, name, task) for name in there}


def accuracies(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """system, value (percent right), low, high (95 %, resampled by cluster), n; a row per system.

    Args:
        judged: from `left_by`, of a pairwise task.
    """
    columns = {"system": "system", "value": "value", "ci_low": "low", "ci_high": "high", "n": "n"}
    measured = [{"system": name, **scores.measure(table)} for name, table in judged.items()]
    return pd.DataFrame(measured, columns=list(columns)).rename(columns=columns)


def architectures(run_dir: str | Path, measured: pd.DataFrame) -> pd.DataFrame:
    """Weller's Table 2 with ours beside it: kind, system, published, ours, low, high; systems of ours that it doesn't have
    below it.

    Args:
        measured: from `accuracies`, on NevIR.
    """
    printed = published.load("weller")
    printed = printed[(printed.exhibit == NUMBERED) & (printed.metric == "pairwise_accuracy")]
    table = pd.DataFrame({
        "kind": printed.note.str.extract(r"type: ([^;]+)", expand=False), "system": printed.system, "published": printed.value,
    })  # fmt: skip
    own = pd.DataFrame({
        "system": [published.system_name("weller", name) for name in measured.system],
        "kind_of": [kind(run_dir, name) for name in measured.system],
        "ours": measured.value, "low": measured.low, "high": measured.high,
    })  # fmt: skip
    joined = table.merge(own, on="system", how="outer", sort=False)
    order = list(dict.fromkeys(table.kind))
    joined["kind"] = pd.Categorical(joined.kind.fillna(joined.kind_of), order)
    return joined.drop(columns="kind_of").sort_values("kind", kind="stable", ignore_index=True)


def kind(run_dir: str | Path, name: str) -> str:
    """The architecture of a system, as Weller calls it: what has left no `ranker.json` is an encoder."""
    file = scores.folder_of(run_dir, name) / "ranker.json"
    return KINDS[json.loads(file.read_text(encoding="utf-8"))["kind"]] if file.is_file() else ENCODERS


def mcnemar_holm(judged: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every two systems on the same items: exact McNemar tests, corrected by Holm's method.

    Args:
        judged: from `left_by`, of a pairwise task.

    Returns:
        first, second, difference (points, second minus first), only_first, only_second (items that one alone gets right), p
        (corrected).
    """
    from statsmodels.stats.contingency_tables import mcnemar  # a second to import
    from statsmodels.stats.multitest import multipletests

    correct = pd.DataFrame({name: table.set_index("id").correct for name, table in judged.items()}).astype(bool)
    rows = []
    for first, second in combinations(correct, 2):
        one, other = correct[first], correct[second]
        only_first, only_second = int((one & ~other).sum()), int((other & ~one).sum())
        test = mcnemar([[int((one & other).sum()), only_first], [only_second, int((~one & ~other).sum())]], exact=True)
        rows.append((first, second, 100 * (other.mean() - one.mean()), only_first, only_second, float(test.pvalue)))
    table = pd.DataFrame(rows, columns=["first", "second", "difference", "only_first", "only_second", "p"])
    return table.assign(p=multipletests(table.p, method="holm")[1] if len(table) else table.p)


def alignment(run_dir: str | Path, ranker: str) -> pd.DataFrame:
    """What MaxSim saw of the authored pair (`ranking.align`): the passage with the negation.

    Raises:
        ScoreError: the ranker has left none.
    """
    file = scores.folder_of(run_dir, ranker) / "alignment.csv"
    if not file.is_file():
        raise scores.ScoreError(f"No token alignment at {file}. Make it: python -m nblib.ranking … --run-dir {run_dir}")
    table = pd.read_csv(file, keep_default_na=False)  # "null" and "nan" are tokens, too
    return table[table.document == "negated"].drop(columns="document")


def claim(run_dir: str | Path, names: Sequence[str], base: str, task: str = "SemAntoNeg") -> pd.DataFrame:
    """Vahtola's claim on one base: what was trained from it on each family's data (`nblib.families`), beside it.

    Args:
        names: of such trainings.

    Returns:
        system, family, seed, value, low, high (percent, 95 % by cluster), difference, difference_low, difference_high (points
        to the base, paired), n.

    Raises:
        ScoreError: one of them, or the base, has left no predictions, or doesn't say what it was trained on.
    """
    start, rows = scores.load_predictions(run_dir, base, task), []
    for name in names:
        judged = scores.load_predictions(run_dir, name, task)
        about = _about(run_dir, name)
        if "family" not in about:
            raise scores.ScoreError(f"{name} is no training of a family's. Make one: python -m nblib.families --help")
        change, measured = scores.compare(start, judged), accuracies({name: judged}).iloc[0]
        rows.append({
            **measured, "family": about["family"], "seed": about["seed"], "difference": change["difference"],
            "difference_low": change["low"], "difference_high": change["high"],
        })  # fmt: skip
    columns = [
        "system",
        "family",
        "seed",
        "value",
        "low",
        "high",
        "difference",
        "difference_low",
        "difference_high",
        "n",
    ]
    return pd.DataFrame(rows, columns=columns)


def epochs(run_dir: str | Path, watched: str, architectures: Sequence[str]) -> pd.DataFrame:
    """Weller's Figures 5, 8 and 11: dev scores before fine-tuning on NevIR and after each epoch (percent, or × 100).

    Args:
        watched: the training of a bi-encoder that notebook 04 has watched.
        architectures: others that `nblib.nevir_training` has trained.

    Returns:
        architecture, epoch, set, value, n.

    Raises:
        ScoreError: one of them has left nothing.
    """
    left = {"bi-encoder": paths.resolve(run_dir) / "figures" / f"fig_04_training_{watched}.csv"}
    left |= {name: scores.folder_of(run_dir, f"nevir-{name}") / "epochs.csv" for name in architectures}
    for name, file in left.items():
        if not file.is_file():
            how = f"python -m nblib.nevir_training {name}" if name in architectures else f"notebook 04 as {watched}"
            raise scores.ScoreError(f"No epochs of a {name} at {file}. Train it: {how}, with run_dir {run_dir}.")
    tables = [pd.read_csv(file).assign(architecture=name) for name, file in left.items()]
    table = pd.concat(tables, ignore_index=True).dropna(subset="n")  # the training loss has no n
    return table[["architecture", "epoch", "set", "value", "n"]].reset_index(drop=True)


def costs(run_dir: str | Path, names: Sequence[str], task: str) -> pd.DataFrame:
    """What a system costs beside what it understands.

    Returns:
        system, kind, value (percent on the task), parameters (in millions; 0 where it has none), milliseconds (a text encoded,
        or a query ranked with one passage, on the machine and in the company it ran in); systems without the last left out.
    """
    table = accuracies(left_by(run_dir, names, task))[["system", "value"]]
    table["kind"] = [kind(run_dir, name) for name in table.system]
    table["parameters"] = [_about(run_dir, name).get("parameters") or 0.0 for name in table.system]
    table["milliseconds"] = [_milliseconds(run_dir, name) for name in table.system]
    return table.dropna(ignore_index=True)


def _milliseconds(run_dir: str | Path, name: str) -> float:
    about = _about(run_dir, name)
    if "pairs" in about:
        return 1000 * about["seconds"] / about["pairs"]
    rate = (about.get("throughput") or {}).get("texts_per_second")
    return 1000 / rate if rate else np.nan


def _about(run_dir: str | Path, name: str) -> dict:
    """What the sidecar of a system's results says; empty where there is none."""
    file = paths.resolve(run_dir) / "results" / f"07_{name}.csv.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def shared_error_rows(
    shared: pd.DataFrame, by_antonyms: pd.DataFrame, encoders: int, scale: str, data: str
) -> list[dict]:
    """Vahtola §6 as rows of the results schema, stand-ins all: how many items all encoders get wrong, and on the two antonym
    pairs it names.

    Args:
        shared: from `semantoneg.shared_errors`.
        by_antonyms: from `semantoneg.errors_by_antonyms`, of those items.
    """
    of_pair = by_antonyms.set_index("antonyms").errors
    counts = {"shared_errors": len(shared)}
    counts |= {
        f"shared_errors_{first}_{second}": int(of_pair.get(" – ".join(sorted((first, second))), 0))
        for first, second in [("possible", "actual"), ("same", "other")]
    }
    return [
        results.row(
            "vahtola", "Error analysis", "models of Table 7", "SemAntoNeg", metric, count, n=int(by_antonyms.n.sum()),
            scale=scale, data=data, official=False, model=f"{encoders} encoders of this run", stand_in=True,
        )
        for metric, count in counts.items()
    ]  # fmt: skip


def shown_rows(
    paper: str, exhibits: Mapping[str, int], scale: str, suite: str, reproduced: Sequence[str] = ()
) -> list[dict]:
    """Rows of the results schema for exhibits that print no number: ours has none either, and `n` rows of data behind it.

    Args:
        exhibits: exhibit → number of rows drawn; without any it isn't recorded.
        reproduced: those made of the official data alone, no model in them.
    """
    return [
        results.row(
            paper, exhibit, "the exhibit", "", "shown", math.nan, n=count, scale=scale, data=f"{suite} suite",
            official=exhibit in reproduced and suite != "mini",
        )
        for exhibit, count in exhibits.items()
        if count
    ]  # fmt: skip
