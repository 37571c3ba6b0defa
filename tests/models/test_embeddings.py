"""Embeddings: each text once through the model, the same vectors ever after, and nothing unusable passed on."""

import multiprocessing
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.close import assert_close, close
from support.encoders import tiny, written

from nblib.errors import StudyError
from nblib.models import embeddings, encoders, registry
from nblib.models.embeddings import EmbeddingError

TEXTS = ["the dog is red", "it is", "the dog is red", "the dog is not red", "A man", "it is"]


@pytest.fixture
def counted(tiny_encoder, fresh_cache, monkeypatch):
    """The tiny encoder with an empty cache, and the list of texts that have reached the model."""
    reached, encode = [], tiny_encoder.model.encode

    def count(texts, **options):
        reached.extend((text, options["prompt"]) for text in texts)
        return encode(texts, **options)

    monkeypatch.setattr(tiny_encoder.model, "encode", count)
    return tiny_encoder, reached


def returning(tiny_encoder, monkeypatch, change):
    """Make the model's answer another one: what a broken model does."""
    encode = tiny_encoder.model.encode
    monkeypatch.setattr(tiny_encoder.model, "encode", lambda texts, **options: change(encode(texts, **options)))


def test_each_distinct_text_reaches_the_model_once_and_a_second_call_reaches_it_never(counted):
    encoder, reached = counted
    first = embeddings.encode(encoder, TEXTS)
    assert sorted(text for text, _ in reached) == sorted(set(TEXTS))
    reached.clear()
    second = embeddings.encode(encoder, TEXTS)
    assert reached == []
    assert first.tobytes() == second.tobytes()
    assert (first.dtype, first.shape) == (np.float32, (6, 32))


def test_only_what_is_new_reaches_the_model(counted):
    encoder, reached = counted
    embeddings.encode(encoder, TEXTS)
    reached.clear()
    embeddings.encode(encoder, ["a cat", *TEXTS])
    assert [text for text, _ in reached] == ["a cat"]


def test_vectors_come_in_the_order_of_the_texts_whatever_their_length_and_repeats(counted, monkeypatch):
    encoder, _ = counted
    monkeypatch.setattr(embeddings, "CHUNK", 2)
    got = embeddings.encode(encoder, TEXTS)
    for text, vector in zip(TEXTS, got, strict=True):
        assert_close(vector, encoder.model.encode([text], prompt="")[0])
    assert got[0].tobytes() == got[2].tobytes()
    assert got[0].tobytes() != got[3].tobytes()


def test_two_processes_give_the_embeddings_of_one(tiny_encoder, fresh_cache, monkeypatch):
    texts = [f"the {'not ' * (k % 5)}boat {k} is red" for k in range(40)]
    alone = embeddings.encode(replace(tiny_encoder, cacheable=False), texts)
    monkeypatch.setattr(embeddings, "MANY", 1)
    monkeypatch.setattr(embeddings, "_devices", lambda: ["cpu", "cpu"])
    pools = []
    kind = type(tiny_encoder.model)  # the model itself goes to the processes, so it must not be changed
    start = kind.start_multi_process_pool
    monkeypatch.setattr(
        kind, "start_multi_process_pool", lambda self, devices: pools.append(start(self, devices)) or pools[-1]
    )
    together = embeddings.encode(tiny_encoder, texts)
    assert len(pools) == 1 and len(pools[0]["processes"]) == 2
    units = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (together, alone)]
    assert_close(*units)


def test_a_pandas_column_and_no_texts_at_all_are_fine(counted):
    encoder, reached = counted
    assert embeddings.encode(encoder, pd.Series(TEXTS)).tobytes() == embeddings.encode(encoder, TEXTS).tobytes()
    reached.clear()
    assert len(embeddings.encode(encoder, [])) == 0
    assert reached == []


def test_another_prompt_or_model_does_not_share_vectors(counted):
    encoder, reached = counted
    asking = replace(encoder, spec=replace(encoder.spec, query_prompt="find ", document_prompt=""))
    symmetric, query = (embeddings.encode(asking, TEXTS[:1], role=role) for role in ("symmetric", "query"))
    assert reached == [(TEXTS[0], ""), (TEXTS[0], "find ")]
    assert not close(symmetric, query)
    embeddings.encode(asking, TEXTS[:1], role="document")
    assert len(reached) == 2, "the same prompt gives the same vectors, whatever the role"
    embeddings.encode(replace(encoder, fingerprint="another"), TEXTS[:1])
    assert len(reached) == 3


