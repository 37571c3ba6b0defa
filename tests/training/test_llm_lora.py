"""LoRA of a language model: what it is asked, what counts in the loss, and that a killed training ends where it would have."""

import shutil
from dataclasses import replace

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from support.close import assert_close
from support.encoders import toy_triples
from support.language import WORDS, tiny_llama
from transformers import AutoTokenizer

from nblib import artefacts
from nblib.benchmarks import scoring
from nblib.errors import StudyError
from nblib.models import language_models
from nblib.results import published
from nblib.training import llm_lora, records
from nblib.training.llm_lora import LoraSettings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_llama(tmp_path_factory.mktemp("language") / "tiny-llama")


@pytest.fixture(scope="module")
def settings(folder):
    """A training of 24 steps: 96 pairs of six anchors, eight at a time, twice."""
    sizes = {"epochs": 2, "rank": 4, "alpha": 8, "learning_rate": 2e-2, "batch_size": 8}
    return LoraSettings(str(folder), **sizes, bf16=False, checkpointing=False)


@pytest.fixture(scope="module")
def table():
    return llm_lora.pairs(toy_triples())


@pytest.fixture(scope="module")
def trained(settings, table, tmp_path_factory):
    return llm_lora.train(settings, table, tmp_path_factory.mktemp("trained"))


def assert_same(first, second, pairs):
    """Two trainings gave models of the same answers."""
    assert_close(*(llm_lora.probabilities(model, pairs) for model in (first, second)), times=100)


def test_the_defaults_are_the_papers_table_4():
    table = published.load("truong")
    notes = table[table.exhibit == "Table 4"].set_index("metric")
    printed, mine = notes.value, LoraSettings("any")
    numbers = [printed.lora_epochs, printed.lora_rank, printed.lora_alpha, printed.lora_dropout]
    assert numbers == [mine.epochs, mine.rank, mine.alpha, mine.dropout]


def test_a_triple_becomes_two_pairs_as_in_the_paper():
    pairs = llm_lora.pairs(toy_triples(1).head(1))
    assert pairs.answer.tolist() == ["Yes", "No"]
    assert pairs.edit.tolist() == ["negation", "hedging"]
    assert pairs.variant.tolist() == ["verbal", "word"]
    whole = llm_lora.pairs(toy_triples(3))
    assert len(whole) == 3 * 16 and (whole.answer == "Yes").mean() == 0.5
    text = "Sentence 1: A.\nSentence 2: B.\nDo the two sentences have opposite meaning? Yes or No.\nAnswer:"
    assert llm_lora.prompt("A.", "B.") == text


def test_a_batch_ends_with_the_question(folder, tmp_path):
    mute = tiny_llama(tmp_path / "mute", words=[word for word in WORDS if word != "Yes"])
    with pytest.raises(StudyError, match="' Yes' is no token of its own"):
        llm_lora.answer_tokens(AutoTokenizer.from_pretrained(mute))
    tokenizer = language_models.load_tokenizer(folder)
    prompts = [llm_lora.prompt(*pair) for pair in [("a dog", "a red dog"), ("a", "a")]]
    batch = llm_lora.encode(tokenizer, prompts)
    assert tokenizer.decode(batch["input_ids"][1, -2:]) == "Answer :"
    assert batch["attention_mask"].sum(dim=1).tolist() == [len(tokenizer(text)["input_ids"]) for text in prompts]
    assert (batch["input_ids"][batch["attention_mask"] == 0] == tokenizer.pad_token_id).all()


