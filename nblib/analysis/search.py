"""An example search: which passage ranks first for a question with and without its negation?

Of `nevir_mini`'s two hundred passages each topic has two, one with the negation and one without: both belong on top, and the
question decides which is first.
"""

import pandas as pd

from nblib import corpora
from nblib.models.systems import System

CORPUS = "nevir_mini"
PAIRS = ("nevir_mini-001", "nevir_mini-007", "nevir_mini-013")
SHOWN = 5  # passages a question


def search(system: System) -> pd.DataFrame:
    """Search for both questions of three pairs, `SHOWN` rows a question: query, rank (1 is best), passage (an `excerpt`),
    similarity, answers ("this question", "the opposite question" or "")."""
    table = corpora.load(CORPUS)
    passages, opposites = [*table.doc1, *table.doc2], [*table.doc2, *table.doc1]
    pairs = list(table.set_index("id").loc[list(PAIRS)].itertuples())
    questions = [one for p in pairs for one in ((p.q1, p.doc1, p.doc2), (p.q2, p.doc2, p.doc1))]
    scores = system.score([query for query, _, _ in questions for _ in passages], passages * len(questions))
    rows = []
    for (query, own, other), near in zip(questions, scores.reshape(len(questions), -1), strict=True):
        answers = {own: "this question", other: "the opposite question"}
        for rank, index in enumerate((-near).argsort(kind="stable")[:SHOWN], start=1):
            text = excerpt(passages[index], opposites[index])
            rows.append((query, rank, text, float(near[index]), answers.get(passages[index], "")))
    return pd.DataFrame(rows, columns=["query", "rank", "passage", "similarity", "answers"])


def excerpt(passage: str, twin: str, lead: int = 4, around: int = 12) -> str:
    """The first words of a passage, and the words around the first in which it differs from another."""
    words = passage.split()
    same = [word == other for word, other in zip(words, twin.split(), strict=False)]
    differs = same.index(False) if False in same else 0
    start = max(differs - lead, 0)
    head = " ".join(words[: min(lead, start)]) + " … " if start else ""
    return head + " ".join(words[start : start + around]) + (" …" if start + around < len(words) else "")
