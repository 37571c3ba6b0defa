"""Labels for GSM8K errors, and their agreement.

A pass of an annotator is a file `data/gsm8k/labels/gsm8k_<annotator>_<pass>.csv` with a row per label: id, solution (a hash of
the labelled text, which no other model's solution has), label, minute (UTC). A second pass is blind and in another order.
Annotators are people, unless their name begins with `model-`.
"""

import hashlib
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from nblib import paths
from nblib.analysis.gsm8k.errors import LABELS, UNDECIDED
from nblib.errors import StudyError, readable

RESAMPLES = 2000
COLUMNS = ["id", "solution", "label", "minute"]
_FORMS = {"id": r"[\w-]+", "solution": "[0-9a-f]{12}", "minute": r"\d{4}-\d\d-\d\dT\d\d:\d\dZ"}
_NAME = re.compile(r"gsm8k_(?P<annotator>[A-Za-z0-9.-]+)_(?P<number>\d+)\.csv")


class LabelError(StudyError):
    """Labels that can't be used."""


def fingerprint(solution: str) -> str:
    """The hash of a labelled text: 12 hexadecimal digits."""
    return hashlib.sha256(solution.encode()).hexdigest()[:12]


def read(file: Path) -> pd.DataFrame:
    """One pass.

    Raises:
        LabelError: a column is missing, a label unknown, or an item labelled twice.
    """
    with readable(file, f"Correct its lines: a header {','.join(COLUMNS)}, then one for each label.", LabelError):
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
    if missing := [column for column in COLUMNS if column not in table]:
        raise LabelError(f"{file}: no column {', '.join(missing)}; labels have {', '.join(COLUMNS)}.")
    if unknown := sorted(set(table.label) - set(LABELS)):
        shown = ", ".join(repr(label[:40]) for label in unknown)
        raise LabelError(
            f"{file}: unknown label {shown}; known: {', '.join(LABELS)}. Correct it, or git checkout {file}"
        )
    if (repeated := table.duplicated(["id", "solution"])).any():
        raise LabelError(f"{file}: {table.id[repeated].iloc[0]} is labelled twice. Delete one line.")
    for column, form in _FORMS.items():
        wrong = np.flatnonzero(~table[column].str.fullmatch(form))
        if len(wrong):
            shown = table[column].iloc[wrong[0]][:40]
            raise LabelError(f"{file}, row {wrong[0] + 2}: {shown!r} can't be a label's {column}. Correct it.")
    return table[COLUMNS]


def load(folder: str | Path, errors: pd.DataFrame) -> pd.DataFrame:
    """All labels of these errors, a column for each pass ("<annotator> <pass>"), rows as in `errors`; NaN where there is none.
    Labels of other solutions to the same problems don't count."""
    keys = list(zip(errors.id, errors.tuned_solution.map(fingerprint), strict=True))
    found = {}
    for file in sorted(paths.resolve(folder).glob("gsm8k_*.csv")):
        name = _NAME.fullmatch(file.name)
        if name is None:
            raise LabelError(f"{file}: the name is not gsm8k_<annotator>_<pass>.csv, so the annotator is unknown.")
        table = read(file)
        labels = dict(zip(zip(table.id, table.solution, strict=True), table.label, strict=True))
        column = [labels.get(key) for key in keys]
        if any(column):
            found[f"{name['annotator']} {name['number']}"] = column
    return pd.DataFrame(found, index=errors.index, dtype=object)


def agreement(labels: pd.DataFrame) -> pd.DataFrame:
    """Cohen's κ between every two columns of `load`.

    Returns:
        first, second, items ("all": labelled by both; "decided": undecided by neither), n, agree (items with the same
        category), kappa, low, high (95 % bootstrap; NaN where κ isn't defined: no item, or only one category).
    """
    rows = []
    for first, second in combinations(labels, 2):
        both = labels[[first, second]].dropna()
        for items, part in (("all", both), ("decided", both[(both != UNDECIDED).all(axis=1)])):
            rows.append((first, second, items, *_kappa(part[first], part[second])))
    return pd.DataFrame(rows, columns=["first", "second", "items", "n", "agree", "kappa", "low", "high"])


def _kappa(first: pd.Series, second: pd.Series) -> tuple[int, int, float, float, float]:
    from sklearn.metrics import cohen_kappa_score, confusion_matrix  # a second to import

    agree = int((first == second).sum())
    if len(set(first) | set(second)) < 2:
        return len(first), agree, float("nan"), float("nan"), float("nan")
    table = confusion_matrix(first, second, labels=LABELS)
    # a resample of the items is a draw from the table's cells; scikit-learn's κ of each resample would take minutes
    draws = np.random.default_rng(0).multinomial(len(first), table.ravel() / len(first), size=RESAMPLES)
    with np.errstate(invalid="ignore"):  # a resample of one category has none
        low, high = np.nanquantile(_kappas(draws.reshape(-1, *table.shape)), [0.025, 0.975])
    return len(first), agree, float(cohen_kappa_score(first, second)), float(low), float(high)


def _kappas(tables: np.ndarray) -> np.ndarray:
    """Cohen's κ of tables of counts, shape [k, labels, labels] → [k]."""
    n = tables.sum(axis=(1, 2))
    observed = np.trace(tables, axis1=1, axis2=2) / n
    expected = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / n**2
    return (observed - expected) / (1 - expected)
