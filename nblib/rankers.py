"""Rankers of every architecture Weller compares (§4.2) that has no single vector per text, under one interface.

Chance, TF-IDF, sparse, late-interaction and cross-encoder models: each says how well a document answers a query. (Encoders
rank through `nblib.tasks` itself, DPR with its two towers among them.) `load(name)` takes a name in
`data/registries/rankers.yaml`, a folder that sentence-transformers saved, or `maxsim:` before any encoder's name.
"""

import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd
import yaml
from tqdm.auto import tqdm

from nblib import models, paths
from nblib.models import Encoder

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, MultiVectorEncoder, SparseEncoder

MAXSIM = "maxsim:"
CHUNK = 64  # documents whose token vectors are held at once: half a megabyte each


class RankerError(ValueError):
    """A ranker that is unknown, absent, or gives scores no ranking can be made of."""


class Ranker(Protocol):
    """What ranks.

    Attributes:
        name: what its scores are filed under.
        source: where it comes from: a hub's id and revision, a folder, or a sentence about it.
    """

    name: str
    source: str

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """How well `documents[i]` answers `queries[i]`, shape [n]; higher is better, and only comparable for one query."""


class Chance:
    """Weller's baseline: a random score, from a seed; a pair of questions is right in 25 % of all cases."""

    def __init__(self, name: str = "Random", seed: int = 0) -> None:
        self.name, self.source, self.seed = name, f"random numbers, seed {seed}", seed

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        return np.random.default_rng(self.seed).random(len(queries))


class TfIdf:
    """Cosine of TF-IDF vectors, fitted anew on each query with its document, as Weller's published code does it.

    Text in lower case without punctuation; scikit-learn's English stop words are left out, and *not*, *no*, *never*, *except*
    and *without* are among them. Fitted on two texts, scikit-learn's (smooth) inverse document frequency has but two values: 1
    for a word of both, 1 + ln 3/2 for a word of one. So all pairs are done at once, with the same result.
    """

    OWN = 1 + np.log(3 / 2)

    def __init__(self, name: str = "TF-IDF") -> None:
        self.name, self.source = name, "scikit-learn"

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        from sklearn.feature_extraction.text import CountVectorizer

        counter = CountVectorizer(tokenizer=_words, token_pattern=None, stop_words="english")
        try:
            counts = counter.fit_transform([*queries, *documents]).astype(float)
        except ValueError:  # nothing but stop words in all of them
            return np.zeros(len(queries))
        query, document = counts[: len(queries)], counts[len(queries) :]
        squares = []
        for here, there in [(query, document), (document, query)]:
            shared = _row_sums(here.power(2).multiply(there > 0))
            squares.append(shared + self.OWN**2 * (_row_sums(here.power(2)) - shared))
        lengths, products = np.sqrt(squares[0] * squares[1]), _row_sums(query.multiply(document))
        cosines = np.divide(products, lengths, out=np.zeros(len(queries)), where=lengths > 0)
        return cosines.round(12)  # what is equal by the formula is a tie, whatever the order of summation


def _row_sums(table) -> np.ndarray:
    return np.asarray(table.sum(axis=1)).ravel()


def _words(text: str) -> list[str]:
    return text.lower().translate(str.maketrans("", "", string.punctuation)).split()


class Sparse:
    """A sparse neural model (SPLADE): the dot product of weights over the vocabulary."""

    def __init__(self, model: "SparseEncoder", name: str, source: str) -> None:
        self.model, self.name, self.source = model, name, source

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        asked, query_rows = np.unique(list(queries), return_inverse=True)
        answers, document_rows = np.unique(list(documents), return_inverse=True)
        ask = _csr(self.model.encode_query(asked.tolist(), show_progress_bar=False))
        answer = _csr(self.model.encode_document(answers.tolist(), show_progress_bar=True))
        return _row_sums(ask[query_rows].multiply(answer[document_rows]))


def _csr(weights):  # a sparse torch tensor can't be indexed by rows
    from scipy.sparse import csr_array

    weights = weights.coalesce().cpu()
    return csr_array((weights.values().double().numpy(), weights.indices().numpy()), shape=tuple(weights.shape))


