"""Anchor sentences to negate and hedge, from the paper's five kinds of source with its mix of lengths (Truong §3.1.1).

The paper samples 50,000 from jinaai/negation-dataset-v2, whose anchors are from SNLI, Multi-NLI, sentence-compression, Simple
Wikipedia and COCO captions: `official`, from the hub. `proxies` are freely available parts of the same five sources
(`NBLIB_DATA`/anchors, see SOURCE.md there); `authored` are the study's own, with known variants. `select` samples from a pool.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nblib import corpora, paths
from nblib.corpora import hedgetriple, negator, registry
from nblib.errors import StudyError

if TYPE_CHECKING:
    from nltk.tokenize.treebank import TreebankWordDetokenizer

LENGTHS = {"short": 0.5, "middle": 0.4, "long": 0.1}  # under 15 words, 15 to 30, over 30; shares as in the paper
NEGATIVE_SHARE = 0.05  # at most; the paper says "most sentences are affirmative"
COLUMNS = ["id", "source", "anchor", "entailment", "words", "length", "negative"]
JINA = "jinaai/negation-dataset-v2"
_SHORTEST = 4  # words: less is hardly a sentence
_LONGEST = 60
_DAMAGED = re.compile(r"[�{}|\[\]<>]|-[LR][RCS]B-|Ã|Å|â€|\\|''|``|http", re.I)


class AnchorError(StudyError):
    """Anchors that are not available."""


@dataclass(frozen=True)
class Source:
    """One kind of source: its files below `anchors/`, and a function from rows to pairs of a sentence and an entailed one.

    Entailed means: by label in SNLI and Multi-NLI, a compression or simplification in two others, and in COCO another caption of
    the same picture, as in the paper's source.
    """

    files: tuple[str, ...]
    pairs: Callable[[list[dict]], Iterator[tuple[str, str]]]


def _nli(rows: list[dict]) -> Iterator[tuple[str, str]]:
    for row in rows:
        if row["label"] in (0, "entailment"):
            yield row["premise"], row["hypothesis"]


def _compression(rows: list[dict]) -> Iterator[tuple[str, str]]:
    for row in rows:
        yield row["sentence"], row["compression"]


def _wikipedia(rows: list[dict]) -> Iterator[tuple[str, str]]:
    for row in rows:
        if "original" in row:
            yield row["original"], row["split_rewrite"]
        elif not row["corpus"].startswith("turkcorpus"):  # that one is in lower case
            yield row["normal"], row["simple"]


def _coco(rows: list[dict]) -> Iterator[tuple[str, str]]:
    captions: dict[int, list[str]] = {}
    for row in rows:
        captions.setdefault(row["image_id"], []).append(row["caption"])
    for of_one in captions.values():
        for place, caption in enumerate(of_one):
            yield caption, of_one[place - 1]


SOURCES = {
    "SNLI": Source(("snli_dev", "snli_test"), _nli),
    "Multi-NLI": Source(("mnli_textfooler_sample",), _nli),
    "sentence-compression": Source(("google_sentence_compression_eval10k",), _compression),
    "Simple Wikipedia": Source(("simple_wikipedia_aligned_small", "wikisplit_valid_test"), _wikipedia),
    "COCO": Source(("coco_captions_val2017",), _coco),
}


def select(pool: pd.DataFrame, n: int, seed: int = 0) -> pd.DataFrame:
    """Sample anchors: half under 15 words, a tenth over 30, at most `NEGATIVE_SHARE` with a negative word.

    Within a length the sources have equal shares, as far as possible. The order is that of a hash of seed and sentence, so it is
    the same on every machine, and a further file doesn't change it.

    Args:
        pool: of `POOLS`.

    Returns:
        `COLUMNS`, in random order. words is their number, length one of `LENGTHS`, negative whether it has a negative word
        (`negator.has_negative_word`); entailment as in `Source`.

    Raises:
        AnchorError: fewer sentences of some length than needed.
    """
    if n < 1:
        raise AnchorError(f"The number of anchors must be at least 1, not {n}.")
    pool = pool.assign(rank=[_rank(seed, sentence) for sentence in pool.anchor]).sort_values("rank", kind="stable")
    sizes = {length: round(share * n) for length, share in LENGTHS.items()}
    sizes["middle"] += n - sum(sizes.values())
    few = pool[pool.groupby(["length", "negative"]).cumcount() < pool.length.map(sizes) * NEGATIVE_SHARE]
    allowed = pd.concat([pool[~pool.negative], few[few.negative]]).sort_values("rank", kind="stable")
    there = allowed.length.value_counts().reindex(list(sizes), fill_value=0)
    short = [length for length in sizes if there[length] < sizes[length]]
    if short:
        missing = ", ".join(f"{sizes[length]} {length} sentences (there are {there[length]})" for length in short)
        affirmative = pool.length[~pool.negative].value_counts()
        most = min(int(affirmative.get(length, 0) / share) for length, share in LENGTHS.items())
        raise AnchorError(f"{n} anchors need {missing}. Ask for at most {most}, or add sources.")
    parts = []
    for length, size in sizes.items():
        part = allowed[allowed.length == length]
        parts.append(part.loc[_even(part.source, size)])
    return pd.concat(parts).sort_values("rank", kind="stable")[COLUMNS].reset_index(drop=True)


def proxies(folder: str | Path | None = None) -> pd.DataFrame:
    """All usable sentences of the five proxy sources, each once: `COLUMNS`; without cut or damaged text.

    Args:
        folder: with the files of `SOURCES`; `NBLIB_DATA`/anchors unless given.

    Raises:
        AnchorError: a file is missing or malformed.
    """
    from nltk.tokenize.treebank import TreebankWordDetokenizer  # loads nltk: seconds

    detokenizer = TreebankWordDetokenizer()
    found: dict[str, tuple[str, str, str]] = {}
    for name, source in SOURCES.items():
        for path, rows in read(name, folder).items():
            try:
                pairs = list(source.pairs(rows))
            except (KeyError, TypeError, AttributeError) as error:
                raise AnchorError(f"{path}: not the rows expected of {name} ({error!r}). Fetch it again.") from error
            for anchor, entailment in pairs:
                _add(found, name, _prose(anchor, detokenizer), _prose(entailment, detokenizer))
    return _pool(found)


def read(name: str, folder: str | Path | None = None) -> dict[Path, list[dict]]:
    """The rows of a source's files, as they are.

    Args:
        name: of `SOURCES`.
        folder: as for `proxies`.

    Raises:
        AnchorError: a missing file.
        CorpusError: a damaged one.
    """
    root = _folder(folder)
    files = [root / f"{file}.jsonl.gz" for file in SOURCES[name].files]
    for path in files:
        if not path.is_file():
            raise AnchorError(f"No file {path} of {name}. Complete {root}; its SOURCE.md says where each file is from.")
    return {path: registry.read_jsonl(path) for path in files}


def official(dataset: str = JINA) -> pd.DataFrame:
    """All usable sentences of the paper's source, from the hub (or a folder that `datasets` reads): `COLUMNS`; source is "jina".

    Raises:
        AnchorError: no such data set, no network, or no columns anchor and entailment.
    """
    from datasets import load_dataset

    try:
        rows = load_dataset(dataset, split="train")
    except Exception as error:  # the hub's, the network's, pyarrow's: each has its own
        fault = f"{type(error).__name__}: {error}"
        raise AnchorError(f"{dataset} can't be read ({fault}). Without the hub use the pool stand-ins.") from error
    if missing := {"anchor", "entailment"} - set(rows.column_names):
        columns = ", ".join(rows.column_names)
        raise AnchorError(f"{dataset} has no column {', '.join(sorted(missing))}; it has {columns}.")
    found: dict[str, tuple[str, str, str]] = {}
    for row in rows:
        _add(found, "jina", " ".join(row["anchor"].split()), " ".join(row["entailment"].split()))
    return _pool(found)


def authored() -> pd.DataFrame:
    """The study's own anchors, those held out aside: `COLUMNS`, their ids kept."""
    table = corpora.load("hedgetriple")
    table = table[~table.id.isin(hedgetriple.held_out())]
    pairs = zip(table.anchor, table.entailment, strict=True)
    found = {anchor: ("authored", anchor, entailment) for anchor, entailment in pairs}
    return _pool(found).assign(id=table.id.to_list())


