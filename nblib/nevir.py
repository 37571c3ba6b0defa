"""NevIR's pairs (Weller et al.): how the texts of a pair differ, and which document a system prefers.

A pair's first document is CondaQA's original passage, which has the negation; the second is the edited one. The id ends in
CondaQA's kind of edit (`PassageEditID` of its data card).
"""

import string
from collections.abc import Sequence

import numpy as np
import pandas as pd

from nblib import stats

EDITS = {"2": "scope of the negation changed", "3": "negation undone"}
PREFERENCES = ("both right", "negated document", "edited document", "reversed", "tie")
PAIRS = {"question": ("q1", "q2"), "document": ("doc1", "doc2")}


class NevIRError(ValueError):
    """A table that isn't NevIR's."""


def statistics(pairs: pd.DataFrame) -> pd.DataFrame:
    """Table 1: metric (as in the published numbers), value, for one split; length is in words, between white space.

    Args:
        pairs: q1, q2, doc1, doc2.
    """
    rows = [("pairs", len(pairs))]
    for kind, (first, second) in PAIRS.items():
        lengths = [pairs[column].str.split().str.len() for column in (first, second)]
        rows += [(f"{kind}_{place}_length", length.mean()) for place, length in enumerate(lengths, start=1)]
        rows.append((f"{kind}_length_difference", (lengths[0] - lengths[1]).abs().mean()))
    return pd.DataFrame(rows, columns=["metric", "value"])


def word_differences(pairs: pd.DataFrame) -> pd.DataFrame:
    """Figure 3: how many different words only one text of a pair has, in lower case and without punctuation.

    Args:
        pairs: id, q1, q2, doc1, doc2.

    Returns:
        id, kind (question or document), words; a row per pair and kind.
    """
    tables = []
    for kind, (first, second) in PAIRS.items():
        words = [len(_words(a) ^ _words(b)) for a, b in zip(pairs[first], pairs[second], strict=True)]
        tables.append(pd.DataFrame({"id": pairs.id, "kind": kind, "words": words}))
    return pd.concat(tables, ignore_index=True)


def _words(text: str) -> set[str]:
    return {word for word in (part.strip(string.punctuation) for part in text.lower().split()) if word}


def preference(predictions: pd.DataFrame) -> pd.Series:
    """Figure 4, item by item: which of the two documents stands first, one of `PREFERENCES`.

    "negated document" and "edited document": that one is first for both questions, also where the question asks for the
    other; "reversed": each question gets the other's document; "tie": a question can't tell them apart.

    Args:
        predictions: margin_q1 (score of the negated document minus that of the edited one, for the question about the
            negated) and margin_q2 (the other way round).

    Raises:
        NevIRError: there are no such columns.
    """
    if missing := {"margin_q1", "margin_q2"} - set(predictions):
        raise NevIRError(f"No {' and no '.join(sorted(missing))}: these are no predictions for NevIR's two questions.")
    first, second = predictions.margin_q1, predictions.margin_q2
    cases = [
        (first > 0) & (second > 0),
        (first > 0) & (second < 0),
        (first < 0) & (second > 0),
        (first < 0) & (second < 0),
    ]
    return pd.Series(np.select(cases, PREFERENCES[:-1], PREFERENCES[-1]), index=predictions.index)


def preferences(predictions: pd.DataFrame) -> pd.DataFrame:
    """Figure 4: preference, share (percent of all items), low, high (95 %, resampled by cluster), n (items); a row for each of
    `PREFERENCES`.

    Raises:
        NevIRError: see `preference`.
    """
    found, rows = preference(predictions), []
    for kind in PREFERENCES:
        is_so = found == kind
        low, high = stats.share_interval(is_so, predictions.cluster)
        rows.append((kind, 100 * is_so.mean(), 100 * low, 100 * high, int(is_so.sum())))
    return pd.DataFrame(rows, columns=["preference", "share", "low", "high", "n"])


def by_edit(predictions: pd.DataFrame) -> pd.DataFrame:
    """Figure 7: edit, value (percent right), low, high (95 %, resampled by cluster), n; a row per kind of edit.

    Args:
        predictions: id, cluster, correct.

    Raises:
        NevIRError: an id doesn't end in a kind of edit.
    """
    kinds = edits(predictions.id)
    rows = []
    for edit, part in predictions.groupby(kinds, sort=False):
        low, high = stats.share_interval(part.correct, part.cluster)
        rows.append((edit, 100 * part.correct.mean(), 100 * low, 100 * high, len(part)))
    return pd.DataFrame(rows, columns=["edit", "value", "low", "high", "n"]).sort_values("edit", ignore_index=True)


def edits(ids: Sequence[str]) -> np.ndarray:
    """The kind of edit each id names, one of `EDITS`' values, shape [n].

    Raises:
        NevIRError: an id doesn't end in a kind of edit.
    """
    endings = pd.Series(list(ids)).str.rpartition("-")[2]
    if (unknown := ~endings.isin(EDITS)).any():
        raise NevIRError(
            f"{unknown.sum()} of {len(endings)} ids end in no kind of edit (-2, -3), first: {list(ids)[unknown.argmax()]!r}. "
            "Only the official NevIR has them."
        )
    return endings.map(EDITS).to_numpy()
