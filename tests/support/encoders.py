"""Encoders for unit tests: random ones, and one whose vectors are written down."""

import string
from collections.abc import Sequence
from functools import partialmethod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nblib.models.encoders import Encoder
from nblib.models.identity import fingerprint
from nblib.models.negation_adapter import NegationAdapter

if TYPE_CHECKING:
    from datasets import DatasetDict
    from sentence_transformers import SentenceTransformer

WORDS = ["the", "a", "not", "is", "boat", "red", "blue", "and", "night", "day"]


def save_bert(
    folder: Path, words: Sequence[str], max_length: int, *, seed: int = 0, **config: object
) -> "SentenceTransformer":
    """A random two-layer BERT of 32 dimensions with mean pooling; its transformer is saved to `folder`."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertModel(BertConfig(vocab_size=len(vocabulary), **sizes | config)).save_pretrained(folder)
    BertTokenizerFast.from_pretrained(folder, model_max_length=max_length).save_pretrained(folder)
    transformer = Transformer(str(folder), max_seq_length=max_length)
    return SentenceTransformer(modules=[transformer, Pooling(32, pooling_mode="mean")], device="cpu").eval()


def tiny(folder: Path, *, max_length: int = 32, **config: object) -> Encoder:
    """A random encoder that knows few words, saved to `folder`/model."""
    base = folder / "bert"
    base.mkdir(parents=True)
    letters = string.ascii_lowercase
    model = save_bert(base, [*WORDS, *letters, *(f"##{letter}" for letter in letters)], max_length, **config)
    model.save(str(folder / "model"), create_model_card=False)
    return Encoder("tiny", model, fingerprint(model), "tiny")


def fitted_adapter(dimension: int = 32, **options: object) -> NegationAdapter:
    """An adapter learnt on random triplets."""
    rng = np.random.default_rng(0)
    anchors = rng.normal(size=(20, dimension))
    positives = anchors + 0.1 * rng.normal(size=anchors.shape)
    return NegationAdapter(grid=[2.0], **options).fit(anchors, positives, -anchors)


class _Written:
    """A proxy of a SentenceTransformer: gives each text (with its prompt) its written-down vector, and keeps what was asked."""

    max_seq_length = 512

    def __init__(self, vectors: dict[str, list[float]], similarity: str, prompts: dict[str, str]) -> None:
        from sentence_transformers import SimilarityFunction

        self.vectors, self.asked, self.prompts, self.similarity_fn_name = vectors, [], prompts, similarity
        self.default_prompt_name = "symmetric" if "symmetric" in prompts else None
        self.similarity = SimilarityFunction.to_similarity_fn(similarity)
        self.similarity_pairwise = SimilarityFunction.to_similarity_pairwise_fn(similarity)

    def get_model_kwargs(self) -> list[str]:
        return []

    modules = get_model_kwargs

    def encode(self, texts: list[str], prompt: str = "symmetric", **_: object) -> np.ndarray:
        prompt = self.prompts.get(prompt, "")
        self.asked += [(prompt, text) for text in texts]
        return np.array([self.vectors.get(prompt + text, self.vectors.get(text)) for text in texts], dtype=np.float32)

    encode_query, encode_document = partialmethod(encode, prompt="query"), partialmethod(encode, prompt="document")


def written(
    vectors: dict[str, list[float]], *, name: str = "written", similarity: str = "cosine", **prompts: str
) -> Encoder:
    """An encoder that gives each text the vector written for it; prompts by role."""
    digest = str(hash(repr(sorted(vectors.items())) + similarity + repr(prompts)))
    return Encoder(name, _Written(vectors, similarity, prompts), digest, name)


def toy_triples(n: int = 6) -> pd.DataFrame:
    """Triples of n anchors, each with two hedges and four negations."""
    from nblib.corpora import triples  # brings the parser along, which most tests can do without
    from nblib.corpora.authored import HEDGES, NEGATIONS

    rows = [{"id": f"t-{k}", "anchor": f"the dog {k} is in the {'red ' * (k % 3)}house"} for k in range(n)]
    for row in rows:
        row |= {name: f"{row['anchor']} {name} not" for name in NEGATIONS}
        row |= {name: f"{name}, {row['anchor']}" for name in HEDGES}
    return triples.build(pd.DataFrame(rows))


def toy_examples(n: int = 6, loss: str = "in-batch") -> "DatasetDict":
    """Those triples as examples for a loss."""
    from datasets import DatasetDict

    from nblib.training import batches, losses

    return DatasetDict(statements=batches.lay_out(toy_triples(n), losses.LOSSES[loss].layout))
