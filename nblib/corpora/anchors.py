"""Anchor sentences to negate and hedge, from the paper's five kinds of source with its mix of lengths (Truong §3.1.1): the
paper's (`official`), free parts of the same sources (`proxies`), or the study's own, with known variants (`authored`)."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pandas as pd

from nblib import corpora, paths
from nblib.corpora import files, negator
from nblib.corpora.authored import held_out_ids
from nblib.errors import StudyError

LENGTHS = {"short": 0.5, "middle": 0.4, "long": 0.1}  # under 15 words, 15 to 30, over 30; shares as in the paper
NEGATIVE_SHARE = 0.05  # at most; the paper says "most sentences are affirmative"
ANCHOR_COLUMNS = ["id", "source", "anchor", "entailment", "words", "length", "negative"]
SOURCES = {  # kind of source → its files below `anchors/`
    "SNLI": ("snli_dev", "snli_test"),
    "Multi-NLI": ("mnli_textfooler_sample",),
    "sentence-compression": ("google_sentence_compression_eval10k",),
    "Simple Wikipedia": ("simple_wikipedia_aligned_small", "wikisplit_valid_test"),
    "COCO": ("coco_captions_val2017",),
}
# Å and, as case is ignored, ã and å are letters of names, too ("São Paulo"); without them trainings would have other texts
_DAMAGED = re.compile(r"[�{}|\[\]<>]|-[LR][RCS]B-|Ã|Å|â€|\\|''|``|http", re.I)


def select(pool: pd.DataFrame, n: int, seed: int = 0) -> pd.DataFrame:
    """Sample anchors of `POOLS`, with `LENGTHS`' shares and at most `NEGATIVE_SHARE` with a negative word.

    Within a length the sources have equal shares, as far as possible. A hash of seed and sentence gives the order, the same on
    every machine, whatever the files.

    Returns:
        `ANCHOR_COLUMNS`: words is their number, length one of `LENGTHS`, negative whether it has a negative word, entailment a
        sentence that the anchor entails (of a caption: another of the picture). StudyError: too few of some length.
    """
    ranks = [hashlib.sha256(f"{seed}/{sentence}".encode()).hexdigest() for sentence in pool.anchor]
    pool = pool.assign(rank=ranks).sort_values("rank", kind="stable")
    sizes = {length: round(share * n) for length, share in LENGTHS.items()}
    sizes["middle"] += n - sum(sizes.values())
    few = pool[pool.groupby(["length", "negative"]).cumcount() < (pool.length.map(sizes) * NEGATIVE_SHARE).astype(int)]
    allowed = pd.concat([pool[~pool.negative], few[few.negative]]).sort_values("rank", kind="stable")
    there = allowed.length.value_counts().reindex(list(sizes), fill_value=0).to_dict()
    if n < 1 or any(there[length] < size for length, size in sizes.items()):
        raise StudyError(f"{n} anchors would be {sizes} by length; there are {there}. Ask for fewer, but at least 1.")
    turns = allowed.groupby(["length", "source"]).cumcount()  # taken in turn from each source until it is empty
    even = allowed.assign(turn=turns).sort_values("turn", kind="stable")
    taken = even[even.groupby("length").cumcount() < even.length.map(sizes)]
    return taken.sort_values("rank", kind="stable")[ANCHOR_COLUMNS].reset_index(drop=True)


def read(source: str) -> list[dict]:
    """The rows of one of `SOURCES`; StudyError where `NBLIB_DATA` isn't set, or a file is damaged."""
    root = paths.official_data()
    if root is None:
        raise StudyError("No anchors, because NBLIB_DATA isn't set. Set it to a folder that has them in anchors/.")
    sources = [root / "anchors" / f"{name}.jsonl.gz" for name in SOURCES[source]]
    return [row for file in sources for row in files.read(file).values()]