@pytest.mark.parametrize("text", ["", "  \n", None, 3, float("nan"), b"bytes"])
def test_what_is_no_text_is_refused_before_the_model_sees_anything(counted, text):
    encoder, reached = counted
    with pytest.raises(EmbeddingError, match="it is empty, or no string") as error:
        embeddings.encode(encoder, ["a dog", text])
    assert repr(text) in str(error.value)
    with pytest.raises(EmbeddingError, match="holds half a character"):
        embeddings.encode(encoder, ["a dog", "a \ud800 cat"])
    assert reached == []


def test_texts_of_like_numbers_of_tokens_share_a_batch_on_a_cpu(tiny_encoder, fresh_cache, monkeypatch):
    texts = ["a " * words + letter for words in (1, 9, 40) for letter in ("x" * 30, "dog", "cat")]
    batches, whole = [], tiny_encoder.model.encode(texts)
    encode = type(tiny_encoder.model).encode
    seen = lambda self, given, **options: batches.append(given) or encode(self, given, **options)  # noqa: E731
    monkeypatch.setattr(type(tiny_encoder.model), "encode", seen)
    monkeypatch.setattr(embeddings, "CPU_BATCH", 100)
    assert_close(embeddings.encode(tiny_encoder, texts), whole)
    tokens = [embeddings.token_counts(tiny_encoder, batch) for batch in batches]
    assert sorted(text for batch in batches for text in batch) == sorted(texts) and len(batches) > 3
    assert all(len(batch) == 1 or len(batch) * max(batch) <= 100 for batch in tokens)
    assert (np.diff(np.concatenate(tokens)) <= 0).all()


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN or infinite values for 1 of 2 texts"), (np.inf, "NaN or infinite"), (0, "a zero vector for 1 of 2")],
)
def test_unusable_embeddings_name_model_and_text_and_are_not_kept(
    tiny_encoder, fresh_cache, monkeypatch, value, message
):
    def spoil(vectors):
        vectors[0] = value  # of the longer text
        return vectors

    with monkeypatch.context() as broken:
        returning(tiny_encoder, broken, spoil)
        with pytest.raises(EmbeddingError, match=f"tiny-encoder gives {message}.*first: 'the dog'"):
            embeddings.encode(tiny_encoder, ["the dog", "a"])
    assert np.isfinite(embeddings.encode(tiny_encoder, ["the dog", "a"])).all(), "mended, the model is asked again"


@pytest.mark.parametrize("change", [lambda vectors: vectors[:-1], lambda vectors: vectors[:, 0]])
def test_an_array_of_the_wrong_shape_names_model_and_shape(tiny_encoder, fresh_cache, monkeypatch, change):
    returning(tiny_encoder, monkeypatch, change)
    with pytest.raises(EmbeddingError, match=r"tiny-encoder gave an array of shape .* for 2 texts"):
        embeddings.encode(tiny_encoder, ["the dog", "a"])


def test_a_killed_run_keeps_the_chunks_that_were_finished(counted, monkeypatch):
    encoder, reached = counted
    monkeypatch.setattr(embeddings, "CHUNK", 1)
    check = embeddings.check

    def interrupt(vectors, texts, name):
        if texts == ["the dog is red"]:
            raise KeyboardInterrupt
        check(vectors, texts, name)

    with monkeypatch.context() as interrupted:
        interrupted.setattr(embeddings, "check", interrupt)
        with pytest.raises(KeyboardInterrupt):
            embeddings.encode(encoder, TEXTS)
    reached.clear()
    embeddings.encode(encoder, TEXTS)
    assert [text for text, _ in reached] == ["the dog is red", "the dog is not red"]


