"""Pairs of related sentences of many kinds, without labels: on these a tuned encoder is held to what its base says of them."""

from collections.abc import Callable, Mapping

import pandas as pd

from nblib.corpora import anchors, pairs, twins
from nblib.corpora.wordnet import wordnet

COLUMNS = ["anchor", "related", "source"]


def _general(split_anchors: pd.DataFrame) -> pd.DataFrame:
    """Sentences of five general sources with an entailed one: captions, news, encyclopedia, inference."""
    return anchors.proxies().rename(columns={"entailment": "related"})


def _authored(split_anchors: pd.DataFrame) -> pd.DataFrame:
    """The training anchors, of twelve registers (science, health, law, …), with an entailed sentence."""
    train = split_anchors[split_anchors.split == "train"]
    return train.rename(columns={"entailment": "related"}).assign(source="anchors")


def _definitions(split_anchors: pd.DataFrame) -> pd.DataFrame:
    """WordNet's definitions of a noun and of its hypernym, each after its word: medicine, biology, law, technology."""
    rows = []
    for synset in wordnet().all_synsets("n"):
        if above := synset.hypernyms():
            rows.append((_defined(synset), _defined(above[0]), synset.lexname()))
    return pd.DataFrame(rows, columns=COLUMNS)


def _defined(synset: object) -> str:
    return f"{synset.lemma_names()[0].replace('_', ' ')}: {synset.definition()}"


SOURCES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "general": _general, "authored": _authored, "definitions": _definitions,
}  # fmt: skip


def passages() -> pd.DataFrame:
    """Queries with a passage that answers them (encyclopedia, forum, abstracts, contracts, clinical notes): `COLUMNS`.

    They are those of the contrast passages and exclusions that are trained on; no other passages of the kind are at hand.
    """
    tables = [table[["anchor", "positive"]] for table in (twins.contrast("train"), twins.exclusions("train"))]
    return pd.concat(tables, ignore_index=True).rename(columns={"positive": "related"}).assign(source="passages")


def texts(sizes: Mapping[str, int], split_anchors: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Pairs of related sentences: `COLUMNS`, sampled from some of `SOURCES`.

    Args:
        sizes: source → number of pairs; within a source all kinds have equal shares as far as they last.
        split_anchors: from notebook 03.
        seed: of the draw.

    Raises:
        PairError: an unknown source, or fewer pairs than asked for.
        AnchorError, CorpusError: the texts of a source aren't there.
    """
    if unknown := [name for name in sizes if name not in SOURCES]:
        raise pairs.PairError(f"Unknown texts for retention: {', '.join(unknown)}. Known: {', '.join(SOURCES)}.")
    tables = []
    for name, size in sizes.items():
        table = SOURCES[name](split_anchors).drop_duplicates("anchor").sample(frac=1, random_state=seed)
        if len(table) < size:
            raise pairs.PairError(f"There are {len(table)} pairs of {name!r} for retention, not {size}. Ask for fewer.")
        turn = table.groupby("source").cumcount()  # a source's first pairs before its second ones
        tables.append(table.loc[turn.sort_values(kind="stable").index[:size], COLUMNS])
    return pd.concat(tables, ignore_index=True)
