"""An example search: which passage ranks first for a question with and without its negation?

The corpus is `nevir_mini`'s two hundred authored passages. Each topic has two, one with the negation and one without: both belong
on top, and the question decides which is first.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import pandas as pd

from nblib import artefacts, corpora, paths
from nblib.errors import StudyError
from nblib.models.systems import StoredSystem, System

CORPUS = "nevir_mini"
QUESTIONS = ("nevir_mini-001", "nevir_mini-007", "nevir_mini-013")
SHOWN = 5  # results a question


class SearchError(StudyError):
    """A search that has not been run."""


def run(system: System, run_dir: str | Path, pair_ids: Sequence[str] = QUESTIONS) -> pd.DataFrame:
    """Search for both questions of each pair; write `<run_dir>/scores/<system>/search.csv`.

    Returns:
        pair, query, rank (1 is best), passage, similarity, right (it answers this question), other (it answers the pair's
        other question); `SHOWN` rows a question.
    """
    columns = ["pair", "query", "rank", "passage", "similarity", "right", "other"]
    if isinstance(system, StoredSystem):  # it can't search: what it found before is shown
        file = _file(run_dir, system.name)
        return artefacts.read_table(file) if file.is_file() else pd.DataFrame(columns=columns)
    pairs = corpora.load(CORPUS)
    passages = [*pairs.doc1, *pairs.doc2]
    chosen = pairs.set_index("id").loc[list(pair_ids)]
    questions = [(pair, row[q], row[own], row[other]) for pair, row in chosen.iterrows() for q, own, other in _SIDES]
    scores = system.score([query for _, query, _, _ in questions for _ in passages], passages * len(questions))
    rows = []
    for (pair, query, own, other), near in zip(questions, scores.reshape(len(questions), -1), strict=True):
        for rank, place in enumerate((-near).argsort(kind="stable")[:SHOWN], start=1):
            passage = passages[place]
            rows.append((pair, query, rank, passage, float(near[place]), passage == own, passage == other))
    table = pd.DataFrame(rows, columns=columns)
    artefacts.write_table(table, _file(run_dir, system.name), float_format="%.4f")
    return table


def done(run_dir: str | Path, systems: Sequence[str]) -> list[str]:
    """Those of the systems that were searched with in this run."""
    return [name for name in systems if _file(run_dir, name).is_file()]


_SIDES = (("q1", "doc1", "doc2"), ("q2", "doc2", "doc1"))


def side_by_side(run_dir: str | Path, systems: Sequence[str]) -> pd.DataFrame:
    """The results of several systems: query, rank, and a column of HTML per system with an `excerpt` of the passage, in bold
    with ✓ where it is right, with ✗ where it answers the opposite question.

    Raises:
        SearchError: a system was not searched with.
    """
    pairs = corpora.load(CORPUS)
    twins = dict(zip([*pairs.doc1, *pairs.doc2], [*pairs.doc2, *pairs.doc1], strict=True))
    tables = []
    for name in systems:
        file = _file(run_dir, name)
        if not file.is_file():
            raise SearchError(f"No search at {file}. Run notebook 07 for {name} with this run_dir.")
        table = artefacts.read_table(file).set_index(["query", "rank"])
        tables.append(table.apply(lambda row: _cell(row, twins.get(row.passage, "")), axis=1).rename(name))
    return pd.concat(tables, axis=1).loc[tables[0].index].reset_index()


def excerpt(passage: str, twin: str, lead: int = 4, around: int = 12) -> str:
    """The first words of a passage, and the words around the first in which it differs from another."""
    words = passage.split()
    same = [word == other for word, other in zip(words, twin.split(), strict=False)]
    differs = same.index(False) if False in same else 0
    start = max(differs - lead, 0)
    head = " ".join(words[: min(lead, start)]) + " … " if start else ""
    return head + " ".join(words[start : start + around]) + (" …" if start + around < len(words) else "")


def _cell(row: pd.Series, twin: str) -> str:
    text = escape(excerpt(row.passage, twin))
    return f"✓ <b>{text}</b>" if row.right else f"✗ {text}" if row.other else text


def first_right(run_dir: str | Path, system: str) -> tuple[int, int]:
    """How many questions have the right passage first, and how many questions there are."""
    first = artefacts.read_table(_file(run_dir, system)).query("rank == 1")
    return int(first.right.sum()), len(first)


def _file(run_dir: str | Path, system: str) -> Path:
    return paths.resolve(run_dir) / "scores" / system / "search.csv"
