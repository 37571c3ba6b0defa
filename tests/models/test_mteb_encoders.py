"""Encoders of mteb's registry that are no sentence-transformers models: from the name to a score."""

import subprocess
import sys

import mteb
import numpy as np
import pytest
from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
from mteb.models.model_implementations import MODEL_REGISTRY
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
from support.close import assert_close, close
from support.encoders import fitted_adapter

from nblib import paths
from nblib.benchmarks import efficiency, scoring
from nblib.models import embeddings, encoders, mteb_encoders
from nblib.models.negation_adapter import WEIGHTINGS, AdapterError, adapt
from nblib.models.registry import ModelError
from nblib.models.systems import BiEncoder

RANDOM = "mteb/baseline-random-encoder"
TEXTS = ["the door is open", "the door is not open"]


@pytest.fixture
def entry(monkeypatch):
    """A function that puts a model into mteb's registry: the random encoder's entry with changes."""

    def add(name="nobody/model", **changes):
        meta = mteb.get_model_meta(RANDOM).model_copy(update={"name": name, "modalities": ["text"], **changes})
        monkeypatch.setitem(MODEL_REGISTRY, name, meta)
        return name

    return add


class _BySide:
    """What a loader of mteb's gives: a vector that says which task and side it was asked for, as a torch tensor."""

    def __init__(self, name, revision=None, **_):
        self.asked = []

    def encode(self, inputs, *, task_metadata, hf_split, hf_subset, prompt_type=None, **_):
        import torch

        texts = [text for batch in inputs for text in batch["text"]]
        self.asked.append((task_metadata.name, prompt_type, len(texts)))
        side = {None: 1, "query": 2, "document": 3}[prompt_type]
        return torch.tensor([[side, len(text)] for text in texts], dtype=torch.bfloat16)


# --- from the name to a score ---------------------------------------------------------------------------------------------


def test_a_model_only_mteb_can_load_is_scored_and_cached(tmp_path, fresh_cache, monkeypatch):
    encoder = encoders.load(RANDOM)
    name = RANDOM.replace("/", "__")
    assert (encoder.name, encoder.spec.similarity, encoder.spec.max_length) == (name, "cosine", None)
    vectors = embeddings.encode(encoder, [*TEXTS, TEXTS[0]])
    assert (vectors.shape, vectors.dtype) == ((3, 32), np.float32)
    assert (vectors[0] == vectors[2]).all() and not close(vectors[0], vectors[1])
    first = scoring.score(BiEncoder(encoder), ["nevir_mini"], tmp_path / "run")
    assert first.summary.n.tolist() == [100] and 5 < first.summary.value.item() < 50  # chance: 25
    assert len(list((tmp_path / "run").glob(f"scores/*/mteb/results/*/{encoder.fingerprint}/nevir_mini.json"))) == 1
    monkeypatch.setattr(encoder.model, "encode", None)
    again = scoring.score(BiEncoder(encoder), ["nevir_mini"], tmp_path / "run")
    assert again.summary.value.tolist() == first.summary.value.tolist()


def test_a_model_is_asked_by_role_and_each_role_has_its_own_cache(entry, fresh_cache):
    encoder = encoders.load(
        entry(loader=_BySide, similarity_fn_name=mteb.models.model_meta.ScoringFunction.DOT_PRODUCT)
    )
    by_role = {role: embeddings.encode(encoder, TEXTS, role=role) for role in ("symmetric", "query", "document")}
    assert {role: vectors[0, 0] for role, vectors in by_role.items()} == {"symmetric": 1, "query": 2, "document": 3}
    asked = [("STSBenchmark", None, 2), ("MSMARCO", "query", 2), ("MSMARCO", "document", 2)]
    assert encoder.model.loaded.asked == asked
    assert by_role["query"].dtype == np.float32
    assert encoder.spec.similarity == "dot"
    assert len(list((fresh_cache / "embeddings").iterdir())) == 3


