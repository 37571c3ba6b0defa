"""Encoders for unit tests: a random one made on the spot, and one whose vectors are written down."""

from pathlib import Path

import numpy as np
import pandas as pd

from nblib.model_registry import ModelSpec
from nblib.models import Encoder, fingerprint

WORDS = ["the", "a", "not", "is", "boat", "red", "blue", "and", "night", "day"]


def tiny(folder: Path, *, seed: int = 0, name: str = "tiny", max_length: int = 32) -> Encoder:
    """A random two-layer BERT of 32 dimensions, saved to `folder`."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(seed)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"abcdefghijklmnopqrstuvwxyz",
                  *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    BertModel(config).save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"), max_seq_length=max_length)
    model = SentenceTransformer(modules=[transformer, Pooling(32, pooling_mode="mean")], device="cpu").eval()
    model.save(str(folder / "model"), create_model_card=False)
    return Encoder(ModelSpec(name=name, max_length=max_length), model, fingerprint(model))


class _Written:
    """Stands in for a SentenceTransformer: texts (with their prompt) to written-down vectors, and what was asked."""

    max_seq_length = 512

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors, self.asked = vectors, []

    def encode(self, texts: list[str], prompt: str = "", **_: object) -> np.ndarray:
        self.asked += [(prompt, text) for text in texts]
        return np.array([self.vectors.get(prompt + text, self.vectors.get(text)) for text in texts], dtype=np.float32)


def written(vectors: dict[str, list[float]], **spec: object) -> Encoder:
    """An encoder that gives each text the vector written for it."""
    digest = str(hash(repr(sorted(vectors.items())) + repr(spec)))
    return Encoder(ModelSpec(**{"name": "written", **spec}), _Written(vectors), digest)


def toy_triples(n: int = 6) -> pd.DataFrame:
    """Triples of n anchors, each with two hedges and four negations."""
    from nblib import triples  # brings the parser along, which most tests can do without
    from nblib.negation_profile import HEDGES, NEGATIONS

    rows = [{"id": f"t-{k}", "anchor": f"the dog {k} is in the {'red ' * (k % 3)}house"} for k in range(n)]
    for row in rows:
        row |= {name: f"{row['anchor']} {name} not" for name in NEGATIONS} | {
            name: f"{name}, {row['anchor']}" for name in HEDGES
        }
    return triples.build(pd.DataFrame(rows))
