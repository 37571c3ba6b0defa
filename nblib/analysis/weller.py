"""NevIR (Weller et al.): how the texts of a pair differ, which document a system prefers, which architecture ranks by
negation, and what fine-tuning on the training pairs changes.

A pair's first document is CondaQA's original passage, with the negation; the second is the edited one. The id ends in CondaQA's
kind of edit (`PassageEditID`).
"""

import string
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from nblib import artefacts, paths, stats
from nblib.analysis import systems
from nblib.benchmarks import scoring
from nblib.corpora.nevir import EDITS
from nblib.errors import StudyError
from nblib.results import plotting, published

PREFERENCES = ("both right", "negated document", "edited document", "reversed", "tie")
COLOURS = [
    plotting.OURS,
    plotting.NEGATION,
    plotting.PARAPHRASE,
    plotting.MUTED,
    plotting.ABSENT,
]  # of `PREFERENCES`
_ABOVE = {"ncols": 3, "loc": "lower left", "bbox_to_anchor": (0, 1.08), "fontsize": 8}  # a legend
PAIRS = {"question": ("q1", "q2"), "document": ("doc1", "doc2")}


class NevIRError(StudyError):
    """A table that isn't NevIR's."""


def statistics(pairs: pd.DataFrame) -> pd.DataFrame:
    """Table 1 for one split: metric (as in the published numbers), value; lengths in words, between white space."""
    rows = [("pairs", len(pairs))]
    for kind, (first, second) in PAIRS.items():
        lengths = [pairs[column].str.split().str.len() for column in (first, second)]
        rows += [(f"{kind}_{place}_length", length.mean()) for place, length in enumerate(lengths, start=1)]
        rows.append((f"{kind}_length_difference", (lengths[0] - lengths[1]).abs().mean()))
    return pd.DataFrame(rows, columns=["metric", "value"])


def printed_statistics() -> dict[str, float]:
    """What the paper's Table 1 prints for the test split: metric → value."""
    table = published.load("weller")
    chosen = table[(table.exhibit == "Table 1") & (table.system == "NevIR test")]
    return dict(zip(chosen.metric, chosen.value, strict=True))


def word_differences(pairs: pd.DataFrame) -> pd.DataFrame:
    """Figure 3: id, kind (question or document), words: how many different words (lower case, no punctuation) only one text of
    the pair has."""
    tables = []
    for kind, (first, second) in PAIRS.items():
        words = [len(_words(a) ^ _words(b)) for a, b in zip(pairs[first], pairs[second], strict=True)]
        tables.append(pd.DataFrame({"id": pairs.id, "kind": kind, "words": words}))
    return pd.concat(tables, ignore_index=True)


def _words(text: str) -> set[str]:
    return {word for word in (part.strip(string.punctuation) for part in text.lower().split()) if word}


def preference(predictions: pd.DataFrame) -> pd.Series:
    """Figure 4, item by item: which document ranks first, one of `PREFERENCES`.

    "negated document" and "edited document": that one is first for both questions; "reversed": each question ranks the other's
    document first; "tie": a question's documents have equal scores.

    Args:
        predictions: margin_q1 (score of the negated document minus that of the edited one, for the question about the negated
            one) and margin_q2 (the other way round).

    Raises:
        NevIRError: a margin is missing.
    """
    if missing := {"margin_q1", "margin_q2"} - set(predictions):
        raise NevIRError(f"These aren't predictions on NevIR: they have no {' and no '.join(sorted(missing))}.")
    first, second = predictions.margin_q1, predictions.margin_q2
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    cases = [(np.sign(first) == a) & (np.sign(second) == b) for a, b in signs]
    return pd.Series(np.select(cases, PREFERENCES[:-1], PREFERENCES[-1]), index=predictions.index)


def preferences(predictions: pd.DataFrame) -> pd.DataFrame:
    """Figure 4: preference, share (percent of all items), low, high (95 %, resampled by cluster), n; a row for each of
    `PREFERENCES`.

    Raises:
        NevIRError: see `preference`.
    """
    preferred, rows = preference(predictions), []
    for kind in PREFERENCES:
        hits = preferred == kind
        low, high = stats.share_interval(hits, predictions.cluster)
        rows.append((kind, 100 * hits.mean(), 100 * low, 100 * high, int(hits.sum())))
    return pd.DataFrame(rows, columns=["preference", "share", "low", "high", "n"])