@pytest.mark.parametrize("damage", ["no database", "a broken page", "truncated"])
def test_a_damaged_store_is_named_with_the_way_out(tiny_encoder, fresh_cache, damage):
    texts = [f"text {number}" for number in range(200)]
    embeddings.encode(tiny_encoder, texts)
    (file,) = (fresh_cache / "embeddings").glob("*.sqlite")
    content = file.read_bytes()
    file.write_bytes({
        "no database": b"this is no database at all" * 9,
        "a broken page": content[:4096] + b"\x55" * (len(content) - 4096),
        "truncated": content[: len(content) // 2],
    }[damage])  # fmt: skip
    with pytest.raises(EmbeddingError, match=rf"{file} can't be used .*remove it"):
        embeddings.encode(tiny_encoder, texts)
    file.unlink()
    assert len(embeddings.encode(tiny_encoder, texts)) == 200


class Lengths:
    """A model that needs no torch, so that a process starts in no time: its vectors are made of the texts' letters."""

    def encode(self, texts, **_):
        return np.array([[len(text), *text.encode()[-3:]] for text in texts], dtype=np.float32)


def _encode_in_a_process(texts):
    embeddings.CHUNK = 5
    return embeddings.encode(encoders.Encoder(registry.ModelSpec("lengths"), Lengths(), "lengths"), texts)


def test_two_processes_can_write_the_same_store(fresh_cache):
    texts = [f"the dog {number}" for number in range(400)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.map(_encode_in_a_process, [texts, texts[::-1]], chunksize=1)
    assert (first == Lengths().encode(texts)).all()
    assert (second == first[::-1]).all()
    with embeddings._Store(encoders.Encoder(registry.ModelSpec("lengths"), Lengths(), "lengths"), "symmetric") as store:
        assert set(store.get(texts)[0]) == set(texts)


def test_similarity_is_numpys():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 7, 5)).astype(np.float32)
    dot = np.array([x @ y for x, y in zip(a.astype(float), b.astype(float), strict=True)])
    cosine = dot / np.linalg.norm(a.astype(float), axis=1) / np.linalg.norm(b.astype(float), axis=1)
    np.testing.assert_allclose(embeddings.similarity(a, b, "dot"), dot, rtol=1e-12)
    np.testing.assert_allclose(embeddings.similarity(a, b), cosine, rtol=1e-12)
    np.testing.assert_allclose(embeddings.similarity(a, a), 1, rtol=1e-12)


def test_similarity_of_unequal_stacks_or_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(1, 3\)"):
        embeddings.similarity(np.ones((2, 3)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="'euclid'; known: cosine, dot"):
        embeddings.similarity(np.ones((2, 3)), np.ones((2, 3)), "euclid")


@pytest.mark.gpu
def test_a_gpu_gives_the_same_vectors_as_the_cpu(tiny_encoder_folder, tiny_encoder):
    on_gpu = encoders.load(str(tiny_encoder_folder), device="cuda")
    assert_close(on_gpu.model.encode(TEXTS), tiny_encoder.model.encode(TEXTS), times=10)
    assert on_gpu.fingerprint == tiny_encoder.fingerprint


def test_queries_go_through_a_tower_of_their_own(fresh_cache):
    asks = written({"Q: a": [0.0, 1.0]}, name="asks", query_prompt="Q: ")
    both = replace(written({"a": [1.0, 0.0]}, name="both"), query_tower=asks)
    roles = {role: embeddings.encode(both, ["a"], role=role).tolist() for role in ("query", "document", "symmetric")}
    assert roles == {"query": [[0.0, 1.0]], "document": [[1.0, 0.0]], "symmetric": [[1.0, 0.0]]}


def test_a_full_disk_under_the_embeddings_is_named_and_keeps_what_is_stored(tmp_path, fresh_cache, monkeypatch):
    encoder = tiny(tmp_path)
    embeddings.encode(encoder, TEXTS)

    def put(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(embeddings._Store, "put", put)
    with pytest.raises(StudyError, match=r"\.sqlite can't be written: the disk is full\. Free space"):
        embeddings.encode(encoder, ["another text"])
    assert embeddings.not_encoded(encoder, TEXTS) == []


@pytest.mark.parametrize("spoil", ["vector = zeroblob(128)", "vector = NULL", "vector = x'00'", "crc = crc + 1"])
def test_a_damaged_embedding_is_computed_again(tmp_path, fresh_cache, spoil):
    encoder = tiny(tmp_path)
    right = embeddings.encode(encoder, TEXTS)
    (file,) = (fresh_cache / "embeddings").glob("*.sqlite")
    for _ in range(2):  # the second time, what was put back is whole
        with sqlite3.connect(file) as store:
            store.execute(f"UPDATE vectors SET {spoil} WHERE text = (SELECT text FROM vectors LIMIT 1)")
        store.close()
        assert close(embeddings.encode(encoder, TEXTS), right)


def test_embeddings_of_an_earlier_version_get_their_checksums(tmp_path, fresh_cache):
    encoder = tiny(tmp_path)
    right = embeddings.encode(encoder, TEXTS)
    (file,) = (fresh_cache / "embeddings").glob("*.sqlite")
    with sqlite3.connect(file) as store:
        store.execute("ALTER TABLE vectors DROP COLUMN crc")
    store.close()
    assert np.array_equal(embeddings.encode(encoder, TEXTS), right)
    assert embeddings.not_encoded(encoder, TEXTS) == []
