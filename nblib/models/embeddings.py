"""Texts to vectors: each distinct text is encoded once per model and prompt, and kept on disk for every later run."""

import hashlib
import logging
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache

import numpy as np
from tqdm.auto import tqdm

from nblib import paths
from nblib.errors import StudyError
from nblib.models.encoders import Encoder
from nblib.models.registry import Role

logger = logging.getLogger(__name__)

CPU_BATCH = 1000  # tokens; larger batches leave a CPU's caches: documents 1.3 times as slow
CHUNK = 1024  # texts encoded between two commits: what a killed run can lose
MANY = 10_000  # texts that are worth the start of a process for each of several GPUs


class EmbeddingError(StudyError):
    """Texts that can't be encoded, or embeddings that can't be used."""


def encode(encoder: Encoder, texts: Sequence[str], *, role: Role = "symmetric", batch_size: int = 64) -> np.ndarray:
    """The embeddings of texts, float32, shape [len(texts), dimension], as the model gives them (no normalisation).

    Distinct texts are sorted by length, so that a batch has little padding, and looked up in the cache first.

    Args:
        role: which of the model's prompts to put before each text.

    Raises:
        EmbeddingError: a text is not a non-empty string, or the model returns NaN, zeros or the wrong shape.
    """
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise EmbeddingError(f"{text!r} can't be encoded: it is empty, or no string.")
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise EmbeddingError(f"{text!r} can't be encoded: it holds half a character (a surrogate). Mend the text.")
    if role == "query" and encoder.query_tower is not None:
        return encode(encoder.query_tower, texts, role=role, batch_size=batch_size)
    if encoder.base is not None and len(texts):  # what the base has encoded need not be encoded again
        vectors = encoder.transform(encode(encoder.base, texts, role=role, batch_size=batch_size))
        check(vectors, texts, encoder.name)
        return vectors
    if not len(texts):
        return np.empty((0, 0), dtype=np.float32)
    if not encoder.cacheable:
        distinct = _shortest_first(texts)
        return _in_order(texts, distinct, _run(encoder, distinct, role, batch_size))
    with _Store(encoder, role) as store:
        distinct = list(dict.fromkeys(texts))
        known, vectors = store.get(distinct)
        new = _shortest_first(set(distinct).difference(known))
        parts = [vectors] * bool(known)
        bar = tqdm(total=len(new), desc=f"{encoder.name}: encoding", unit="text", disable=not new)
        with bar as progress, _processes(encoder, len(new)) as pool:
            for start in range(0, len(new), CHUNK):
                chunk = new[start : start + CHUNK]
                parts.append(_run(encoder, chunk, role, batch_size, pool))
                store.put(chunk, parts[-1])
                progress.update(len(chunk))
    return _in_order(texts, known + new, np.concatenate(parts) if len(parts) > 1 else parts[0])


def _shortest_first(texts: Iterable[str]) -> list[str]:
    """The distinct texts in the order in which they are encoded."""
    return sorted(set(texts), key=lambda text: (len(text), text))


def _in_order(texts: Sequence[str], distinct: list[str], vectors: np.ndarray) -> np.ndarray:
    """The vector of each text, from those of the distinct texts."""
    places = dict(zip(distinct, range(len(vectors)), strict=True))
    return vectors[[places[text] for text in texts]]


def not_encoded(encoder: Encoder, texts: Sequence[str], *, role: Role = "symmetric") -> list[str]:
    """The distinct texts that `encode` would have to encode, because no earlier run has: shortest first.

    Raises:
        EmbeddingError: the store can't be read.
    """
    if role == "query" and encoder.query_tower is not None:
        return not_encoded(encoder.query_tower, texts, role=role)
    if encoder.base is not None:
        return not_encoded(encoder.base, texts, role=role)
    distinct = _shortest_first(texts)
    if not encoder.cacheable or not distinct:
        return distinct
    with _Store(encoder, role) as store:
        known = store.known(distinct)
    return [text for text in distinct if text not in known]


def seconds_to_encode(encoder: Encoder, texts: list[str], *, role: Role = "symmetric", batch_size: int = 64) -> float:
    """How long encoding these texts takes now, past the store, in the batches that `encode` makes.

    Raises:
        EmbeddingError: see `encode`.
    """
    if role == "query" and encoder.query_tower is not None:
        return seconds_to_encode(encoder.query_tower, texts, role=role, batch_size=batch_size)
    if encoder.base is not None:
        return seconds_to_encode(encoder.base, texts, role=role, batch_size=batch_size)
    started = time.perf_counter()
    _run(encoder, texts, role, batch_size)
    return time.perf_counter() - started


