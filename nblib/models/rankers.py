"""Rankers: systems that score a query with a document without one vector for each text (Weller §4.2)."""

import hashlib
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from nblib import shipped
from nblib.errors import StudyError
from nblib.models import encoders, identity, loading, registry
from nblib.models.encoders import Encoder
from nblib.models.registry import ModelSpec

if TYPE_CHECKING:
    from torch import nn

MAXSIM = "maxsim:"
CHUNK = 64  # documents whose token vectors are held at once: half a megabyte each
BATCH = 16  # pairs that monoT5 reads at once


class RankerError(StudyError):
    """A ranker that is unknown, absent, or whose scores give no ranking."""


class Ranker:
    """A system (see `systems.System`) whose scores are only comparable for one query; an encoder's options change nothing."""

    architecture: ClassVar[str]
    base, adapter = None, ""

    def __init__(self, model: "nn.Module | None", name: str, source: str, tokenizer: object = None) -> None:
        self.model, self.name, self.source, self.tokenizer = model, name, source, tokenizer
        if model is None:
            self.fingerprint = hashlib.sha256(f"{self.architecture}\n{source}".encode()).hexdigest()
        else:  # at once: some models change when they are used
            self.fingerprint = identity.fingerprint(model, self.architecture, identity.tokenizer_files(tokenizer))


class Chance(Ranker):
    """Weller's baseline: a random score."""

    architecture = "chance"

    def __init__(self) -> None:
        super().__init__(None, "Random", "random numbers, seed 0")

    def score(self, queries: Sequence[str], documents: Sequence[str], **_: object) -> np.ndarray:
        return np.random.default_rng(0).random(len(queries))


class TfIdf(Ranker):
    """Cosine of TF-IDF vectors, fitted anew on each query with its document, as Weller's published code does it, but split at
    white space. The stop words that are left out have *not*, *no*, *never*, *except* and *without* among them."""

    architecture = "tf-idf"

    def __init__(self) -> None:
        super().__init__(None, "TF-IDF", "scikit-learn")

    def score(self, queries: Sequence[str], documents: Sequence[str], **_: object) -> np.ndarray:
        from sklearn.feature_extraction.text import TfidfVectorizer

        def words(text: str) -> list[str]:
            return text.lower().translate(str.maketrans("", "", string.punctuation)).split()

        vectorizer = TfidfVectorizer(tokenizer=words, token_pattern=None, stop_words="english")
        cosines = np.zeros(len(queries))
        for index, pair in enumerate(zip(queries, documents, strict=True)):
            try:
                query, document = vectorizer.fit_transform(pair).toarray()
            except ValueError:  # nothing but stop words
                continue
            cosines[index] = query @ document
        return cosines.round(12)  # what is equal by the formula is a tie, whatever the order of summation


class Sparse(Ranker):
    """A sparse neural model (SPLADE): the similarity of weights over the vocabulary, by default their dot product."""

    architecture = "sparse"

    def score(self, queries: Sequence[str], documents: Sequence[str], **_: object) -> np.ndarray:
        import torch

        sides = []
        for encode, texts in [(self.model.encode_query, queries), (self.model.encode_document, documents)]:
            distinct, index = np.unique(list(texts), return_inverse=True)
            vectors = encode(distinct.tolist(), show_progress_bar=True)  # a sparse tensor
            sides.append(vectors.cpu().double().index_select(0, torch.from_numpy(index)))
        return self.model.similarity_pairwise(*sides).numpy()


