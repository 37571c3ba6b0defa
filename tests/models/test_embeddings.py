"""Embeddings: each text once through the model, the same vectors ever after, and nothing unusable passed on."""

import copy
import multiprocessing
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.close import assert_close, close

from nblib.models import embeddings, encoders
from nblib.models.embeddings import EmbeddingError

TEXTS = ["the dog is red", "it is", "the dog is red", "the dog is not red", "A man", "it is"]


@pytest.fixture
def counted(tiny_encoder, fresh_cache, monkeypatch):
    """The tiny encoder with an empty cache, and the list of texts that have reached the model."""
    model = copy.deepcopy(tiny_encoder.model)
    reached, encode = [], model.encode

    def count(inputs, **options):
        reached.extend((text, options.get("prompt_name")) for text in inputs)
        return encode(inputs, **options)

    monkeypatch.setattr(model, "encode", count)
    return replace(tiny_encoder, model=model), reached


def test_each_distinct_text_reaches_the_model_once_and_vectors_come_in_the_order_of_the_texts(counted, monkeypatch):
    encoder, reached = counted
    monkeypatch.setattr(embeddings, "CHUNK", 2)
    first = embeddings.encode(encoder, pd.Series(TEXTS))
    assert sorted(text for text, _ in reached) == sorted(set(TEXTS))
    reached.clear()
    second = embeddings.encode(encoder, ["a cat", *TEXTS])
    assert [text for text, _ in reached] == ["a cat"]
    assert first.tobytes() == second[1:].tobytes()
    assert (first.dtype, first.shape) == (np.float32, (6, 32))
    for text, vector in zip(TEXTS, first, strict=True):
        assert_close(vector, encoder.model.encode([text])[0])
    assert len(embeddings.encode(encoder, [])) == 0


def test_another_prompt_or_model_does_not_share_vectors_and_without_prompts_all_roles_do(counted):
    encoder, reached = counted
    embeddings.encode(encoder, TEXTS[:1], role="query")
    embeddings.encode(encoder, TEXTS[:1], role="document")
    assert len(reached) == 1
    encoder.model.prompts = {"query": "find ", "document": ""}
    asking = replace(encoder, fingerprint="asking")
    symmetric, query = (embeddings.encode(asking, TEXTS[:1], role=role) for role in ("symmetric", "query"))
    assert reached[1:] == [(TEXTS[0], None), (TEXTS[0], "query")]
    assert not close(symmetric, query)
    embeddings.encode(replace(encoder, fingerprint="another"), TEXTS[:1])
    assert len(reached) == 4


def test_a_length_for_queries_alone_makes_vectors_of_their_own(tiny_encoder):
    model = copy.deepcopy(tiny_encoder.model)
    model[0].query_length = 4
    encoder = replace(tiny_encoder, model=model, fingerprint="short queries")
    query, symmetric = (embeddings.encode(encoder, ["the dog is red"], role=role) for role in ("query", "symmetric"))
    assert_close(query, model.encode_query(["the dog is red"]))
    assert not close(query, symmetric)


def test_a_token_that_the_network_lacks_is_an_error_of_one_sentence(tiny_encoder):
    model = copy.deepcopy(tiny_encoder.model)
    model[0].model.resize_token_embeddings(9)
    with pytest.raises(EmbeddingError, match="tiny-encoder doesn't encode symmetric texts: index out of range"):
        embeddings.encode(replace(tiny_encoder, model=model, fingerprint="few tokens"), ["the dog"])


def test_a_model_in_training_encodes_the_same_texts_once_and_leaves_nothing_on_disk(counted, fresh_cache):
    encoder, reached = counted
    in_training = replace(encoder, cacheable=False)
    first = embeddings.encode(in_training, TEXTS)
    assert (embeddings.encode(in_training, TEXTS[::-1]) == first[::-1]).all()
    assert len(reached) == 4 and not list(fresh_cache.rglob("*.sqlite"))
    embeddings.encode(replace(in_training), TEXTS)  # the next weights
    assert len(reached) == 8