POOLS = {"authored": authored, "stand-ins": proxies, "official": official}


def _add(found: dict[str, tuple[str, str, str]], source: str, anchor: str, entailment: str) -> None:
    """Keep an anchor's first pair, if it is one."""
    if anchor not in found and _usable(anchor) and entailment and entailment != anchor:
        found[anchor] = (source, anchor, entailment)


def _pool(found: dict[str, tuple[str, str, str]]) -> pd.DataFrame:
    table = pd.DataFrame(list(found.values()), columns=["source", "anchor", "entailment"])
    words = table.anchor.str.split().str.len()
    return table.assign(
        id=[hashlib.sha256(text.encode()).hexdigest()[:16] for text in table.anchor],
        words=words,
        length=pd.cut(words, [0, 14, 30, np.inf], labels=list(LENGTHS)).astype(str),
        negative=table.anchor.map(negator.has_negative_word).astype(bool),
    )[COLUMNS]


def _folder(folder: str | Path | None) -> Path:
    if folder is not None:
        return paths.resolve(folder)
    data = paths.official_data()
    if data is None:
        raise AnchorError(
            "There are no anchors, because NBLIB_DATA isn't set. Set it to the folder of the official data, which has them in "
            "anchors/."
        )
    return data / "anchors"


def _prose(text: str, detokenizer: "TreebankWordDetokenizer") -> str:
    """The text without a tokenizer's spaces before punctuation."""
    text = " ".join(text.split())
    if re.search(r" [.,:;?!]( |$)| n't\b| '(?:s|re|ve|ll|d|m)\b", text):
        text = detokenizer.detokenize(text.split())
        text = re.sub(r" ([.,;:?!]|n't\b|'(?:s|re|ve|ll|d|m)\b)", r"\1", text)
    return text


def _usable(text: str) -> bool:
    return (
        _SHORTEST <= len(text.split()) <= _LONGEST
        and text.isprintable()
        and (text[0].isupper() or text[0].isdigit() or text[0] in "\"'“")
        and not text.isupper()
        and not _DAMAGED.search(text)
    )


def _rank(seed: int, sentence: str) -> str:
    return hashlib.sha256(f"{seed}/{sentence}".encode()).hexdigest()


def _even(sources: pd.Series, size: int) -> pd.Index:
    """The index of `size` rows, taken in turn from each source until it is empty."""
    turns = sources.groupby(sources).cumcount()
    return turns.sort_values(kind="stable").index[:size]