def test_tokens_are_said_to_be_unknown_where_there_is_no_tokenizer(entry, fresh_cache):
    encoder = encoders.load(entry(loader=_BySide, max_tokens=512))
    read = efficiency.truncation(encoder, {"Task": {"query": {TEXTS[0]}, "document": {TEXTS[1]}}})
    assert read[["texts", "max_length"]].values.tolist() == [[2, 512]]
    assert read[["tokens", "longest", "truncated", "share"]].isna().all(axis=None)
    speed = efficiency.throughput(encoder, TEXTS)
    assert speed["tokens_per_second"] is None and speed["texts_per_second"] > 0
    assert "2 distinct texts, how many are too long is not known" in efficiency.sentence(read, speed, 2)


def test_the_workload_in_words(tiny_encoder):
    read = efficiency.truncation(tiny_encoder, {"Task": {"query": {TEXTS[0]}, "document": {TEXTS[1]}}})
    speed = {"texts_per_second": 2.0, "tokens_per_second": read.tokens.sum() / 120}
    assert efficiency.sentence(read, speed, 2) == (
        f"2 distinct texts, 0 longer than 64 tokens. 2 texts and {speed['tokens_per_second']:,.0f} tokens a second: "
        "about 2.0 minutes for all."
    )


def test_fingerprints_differ_by_name_without_a_revision_by_revision_and_by_mtebs_version(entry, monkeypatch):
    names = [entry("nobody/a", revision=None), entry("nobody/b", revision=None), entry("nobody/c"), RANDOM]
    seen = [encoders.load(name).fingerprint for name in names]
    entry("nobody/a", revision="1")
    seen.append(encoders.load("nobody/a").fingerprint)
    assert encoders.load("nobody/a").fingerprint == seen[-1]
    monkeypatch.setattr(mteb_encoders, "version", lambda package: "0")
    seen.append(encoders.load("nobody/a").fingerprint)
    assert len(set(seen)) == 6


# --- a SentenceTransformer inside -----------------------------------------------------------------------------------------


def test_a_sentence_transformer_inside_is_used_itself_with_mtebs_prompts(entry, tiny_encoder_folder, tiny_encoder):
    def loader(name, revision=None, **options):
        prompts = {"query": "find: ", "document": "text: ", "STS": "same? "}
        return SentenceTransformerEncoderWrapper(str(tiny_encoder_folder), model_prompts=prompts, **options)

    encoder = encoders.load(entry(loader=loader), device="cpu")
    assert isinstance(encoder.model, type(tiny_encoder.model)) and not encoder.model.training
    assert encoder.fingerprint == tiny_encoder.fingerprint, "one cache with the same weights from elsewhere"
    assert [encoder.spec.prompt(role) for role in ("symmetric", "query", "document")] == ["same? ", "find: ", "text: "]
    assert (encoder.name, encoder.spec.max_length) == ("nobody__model", 64)


def test_instructions_are_those_mteb_would_give(entry, tiny_encoder_folder):
    def loader(name, revision=None, **options):
        template = {"instruction_template": "Instruct: {instruction}\nQuery: ", "apply_instruction_to_passages": False}
        return InstructSentenceTransformerModel(str(tiny_encoder_folder), None, **template, **options)

    spec = encoders.load(entry(loader=loader, similarity_fn_name=None), device="cpu").spec
    assert spec.symmetric_prompt == "Instruct: Retrieve semantically similar text.\nQuery: "
    assert spec.query_prompt.startswith("Instruct: Given a web search query") and spec.document_prompt == ""
    assert spec.similarity == "cosine"


@pytest.mark.parametrize(
    ("name", "complete", "by_mteb"),
    [("nobody/model", True, False), ("nobody/model", False, True), ("nobody/elsewhere", False, False)],
)
def test_mteb_comes_after_sentence_transformers_but_before_a_made_up_pooling(
    entry, monkeypatch, tiny_encoder, name, complete, by_mteb
):
    entry()
    monkeypatch.setattr("sentence_transformers.util.is_sentence_transformer_model", lambda name: complete)
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", lambda *_, **__: tiny_encoder.model)
    encoder = encoders.load(name)
    assert (encoder.model is tiny_encoder.model) != by_mteb
    assert encoder.name == name.replace("/", "__")