@pytest.mark.parametrize("text", ["", "  \n", None, float("nan"), "a \ud800 cat"])
def test_what_is_no_text_is_refused_before_the_model_sees_anything(counted, text):
    encoder, reached = counted
    with pytest.raises(EmbeddingError, match="can't be encoded"):
        embeddings.encode(encoder, ["a dog", text])
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


@pytest.mark.parametrize("value", [np.nan, 0])
def test_unusable_embeddings_are_refused_and_not_kept(tiny_encoder, fresh_cache, monkeypatch, value):
    def spoilt(texts, **options):
        return np.vstack([np.full(32, value), np.ones((len(texts) - 1, 32))])  # the first is the longer text

    with monkeypatch.context() as broken:
        broken.setattr(tiny_encoder.model, "encode", spoilt)
        with pytest.raises(EmbeddingError, match="vectors for 1 of 2 texts, first: 'the dog'"):
            embeddings.encode(tiny_encoder, ["the dog", "a"])
        broken.setattr(tiny_encoder.model, "encode", lambda texts, **_: np.ones((3, 32)))
        with pytest.raises(EmbeddingError, match="gave an array of shape"):
            embeddings.encode(tiny_encoder, ["the dog", "a"])
    assert np.isfinite(embeddings.encode(tiny_encoder, ["the dog", "a"])).all(), "mended, the model is asked again"


def test_a_killed_run_keeps_the_chunks_that_were_finished(counted, monkeypatch):
    encoder, reached = counted
    monkeypatch.setattr(embeddings, "CHUNK", 1)
    check = embeddings.check

    def interrupt(vectors, texts, name):
        if texts == ["the dog is red"]:
            raise KeyboardInterrupt
        return check(vectors, texts, name)

    with monkeypatch.context() as interrupted:
        interrupted.setattr(embeddings, "check", interrupt)
        with pytest.raises(KeyboardInterrupt):
            embeddings.encode(encoder, TEXTS)
    reached.clear()
    embeddings.encode(encoder, TEXTS)
    assert [text for text, _ in reached] == ["the dog is red", "the dog is not red"]


def test_a_damaged_store_is_named_with_the_way_out(tiny_encoder, fresh_cache):
    texts = [f"text {number}" for number in range(200)]
    embeddings.encode(tiny_encoder, texts)
    (file,) = (fresh_cache / "embeddings").glob("*.sqlite")
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(EmbeddingError, match=rf"{file} can't be used .*remove it"):
        embeddings.encode(tiny_encoder, texts)
    file.unlink()
    assert len(embeddings.encode(tiny_encoder, texts)) == 200


class Lengths:
    """A model that needs no torch, so that a process starts in no time: its vectors are made of the texts' letters."""

    prompts, get_model_kwargs, modules = {}, list, list

    def encode(self, texts, **_):
        return np.array([[len(text), *text.encode()[-3:]] for text in texts], dtype=np.float32)

    encode_query = encode_document = encode


def _encode_in_a_process(texts):
    embeddings.CHUNK = 5
    return embeddings.encode(encoders.Encoder("lengths", Lengths(), "lengths"), texts)


def test_two_processes_can_write_the_same_store(fresh_cache):
    texts = [f"the dog {number}" for number in range(400)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.map(_encode_in_a_process, [texts, texts[::-1]], chunksize=1)
    assert (first == Lengths().encode(texts)).all()
    assert (second == first[::-1]).all()


def test_similarity_is_row_by_row_and_what_the_model_was_trained_for():
    a, b = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    assert_close(embeddings.similarity(a, b, "dot"), (a * b).sum(axis=1))
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    assert_close(embeddings.similarity(a, b), (a * b).sum(axis=1) / norms)
    assert_close(embeddings.similarity(a, b, "manhattan"), -np.abs(a - b).sum(axis=1))


@pytest.mark.gpu
def test_a_gpu_gives_the_same_vectors_as_the_cpu(tiny_encoder_folder, tiny_encoder):
    on_gpu = encoders.load(str(tiny_encoder_folder), device="cuda")
    assert_close(on_gpu.model.encode(TEXTS), tiny_encoder.model.encode(TEXTS), times=10)
    assert on_gpu.fingerprint == tiny_encoder.fingerprint