class LateInteraction(Ranker):
    """A vector for each token; a document's score is the sum, over the query's tokens, of the greatest similarity with any
    of its tokens (MaxSim; ColBERT, Khattab and Zaharia 2020)."""

    architecture = "late-interaction"

    def score(self, queries: Sequence[str], documents: Sequence[str], **_: object) -> np.ndarray:
        queries, documents = list(queries), list(documents)
        distinct = list(dict.fromkeys(queries))
        query_vectors = dict(zip(distinct, self.model.encode_query(distinct), strict=True))
        # sorted: a batch has little padding, and nearly identical documents share one
        distinct = sorted(set(documents), key=lambda text: (len(text), text))
        scores = np.empty(len(documents))
        for start in tqdm(range(0, len(distinct), CHUNK), desc=self.name, unit=f"{CHUNK} documents"):
            chunk = distinct[start : start + CHUNK]
            vectors = self.model.encode_document(chunk, batch_size=8)
            document_vectors = dict(zip(chunk, vectors, strict=True))
            rows = [row for row, document in enumerate(documents) if document in document_vectors]
            pairs = [query_vectors[queries[row]] for row in rows], [document_vectors[documents[row]] for row in rows]
            scores[rows] = self.model.similarity_pairwise(*pairs).cpu().numpy()
        return scores

    @property
    def by_token(self) -> bool:
        """Whether each vector is one token's; some models put several tokens into one."""
        from sentence_transformers.multi_vector_encoder.modules import BaseTokenPooling

        return not any(isinstance(module, BaseTokenPooling) for module in self.model)

    def alignment(self, query: str, document: str) -> pd.DataFrame:
        """What MaxSim sees of one pair (Weller's Figures 9 and 10): query_place, query_token, document_place, document_token,
        similarity, greatest (whether it is the query token's score)."""
        query_vectors, query_tokens = self._tokens(self.model.encode_query, query)
        document_vectors, document_tokens = self._tokens(self.model.encode_document, document)
        similarity = query_vectors @ document_vectors.T
        row, column = np.indices(similarity.shape).reshape(2, -1)
        table = {"query_place": row, "query_token": query_tokens[row]}
        table |= {"document_place": column, "document_token": document_tokens[column], "similarity": similarity.ravel()}
        return pd.DataFrame(table | {"greatest": similarity.argmax(axis=1)[row] == column})

    def _tokens(self, encode: Callable, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The vectors of the tokens that count, [tokens, dimension], and the tokens."""
        features = encode(text, output_value=None)
        counts = features["attention_mask"].bool()
        tokens = self.model.tokenizer.convert_ids_to_tokens(features["input_ids"][counts].tolist())
        return features["token_embeddings"][counts].cpu().double().numpy(), np.array(tokens)


def token_maxsim(encoder: Encoder) -> LateInteraction:
    """MaxSim over the token vectors of an encoder; a RankerError where it has none. As in ColBERT similarity is cosine, special
    tokens count, and a document's punctuation doesn't."""
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    if not isinstance(encoder.model, SentenceTransformer) or not isinstance(encoder.model[0], Transformer):
        raise RankerError(f"{encoder.name} has no token vectors: it is no transformer of sentence-transformers.")
    mask = MultiVectorMask(skiplist_words=list(string.punctuation))
    modules = [encoder.model[0], mask, Normalize(module_input_name="token_embeddings")]
    prompts = {role: encoder.prompt(role) for role in ("query", "document")}
    model = MultiVectorEncoder(modules=modules, device=str(encoder.model.device), prompts=prompts).eval()
    return LateInteraction(model, f"maxsim-{encoder.name}", f"{MAXSIM}{encoder.source or encoder.name}")


class CrossEncoder(Ranker):
    """A cross-encoder reads query and document together; its score is the logit (a sigmoid would round nearly equal scores to a
    tie), or that of entailment where it chooses among classes."""

    architecture = "cross-encoder"

    def score(self, queries: Sequence[str], documents: Sequence[str], **_: object) -> np.ndarray:
        from torch.nn import Identity

        pairs = list(zip(queries, documents, strict=True))
        logits = self.model.predict(pairs, activation_fn=Identity(), show_progress_bar=True)
        if logits.ndim == 1:
            return logits.astype(np.float64)
        classes = {label.lower(): index for index, label in self.model.config.id2label.items()}
        if "entailment" not in classes:
            raise RankerError(f"{self.name} has the classes {', '.join(classes)}; it isn't known which means relevant.")
        return logits[:, classes["entailment"]].astype(np.float64)


class MonoT5(Ranker):
    """monoT5 (Nogueira et al. 2020): how much likelier "true" is than "false" where relevance is asked for."""

    architecture = "monot5"

    def score(self, queries: Sequence[str], documents: Sequence[str], **_: object) -> np.ndarray:
        import torch

        answers = [self.tokenizer.get_vocab()[word] for word in ("▁true", "▁false")]
        options = {"padding": True, "truncation": True, "max_length": 512, "return_tensors": "pt"}
        pairs = zip(queries, documents, strict=True)
        texts = np.array([f"Query: {query} Document: {document} Relevant:" for query, document in pairs], dtype=object)
        order = np.argsort([len(text) for text in texts], kind="stable")
        scores = np.empty(len(texts))
        for batch in tqdm(np.split(order, range(BATCH, len(order), BATCH)), desc=self.name, unit="batch"):
            inputs = self.tokenizer(texts[batch].tolist(), **options).to(self.model.device)
            first = torch.full((len(batch), 1), self.model.config.decoder_start_token_id, device=self.model.device)
            with torch.inference_mode():
                logits = self.model(**inputs, decoder_input_ids=first).logits[:, 0, answers].double().cpu().numpy()
            scores[batch] = logits[:, 0] - logits[:, 1]
        return scores


# sentence-transformers' classes → ours
SAVED = {"SparseEncoder": Sparse, "MultiVectorEncoder": LateInteraction, "CrossEncoder": CrossEncoder}
WITHOUT_WEIGHTS = {
    Chance.architecture: Chance,
    TfIdf.architecture: TfIdf,
}


@dataclass(frozen=True, kw_only=True)
class RankerSpec(ModelSpec):
    """A registered ranker: what a model has, and its architecture."""

    architecture: str


@cache
def entries() -> dict[str, RankerSpec]:
    """All registered rankers by name."""
    return shipped.read_registry(registry.RANKERS, RankerSpec)


def load(name: str, *, allow_remote_code: bool = False, device: str | None = None) -> Ranker:
    """Load a ranker, its weights in float32.

    Args:
        name: one of `data/registries/rankers.yaml`, `maxsim:<encoder>`, a folder (see `loading.locate`), or an id on the hub.
        allow_remote_code, device: as `encoders.load`.

    Raises:
        ModelError, RankerError: nothing of that name can be loaded, or it is no ranker.
    """
    options = {"allow_remote_code": allow_remote_code, "device": device}
    if name.startswith(MAXSIM):
        return token_maxsim(encoders.load(name.removeprefix(MAXSIM), **options))
    if spec := entries().get(name):
        return _registered(spec, options)
    folder = loading.locate(name)
    kind = loading.class_of(folder)
    if kind not in SAVED:
        raise RankerError(f"{name} is a {kind}, an encoder. To rank by its tokens, give {MAXSIM}{name}.")
    return SAVED[kind](loading.read(folder, kind, **options), *encoders.describe(name, folder))


def _registered(spec: RankerSpec, options: dict) -> Ranker:
    if spec.architecture in WITHOUT_WEIGHTS:
        return WITHOUT_WEIGHTS[spec.architecture]()
    folder = loading.registered(spec)
    about = spec.name, "@".join(filter(None, [spec.hub or f"package {spec.package['module']}", spec.revision]))
    if spec.architecture == MonoT5.architecture:
        return _monot5(folder, about, options["device"])
    kind, ranker = {ranker.architecture: (kind, ranker) for kind, ranker in SAVED.items()}[spec.architecture]
    # The registry says of a masked language model that it is a SPLADE; its files needn't
    if ranker is not Sparse and (saved := loading.class_of(folder)) != kind:
        raise RankerError(f"{spec.name} should be a {kind}, and what {spec.hub} holds is a {saved}.")
    return ranker(loading.read(folder, kind, **options), *about)


def _monot5(folder: Path, about: tuple[str, str], device: str | None) -> MonoT5:
    from sentence_transformers.util import get_device_name
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype="float32").to(device or get_device_name()).eval()
    return MonoT5(model, *about, AutoTokenizer.from_pretrained(folder))
