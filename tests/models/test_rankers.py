"""Rankers: each architecture's own rule, on tiny random models."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.close import SUM, assert_close
from support.encoders import written

from nblib.models import encoders, rankers, registry
from nblib.models.ranker_architectures import late_interaction, lexical
from nblib.models.rankers import RankerError
from nblib.results import published

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


# --- chance and TF-IDF ------------------------------------------------------------------------------------------------


def test_chance_repeats_itself_and_nothing_else():
    one, other = rankers.Chance(seed=0), rankers.Chance(seed=1)
    assert one.score(QUERIES, DOCUMENTS).tolist() == one.score(QUERIES, DOCUMENTS).tolist()
    assert one.score(QUERIES, DOCUMENTS).tolist() != other.score(QUERIES, DOCUMENTS).tolist()


def test_tf_idf_by_hand():
    # two texts of two words, one of them shared: its inverse document frequency is ln(3/3) + 1, the others' ln(3/2) + 1
    own = np.log(3 / 2) + 1
    (score,) = rankers.TfIdf().score(["red dog"], ["Red, cat!"])
    assert score == pytest.approx(1 / (1 + own**2))


TEXTS = st.lists(st.sampled_from(["dog", "Dog.", "not", "cats", "red", "red-eyed", "(no)", "bark"]), min_size=1).map(
    " ".join
)


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_tf_idf_is_scikit_learns_fitted_on_each_pair(pairs):
    from sklearn.feature_extraction.text import TfidfVectorizer

    expected = []
    for pair in pairs:
        vectorizer = TfidfVectorizer(tokenizer=lexical._words, token_pattern=None, stop_words="english")
        try:
            query, document = vectorizer.fit_transform(pair).toarray()
        except ValueError:  # an empty vocabulary
            query = document = np.zeros(1)
        expected.append(query @ document)
    np.testing.assert_allclose(rankers.TfIdf().score(*zip(*pairs, strict=True)), expected, atol=1e-12)


def test_tf_idf_does_not_see_not_and_gives_what_shares_nothing_zero():
    ranker = rankers.TfIdf()
    same, none, empty = ranker.score(
        ["dogs bark", "dogs bark", "is it not?"], ["Dogs do not bark.", "a red door", "no, never"]
    )
    assert same == pytest.approx(1) and none == 0 and empty == 0
    assert ranker.score(["is it not?"], ["no, never"]).tolist() == [0]


# --- late interaction -------------------------------------------------------------------------------------------------


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
    monkeypatch.setattr(late_interaction, "CHUNK", 1)
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
    assert table.drop_duplicates("document_place").document_token.tolist() == [
        "[CLS]", "the", "man", "the", "door", "[SEP]",
    ]  # fmt: skip


def test_an_encoder_without_tokens_is_refused():
    with pytest.raises(RankerError, match="written has no token vectors"):
        rankers.token_maxsim(written({"a": [1.0]}))


def test_the_encoders_prompts_come_before_the_texts(tiny_encoder):
    from dataclasses import replace

    spec = replace(tiny_encoder.spec, query_prompt="she ", document_prompt="they ")
    table = rankers.token_maxsim(replace(tiny_encoder, spec=spec)).alignment("dog", "cat")
    assert table.drop_duplicates("query_place").query_token.tolist() == ["[CLS]", "she", "dog", "[SEP]"]
    assert table.drop_duplicates("document_place").document_token.tolist() == ["[CLS]", "they", "cat", "[SEP]"]


# --- sparse -----------------------------------------------------------------------------------------------------------


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


def test_a_sparse_models_score_is_the_dot_product(sparse_folder):
    ranker = rankers.load(str(sparse_folder), device="cpu")
    dense = [ranker.model.encode(text, convert_to_sparse_tensor=False).double() for text in [*QUERIES, *DOCUMENTS]]
    expected = [float(dense[k] @ dense[k + 3]) for k in range(3)]
    assert min(expected) > 0
    assert_close(ranker.score(QUERIES, DOCUMENTS), expected, times=SUM)


# --- cross-encoders ---------------------------------------------------------------------------------------------------


def test_a_cross_encoders_score_is_its_logit(cross):
    model = cross(1)
    expected = model.predict(list(zip(QUERIES, DOCUMENTS, strict=True)))  # a sigmoid of it, by default
    scores = rankers.Cross(model, "cross", "here").score(QUERIES, DOCUMENTS)
    assert_close(1 / (1 + np.exp(-scores)), expected)


def test_of_classes_entailment_counts_wherever_it_stands(cross):
    names = ["contradiction", "Entailment", "neutral"]
    model = cross(3, names)
    logits = model.predict(list(zip(QUERIES, DOCUMENTS, strict=True)))
    assert_close(rankers.Cross(model, "nli", "here").score(QUERIES, DOCUMENTS), logits[:, 1], times=SUM)
    with pytest.raises(RankerError, match="x has the classes no, yes"):
        rankers.Cross(cross(2, ["no", "yes"]), "x", "here").score(QUERIES, DOCUMENTS)


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers import models as token_models
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    words = ["<pad>", "</s>", "<unk>", "▁true", "▁false", "Query:", "Document:", "Relevant:", *{
        word for text in [*QUERIES, *DOCUMENTS] for word in text.split()
    }]  # fmt: skip
    words[8:] = sorted(words[8:])
    tokenizer = Tokenizer(token_models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(words), d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    return T5ForConditionalGeneration(config).eval(), fast


def test_monot5_is_asked_for_true_or_false(t5, monkeypatch):
    model, tokenizer = t5
    monkeypatch.setattr(rankers.MonoT5, "BATCH", 2)
    ranker = rankers.MonoT5(model, tokenizer, "mono", "here")
    expected = []
    for query, document in zip(QUERIES, DOCUMENTS, strict=True):
        batch = tokenizer(f"Query: {query} Document: {document} Relevant:", return_tensors="pt")
        out = model.generate(**batch, max_new_tokens=1, output_logits=True, return_dict_in_generate=True)
        expected.append((out.logits[0][0, 3] - out.logits[0][0, 4]).item())
    assert len({round(score, 2) for score in expected}) == 3
    assert_close(ranker.score(QUERIES, DOCUMENTS), expected, times=SUM)


def test_a_t5_without_the_two_words_is_no_monot5(t5, tiny_encoder):
    with pytest.raises(RankerError, match="no ▁true and no ▁false"):
        rankers.MonoT5(t5[0], tiny_encoder.model.tokenizer, "mono", "here")


# --- by name ----------------------------------------------------------------------------------------------------------


def test_a_folder_is_loaded_as_what_was_saved_in_it(cross, tmp_path):
    cross(1).save_pretrained(str(tmp_path / "mine"))
    ranker = rankers.load(str(tmp_path / "mine"), device="cpu")
    assert (type(ranker), ranker.name) == (rankers.Cross, "mine")
    with pytest.raises(RankerError, match=rf"no model of sentence-transformers.*maxsim:{tmp_path.name}"):
        rankers.load(str(tmp_path))
    about = tmp_path / "config_sentence_transformers.json"
    about.write_text(json.dumps({"model_type": "SentenceTransformer"}))
    with pytest.raises(RankerError, match="holds a SentenceTransformer"):
        rankers.load(str(tmp_path))


def test_what_cannot_be_loaded_says_why():
    with pytest.raises(RankerError, match=r"no ranker called 'BM25'.*TF-IDF"):
        rankers.load("BM25")
    with pytest.raises(RankerError, match=r"rocketqa-v1 can't be loaded: .*PaddlePaddle"):
        rankers.load("rocketqa-v1")
    with pytest.raises(RankerError, match="qnli-electra-base could not be loaded from cross-encoder/qnli-electra-base"):
        rankers.load("qnli-electra-base")  # no hub in tests
    with pytest.raises(registry.ModelError, match="nowhere"):
        rankers.load("maxsim:nowhere")


def test_a_model_that_would_get_a_random_projection_is_refused(base, monkeypatch):
    spec = rankers.RankerSpec("colbert", "late-interaction", hub=str(base))
    monkeypatch.setattr(rankers, "entries", lambda: {"colbert": spec})
    with pytest.raises(RankerError, match=r"^colbert: .* holds no late-interaction model"):
        rankers.load("colbert")


@pytest.mark.parametrize(("name", "kind"), [("Random", rankers.Chance), ("TF-IDF", rankers.TfIdf)])
def test_what_needs_no_weights_is_there(name, kind):
    assert isinstance(rankers.load(name), kind) and rankers.load(name).name == name


def test_registered_rankers_can_be_loaded_or_say_that_they_cannot():
    kinds = {"chance", "tf-idf", "sparse", "late-interaction", "cross-encoder", "monot5", "paddle"}
    for name, spec in rankers.entries().items():
        assert spec.kind in kinds, name
        assert bool(spec.hub) == (spec.kind not in ("chance", "tf-idf", "paddle")), name
        assert "/" not in name and " " not in name, "a name becomes file names"


# --- against the papers -----------------------------------------------------------------------------------------------


def scored_systems(paper, exhibit, metric):
    table = published.load(paper)
    rows = table[(table.exhibit == exhibit) & (table.metric == metric) & table.value.notna()]
    return dict(zip(rows.system, rows.note, strict=True))


def test_every_system_of_wellers_table_has_one_entry_of_its_architecture():
    printed = scored_systems("weller", "Table 2", "pairwise_accuracy")
    assert len(printed) == 24
    encoders = [published.system_name("weller", name) for name in registry.entries()]
    others = {published.system_name("weller", name): spec.kind for name, spec in rankers.entries().items()}
    kinds = {
        "Random": {"chance"}, "Sparse": {"tf-idf", "sparse"}, "Late Interaction": {"late-interaction"},
        "Bi-Encoders": {"paddle"}, "Cross-Encoders": {"cross-encoder", "monot5", "paddle"},
    }  # fmt: skip
    for system, note in printed.items():
        architecture = note.removeprefix("type: ").split(";")[0]
        assert encoders.count(system) + (system in others) == 1, system
        if system in others:
            assert others[system] in kinds[architecture], system
        else:
            assert architecture == "Bi-Encoders", system


def test_printed_sizes_are_the_registrys():
    table = published.load("weller")
    sizes = table[(table.exhibit == "Table 2") & (table.metric == "parameters") & table.value.notna()]
    factor = {"million": 1, "billion": 1000, "count": 1}
    printed = {row.system: row.value * factor[row.unit] for row in sizes.itertuples()}
    for name, spec in rankers.entries().items():
        system = published.system_name("weller", name)
        if system in printed:
            assert spec.parameters == pytest.approx(printed[system]), name


def test_every_model_vahtola_ran_has_an_entry():
    printed = scored_systems("vahtola", "Table 8", "accuracy")
    assert len(printed) == 114
    registered = {published.system_name("vahtola", name): spec for name, spec in registry.entries().items()}
    assert not set(printed) - set(registered)
    assert {registered[system].hub for system in printed} == {f"sentence-transformers/{system}" for system in printed}