class LateInteraction:
    """A vector for each token; a document's score is the sum, over the query's tokens, of the greatest similarity with any
    of its tokens (MaxSim; ColBERT, Khattab and Zaharia 2020)."""

    def __init__(
        self, model: "MultiVectorEncoder", name: str, source: str, prompts: tuple[str | None, str | None] = (None, None)
    ) -> None:
        self.model, self.name, self.source = model, name, source
        self.query_prompt, self.document_prompt = prompts  # None: the model's own

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        pairs = pd.DataFrame({"query": list(queries), "document": list(documents)})
        asked = pairs["query"].unique().tolist()
        ask = dict(zip(asked, self.model.encode_query(asked, prompt=self.query_prompt), strict=True))
        # sorted: a batch has little padding, and nearly identical documents share one
        distinct = sorted(pairs.document.unique(), key=lambda text: (len(text), text))
        scores = np.empty(len(pairs))
        for start in tqdm(range(0, len(distinct), CHUNK), desc=self.name, unit=f"{CHUNK} documents"):
            chunk = distinct[start : start + CHUNK]
            vectors = self.model.encode_document(chunk, prompt=self.document_prompt, batch_size=8)
            answer = dict(zip(chunk, vectors, strict=True))
            part = pairs[pairs.document.isin(answer)]
            found = self.model.similarity_pairwise(
                [ask[query] for query in part["query"]], [answer[document] for document in part.document]
            )
            scores[part.index] = found.cpu().numpy()
        return scores

    def alignment(self, query: str, document: str) -> pd.DataFrame:
        """What MaxSim sees of one pair (Weller's Figures 9 and 10): a row per query token and document token.

        Returns:
            query_place, query_token, document_place, document_token, similarity, greatest (whether the query token's score
            comes from this document token).
        """
        ask, query_tokens = self._tokens(query, "query", self.query_prompt)
        answer, document_tokens = self._tokens(document, "document", self.document_prompt)
        similarity = ask @ answer.T
        rows, columns = np.indices(similarity.shape).reshape(2, -1)
        return pd.DataFrame({
            "query_place": rows, "query_token": np.array(query_tokens)[rows],
            "document_place": columns, "document_token": np.array(document_tokens)[columns],
            "similarity": similarity.ravel(), "greatest": similarity.argmax(axis=1)[rows] == columns,
        })  # fmt: skip

    def _tokens(self, text: str, side: str, prompt: str | None) -> tuple[np.ndarray, list[str]]:
        """The vectors of the tokens that count, [tokens, dimension], and the tokens."""
        encode = self.model.encode_query if side == "query" else self.model.encode_document
        features = encode(text, prompt=prompt, output_value=None)
        counts = features["attention_mask"].bool()
        tokens = self.model.tokenizer.convert_ids_to_tokens(features["input_ids"][counts].tolist())
        return features["token_embeddings"][counts].cpu().double().numpy(), tokens


def token_maxsim(encoder: Encoder) -> LateInteraction:
    """MaxSim over the token vectors of an encoder that was trained for one vector per text: not ColBERT.

    As in ColBERT similarity is cosine, the special tokens count, and a document's punctuation doesn't.

    Raises:
        RankerError: the encoder has no tokens to ask for.
    """
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    if not isinstance(encoder.model, SentenceTransformer) or not isinstance(encoder.model[0], Transformer):
        raise RankerError(
            f"{encoder.name} has no token vectors to compare: it is no transformer of sentence-transformers."
        )
    mask = MultiVectorMask(skiplist_words=list(string.punctuation))
    modules = [encoder.model[0], mask, Normalize(module_input_name="token_embeddings")]
    model = MultiVectorEncoder(modules=modules, device=str(encoder.model.device)).eval()
    prompts = (encoder.spec.prompt("query"), encoder.spec.prompt("document"))
    return LateInteraction(model, f"maxsim-{encoder.name}", f"token vectors of {encoder.name}", prompts)


class Cross:
    """A cross-encoder reads query and document together; its score is the logit before any activation (a sigmoid rounds
    nearly equal scores to a tie), or that of entailment where it chooses among classes."""

    def __init__(self, model: "CrossEncoder", name: str, source: str) -> None:
        self.model, self.name, self.source = model, name, source

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        from torch.nn import Identity

        pairs = list(zip(queries, documents, strict=True))
        logits = self.model.predict(pairs, activation_fn=Identity(), show_progress_bar=True)
        if logits.ndim == 1:
            return logits.astype(np.float64)
        classes = {label.lower(): place for place, label in self.model.config.id2label.items()}
        if "entailment" not in classes:
            raise RankerError(
                f"{self.name} chooses among {', '.join(classes)}: which of them means relevant isn't known."
            )
        return logits[:, classes["entailment"]].astype(np.float64)


