"""What this folder's YAML files call: rows as documents, prompts, and the value of an answer.

lm-eval loads this file by its path, outside the package.
"""

import re
import zlib
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from datasets import Dataset
from scipy.stats import spearmanr

from nblib import corpora
from nblib.benchmarks import catalogue
from nblib.results import published

NUMBER = re.compile(r"[-+−–]?\s?(?:\d+(?:[.,]\d+)?|\.\d+)")
NEUTRAL = 0.0  # the middle of the scale: the value of an answer without a score
OPTIONS = 3


def _rows(source: str, limit: int, seed: int) -> pd.DataFrame:
    """The test rows of a task of `nblib.benchmarks.catalogue`; of a random `limit` of its items where that is not 0."""
    rows = catalogue.get(source).rows("test")
    ids = pd.Series(rows.id.unique())
    if 0 < limit < len(ids):
        rows = rows[rows.id.isin(ids.sample(limit, random_state=seed))]
    return rows.reset_index(drop=True)


def _documents(rows: pd.DataFrame) -> dict[str, Dataset]:
    return {"test": Dataset.from_pandas(rows, preserve_index=False)}


# --- which of two documents (Truong §5.2) -----------------------------------------------------------------------------


def ranking(source: str, limit: int = 0, seed: int = 0, **_: Any) -> dict[str, Dataset]:
    """Each question twice: with the documents as the benchmark gives them, and swapped.

    `target` is the place of the document that is wanted, from 0. The paper doesn't say which order it used.
    """
    rows = _rows(source, limit, seed)
    negative = rows.negatives.str[0]
    # an item's second query wants its second document
    second = rows.question.eq("q2").to_numpy()
    given = {"first": rows.positive.where(~second, negative), "second": negative.where(~second, rows.positive)}
    kept = rows[["id", "cluster", "question", "query"]]
    orders = [
        kept.assign(order="given", target=second.astype(int), **given),
        kept.assign(order="swapped", target=1 - second.astype(int), first=given["second"], second=given["first"]),
    ]
    return _documents(pd.concat(orders, ignore_index=True))


def ranking_prompt(document: dict) -> str:
    template = published.prompts()["document_ranking"]["template"]
    return template.format(doc_1=document["first"], doc_2=document["second"], q=document["query"])


# --- how similar (Truong §5.2) ----------------------------------------------------------------------------------------


def similarity(source: str, limit: int = 0, seed: int = 0, **_: Any) -> dict[str, Dataset]:
    """Pairs of sentences with the score that people, or the rule of M3-derived, gave them."""
    return _documents(_rows(source, limit, seed))


def similarity_prompt(document: dict) -> str:
    template = published.prompts()["similarity"]["template"]
    return template.format(sentence_1=document["sentence1"], sentence_2=document["sentence2"])


def parse_score(answer: str) -> float | None:
    """The first number of an answer, if it is on the scale from −1 to 1; else None."""
    found = NUMBER.search(answer)
    if found is None:
        return None
    value = float(re.sub(r"\s", "", found.group()).replace("−", "-").replace("–", "-").replace(",", "."))
    return value if -1 <= value <= 1 else None


def similarity_results(document: dict, answers: list[str]) -> dict[str, Any]:
    """lm-eval's measures of one answer: the pair (score, answer) for Spearman, and whether it could be parsed."""
    value = parse_score(answers[0])
    return {"spearman": (document["score"], NEUTRAL if value is None else value), "unparsable": float(value is None)}


def spearman(pairs: list[tuple[float, float]]) -> float:
    """Spearman's ρ over the pairs of `similarity_results`."""
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


# --- which of three sentences (SemAntoNeg; the prompt is the study's own) ---------------------------------------------


def choice(source: str, limit: int = 0, seed: int = 0, **_: Any) -> dict[str, Dataset]:
    """The candidates of each row in a random order, by seed: in the file the right one is always the last."""
    rows = _rows(source, limit, seed)
    orders = [np.random.default_rng([seed, zlib.crc32(item.encode())]).permutation(OPTIONS) for item in rows.id]
    candidates = [[positive, *others] for positive, others in zip(rows.positive, rows.negatives, strict=True)]
    rows["options"] = [[texts[k] for k in order] for texts, order in zip(candidates, orders, strict=True)]
    rows["target"] = [int(np.flatnonzero(order == 0)[0]) for order in orders]
    return _documents(rows[["id", "cluster", "query", "options", "target"]])


def choice_prompt(document: dict) -> str:
    options = "\n".join(f"{number}. {text}" for number, text in enumerate(document["options"], start=1))
    return (
        f"Sentence: {document['query']}\n{options}\n\nWhich of the three sentences means the same as the first? "
        "Please choose 1, 2 or 3.\nAnswer:"
    )


# --- the harness's own tasks on files that are here -------------------------------------------------------------------


@cache
def _loaded(corpus: str) -> pd.DataFrame:
    """Read once for all subjects."""
    return corpora.load(corpus)


def mmlu(corpus: str, subject: str, shots: int = 5, **_: Any) -> dict[str, Dataset]:
    """One subject of MMLU; of a corpus without the split "dev" the first questions are kept apart as examples."""
    table = _loaded(corpus)
    table = table[table.subject == subject].reset_index(drop=True)
    if "dev" in corpora.describe(corpus).splits:
        parts = {"test": table[table.split == "test"], "dev": table[table.split == "dev"]}
    else:
        parts = {"test": table[shots:], "dev": table[:shots]}
    return {split: Dataset.from_pandas(part, preserve_index=False) for split, part in parts.items()}


def hellaswag(corpus: str, **_: Any) -> dict[str, Dataset]:
    """HellaSwag's validation split with the columns that the harness wants."""
    table = corpora.load(corpus)
    if "query" in table:  # the file at hand has both in one
        table[["activity_label", "ctx"]] = table["query"].str.split(": ", n=1, expand=True)
    # the harness begins the unfinished sentence with a capital
    begun = table.ctx.str.extract(r"^(?P<ctx_a>.*[.!?]\s+|)(?P<ctx_b>.*)$", flags=re.S)
    table["ctx_a"], table["ctx_b"] = begun.ctx_a.str.strip(), begun.ctx_b
    return {"validation": Dataset.from_pandas(table.drop(columns="ctx"), preserve_index=False)}


def gsm8k(corpus: str, **_: Any) -> dict[str, Dataset]:
    """GSM8K's train (for the examples) and test split."""
    return {
        split: Dataset.from_pandas(corpora.load(corpus, split), preserve_index=False) for split in ("train", "test")
    }