def by_edit(predictions: pd.DataFrame) -> pd.DataFrame:
    """Figure 7: edit, value (percent right), low, high (95 %, resampled by cluster), n; a row per kind of edit.

    Raises:
        NevIRError: see `edits`.
    """
    rows = []
    for edit, part in predictions.groupby(edits(predictions.id), sort=False):
        low, high = stats.share_interval(part.correct, part.cluster)
        rows.append((edit, 100 * part.correct.mean(), 100 * low, 100 * high, len(part)))
    return pd.DataFrame(rows, columns=["edit", "value", "low", "high", "n"]).sort_values("edit", ignore_index=True)


def edit_types_apart(by_edit: pd.DataFrame) -> list[str]:
    """The systems whose scores on the two kinds of edit have disjoint intervals.

    Args:
        by_edit: from `by_edit`, with the system.
    """
    bounds = by_edit.groupby("system", sort=False)[["low", "high"]].agg({"low": "max", "high": "min"})
    return bounds.index[bounds.low > bounds.high].tolist()


def draw_preferences(shares: pd.DataFrame, ax: Axes) -> None:
    """Draw Figure 4: a bar for each system (the index) with the shares of `PREFERENCES` (the columns, percent)."""
    shares.plot.barh(stacked=True, ax=ax, color=COLOURS, width=0.8)
    same_first = (shares[["negated document", "edited document"]].sum(axis=1) > 50).sum()
    ax.set_title(f"The same document first for most pairs: {same_first} of {len(shares)}")
    ax.set(xlabel="share of the pairs (%)", ylabel="")
    ax.legend(**_ABOVE)
    ax.invert_yaxis()


def draw_edits(by_edit: pd.DataFrame, ax: Axes) -> None:
    """Draw Figure 7: the score of each system by kind of edit, from `by_edit` with the system, in its order."""
    for kind, part in by_edit.groupby("edit"):
        plotting.interval_plot(ax, part, name=kind, filled=kind == EDITS["3"])
    apart = len(edit_types_apart(by_edit))
    ax.set_title(f"The edit matters to {apart} of {by_edit.system.nunique()}; Weller sees no difference")
    ax.set_xlabel("pairwise accuracy (%)")
    ax.legend(**_ABOVE)


def edits(ids: Sequence[str]) -> np.ndarray:
    """The kind of edit in each id, one of `EDITS`' values, shape [n].

    Raises:
        NevIRError: an id doesn't end in a kind of edit.
    """
    endings = pd.Series(list(ids)).str.rpartition("-")[2]
    if (unknown := ~endings.isin(EDITS)).any():
        raise NevIRError(
            f"{unknown.sum()} of {len(endings)} ids don't end in a kind of edit (-2, -3); the first is "
            f"{list(ids)[unknown.argmax()]!r}. Only the official NevIR has such ids."
        )
    return endings.map(EDITS).to_numpy()


def architectures(run_dir: str | Path, measured: pd.DataFrame) -> pd.DataFrame:
    """Table 2 with our scores: kind, system, published, ours, low, high, trained (whether this study trained it), line
    (of a figure: the kind for systems that are only published, the system for ours).

    Ours are last within their kind; kinds that the paper lacks are last.

    Args:
        measured: from `systems.accuracies`, on NevIR.
    """
    printed = published.load("weller")
    printed = printed[(printed.exhibit == "Table 2") & (printed.metric == "pairwise_accuracy")]
    kinds = printed.note.str.extract(r"type: ([^;]+)", expand=False)
    table = pd.DataFrame({"kind": kinds, "system": printed.system, "published": printed.value})
    own = pd.DataFrame({
        "system": [published.system_name("weller", name) for name in measured.system],
        "own_kind": [systems.kind(run_dir, name) for name in measured.system],
        "ours": measured.value, "low": measured.low, "high": measured.high,
        "trained": [scoring.trained_on(run_dir, name) != "" for name in measured.system],
    })  # fmt: skip
    joined = table.merge(own, on="system", how="outer", sort=False)
    joined["kind"] = pd.Categorical(joined.kind.fillna(joined.own_kind), list(dict.fromkeys([*kinds, *own.own_kind])))
    joined["line"] = joined.kind.astype(str).where(joined.ours.isna(), joined.system)
    joined["measured"] = joined.ours.notna()
    table = joined.drop(columns="own_kind").sort_values(["kind", "measured"], kind="stable", ignore_index=True)
    lines = pd.Categorical(table.line, list(dict.fromkeys(table.line)))
    return table.drop(columns="measured").assign(trained=table.trained.eq(True), line=lines)