def test_a_chat_template_puts_the_question_in_a_turn(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with pytest.raises(StudyError, match=r"has no chat template\. Set chat_template to False"):
        llm_lora.answer_tokens(tokenizer, True)
    turns = "{% for m in messages %}<s> {{ m.content }}{% endfor %}"
    tokenizer.chat_template = turns + "{% if add_generation_prompt %} A :{% endif %}"
    ids = llm_lora.encode(tokenizer, [llm_lora.prompt("a dog", "a cat")], True)["input_ids"][0]
    assert tokenizer.decode(ids[-4:]) == "Answer : A :" and tokenizer.decode(ids[0]) == "<s>"
    assert llm_lora.answer_tokens(tokenizer, True) == llm_lora.answer_tokens(tokenizer, False)


def test_padding_does_not_change_an_answer(folder):
    base = language_models.load(str(folder), device="cpu")
    asked = pd.DataFrame({"sentence_1": ["a dog", "a"], "sentence_2": ["a red dog in the house", "a cat"]})
    together = llm_lora.probabilities(base, asked)
    alone = [llm_lora.probabilities(base, asked.iloc[[k]]).iloc[0] for k in range(2)]
    assert_close(together, alone)
    assert together.between(0, 1).all()


def test_the_loss_falls_and_the_pairs_are_answered_right(trained, settings, table):
    tuned, history = trained
    assert history.step.iloc[-1] == 24
    assert history.loss.iloc[-3:].mean() < 0.5 < 1.5 < history.loss.iloc[0]
    right = (llm_lora.probabilities(tuned, table) > 0.5) == (table.answer == "Yes")
    assert right.mean() > 0.95


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
        patch.setattr(records, "CHECKPOINT_STEPS", 10)
        with pytest.raises(KeyboardInterrupt):
            llm_lora.train(settings, table, tmp_path)
    assert records.last_checkpoint(tmp_path).endswith("checkpoint-10")
    model, history = llm_lora.train(settings, table, tmp_path)
    assert_same(model, trained[0], table)
    assert history.step.tolist() == trained[1].step.tolist()


def test_bfloat16_learns_too_and_keeps_a_float32_lora(settings, table, tmp_path):
    model, history = llm_lora.train(replace(settings, bf16=True, epochs=3), table, tmp_path / "checkpoints")
    assert history.loss.iloc[-3:].mean() < 0.5 * history.loss.iloc[0]
    kept = language_models.save_lora(model, tmp_path / "hedge", base=settings.base)
    assert {name for name, weight in model.model.named_parameters() if weight.requires_grad} == {
        name for name, _ in model.model.named_parameters() if "lora_" in name
    }
    assert {weight.dtype for weight in load_file(kept / "adapter_model.safetensors").values()} == {torch.float32}


@pytest.fixture(scope="module")
def few(settings, table):
    return replace(settings, epochs=1), table.head(32), table.tail(8)


@pytest.fixture(scope="module")
def kept(few, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("run")
    return llm_lora.fit_and_keep(*few, run_dir, "hedge", training_data="both", scale="lab"), run_dir


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr(llm_lora, "train", lambda *_, **__: pytest.fail("trained"))


def test_what_was_trained_before_is_read_and_shows_the_same(few, kept, no_training, monkeypatch):
    first, run_dir = kept
    assert not (run_dir / "checkpoints" / "hedge").exists()
    assert artefacts.about(run_dir / "llms" / "hedge")["base"] == few[0].base
    about = records.load(run_dir, "hedge").about
    named = ("scale", "training_data", "training_items", "seed", "seconds")
    assert [about[name] for name in named] == ["lab", "both", 2, 0, first.about["seconds"]]
    monkeypatch.setattr(llm_lora, "probabilities", lambda *_: 1 / 0)
    again = llm_lora.fit_and_keep(*few, run_dir, "hedge")
    for name in ("history", "dev"):
        assert len(again.table(name))
        pd.testing.assert_frame_equal(again.table(name), first.table(name), check_exact=True)


def test_of_a_lora_that_is_gone_the_record_will_do_as_long_as_its_answers_are_kept(few, kept, no_training, tmp_path):
    run_dir = shutil.copytree(kept[1], tmp_path / "run")
    shutil.rmtree(run_dir / "llms")
    scoring.save_predictions(pd.DataFrame({"id": ["1"]}), run_dir, "hedge", "gsm8k_mini")
    assert llm_lora.fit_and_keep(*few, run_dir, "hedge").about == kept[0].about
    assert scoring.training(run_dir / "llms" / "hedge")["training_items"] == 2


@pytest.mark.parametrize("change", ["settings", "texts", "no weights"])
def test_what_was_trained_from_something_else_is_trained(few, kept, no_training, tmp_path, change):
    settings, pairs, dev = few
    run_dir = shutil.copytree(kept[1], tmp_path / "run")
    if change == "settings":
        settings = replace(settings, seed=1)
    elif change == "texts":
        pairs = pairs.assign(answer=pairs.answer.iloc[::-1].tolist())
    else:
        shutil.rmtree(run_dir / "llms" / "hedge")
    with pytest.raises(pytest.fail.Exception, match="trained"):
        llm_lora.fit_and_keep(settings, pairs, dev, run_dir, "hedge")