def _run(
    encoder: Encoder, texts: list[str], role: Role, batch_size: int, pool: dict | None = None
) -> np.ndarray:  # fmt: skip
    from nblib.models.onednn import linear_by_onednn  # torch, which texts that are on disk don't need

    device = getattr(getattr(encoder.model, "device", None), "type", "")
    batches = _cpu_batches(encoder, texts, role, batch_size) if device == "cpu" else [np.arange(len(texts))]
    parts = []
    with linear_by_onednn(encoder.model):
        for batch in batches:
            found = encoder.model.encode(
                [texts[place] for place in batch],
                prompt=encoder.spec.prompt(role),
                batch_size=batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
                pool=pool,
            )
            parts.append(np.asarray(found, dtype=np.float32))
    vectors = np.concatenate(parts)
    if len(vectors) == len(texts):  # else `check` says what is wrong
        vectors = vectors[np.argsort(np.concatenate(batches))]
    check(vectors, texts, encoder.name)
    return vectors


def _cpu_batches(encoder: Encoder, texts: list[str], role: Role, batch_size: int) -> list[np.ndarray]:
    """The places of texts, batch by batch, the longest first. They are sorted by tokens: sorted by characters, as
    sentence-transformers does it, a fifth of the computation for short texts would be padding."""
    tokens = token_counts(encoder, texts, role)
    if np.isnan(tokens).any():
        return [np.arange(len(texts))]
    tokens = np.minimum(tokens, encoder.model.max_seq_length or np.inf)
    order, batches = np.argsort(-tokens, kind="stable"), []
    while len(order):
        size = max(1, min(batch_size, int(CPU_BATCH // tokens[order[0]])))
        batches.append(order[:size])
        order = order[size:]
    return batches


@contextmanager
def _processes(encoder: Encoder, texts: int) -> Iterator[dict | None]:
    """A process for each of several GPUs, which share the texts; None where there are few texts or not several GPUs."""
    devices = _devices() if texts >= MANY else []
    if len(devices) < 2:
        yield None
        return
    pool = encoder.model.start_multi_process_pool(devices)
    try:
        yield pool
    finally:
        encoder.model.stop_multi_process_pool(pool)


def _devices() -> list[str]:
    import torch

    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


def token_counts(encoder: Encoder, texts: Sequence[str], role: Role = "symmetric") -> np.ndarray:
    """Tokens of each text with the prompt of its role and the model's special tokens, before any truncation, int [n]; NaN
    where the model has no such tokenizer to ask (one of static embeddings)."""
    prompt, tokenizer = encoder.spec.prompt(role), getattr(encoder.model, "tokenizer", None)
    if not len(texts):
        return np.zeros(0, dtype=int)
    if not callable(tokenizer):
        return np.full(len(texts), np.nan)
    read = tokenizer([prompt + text for text in texts], truncation=False, padding=False, verbose=False)
    return np.array([len(ids) for ids in read["input_ids"]])


def check(vectors: np.ndarray, texts: Sequence[str], name: str) -> None:
    """Refuse embeddings no similarity can be computed from.

    Raises:
        EmbeddingError: wrong shape, NaN or infinity, or a zero vector; names the model and the first text concerned.
    """
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise EmbeddingError(
            f"{name} gave an array of shape {vectors.shape} for {len(texts)} texts; expected [{len(texts)}, dimension]."
        )
    unusable, zero = ~np.isfinite(vectors).all(axis=1), ~vectors.any(axis=1)
    for fault, rows in [("NaN or infinite values", unusable), ("a zero vector", zero)]:
        if rows.any():
            first = texts[int(rows.argmax())]
            raise EmbeddingError(
                f"{name} gives {fault} for {rows.sum()} of {len(texts)} texts, first: {first!r}. No similarity is defined for it."
            )


def similarity(a: np.ndarray, b: np.ndarray, kind: str = "cosine") -> np.ndarray:
    """Row-by-row similarity of two stacks of embeddings, shape [n]; computed in float64 from float32 vectors.

    Raises:
        ValueError: unknown kind, or shapes that differ.
    """
    if a.shape != b.shape:
        raise ValueError(f"Row-by-row similarity needs equal shapes, got {a.shape} and {b.shape}.")
    a, b = a.astype(np.float64), b.astype(np.float64)
    dot = np.einsum("nd,nd->n", a, b)
    if kind == "dot":
        return dot
    if kind == "cosine":
        return dot / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    raise ValueError(f"Unknown similarity {kind!r}; known: cosine, dot.")


class _Store:
    """The vectors of one model under one prompt, in an SQLite file: safe for several processes, survives a kill.

    Each vector has a checksum; a damaged one counts as absent, so it is computed again.
    """

    def __init__(self, encoder: Encoder, role: Role) -> None:
        key = hashlib.sha256(f"{encoder.fingerprint}\n{encoder.spec.prompt(role)}".encode()).hexdigest()
        self.file = paths.cache("embeddings") / f"{key[:24]}.sqlite"

    def __enter__(self) -> "_Store":
        self.connection = sqlite3.connect(self.file, timeout=60)
        try:
            self.connection.create_function("crc", 2, _crc, deterministic=True)
            if not self._has_checksums():
                self._prepare()
        except sqlite3.DatabaseError as error:
            self.connection.close()
            raise self._unusable(error) from error
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        self.connection.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.DatabaseError) -> EmbeddingError:
        if "full" in str(error):
            return EmbeddingError(
                f"{self.file} can't be written: the disk is full. Free space, and run the same again: what is stored is kept."
            )
        return EmbeddingError(
            f"The store of embeddings {self.file} can't be used ({error}). If it is damaged, remove it: the embeddings are "
            "computed again."
        )

    def _prepare(self) -> None:
        self.connection.execute("PRAGMA page_size = 16384")  # of a new file: a vector fits into a page beside its key
        with self.connection:
            self.connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB, crc INTEGER) WITHOUT ROWID"
            )
        if not self._has_checksums():  # of an earlier version
            with self.connection:
                self.connection.execute("BEGIN IMMEDIATE")
                if not self._has_checksums():  # another process may have been faster
                    self.connection.execute("ALTER TABLE vectors ADD COLUMN crc INTEGER")
                    self.connection.execute("UPDATE vectors SET crc = crc(text, vector)")

    def _has_checksums(self) -> bool:
        return any(column[1] == "crc" for column in self.connection.execute("PRAGMA table_info(vectors)"))

    def get(self, texts: list[str]) -> tuple[list[str], np.ndarray]:
        """Those of the texts that are here, and their vectors."""
        by_key = {_key(text): text for text in texts}
        rows = self._rows("text, vector, crc", list(by_key))
        whole = [row for row in rows if row[2] == _crc(row[0], row[1])]
        found, vectors = [by_key[row[0]] for row in whole], np.empty((0, 0), dtype=np.float32)
        if whole:  # checked together: one by one takes as long as reading them
            vectors = np.frombuffer(b"".join([row[1] for row in whole]), dtype=np.float32).reshape(len(whole), -1)
            usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
            if not usable.all():
                found, vectors = [found[place] for place in np.flatnonzero(usable)], vectors[usable]
        if damaged := len(rows) - len(found):
            logger.warning("%d of %d embeddings in %s are damaged: computed again.", damaged, len(texts), self.file)
        return found, vectors

    def known(self, texts: list[str]) -> set[str]:
        by_key = {_key(text): text for text in texts}
        return {by_key[key] for (key,) in self._rows("text", list(by_key))}

    def _rows(self, columns: str, keys: list[bytes]) -> list[tuple]:
        found = []
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            query = f"SELECT {columns} FROM vectors WHERE text IN ({','.join('?' * len(part))})"
            with closing(self.connection.execute(query, part)) as rows:
                found += rows.fetchall()
        return found

    def put(self, texts: list[str], vectors: np.ndarray) -> None:
        with self.connection:
            self.connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?1, ?2, crc(?1, ?2))",
                [(_key(text), vector.tobytes()) for text, vector in zip(texts, vectors, strict=True)],
            )


def _crc(key: bytes, vector: object) -> int:
    return zlib.crc32(vector if isinstance(vector, bytes) else b"", zlib.crc32(key + b"\0"))


@lru_cache(maxsize=2**17)  # one system after the other encodes the same texts
def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
