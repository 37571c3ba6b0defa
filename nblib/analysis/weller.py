"""NevIR (Weller et al.). A pair's first document is CondaQA's original passage, with the negation; the second is edited."""

import string
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import stats
from nblib.benchmarks import scoring
from nblib.benchmarks.nevir import EDITS
from nblib.errors import StudyError
from nblib.models import embeddings, encoders, registry
from nblib.results import published
from nblib.training import records

EDIT_PARTS = {"scope of the negation changed": "scope_changed", "negation undone": "negation_undone"}  # in measurements
# As Weller's Table 2 names them
ARCHITECTURES = {"bi-encoder": "Bi-Encoders", "chance": "Random", "tf-idf": "Sparse", "sparse": "Sparse"}
ARCHITECTURES |= {"late-interaction": "Late Interaction", "cross-encoder": "Cross-Encoders", "monot5": "Cross-Encoders"}
PREFERENCES = ("both right", "negated document", "edited document", "reversed", "tie")
PAIRS = {"question": ("q1", "q2"), "document": ("doc1", "doc2")}


def statistics(pairs: pd.DataFrame) -> pd.DataFrame:
    """Table 1 for one split: metric (as in the published numbers), value; lengths in words, between white space."""
    rows = [("pairs", len(pairs))]
    for text, columns in PAIRS.items():
        lengths = [pairs[column].str.split().str.len() for column in columns]
        rows += [(f"{text}_{number}_length", length.mean()) for number, length in enumerate(lengths, start=1)]
        rows.append((f"{text}_length_difference", (lengths[0] - lengths[1]).abs().mean()))
    return pd.DataFrame(rows, columns=["metric", "value"])


def word_differences(pairs: pd.DataFrame) -> pd.DataFrame:
    """Figure 3: id, text (question or document), words (how many different ones only one text of the pair has)."""
    tables = []
    for text, columns in PAIRS.items():
        words = [[{w.strip(string.punctuation) for w in t.lower().split()} - {""} for t in pairs[c]] for c in columns]
        different = [len(one ^ other) for one, other in zip(*words, strict=True)]
        tables.append(pd.DataFrame({"id": pairs.id, "text": text, "words": different}))
    return pd.concat(tables, ignore_index=True)


def preferences(predictions: pd.DataFrame) -> pd.DataFrame:
    """Figure 4: which document ranks first for both questions, by margin_q1 and margin_q2, or "reversed" (each time the
    other's), or a tie: preference (`PREFERENCES`), share (percent of all items), low, high (95 %, resampled by cluster), n (how
    many items have it)."""
    first, second = np.sign(predictions.margin_q1), np.sign(predictions.margin_q2)
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    preferred = np.select([(first == a) & (second == b) for a, b in signs], PREFERENCES[:-1], PREFERENCES[-1])
    table = scoring.accuracies({name: predictions.assign(correct=preferred == name) for name in PREFERENCES})
    table["n"] = [(preferred == name).sum() for name in PREFERENCES]
    return table.rename(columns={"system": "preference", "value": "share"})


def errors(predictions: pd.DataFrame) -> pd.DataFrame:
    """§5.4 as measurements: share_reversed (percent), and lean_to_edited, the points by which the edited document comes first for
    both questions more often than the negated one (a tie counts half): metric, value, ci_low, ci_high (95 %, by cluster), n."""
    first, second = np.sign(predictions.margin_q1), np.sign(predictions.margin_q2)
    columns = {"share_reversed": (first == -1) & (second == -1), "lean_to_edited": (second - first) / 2}
    values = [[one.mean(), *stats.cluster_bootstrap(one, predictions.cluster)] for one in columns.values()]
    table = pd.DataFrame(values, columns=["value", "ci_low", "ci_high"]) * 100
    return table.assign(metric=list(columns), n=len(predictions))


def document_cosines(names: Sequence[str], pairs: pd.DataFrame) -> pd.DataFrame:
    """Figure 8 before training, as measurements of those encoders that are registered: system, metric, value (the mean cosine of
    a pair's two documents × 100), ci_low, ci_high (95 %, over pairs), n."""
    rows = []
    for name in filter(registry.find, names):
        encoder = encoders.load(name)
        first, second = (embeddings.encode(encoder, [*pairs[text]], role="document") for text in PAIRS["document"])
        cosines = 100 * embeddings.similarity(first, second)
        rows.append((name, "document_cosine", cosines.mean(), *stats.cluster_bootstrap(cosines), len(pairs)))
    return pd.DataFrame(rows, columns=["system", "metric", "value", "ci_low", "ci_high", "n"])


def by_edit(predictions: pd.DataFrame) -> pd.DataFrame:
    """Figure 7: edit (of `EDITS`), value (percent right), low, high (95 %, resampled by cluster), n; a KeyError for an id that
    isn't the official NevIR's."""
    edits = [EDITS[one.rpartition("-")[2]] for one in predictions.id]
    return scoring.accuracies(dict(iter(predictions.groupby(edits)))).rename(columns={"system": "edit"})


def architectures(run_dir: str | Path, measured: pd.DataFrame) -> pd.DataFrame:
    """Table 2 with our `scoring.accuracies` on NevIR, last within their architecture: architecture, system, published, low,
    high, ours, trained (by this study), line (of a figure: our system's name, or the architecture)."""
    printed = published.load("weller").query("exhibit == 'Table 2' and metric == 'pairwise_accuracy'")
    table = pd.DataFrame({"system": printed.system, "published": printed.value})
    table["architecture"] = printed.note.str.extract(r"type: ([^;]+)", expand=False)
    known = [scoring.about(run_dir, name) for name in measured.system]
    own = measured[["low", "high"]].assign(ours=measured.value)
    own["system"] = [published.system_name("weller", name) for name in measured.system]
    own["own"] = [ARCHITECTURES.get(one["architecture"], one["architecture"]) for one in known]
    own["trained"] = [bool(one.get("trained_on")) for one in known]
    order = list(dict.fromkeys([*table.architecture, *own.own]))
    table = table.merge(own, on="system", how="outer", sort=False)
    table["architecture"] = pd.Categorical(table.architecture.fillna(table.own), order)
    table["trained"], measured_here = table.trained.eq(True), table.ours.notna()
    table["line"] = table.architecture.astype(str).where(~measured_here, table.system)
    table = table.assign(last=measured_here).sort_values(["architecture", "last"], kind="stable", ignore_index=True)
    table["line"] = pd.Categorical(table.line, list(dict.fromkeys(table.line)))
    return table[["architecture", "system", "published", "low", "high", "ours", "trained", "line"]]


def epochs(run_dir: str | Path, trainings: Sequence[str]) -> pd.DataFrame:
    """Figures 5, 8 and 11: dev scores of trainings before the first and after each epoch: architecture, epoch, set, value
    (percent, or × 100), n; a StudyError: no such training, or one that was not evaluated."""
    columns, tables = ["architecture", "epoch", "set", "value", "n"], [pd.DataFrame()]
    for name in trainings:
        record = records.load(run_dir, name)
        scores = record.table("epochs")
        if scores.empty:
            raise StudyError(f"{name} was not evaluated after every epoch. Train it with -p evaluate_every_epoch true.")
        tables.append(scores.assign(architecture=record.about["made_from"]["architecture"]))
    return pd.concat(tables, ignore_index=True).reindex(columns=columns)
