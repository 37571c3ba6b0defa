"""Texts to vectors: each distinct text is encoded once per model and prompt, and kept on disk for every later run."""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import numpy as np
from tqdm.auto import tqdm

from nblib import paths
from nblib.errors import StudyError
from nblib.models.encoders import Encoder
from nblib.models.registry import Role

BATCH = 64  # texts, at most
CPU_BATCH = 1000  # tokens; larger batches leave a CPU's caches: documents 1.3 times as slow
BY_ROLE = "query_length", "document_length", "query_expansion"  # of sentence-transformers' Transformer
CHUNK = 1024  # texts encoded between two commits: what a killed run can lose


class EmbeddingError(StudyError):
    """Texts that can't be encoded, or embeddings that can't be used."""


def encode(encoder: Encoder, texts: Sequence[str], *, role: Role = "symmetric") -> np.ndarray:
    """The embeddings of texts with the prompt of a role, float32 [len(texts), dimension], not normalised.

    Raises:
        EmbeddingError: a text is not a non-empty string, or see `check`.
    """
    for text in texts:
        if not isinstance(text, str) or not text.strip() or text.encode(errors="ignore").decode() != text:
            raise EmbeddingError(f"{text!r} can't be encoded: it is no string, is empty, or holds half a character.")
    if not len(texts):
        return np.empty((0, 0), dtype=np.float32)
    lengths = (getattr(module, name, None) for module in encoder.model.modules() for name in BY_ROLE)
    if not any([*encoder.model.prompts.values(), *encoder.model.get_model_kwargs(), *lengths]):
        role = "symmetric"  # without prompts, a tower or a length for each role, all roles share their vectors
    if encoder.base is not None:
        return check(encoder.transform(encode(encoder.base, texts, role=role)), texts, encoder.name)
    distinct = sorted(set(texts), key=lambda text: (len(text), text))
    if encoder.cacheable:
        known = _from_store(encoder, distinct, role)
    elif (known := encoder.memory.get((role, *distinct))) is None:  # a model in training
        vectors = _compute(encoder, distinct, role)
        known = encoder.memory[role, *distinct] = dict(zip(distinct, vectors, strict=True))
    return np.stack([known[text] for text in texts])


def _compute(encoder: Encoder, texts: list[str], role: Role) -> np.ndarray:
    from nblib.models.onednn import linear_by_onednn  # torch, which texts that are on disk don't need

    on_cpu = str(getattr(encoder.model, "device", "")) == "cpu"
    batches = _cpu_batches(encoder, texts, role) if on_cpu else [np.arange(len(texts))]
    model, options = encoder.model, {"batch_size": BATCH, "show_progress_bar": False}
    ways = {"query": model.encode_query, "document": model.encode_document, "symmetric": model.encode}
    try:
        with linear_by_onednn(model):
            parts = [ways[role]([texts[index] for index in batch], **options) for batch in batches]
    except (ValueError, IndexError) as error:  # two towers without a default route; a token without a vector
        why = f"{encoder.name} doesn't encode {role} texts: {' '.join(str(error).split()).rstrip('.')}."
        search = " Benchmarks that search (nevir, excluir) need no default route." * ("route" in str(error))
        raise EmbeddingError(why + search) from error
    order = np.concatenate(batches)
    vectors = np.concatenate([np.asarray(part, dtype=np.float32) for part in parts])
    return check(vectors, [texts[index] for index in order], encoder.name)[np.argsort(order)]


def _cpu_batches(encoder: Encoder, texts: list[str], role: Role) -> list[np.ndarray]:
    """The indices of texts, batch by batch, the longest first; by tokens: sorted by characters a fifth would be padding."""
    tokens = np.minimum(token_counts(encoder, texts, role), encoder.model.max_seq_length or np.inf)
    if np.isnan(tokens).any():
        return [np.arange(len(texts))]
    order, batches = np.argsort(-tokens, kind="stable"), []
    while len(order):
        size = max(1, min(BATCH, int(CPU_BATCH // tokens[order[0]])))
        batches.append(order[:size])
        order = order[size:]
    return batches


def token_counts(encoder: Encoder, texts: Sequence[str], role: Role = "symmetric") -> np.ndarray:
    """Tokens of each text with prompt and special tokens, before truncation, int [n]; NaN for static embeddings."""
    prompt, tokenizer = encoder.prompt(role), getattr(encoder.model, "tokenizer", None)
    if not callable(tokenizer):
        return np.full(len(texts), np.nan)
    tokens = tokenizer([prompt + text for text in texts], truncation=False, padding=False, verbose=False)
    return np.array([len(ids) for ids in tokens["input_ids"]])


def check(vectors: np.ndarray, texts: Sequence[str], name: str) -> np.ndarray:
    """The embeddings [n, dimension]; an EmbeddingError for a wrong shape, NaN or infinity, or a zero vector."""
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise EmbeddingError(f"{name} gave an array of shape {vectors.shape} for {len(texts)} texts.")
    unusable = ~np.isfinite(vectors).all(axis=1) | ~vectors.any(axis=1)
    if unusable.any():
        raise EmbeddingError(
            f"{name} gives zero, infinite or NaN vectors for {unusable.sum()} of {len(texts)} texts, first: "
            f"{texts[int(unusable.argmax())]!r}. No similarity is defined for it."
        )
    return vectors


def similarity(a: np.ndarray, b: np.ndarray, function: str = "cosine") -> np.ndarray:
    """Row-by-row similarity of two stacks of embeddings, [n]: "cosine", "dot", or another of sentence-transformers."""
    from sentence_transformers import SimilarityFunction

    return SimilarityFunction.to_similarity_pairwise_fn(function)(a.astype(np.float64), b.astype(np.float64)).numpy()


def _from_store(encoder: Encoder, texts: list[str], role: Role) -> dict[str, np.ndarray]:
    """The vectors of distinct texts; those that aren't stored are computed and stored, chunk by chunk."""
    keys = {text: hashlib.sha256(text.encode()).digest() for text in texts}
    with _store(encoder, role) as store:
        query = "SELECT vector FROM vectors WHERE text = ?"
        rows = {text: store.execute(query, [key]).fetchone() for text, key in keys.items()}
        known = {text: np.frombuffer(row[0], np.float32) for text, row in rows.items() if row}
        new = [text for text in texts if text not in known]
        with tqdm(total=len(new), desc=f"{encoder.name}: encoding", unit="text", disable=not new) as progress:
            for start in range(0, len(new), CHUNK):
                chunk = new[start : start + CHUNK]
                vectors = dict(zip(chunk, _compute(encoder, chunk, role), strict=True))
                with store:
                    rows = [(keys[text], vector.tobytes()) for text, vector in vectors.items()]
                    store.executemany("INSERT OR REPLACE INTO vectors (text, vector) VALUES (?, ?)", rows)
                known |= vectors
                progress.update(len(chunk))
    return known


@contextmanager
def _store(encoder: Encoder, role: Role) -> Iterator[sqlite3.Connection]:
    """The vectors of one model in one role, in an SQLite file: safe for several processes, survives a kill."""
    key = hashlib.sha256(f"{encoder.fingerprint}\n{role}".encode()).hexdigest()
    file = paths.cache("embeddings") / f"{key[:24]}.sqlite"
    try:
        with closing(sqlite3.connect(file, timeout=60)) as store:
            store.execute("PRAGMA page_size = 16384")  # of a new file: a vector fits into a page beside its key
            store.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
            yield store
    except sqlite3.DatabaseError as error:
        raise EmbeddingError(
            f"The store of embeddings {file} can't be used ({error}). Free space; if the file is damaged, remove it."
        ) from error
