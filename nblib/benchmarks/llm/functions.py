"""What this folder's YAML files call, rows as documents and prompts; lm-eval loads this file by its path."""

import re
import zlib
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from datasets import Dataset

from nblib import corpora
from nblib.benchmarks import catalogue
from nblib.results import published

NUMBER = re.compile(r"[-+−–]?\s?(?:\d+(?:[.,]\d+)?|\.\d+)")


def _rows(source: str, limit: int, seed: int) -> pd.DataFrame:
    """The test rows of a benchmark, of a random `limit` of its items where that is not 0."""
    rows = catalogue.get(source).rows("test")
    ids = pd.Series(rows.id.unique())
    if 0 < limit < len(ids):
        rows = rows[rows.id.isin(ids.sample(limit, random_state=seed))]
    return rows.reset_index(drop=True)


def _documents(**tables: pd.DataFrame) -> dict[str, Dataset]:
    return {split: Dataset.from_pandas(table, preserve_index=False) for split, table in tables.items()}


def ranking(source: str, limit: int, seed: int, **_: Any) -> dict[str, Dataset]:
    """Each question twice, with the documents as given and swapped: Truong §5.2 doesn't say in which order."""
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
    return _documents(test=pd.concat(orders, ignore_index=True))


def ranking_prompt(document: dict) -> str:
    template = published.prompts()["document_ranking"]["template"]
    return template.format(doc_1=document["first"], doc_2=document["second"], q=document["query"])


def pointwise(source: str, limit: int, seed: int, **_: Any) -> dict[str, Dataset]:
    """Each question with each of its two documents, one at a time; the target is 0 (yes) for its own."""
    rows = _rows(source, limit, seed)
    kept = rows[["id", "cluster", "question", "query"]]
    asked = [kept.assign(document=rows.positive, target=0), kept.assign(document=rows.negatives.str[0], target=1)]
    return _documents(test=pd.concat(asked, ignore_index=True))


def pointwise_prompt(document: dict) -> str:
    """The study's own: no paper asks it of one document."""
    return (
        f"Passage: {document['document']}\nQuestion: {document['query']}\n\n"
        "Does the passage answer the question? Yes or No.\nAnswer:"
    )


def similarity(source: str, limit: int, seed: int, **_: Any) -> dict[str, Dataset]:
    """Pairs of sentences with their score (Truong §5.2)."""
    return _documents(test=_rows(source, limit, seed))


def similarity_prompt(document: dict) -> str:
    template = published.prompts()["similarity"]["template"]
    return template.format(sentence_1=document["sentence1"], sentence_2=document["sentence2"])


def parse_score(answer: str) -> float | None:
    """The first number of an answer, if it is on the scale from −1 to 1; else None."""
    number = NUMBER.search(answer)
    if number is None:
        return None
    value = float(re.sub(r"\s", "", number.group()).replace("−", "-").replace("–", "-").replace(",", "."))
    return value if -1 <= value <= 1 else None


def choice(source: str, limit: int, seed: int, **_: Any) -> dict[str, Dataset]:
    """The three candidates of each row in a random order, by seed: in the file the right one is always the last."""
    rows = _rows(source, limit, seed)
    orders = [np.random.default_rng([seed, zlib.crc32(item.encode())]).permutation(3) for item in rows.id]
    candidates = [[positive, *others] for positive, others in zip(rows.positive, rows.negatives, strict=True)]
    rows["options"] = [[texts[k] for k in order] for texts, order in zip(candidates, orders, strict=True)]
    rows["target"] = [int(np.flatnonzero(order == 0)[0]) for order in orders]
    return _documents(test=rows[["id", "cluster", "query", "options", "target"]])


def choice_prompt(document: dict) -> str:
    """The study's own: no paper asks it."""
    options = "\n".join(f"{number}. {text}" for number, text in enumerate(document["options"], start=1))
    return (
        f"Sentence: {document['query']}\n{options}\n\nWhich of the three sentences means the same as the first? "
        "Please choose 1, 2 or 3.\nAnswer:"
    )


_loaded = cache(corpora.load)  # once for all subjects


def mmlu(corpus: str, subject: str, **_: Any) -> dict[str, Dataset]:
    """One subject of MMLU; without a split "dev" its first five questions are the examples."""
    table = _loaded(corpus)
    table = table[table.subject == subject].reset_index(drop=True)
    if "dev" in corpora.describe(corpus).splits:
        return _documents(test=table[table.split == "test"], dev=table[table.split == "dev"])
    return _documents(test=table[5:], dev=table[:5])


def hellaswag(corpus: str, **_: Any) -> dict[str, Dataset]:
    """HellaSwag's validation split with the columns that the harness wants."""
    table = corpora.load(corpus)
    if "query" in table:  # the official file has both in one
        table[["activity_label", "ctx"]] = table["query"].str.split(": ", n=1, expand=True)
    # the harness begins the unfinished sentence with a capital
    begun = table.ctx.str.extract(r"^(?P<ctx_a>.*[.!?]\s+|)(?P<ctx_b>.*)$", flags=re.S)
    table["ctx_a"], table["ctx_b"] = begun.ctx_a.str.strip(), begun.ctx_b
    return _documents(validation=table.drop(columns="ctx"))


def gsm8k(corpus: str, **_: Any) -> dict[str, Dataset]:
    """GSM8K's train (for the examples) and test split."""
    return _documents(**{split: corpora.load(corpus, split) for split in ("train", "test")})