def draw_architectures(table: pd.DataFrame, ax: Axes) -> None:
    """Draw `architectures`: a line for each kind with the published systems, below it one for each of ours."""
    lines = {"label": "line", "value": "ours"}
    untrained = table.assign(ours=table.ours.where(~table.trained))
    plotting.interval_plot(ax, untrained, published="published", name="as published", **lines)
    trained = {"colour": plotting.TRAINED, "name": "trained here"}
    plotting.interval_plot(ax, table[table.trained], **lines, **trained)


def alignment(run_dir: str | Path, system: str) -> pd.DataFrame:
    """Figures 9 and 10: which token of the passage with the negation each query token of an authored pair matches.

    Raises:
        ScoreError: there is none: the system has no late interaction, or wasn't scored.
    """
    file = scoring.folder_of(run_dir, system) / "alignment.csv"
    if not file.is_file():
        raise scoring.ScoreError(f"No token alignment at {file}. Make it: nblib score {system} --run-dir {run_dir}")
    table = artefacts.read_table(file, keep_default_na=False)  # "null" and "nan" are tokens, too
    return table[table.document == "negated"].drop(columns="document")


def draw_alignment(table: pd.DataFrame, ax: Axes) -> None:
    """Draw `alignment` as a heat map, query tokens by document tokens; a dot marks the match of each query token."""
    grid = table.pivot(index="query_place", columns="document_place", values="similarity")
    sns.heatmap(grid, cmap="viridis", vmin=0, vmax=1, ax=ax, cbar_kws={"label": "cosine"}, rasterized=True)
    found = table[table.greatest]
    ax.plot(found.document_place + 0.5, found.query_place + 0.5, "o", ms=4, color=plotting.NEGATION)
    documents, queries = table.drop_duplicates("document_place"), table.drop_duplicates("query_place")
    ax.set_xticks(grid.columns + 0.5, documents.document_token, rotation=90, fontsize=7)
    ax.set_yticks(grid.index + 0.5, queries.query_token, rotation=0, fontsize=8)
    ax.set(xlabel="tokens of the passage", ylabel="tokens of the question")


def epochs(run_dir: str | Path, every_epoch: str, nevir_trained: Sequence[str]) -> pd.DataFrame:
    """Figures 5, 8 and 11: dev scores before fine-tuning on NevIR and after each epoch (percent, or × 100).

    Args:
        every_epoch: the training of a bi-encoder that notebook 04 evaluated after every epoch.
        nevir_trained: systems of other architectures, trained with `nblib train … --data nevir --curve epochs`.

    Returns:
        architecture, epoch, set, value, n.

    Raises:
        ScoreError: a training has no curve.
    """
    by_notebook = paths.resolve(run_dir) / "figures" / "04_encoder_training" / f"fig_training_{every_epoch}.csv"
    run_04 = f"nblib run 04 out.ipynb -p name {every_epoch} -p evaluate_every_epoch true -p run_dir {run_dir}"
    curves = [(every_epoch, by_notebook, run_04)]
    for name in nevir_trained:
        train = f"nblib train {name} --data nevir --curve epochs --run-dir {run_dir}"
        curves.append((name, scoring.folder_of(run_dir, name) / "epochs.csv", train))
    tables = []
    for name, file, command in curves:
        if not file.is_file():
            raise scoring.ScoreError(f"There are no dev scores by epoch of {name} at {file}. Train it: {command}")
        table = artefacts.read_table(file)
        tables.append(table if "architecture" in table else table.assign(architecture="bi-encoder"))
    table = pd.concat(tables, ignore_index=True).dropna(subset="n")  # the training loss has no n
    return table[["architecture", "epoch", "set", "value", "n"]].reset_index(drop=True)
