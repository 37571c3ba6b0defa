"""Rankers: each architecture's own rule, on tiny random models."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.close import SUM, assert_close
from support.encoders import written

from nblib.benchmarks import scoring
from nblib.models import encoders, loading, rankers, registry
from nblib.models.rankers import RankerError

QUERIES = ["the dog is red", "the dog is red", "the cat"]
DOCUMENTS = ["a dog is not red", "the man, the door", "the house is a house"]


@pytest.fixture(scope="module")
def base(tiny_encoder_folder, tmp_path_factory):
    """The tiny model's transformer alone, as a folder."""
    encoder = encoders.load(str(tiny_encoder_folder), device="cpu").model
    folder = tmp_path_factory.mktemp("base")
    encoder[0].model.save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def late(tiny_encoder_folder):
    return rankers.load(f"maxsim:{tiny_encoder_folder}", device="cpu")


@pytest.fixture(scope="module")
def cross(base):
    def make(labels, names=None):
        from sentence_transformers import CrossEncoder

        torch.manual_seed(0)
        model = CrossEncoder(str(base), num_labels=labels, device="cpu")
        if names:
            model.config.id2label = dict(enumerate(names))
        return model.eval()

    return make


def test_chance_repeats_itself():
    assert (rankers.load("Random").score(QUERIES, DOCUMENTS) == rankers.load("Random").score(QUERIES, DOCUMENTS)).all()


def test_tf_idf_by_hand():
    # two texts of two words, one of them shared: its inverse document frequency is ln(3/3) + 1, the others' ln(3/2) + 1
    own = np.log(3 / 2) + 1
    queries = ["red dog", "dogs bark", "dogs bark", "is it not?"]
    documents = ["Red, cat!", "Dogs do not bark.", "a red door", "no, never"]
    assert_close(rankers.load("TF-IDF").score(queries, documents), [1 / (1 + own**2), 1, 0, 0])


def test_maxsim_is_the_sum_of_the_greatest_cosines(late, tiny_encoder):
    model = tiny_encoder.model

    def tokens(text, keep):
        features = model.preprocess([text])
        with torch.no_grad():
            vectors = model[0](features)["token_embeddings"][0].double()
        words = model.tokenizer.convert_ids_to_tokens(features["input_ids"][0].tolist())
        return torch.nn.functional.normalize(vectors[[keep(word) for word in words]], dim=-1)

    expected = [
        (tokens(query, lambda _: True) @ tokens(document, lambda word: word != ",").T).max(dim=1).values.sum().item()
        for query, document in zip(QUERIES, DOCUMENTS, strict=True)
    ]
    assert_close(late.score(QUERIES, DOCUMENTS), expected, times=SUM)


def test_scores_come_in_the_order_of_the_pairs_whatever_the_chunks(late, monkeypatch):
    whole = late.score(QUERIES, DOCUMENTS)
    monkeypatch.setattr(rankers, "CHUNK", 1)
    assert_close(late.score(QUERIES, DOCUMENTS), whole, times=SUM)
    assert_close(late.score(QUERIES[::-1], DOCUMENTS[::-1]), whole[::-1], times=SUM)


def test_the_alignment_adds_up_to_the_score_and_leaves_punctuation_out(late):
    table = late.alignment("the dog, the cat", "the man, the door")
    greatest = table[table.greatest]
    assert greatest.query_place.tolist() == list(range(7)) and (table.similarity <= 1 + 1e-5).all()
    (score,) = late.score(["the dog, the cat"], ["the man, the door"])
    assert_close(greatest.similarity.sum(), score, times=SUM)
    assert (greatest.similarity >= table.groupby("query_place").similarity.max().to_numpy()).all()
    assert "," in set(table.query_token) and "," not in set(table.document_token)
    assert " ".join(table.drop_duplicates("document_place").document_token) == "[CLS] the man the door [SEP]"


def test_of_vectors_that_are_several_tokens_no_alignment_is_left(late, tmp_path):
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.multi_vector_encoder.modules import HierarchicalTokenPooling

    pooled = MultiVectorEncoder(modules=[*late.model, HierarchicalTokenPooling(2)], device="cpu").eval()
    for ranker, left in [(late, True), (rankers.LateInteraction(pooled, "pooled", "here"), False)]:
        scoring.describe(ranker, tmp_path)
        assert (scoring.folder_of(tmp_path, ranker.name) / "alignment.csv").is_file() == left


def test_an_encoder_without_tokens_is_refused():
    with pytest.raises(RankerError, match="written has no token vectors"):
        rankers.token_maxsim(written({"a": [1.0]}))


def test_the_encoders_prompts_come_before_the_texts(tiny_encoder):
    model = copy.deepcopy(tiny_encoder.model)
    model.prompts = {"query": "she ", "passage": "they "}
    table = rankers.token_maxsim(replace(tiny_encoder, model=model)).alignment("dog", "cat")
    assert " ".join(table.drop_duplicates("query_place").query_token) == "[CLS] she dog [SEP]"
    assert " ".join(table.drop_duplicates("document_place").document_token) == "[CLS] they cat [SEP]"