def proxies() -> pd.DataFrame:
    """All usable sentences of the five proxy sources, each once: `ANCHOR_COLUMNS`. Errors as `read`."""
    from nltk.tokenize.treebank import TreebankWordDetokenizer  # loads nltk: seconds

    detokenize = TreebankWordDetokenizer().detokenize
    pairs = ((source, *pair) for source in SOURCES for pair in _pairs(read(source)))
    return _pool((source, *(_prose(text, detokenize) for text in pair)) for source, *pair in pairs)


def official(dataset: str = "jinaai/negation-dataset-v2") -> pd.DataFrame:
    """All usable sentences of the paper's source, from the hub or a folder: `ANCHOR_COLUMNS`."""
    from datasets import load_dataset

    rows = load_dataset(dataset, split="train").select_columns(["anchor", "entailment"])
    return _pool(("jina", *(" ".join(row[name].split()) for name in ("anchor", "entailment"))) for row in rows)


def authored() -> pd.DataFrame:
    """The study's own anchors, those held out aside: `ANCHOR_COLUMNS`, with the ids they have."""
    table = corpora.load("authored_triples")
    table = table[~table.id.isin(held_out_ids())].reset_index(drop=True)
    return _pool(table.assign(source="authored")).drop(columns="id").merge(table[["id", "anchor"]])[ANCHOR_COLUMNS]


POOLS = {"authored": authored, "stand-ins": proxies, "official": official}


def _pairs(rows: list[dict]) -> Iterator[tuple[str, str]]:
    """Each sentence with one that it entails, by the form of the rows."""
    captions = defaultdict(list)
    for row in rows:
        match row:
            case {"premise": sentence, "hypothesis": entailed, "label": label}:
                if label in (0, "entailment"):
                    yield sentence, entailed
            case {"sentence": sentence, "compression": entailed} | {"original": sentence, "split_rewrite": entailed}:
                yield sentence, entailed
            case {"normal": sentence, "simple": entailed, "corpus": corpus}:
                if not corpus.startswith("turkcorpus"):  # that one is in lower case
                    yield sentence, entailed
            case {"caption": caption, "image_id": image}:
                captions[image].append(caption)
            case _:
                raise StudyError(f"A row of an anchors' source has an unknown form: {', '.join(row)}. Fetch it again.")
    for of_one in captions.values():
        yield from zip(of_one, [of_one[-1], *of_one], strict=False)  # with the caption before it


def _pool(rows: Iterable[tuple[str, str, str]] | pd.DataFrame) -> pd.DataFrame:
    """The first usable row (source, anchor, entailment) of each anchor, as `ANCHOR_COLUMNS`."""
    table = pd.DataFrame(rows, columns=["source", "anchor", "entailment"])
    usable = table.anchor.map(_is_sentence).astype(bool) & (table.entailment != "") & (table.entailment != table.anchor)
    table = table[usable].drop_duplicates("anchor", ignore_index=True)
    words = table.anchor.str.split().str.len()
    return table.assign(
        id=[hashlib.sha256(text.encode()).hexdigest()[:16] for text in table.anchor],
        words=words,
        length=pd.cut(words, [0, 14, 30, np.inf], labels=list(LENGTHS)).astype(str),
        negative=table.anchor.map(negator.has_negative_word).astype(bool),
    )[ANCHOR_COLUMNS]


def _prose(text: str, detokenize: Callable[[list[str]], str]) -> str:
    """The text without a tokenizer's spaces before punctuation."""
    text = " ".join(text.split())
    if re.search(r" [.,:;?!]( |$)| n't\b| '(?:s|re|ve|ll|d|m)\b", text):
        text = re.sub(r" ([.,;:?!]|n't\b|'(?:s|re|ve|ll|d|m)\b)", r"\1", detokenize(text.split()))
    return text


def _is_sentence(text: str) -> bool:
    return (
        4 <= len(text.split()) <= 60
        and text.isprintable()
        and (text[0].isupper() or text[0].isdigit() or text[0] in "\"'“")
        and not text.isupper()
        and not _DAMAGED.search(text)
    )