# --- refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mteb/baseline-random-colbert", "a late-interaction model doesn't give one vector per text"),
        ("mteb/baseline-random-cross-encoder", "a cross-encoder model doesn't give one vector per text"),
        ("mteb/baseline-bm25s", "doesn't|could be loaded from mteb's registry"),
        ("baseline/Human", "no way to load it"),
    ],
)
def test_what_gives_no_vectors_is_refused(name, message):
    with pytest.raises(ModelError, match=message):
        encoders.load(name)


def test_another_similarity_is_refused(entry):
    euclidean = mteb.models.model_meta.ScoringFunction.EUCLIDEAN
    with pytest.raises(ModelError, match="its similarity is euclidean"):
        encoders.load(entry(similarity_fn_name=euclidean))


def test_code_from_the_hub_runs_only_where_allowed(entry):
    class Hidden(_BySide):
        options = {"trust_remote_code": True}  # noqa: RUF012

    for changes in ({"loader": _BySide, "loader_kwargs": {"trust_remote_code": True}}, {"loader": Hidden}):
        name = entry(**changes)
        with pytest.raises(ModelError, match=r"nobody/model may run code from the hub.*allow_remote_code"):
            encoders.load(name)
        assert encoders.load(name, allow_remote_code=True).name == "nobody__model"


def test_a_loader_that_fails_is_told_with_what_to_install(entry):
    def loader(name, revision=None, **_):
        raise RuntimeError("no key\npip install mteb[openai]\nmore")

    with pytest.raises(ModelError, match=r"from mteb's registry \(RuntimeError: no key pip install mteb\[openai\]\)"):
        encoders.load(entry(loader=loader))


def test_a_model_whose_weights_are_out_of_reach_is_told_the_registered_name():
    with pytest.raises(ModelError, match=r"Did you mean all-MiniLM-L6-v2.*weights\.txt"):
        encoders.load("sentence-transformers/all-MiniLM-L6-v2")


def test_a_name_unknown_everywhere_is_told_so():
    with pytest.raises(ModelError, match=r"'nobody/nothing' could be loaded from the hub.*Registered: .*weights\.txt"):
        encoders.load("nobody/nothing")


def test_a_model_found_without_mteb_does_not_import_it(tiny_encoder_folder):
    code = "import sys; from nblib.models import encoders; encoders.load(sys.argv[1]); raise SystemExit('mteb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(tiny_encoder_folder)], cwd=paths.PROJECT_ROOT, timeout=180)
    assert done.returncode == 0


# --- with an adapter ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_an_adapter_works_on_the_vectors(weighting):
    encoder, adapter = encoders.load(RANDOM), fitted_adapter(weighting=weighting)
    adapted = adapt(encoder, adapter)
    assert_close(embeddings.encode(adapted, TEXTS), adapter.transform(embeddings.encode(encoder, TEXTS)))
    assert adapted.name == f"{encoder.name}+adapter"
    assert adapted.spec.similarity == ("dot" if weighting == "original norms" else "cosine")


def test_fingerprints_differ_by_adapter():
    encoder = encoders.load(RANDOM)
    adapted = [adapt(encoder, fitted_adapter(weighting=weighting)).fingerprint for weighting in WEIGHTINGS]
    assert len({encoder.fingerprint, *adapted}) == 4


def test_an_adapter_of_another_dimension_or_built_in_is_refused():
    encoder = encoders.load(RANDOM)
    with pytest.raises(AdapterError, match="64 dimensions, not 32"):
        adapt(encoder, fitted_adapter(64))
    with pytest.raises(AdapterError, match="mteb's own code loads"):
        fitted_adapter().apply_to(encoder.model)
