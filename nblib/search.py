"""A search to look at: the same question with and without its negation, over a small corpus; what comes first?

The corpus is the passages of `nevir_mini`, two hundred authored ones on a hundred topics, two on each: one with the negation, one
without. Both are on the topic, so both belong on top; which is first is the question.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import pandas as pd

from nblib import corpora, embeddings, paths
from nblib.models import Encoder

CORPUS = "nevir_mini"
ASKED = ("nevir_mini-001", "nevir_mini-007", "nevir_mini-013")
SHOWN = 5  # results a question


class SearchError(ValueError):
    """A search that was never made."""


def run(encoder: Encoder, run_dir: str | Path, asked: Sequence[str] = ASKED, shown: int = SHOWN) -> pd.DataFrame:
    """Search, and keep what was found in `<run_dir>/scores/<encoder>/search.csv`.

    Args:
        asked: ids of pairs; both of their questions are asked.

    Returns:
        pair, query, rank (1 is best), passage, similarity, right (it answers this question), other (it answers the pair's
        other question); `shown` rows a question.
    """
    pairs = corpora.load(CORPUS)
    passages = [*pairs.doc1, *pairs.doc2]
    chosen = pairs.set_index("id").loc[list(asked)]
    questions = [(pair, row[q], row[own], row[other]) for pair, row in chosen.iterrows() for q, own, other in _SIDES]
    ask = embeddings.encode(encoder, [query for _, query, _, _ in questions], role="query")
    found = embeddings.encode(encoder, passages, role="document")
    rows = []
    for (pair, query, own, other), vector in zip(questions, ask, strict=True):
        near = embeddings.similarity(vector[None].repeat(len(found), axis=0), found, encoder.spec.similarity)
        for rank, place in enumerate((-near).argsort(kind="stable")[:shown], start=1):
            passage = passages[place]
            rows.append((pair, query, rank, passage, float(near[place]), passage == own, passage == other))
    table = pd.DataFrame(rows, columns=["pair", "query", "rank", "passage", "similarity", "right", "other"])
    with paths.write_atomically(_file(run_dir, encoder.name)) as draft:
        table.to_csv(draft, index=False, lineterminator="\n", float_format="%.4f")
    return table


_SIDES = (("q1", "doc1", "doc2"), ("q2", "doc2", "doc1"))


def beside(run_dir: str | Path, encoders: Sequence[str]) -> pd.DataFrame:
    """What several encoders found, side by side: query, rank, and a column of HTML for each encoder: the passage's first words
    and those around its negation, in bold with ✓ where it is the right one, with ✗ where it answers the opposite question.

    Raises:
        SearchError: one has left nothing.
    """
    pairs = corpora.load(CORPUS)
    twins = dict(zip([*pairs.doc1, *pairs.doc2], [*pairs.doc2, *pairs.doc1], strict=True))
    tables = []
    for name in encoders:
        file = _file(run_dir, name)
        if not file.is_file():
            raise SearchError(f"No search at {file}. Notebook 07 makes it: run it for {name} with this run_dir.")
        table = pd.read_csv(file).set_index(["query", "rank"])
        tables.append(table.apply(lambda row: _cell(row, twins.get(row.passage, "")), axis=1).rename(name))
    return pd.concat(tables, axis=1).loc[tables[0].index].reset_index()


def excerpt(passage: str, twin: str, lead: int = 4, around: int = 12) -> str:
    """The first words of a passage, and the words around the first in which it differs from another."""
    words = passage.split()
    differs = next(
        (place for place, pair in enumerate(zip(words, twin.split(), strict=False)) if len(set(pair)) > 1), 0
    )
    start = max(differs - lead, 0)
    head = " ".join(words[: min(lead, start)]) + " … " if start else ""
    return head + " ".join(words[start : start + around]) + (" …" if start + around < len(words) else "")


def _cell(row: pd.Series, twin: str) -> str:
    text = escape(excerpt(row.passage, twin))
    return f"✓ <b>{text}</b>" if row.right else f"✗ {text}" if row.other else text


def first_right(run_dir: str | Path, encoder: str) -> tuple[int, int]:
    """For how many of the questions the right passage came first, and of how many."""
    first = pd.read_csv(_file(run_dir, encoder)).query("rank == 1")
    return int(first.right.sum()), len(first)


def _file(run_dir: str | Path, encoder: str) -> Path:
    return paths.resolve(run_dir) / "scores" / encoder / "search.csv"