class MonoT5:
    """monoT5 (Nogueira et al. 2020): asked whether the document is relevant, by how much is "true" likelier than "false"?"""

    PROMPT = "Query: {query} Document: {document} Relevant:"

    def __init__(self, model, tokenizer, name: str, source: str, batch_size: int = 16) -> None:
        self.model, self.tokenizer, self.name, self.source = model, tokenizer, name, source
        self.batch_size = batch_size
        vocabulary = tokenizer.get_vocab()
        missing = [word for word in ("▁true", "▁false") if word not in vocabulary]
        if missing:
            raise RankerError(f"{name} is no monoT5: its tokenizer has no {' and no '.join(missing)}.")
        self.answers = [vocabulary["▁true"], vocabulary["▁false"]]

    def score(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        import torch

        pairs = zip(queries, documents, strict=True)
        texts = [self.PROMPT.format(query=query, document=document) for query, document in pairs]
        order = np.argsort([len(text) for text in texts], kind="stable")
        scores = np.empty(len(texts))
        for start in tqdm(range(0, len(texts), self.batch_size), desc=self.name, unit="batch"):
            places = order[start : start + self.batch_size]
            batch = self.tokenizer(
                [texts[place] for place in places], padding=True, truncation=True, max_length=512, return_tensors="pt"
            ).to(self.model.device)
            first = torch.full((len(places), 1), self.model.config.decoder_start_token_id, device=self.model.device)
            with torch.inference_mode():
                logits = self.model(**batch, decoder_input_ids=first).logits[:, 0]
            true, false = logits[:, self.answers].double().cpu().numpy().T
            scores[places] = true - false
        return scores


# --- by name ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RankerSpec:
    """A registered ranker.

    Attributes:
        kind: chance, tf-idf, sparse, late-interaction, cross-encoder, monot5, or paddle (can't be loaded here).
        hub, revision: where its weights are.
        parameters: in millions, as the paper prints them.
    """

    name: str
    kind: str
    hub: str | None = None
    revision: str | None = None
    parameters: float | None = None


@cache
def registry() -> dict[str, RankerSpec]:
    """All registered rankers by name."""
    declared = yaml.safe_load((paths.DATA / "registries" / "rankers.yaml").read_text(encoding="utf-8"))
    return {name: RankerSpec(name=name, **entry) for name, entry in declared.items()}


KINDS = {"SparseEncoder": "sparse", "MultiVectorEncoder": "late-interaction", "CrossEncoder": "cross-encoder"}


def load(name: str, *, device: str | None = None) -> Ranker:
    """Load a ranker, its weights in float32.

    Args:
        name: a registered ranker, the folder of a sparse, multi-vector or cross-encoder, or `maxsim:` and an encoder's name
            (as `models.load` takes it).
        device: None takes a GPU where there is one.

    Raises:
        RankerError: nothing of that name can be loaded.
        ModelError: as `models.load`, for the encoder after `maxsim:`.
    """
    from safetensors import SafetensorError

    if name.startswith(MAXSIM):
        return token_maxsim(models.load(name.removeprefix(MAXSIM), device=device))
    spec, folder = registry().get(name), paths.resolve(name)
    if spec is None and folder.is_dir():
        spec = RankerSpec(name=folder.name, kind=_kind_of(folder), hub=str(folder))
    if spec is None:
        raise RankerError(
            f"No ranker called {name!r}. Registered: {', '.join(registry())}. Else: a folder, or {MAXSIM} and an encoder."
        )
    if spec.kind == "paddle":
        raise RankerError(f"{name}: its weights were published for PaddlePaddle alone, which this study doesn't use.")
    try:
        return _LOADERS[spec.kind](spec, device)
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        why = str(error).splitlines()[0] if str(error) else ""
        raise RankerError(f"{name} could not be loaded from {spec.hub} ({type(error).__name__}: {why}).") from error


def _kind_of(folder: Path) -> str:
    """What sentence-transformers saved in a folder."""
    about = folder / "config_sentence_transformers.json"
    saved = json.loads(about.read_text(encoding="utf-8")).get("model_type") if about.is_file() else None
    if saved not in KINDS:
        raise RankerError(
            f"{folder} holds {f'a {saved}' if saved else 'no model of sentence-transformers'}, not one of {', '.join(KINDS)}. "
            f"An encoder's tokens rank under {MAXSIM}{folder.name}."
        )
    return KINDS[saved]


def _sentence_transformers(spec: RankerSpec, device: str | None) -> Ranker:
    import sentence_transformers

    kind, ranker = {
        "sparse": ("SparseEncoder", Sparse),
        "late-interaction": ("MultiVectorEncoder", LateInteraction),
        "cross-encoder": ("CrossEncoder", Cross),
    }[spec.kind]
    options = {"revision": spec.revision, "device": device, "model_kwargs": {"dtype": "float32"}}
    model = getattr(sentence_transformers, kind)(spec.hub, **options)
    return ranker(model.eval(), spec.name, _source(spec))


def _monot5(spec: RankerSpec, device: str | None) -> Ranker:
    from sentence_transformers.util import get_device_name
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    model = AutoModelForSeq2SeqLM.from_pretrained(spec.hub, revision=spec.revision, dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(spec.hub, revision=spec.revision)
    return MonoT5(model.to(device or get_device_name()).eval(), tokenizer, spec.name, _source(spec))


def _source(spec: RankerSpec) -> str:
    return f"{spec.hub}@{spec.revision}" if spec.revision else str(spec.hub)


_LOADERS = {
    "chance": lambda spec, device: Chance(spec.name),
    "tf-idf": lambda spec, device: TfIdf(spec.name),
    **dict.fromkeys(KINDS.values(), _sentence_transformers),
    "monot5": _monot5,
}
