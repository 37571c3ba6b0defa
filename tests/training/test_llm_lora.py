"""LoRA of a language model: what it is asked, what counts in the loss, and that a killed training ends where it would have."""

import json
import shutil
from dataclasses import replace

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from support.close import assert_close
from support.encoders import toy_triples
from support.language import WORDS, tiny_llama
from transformers import AutoTokenizer

from nblib.corpora import triples
from nblib.errors import StudyError
from nblib.models import language_models, llm_adapters
from nblib.models.folders import FinetuningError
from nblib.models.llm_adapters import LoraError
from nblib.results import published
from nblib.training import checkpoints, llm_lora
from nblib.training.llm_lora import Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama")


@pytest.fixture(scope="module")
def settings(folder):
    """A training of 24 steps: 96 pairs of six anchors, eight at a time, twice."""
    return Settings(
        str(folder), epochs=2, rank=4, alpha=8, learning_rate=2e-2, batch_size=8, bf16=False, checkpointing=False
    )


@pytest.fixture(scope="module")
def table():
    return llm_lora.pairs(toy_triples())


@pytest.fixture(scope="module")
def trained(settings, table, tmp_path_factory):
    return llm_lora.train(settings, table, tmp_path_factory.mktemp("trained"))


def weights(folder):
    return load_file(folder / "adapter" / "adapter_model.safetensors")


def assert_same(first, second, pairs):
    """Two trainings gave models of the same answers."""
    assert_close(*(llm_lora.probabilities(model, pairs, False) for model in (first, second)), times=100)


# --- settings and pairs -----------------------------------------------------------------------------------------------


def test_the_defaults_are_the_papers_table_4():
    table = published.load("truong")
    notes = table[table.exhibit == "Table 4"].set_index("metric")
    printed, mine = notes.value, Settings("any")
    numbers = [printed.lora_epochs, printed.lora_rank, printed.lora_alpha, printed.lora_dropout]
    assert numbers == [mine.epochs, mine.rank, mine.alpha, mine.dropout]
    raw = pd.read_csv(triples.paths.DATA / "published" / "truong.csv", dtype=str, keep_default_na=False)
    raw = raw[raw.exhibit == "Table 4"].set_index("metric").value
    assert tuple(raw.lora_target_modules.split(", ")) == mine.targets
    assert raw.lora_bias.lower() == mine.bias


def test_a_triple_becomes_two_pairs_as_in_the_paper():
    pairs = llm_lora.pairs(toy_triples(1).head(1))
    assert pairs.answer.tolist() == ["Yes", "No"]
    assert pairs.kind.tolist() == ["negation", "hedging"]
    assert pairs.variant.tolist() == ["verbal", "word"]
    text = "Sentence 1: A.\nSentence 2: B.\nDo the two sentences have opposite meaning? Yes or No.\nAnswer:"
    assert llm_lora.prompt("A.", "B.") == text


@given(st.integers(1, 5))
def test_every_training_set_has_as_many_yes_as_no(count):
    pairs = llm_lora.pairs(toy_triples(count))
    assert len(pairs) == 16 * count
    assert (pairs.answer == "Yes").mean() == 0.5
    assert set(pairs.variant[pairs.answer == "Yes"]) == {"verbal", "absolute", "affixal", "lexical"}


def test_only_negation_asks_about_the_entailed_sentence_too():
    rows = pd.DataFrame([
        {"id": "t", "anchor": "the dog is red", "entailment": "the dog has a colour", "word": "maybe", "phrase": "who knows",
         **{name: f"not {name}" for name in triples.NEGATIONS}}
    ])  # fmt: skip
    pairs = llm_lora.pairs(triples.build(rows, "only negation"))
    assert set(pairs.sentence_2[pairs.answer == "No"]) == {"the dog has a colour"}
    hedging = llm_lora.pairs(triples.build(rows, "only hedging"))
    assert set(hedging.variant) == {"verbal", "word", "phrase"}


