"""Whatever people bring is scored as five lines of the library score it, or refused in one sentence."""

import json
import shutil
import sys
from random import Random

import huggingface_hub.constants
import pytest
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from support import toys
from support.close import close
from support.encoders import fitted_adapter

from nblib import paths
from nblib.errors import StudyError
from nblib.models import encoders, identity, systems
from nblib.models.negation_adapter import WEIGHTINGS, AdapterError

SEED, TOYS = 20, 40
REFUSED = {"a bare transformer": "has no modules.json"}  # words of the table in docs/running.md → words of a message
QUERIES = ["is the dog red ?", "no cat in the house", "find the open door and the closed door and the man never"]
DOCUMENTS = ["the dog is not red .", "a cat is in the house", "the door is open, zebra"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The toys, in a working directory with a hub of their own."""
    folder = tmp_path_factory.mktemp("toys")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder / "hub"))
        sys.stdout.write(f"seed {SEED}\n")  # shown where a test fails
        yield [toys.make(folder, SEED * 1000 + number) for number in range(TOYS)]


def test_scores_are_the_librarys_and_refusals_those_of_the_contract(drawn):
    contract, refused = (paths.PROJECT_ROOT / "docs/running.md").read_text("utf-8"), 0
    for toy in drawn:
        try:
            system = systems.load(toy.name, device="cpu")
        except StudyError as error:
            (reason,) = [reason for reason, words in REFUSED.items() if words in str(error)]
            assert reason in contract, toy
            refused += 1
            continue
        model = toy.load()
        for search in (True, False)[: 1 + isinstance(system, systems.BiEncoder)]:
            roles = systems.SEARCH if search else ("symmetric", "symmetric")
            try:
                expected = toys.five_lines(model, QUERIES, DOCUMENTS, search=search)
            except ValueError:  # of the library: two towers without a default route
                with pytest.raises(StudyError, match="doesn't encode symmetric texts"):
                    system.score(QUERIES, DOCUMENTS, roles=roles)
                continue
            assert close(system.score(QUERIES, DOCUMENTS, roles=roles), expected), (toy, search)
    assert refused <= TOYS - 32


def test_an_adapted_encoder_is_saved_with_its_vectors_or_refused(drawn, tmp_path):
    adapted = 0
    for toy in drawn:
        if toy.kind not in ("encoder", "static", "router"):
            continue
        encoder = encoders.load(toy.name, device="cpu")
        weighting, folder = Random(toy.name).choice(list(WEIGHTINGS)), str(tmp_path / f"{toy.about['seed']}")
        adapter = fitted_adapter(encoder.model.get_embedding_dimension(), weighting=weighting)
        try:
            adapter.apply_to(encoder.model).save_pretrained(folder)
        except AdapterError:
            continue
        again = SentenceTransformer(folder, device="cpu")
        for way in ("encode_query", "encode_document"):
            ours, plain = (getattr(model, way)(QUERIES) for model in (again, encoder.model))
            assert close(ours, adapter.transform(plain)), toy
        adapted += 1
    assert adapted > 10


SAVED, MODULE, NETWORK = "config_sentence_transformers.json", "sentence_bert_config.json", "config.json"
WORDS, TOKENIZER, WEIGHTS = "tokenizer.json", "tokenizer_config.json", "model.safetensors"
GELU = "torch.nn.modules.activation.GELU"
# seeds of a BERT without a LoRA
BASES = {"encoder": 67, "router": 2, "sparse": 28, "late": 1, "cross": 4, "old cross": 20}
CHANGES = [  # what shapes a vector or score, one at a time
    ("encoder", SAVED, {"truncate_dim": 7}),
    ("encoder", SAVED, {"prompts": {"query": "never "}}),
    ("encoder", SAVED, {"default_prompt_name": "document"}),
    ("encoder", SAVED, {"similarity_fn_name": "dot"}),
    ("encoder", MODULE, {"query_length": 5}),
    ("encoder", TOKENIZER, {"model_max_length": 11}),
    ("encoder", TOKENIZER, {"truncation_side": "left"}),
    ("encoder", TOKENIZER, {"do_lower_case": False}),
    ("encoder", WORDS, {"model": {"vocab": {"dog": 20}}}),
    ("encoder", "1_Pooling/config.json", {"pooling_mode": "max"}),
    ("encoder", "1_Pooling/config.json", {"include_prompt": False}),
    ("encoder", "2_Dense/config.json", {"activation_function": GELU}),
    ("encoder", NETWORK, {"layer_norm_eps": 1e-5}),
    ("encoder", NETWORK, {"num_attention_heads": 4}),
    ("encoder", NETWORK, {"hidden_act": "relu"}),
    ("encoder", WEIGHTS, "one"),
    ("encoder", WEIGHTS, "precision"),
    ("router", "router_config.json", {"parameters": {"default_route": "query"}}),
    ("sparse", "1_SpladePooling/config.json", {"activation_function": "log1p_relu"}),
    ("sparse", SAVED, {"similarity_fn_name": "manhattan"}),
    ("late", "1_MultiVectorMask/config.json", {"skiplist_words": ["house"]}),
    ("late", MODULE, {"query_expansion": None}),
    ("cross", NETWORK, {"id2label": {"0": "entailment"}}),
    ("cross", SAVED, {"prompts": {"mine": "never "}}),
    ("cross", TOKENIZER, {"model_max_length": 11}),
    ("cross", WEIGHTS, "one"),
    ("old cross", NETWORK, {"layer_norm_eps": 1e-5}),
    ("old cross", WORDS, {"model": {"vocab": {"dog": 20}}}),
]


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """A folder and a fingerprint for each kind."""
    made = {kind: toys.make(tmp_path_factory.mktemp("bases"), seed, kind).folder for kind, seed in BASES.items()}
    return {kind: (folder, systems.load(str(folder), device="cpu").fingerprint) for kind, folder in made.items()}


def merged(old, new):
    """A JSON object with some values changed, at any depth."""
    return old | {key: merged(old[key], value) if isinstance(value, dict) else value for key, value in new.items()}


@pytest.mark.parametrize(("kind", "name", "change"), CHANGES)
def test_every_setting_and_weight_shapes_the_fingerprint(bases, tmp_path, kind, name, change):
    folder, fingerprint = bases[kind]
    file = shutil.copytree(folder, tmp_path / "changed") / name
    if name == WEIGHTS:
        tensors = load_file(file)
        last = list(tensors)[-1]
        changed = (
            {last: tensors[last] * 1.001} if change == "one" else {key: value.half() for key, value in tensors.items()}
        )
        save_file(tensors | changed, file, metadata={"format": "pt"})
    else:
        file.write_text(json.dumps(merged(json.loads(file.read_text("utf-8")), change)), encoding="utf-8")
    assert systems.load(str(tmp_path / "changed"), device="cpu").fingerprint != fingerprint


@pytest.mark.parametrize("kind", BASES)
def test_the_same_model_has_one_fingerprint_wherever_it_is_and_saved_again(bases, tmp_path, monkeypatch, kind):
    folder, fingerprint = bases[kind]
    shutil.copytree(folder, tmp_path / "x" / "copied")
    monkeypatch.chdir(tmp_path)
    copied = systems.load("x/copied", device="cpu")
    if kind != "sparse":  # whose pooling learns its dimension by use, and saves it
        copied.score(QUERIES, DOCUMENTS)
    if kind == "encoder":
        read = copied.model.tokenizer
        read.init_kwargs["local_files_only"] = not read.init_kwargs["local_files_only"]  # with or without a network
        assert identity.fingerprint(copied.model) == fingerprint
    copied.model.save_pretrained(str(tmp_path / "again"))
    assert copied.fingerprint == systems.load("again", device="cpu").fingerprint == fingerprint


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("encoder", SAVED, {"truncate_dim": "8"}),
        ("encoder", SAVED, {"prompts": {"query": 7}, "default_prompt_name": "query"}),
        ("encoder", MODULE, {"max_seq_length": "long"}),
        ("cross", SAVED, {"prompts": {"mine": 7}, "default_prompt_name": "mine"}),
    ],
)
def test_a_setting_that_the_library_cannot_compute_with_is_refused_at_once(bases, tmp_path, kind, name, change):
    file = shutil.copytree(bases[kind][0], tmp_path / "changed") / name
    file.write_text(json.dumps(merged(json.loads(file.read_text()), change)))
    with pytest.raises(StudyError, match="changed could not be loaded as a"):
        systems.load(str(tmp_path / "changed"), device="cpu")