@pytest.fixture(scope="module")
def sparse_folder(base, tmp_path_factory):
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import MLMTransformer, SpladePooling
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    folder = tmp_path_factory.mktemp("splade")
    torch.manual_seed(0)
    BertForMaskedLM(BertConfig.from_pretrained(base)).save_pretrained(folder / "mlm")
    AutoTokenizer.from_pretrained(base).save_pretrained(folder / "mlm")
    modules = [MLMTransformer(str(folder / "mlm")), SpladePooling(pooling_strategy="max")]
    SparseEncoder(modules=modules, device="cpu").save(str(folder / "model"), create_model_card=False)
    return folder / "model"


def test_a_sparse_models_score_is_the_dot_product_or_the_models_own_similarity(sparse_folder):
    ranker = rankers.load(str(sparse_folder), device="cpu")
    dense = [ranker.model.encode(text, convert_to_sparse_tensor=False).double() for text in [*QUERIES, *DOCUMENTS]]
    expected = [float(dense[k] @ dense[k + 3]) for k in range(3)]
    assert min(expected) > 0
    assert_close(ranker.score(QUERIES, DOCUMENTS), expected, times=SUM)
    ranker.model.similarity_fn_name = "cosine"
    expected = [expected[k] / float(dense[k].norm() * dense[k + 3].norm()) for k in range(3)]
    assert_close(ranker.score(QUERIES, DOCUMENTS), expected)


def test_a_cross_encoders_score_is_its_logit(cross):
    model = cross(1)
    expected = model.predict(list(zip(QUERIES, DOCUMENTS, strict=True)))  # a sigmoid of it, by default
    scores = rankers.CrossEncoder(model, "cross", "here").score(QUERIES, DOCUMENTS)
    assert_close(1 / (1 + np.exp(-scores)), expected)


def test_of_classes_entailment_counts_wherever_it_stands(cross):
    names = ["contradiction", "Entailment", "neutral"]
    model = cross(3, names)
    logits = model.predict(list(zip(QUERIES, DOCUMENTS, strict=True)))
    assert_close(rankers.CrossEncoder(model, "nli", "here").score(QUERIES, DOCUMENTS), logits[:, 1], times=SUM)
    with pytest.raises(RankerError, match="x has the classes no, yes"):
        rankers.CrossEncoder(cross(2, ["no", "yes"]), "x", "here").score(QUERIES, DOCUMENTS)


def test_monot5_is_asked_for_true_or_false(monkeypatch):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    read = sorted({word for text in [*QUERIES, *DOCUMENTS] for word in text.split()})
    words = ["<pad>", "</s>", "<unk>", "▁true", "▁false", "Query:", "Document:", "Relevant:", *read]
    rule = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    rule.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=rule, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
    torch.manual_seed(0)
    sizes = {"vocab_size": len(words), "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    model = T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=0)).eval()
    monkeypatch.setattr(rankers, "BATCH", 2)
    scores = rankers.MonoT5(model, "mono", "here", tokenizer).score(QUERIES, DOCUMENTS)
    assert len({round(score, 2) for score in scores}) == 3
    for query, document, score in zip(QUERIES, DOCUMENTS, scores, strict=True):
        batch = tokenizer(f"Query: {query} Document: {document} Relevant:", return_tensors="pt")
        out = model.generate(**batch, max_new_tokens=1, output_logits=True, return_dict_in_generate=True)
        assert_close(score, out.logits[0][0, 3] - out.logits[0][0, 4], times=SUM)


def test_a_folder_is_loaded_as_what_was_saved_in_it(cross, tmp_path):
    cross(1).save_pretrained(str(tmp_path / "mine"))
    ranker = rankers.load(str(tmp_path / "mine"), device="cpu")
    assert (type(ranker), ranker.name) == (rankers.CrossEncoder, "mine")


def test_what_cannot_be_loaded_says_why(tiny_encoder_folder, base, monkeypatch):
    with pytest.raises(RankerError, match=rf"{tiny_encoder_folder} is a SentenceTransformer.*maxsim:"):
        rankers.load(str(tiny_encoder_folder))
    for name in ("qnli-electra-base", "maxsim:nowhere"):  # no hub in tests
        with pytest.raises(registry.ModelError, match=r"electra-base.*could not be had|nowhere"):
            rankers.load(name)
    spec = rankers.RankerSpec(name="colbert", architecture="late-interaction", hub="org/colbert")
    monkeypatch.setattr(rankers, "entries", lambda: {"colbert": spec})
    monkeypatch.setattr(loading, "download", lambda *_, **__: base)
    with pytest.raises(registry.ModelError, match=r"no modules.json, and BertModel"):  # a random projection otherwise
        rankers.load("colbert")