def test_a_batch_ends_with_the_question(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    read = [llm_lora.tokens(tokenizer, *pair, False) for pair in [("a dog", "a red dog"), ("a", "a")]]
    batch = llm_lora.collate([{"input_ids": ids, "answer": 5} for ids in read], pad=0)
    assert batch["input_ids"].shape == (2, len(read[0]))
    assert tokenizer.decode(batch["input_ids"][1, -2:]) == "Answer :"
    assert batch["attention_mask"].sum(dim=1).tolist() == [len(ids) for ids in read]
    assert (batch["input_ids"][batch["attention_mask"] == 0] == 0).all()
    assert set(llm_lora.collate([{"input_ids": read[0]}], 0)) == {"input_ids", "attention_mask"}


def test_padding_does_not_change_an_answer(folder):
    base = language_models.load(str(folder), device="cpu")
    asked = pd.DataFrame({"sentence_1": ["a dog", "a"], "sentence_2": ["a red dog in the house", "a cat"]})
    together = llm_lora.probabilities(base, asked, chat_template=False)
    alone = [llm_lora.probabilities(base, asked.iloc[[k]], chat_template=False).iloc[0] for k in range(2)]
    assert_close(together, alone)
    assert together.between(0, 1).all()


def test_a_chat_template_puts_the_question_in_a_turn(folder, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with pytest.raises(LoraError, match=r"has no chat template\. Set chat_template to False"):
        llm_lora.answer_tokens(tokenizer, True)
    tokenizer.chat_template = (
        "{% for m in messages %}<s> {{ m.content }}{% endfor %}{% if add_generation_prompt %} A :{% endif %}"
    )
    ids = llm_lora.tokens(tokenizer, "a dog", "a cat", True)
    assert tokenizer.decode(ids[-4:]) == "Answer : A :"
    assert llm_lora.answer_tokens(tokenizer, True) == llm_lora.answer_tokens(tokenizer, False)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_answers_must_be_tokens_of_their_own(tmp_path):
    mute = tiny_llama(tmp_path / "mute", words=[word for word in WORDS if word != "Yes"])
    with pytest.raises(LoraError, match=r"' Yes' is no token of its own in .*mute"):
        llm_lora.answer_tokens(AutoTokenizer.from_pretrained(mute), False)


def test_numbers_of_nothing_are_refused(settings):
    for name in ("epochs", "rank", "alpha", "batch_size"):
        with pytest.raises(StudyError, match=f"{name} must be above 0, and is 0"):
            replace(settings, **{name: 0})


def test_a_base_without_tokenizer_is_refused(folder, settings, table, tmp_path):
    mute = shutil.copytree(folder, tmp_path / "mute")
    (mute / "tokenizer.json").unlink()
    with pytest.raises(StudyError, match="mute has no tokenizer"):
        llm_lora.train(replace(settings, base=str(mute)), table, tmp_path / "work")


def test_layers_that_are_not_there_are_named(settings, table, tmp_path):
    with pytest.raises(LoraError, match="tiny-llama can't take a LoRA on q_projection"):
        llm_lora.train(replace(settings, targets=("q_projection",)), table, tmp_path)


def test_out_of_memory_says_what_to_lower(settings, table, tmp_path, monkeypatch):
    def full(*_, **__):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 17 bytes")

    monkeypatch.setattr(llm_lora._AnswerTrainer, "compute_loss", full)
    with pytest.raises(LoraError, match=r"with 8 pairs at once\. Lower batch_size, or set checkp"):
        llm_lora.train(settings, table, tmp_path)


# --- training ---------------------------------------------------------------------------------------------------------


def test_the_loss_falls_and_the_pairs_are_answered_right(trained, settings, table):
    tuned, history = trained
    assert history.step.iloc[-1] == 24
    assert history.loss.iloc[-3:].mean() < 0.5 < 1.5 < history.loss.iloc[0]
    right = (llm_lora.probabilities(tuned, table, False) > 0.5) == (table.answer == "Yes")
    assert right.mean() > 0.95


def test_only_the_lora_is_trained(settings, folder):
    base = language_models.load(str(folder), device="cpu")
    before = {key: value.clone() for key, value in base.model.state_dict().items()}
    model = llm_lora.add_lora(base, settings)
    open_to_training = [name for name, weight in model.named_parameters() if weight.requires_grad]
    assert len(open_to_training) == 2 * 2 * 7  # two matrices, two layers, seven modules
    assert all("lora_" in name for name in open_to_training)
    assert all(torch.equal(value, before[key]) for key, value in folder_state(folder).items())


def folder_state(folder):
    return language_models.load(str(folder), device="cpu").model.state_dict()


def test_the_loss_is_the_answers_alone(settings, table, folder):
    base = language_models.load(str(folder), device="cpu")
    answers = llm_lora.answer_tokens(base.tokenizer, False)
    row = table.iloc[0]
    read = llm_lora.tokens(base.tokenizer, row.sentence_1, row.sentence_2, False)
    whole = torch.tensor([[*read, answers["Yes"]]])
    labels = torch.full_like(whole, -100)
    labels[0, -1] = answers["Yes"]
    wanted = base.model(input_ids=whole, labels=labels).loss.item()
    batch = llm_lora.collate(
        [{"input_ids": [1, *read][1:], "answer": answers["Yes"]}, {"input_ids": [*read, *read], "answer": 0}], 0
    )
    llm_lora._flat_head(base.model)
    first = {name: part[:1] for name, part in batch.items()}
    assert_close(llm_lora._AnswerTrainer.compute_loss(None, base.model, first), wanted)


def test_what_saves_memory_changes_nothing(settings, table, trained, tmp_path):
    model, _ = llm_lora.train(replace(settings, checkpointing=True), table, tmp_path)
    assert_same(model, trained[0], table)


def test_a_killed_training_ends_where_it_would_have(settings, table, trained, tmp_path, monkeypatch):
    compute, steps = llm_lora._AnswerTrainer.compute_loss, []

    def killed(self, *arguments, **options):
        steps.append(1)
        if len(steps) == 15:
            raise KeyboardInterrupt
        return compute(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(llm_lora._AnswerTrainer, "compute_loss", killed)
        with pytest.raises(KeyboardInterrupt):
            llm_lora.train(settings, table, tmp_path, checkpoint_steps=10)
    assert checkpoints.last_checkpoint(tmp_path).endswith("checkpoint-10")
    with pytest.raises(FinetuningError, match="checkpoints of another training"):
        llm_lora.train(replace(settings, epochs=1), table, tmp_path)
    model, history = llm_lora.train(settings, table, tmp_path, checkpoint_steps=10)
    assert_same(model, trained[0], table)
    assert history.step.tolist() == trained[1].step.tolist()


def test_bfloat16_learns_too_and_leaves_a_float32_lora(settings, table, tmp_path):
    _, history = llm_lora.train(replace(settings, bf16=True, epochs=3), table, tmp_path)
    assert history.loss.iloc[-3:].mean() < 0.5 * history.loss.iloc[0]
    assert {value.dtype for value in weights(tmp_path).values()} == {torch.float32}


# --- a training that is kept ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def few(settings, table):
    return replace(settings, epochs=1), table.head(32), table.tail(8)


@pytest.fixture(scope="module")
def kept(few, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("run")
    return llm_lora.tune(*few, run_dir, "hedge", data="toys", scale="lab"), run_dir


@pytest.fixture
def no_training(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("trained")

    monkeypatch.setattr(llm_lora, "train", refuse)


def test_what_was_trained_before_is_read_and_shows_the_same(few, kept, no_training, monkeypatch):
    first, run_dir = kept
    assert (first.found, first.folder) == (False, run_dir / "llms" / "hedge")
    assert not (run_dir / "checkpoints" / "hedge").exists()
    assert {"history.csv", "dev.csv"} <= {file.name for file in (run_dir / "trainings" / "hedge").iterdir()}
    about = json.loads((run_dir / "llms" / "hedge.json").read_text())
    assert (about["scale"], about["name"], about["pairs"], about["seconds"]) == ("lab", "hedge", 32, first.seconds)
    with monkeypatch.context() as patch:
        patch.setattr(llm_lora, "probabilities", lambda *_: 1 / 0)
        again = llm_lora.tune(*few, run_dir, "hedge")
    assert again.found and again.seconds == first.seconds
    pd.testing.assert_frame_equal(again.history, first.history, check_exact=True)
    pd.testing.assert_frame_equal(again.dev, first.dev, check_exact=True)


def test_other_dev_pairs_are_asked_of_what_was_trained(few, table, kept, no_training):
    first, run_dir = kept
    settings, pairs, dev = few
    more = llm_lora.tune(settings, pairs, table.tail(12), run_dir, "hedge")
    assert more.found and more.dev.n.sum() == 12 and more.record.about["finished"] == first.record.about["finished"]
    back = llm_lora.tune(settings, pairs, dev, run_dir, "hedge")
    pd.testing.assert_frame_equal(back.dev, first.dev, check_exact=True)


@pytest.mark.parametrize("change", ["settings", "texts", "base", "code version", "again"])
def test_what_was_trained_from_something_else_is_trained(few, kept, no_training, monkeypatch, tmp_path, change):
    settings, pairs, dev = few
    options = {"again": True} if change == "again" else {}
    if change == "settings":
        settings = replace(settings, seed=1)
    elif change == "texts":
        pairs = pairs.assign(answer=pairs.answer.iloc[::-1].tolist())
    elif change == "base":
        settings = replace(settings, base=str(tiny_llama(tmp_path / "tiny-llama", seed=1)))
    elif change == "code version":
        monkeypatch.setattr(llm_lora, "CODE_VERSION", llm_lora.CODE_VERSION + 1)
    with pytest.raises(AssertionError, match="trained"):
        llm_lora.tune(settings, pairs, dev, kept[1], "hedge", **options)


def test_an_adapter_that_is_another_when_it_is_read_again_is_not_kept(few, monkeypatch, tmp_path):
    def save(trained, *arguments, **options):
        weight = next(weight for name, weight in trained.model.named_parameters() if "lora_B" in name)
        with torch.no_grad():
            weight[0, 0] += 1e-3
            saved = whole(trained, *arguments, **options)
            weight[0, 0] -= 1e-3
        return saved

    whole = llm_adapters.save
    monkeypatch.setattr(llm_adapters, "save", save)
    with pytest.raises(LoraError, match="isn't the trained one, bit by bit"):
        llm_lora.tune(*few, tmp_path, "hedge")
    assert not (tmp_path / "llms" / "hedge").exists()


def test_accuracy_is_by_kind_and_in_percent(table):
    asked = table.head(4).assign(before=0.6, after=[0.9, 0.1, 0.9, 0.6])
    assert asked.answer.tolist() == ["Yes", "No", "Yes", "No"]
    found = llm_lora.accuracy(asked, "kind").set_index("kind")
    assert found.n.tolist() == [2, 2]
    assert (found.base["negation"], found.tuned["negation"], found.tuned["hedging"]) == (100, 100, 50)
