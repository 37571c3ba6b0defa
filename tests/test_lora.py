"""LoRA of a language model: what it is asked, what counts in the loss, and that a killed training ends where it would have."""

import json
import shutil
import subprocess
from dataclasses import replace

import pandas as pd
import pytest
import torch
from encoders import toy_triples
from hypothesis import given
from hypothesis import strategies as st
from language import WORDS, tiny_llama
from safetensors.torch import load_file
from transformers import AutoTokenizer

from nblib import checkpoints, language_models, lora, published, triples, tuned_llm
from nblib.checkpoints import FinetuningError
from nblib.lora import Settings
from nblib.tuned_llm import LoraError


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
    return lora.pairs(toy_triples())


@pytest.fixture(scope="module")
def trained(settings, table, tmp_path_factory):
    work = tmp_path_factory.mktemp("trained")
    return *lora.train(settings, table, work), work


def weights(folder):
    return load_file(folder / "adapter" / "adapter_model.safetensors")


def furthest(first, second):
    assert first.keys() == second.keys()
    return max((first[key] - second[key]).abs().max().item() for key in first)


# --- settings and pairs -----------------------------------------------------------------------------------------------


def test_the_defaults_are_the_papers_table_4():
    table = published.load("truong")
    notes = table[table.exhibit == "Table 4"].set_index("metric")
    said, mine = notes.value, Settings("any")
    assert [said.lora_epochs, said.lora_rank, said.lora_alpha, said.lora_dropout] == [
        mine.epochs, mine.rank, mine.alpha, mine.dropout,
    ]  # fmt: skip
    raw = pd.read_csv(triples.paths.DATA / "published" / "truong.csv", dtype=str, keep_default_na=False)
    raw = raw[raw.exhibit == "Table 4"].set_index("metric").value
    assert tuple(raw.lora_target_modules.split(", ")) == mine.targets
    assert raw.lora_bias.lower() == mine.bias


def test_a_triple_becomes_two_pairs_as_in_the_paper():
    made = lora.pairs(toy_triples(1).head(1))
    assert made.answer.tolist() == ["Yes", "No"]
    assert made.kind.tolist() == ["negation", "hedging"]
    assert made.variant.tolist() == ["verbal", "word"]
    assert (
        lora.prompt("A.", "B.")
        == "Sentence 1: A.\nSentence 2: B.\nDo the two sentences have opposite meaning? Yes or No.\nAnswer:"
    )


@given(st.integers(1, 5))
def test_every_recipe_has_as_many_yes_as_no(count):
    made = lora.pairs(toy_triples(count))
    assert len(made) == 16 * count
    assert (made.answer == "Yes").mean() == 0.5
    assert set(made.variant[made.answer == "Yes"]) == {"verbal", "absolute", "affixal", "lexical"}


def test_only_negation_asks_about_the_entailed_sentence_too():
    rows = pd.DataFrame([
        {"id": "t", "anchor": "the dog is red", "entailment": "the dog has a colour", "word": "maybe", "phrase": "who knows",
         **{name: f"not {name}" for name in triples.NEGATIONS}}
    ])  # fmt: skip
    made = lora.pairs(triples.build(rows, "only negation"))
    assert set(made.sentence_2[made.answer == "No"]) == {"the dog has a colour"}
    hedging = lora.pairs(triples.build(rows, "only hedging"))
    assert set(hedging.variant) == {"verbal", "word", "phrase"}


def test_a_batch_ends_with_the_question(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    read = [lora.tokens(tokenizer, *pair, False) for pair in [("a dog", "a red dog"), ("a", "a")]]
    batch = lora.collate([{"input_ids": ids, "answer": 5} for ids in read], pad=0)
    assert batch["input_ids"].shape == (2, len(read[0]))
    assert tokenizer.decode(batch["input_ids"][1, -2:]) == "Answer :"
    assert batch["attention_mask"].sum(dim=1).tolist() == [len(ids) for ids in read]
    assert (batch["input_ids"][batch["attention_mask"] == 0] == 0).all()
    assert set(lora.collate([{"input_ids": read[0]}], 0)) == {"input_ids", "attention_mask"}


def test_padding_does_not_change_an_answer(folder):
    base = language_models.load(str(folder), device="cpu")
    asked = pd.DataFrame({"sentence_1": ["a dog", "a"], "sentence_2": ["a red dog in the house", "a cat"]})
    together = lora.probabilities(base, asked, chat_template=False)
    alone = [lora.probabilities(base, asked.iloc[[k]], chat_template=False).iloc[0] for k in range(2)]
    assert together.tolist() == pytest.approx(alone, abs=1e-5)
    assert together.between(0, 1).all()


def test_a_chat_template_puts_the_question_in_a_turn(folder, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with pytest.raises(LoraError, match=r"has no chat template\. Set chat_template to False"):
        lora.answer_tokens(tokenizer, True)
    tokenizer.chat_template = (
        "{% for m in messages %}<s> {{ m.content }}{% endfor %}{% if add_generation_prompt %} A :{% endif %}"
    )
    ids = lora.tokens(tokenizer, "a dog", "a cat", True)
    assert tokenizer.decode(ids[-4:]) == "Answer : A :"
    assert lora.answer_tokens(tokenizer, True) == lora.answer_tokens(tokenizer, False)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_answers_must_be_tokens_of_their_own(tmp_path):
    mute = tiny_llama(tmp_path / "mute", words=[word for word in WORDS if word != "Yes"])
    with pytest.raises(LoraError, match=r"' Yes' is no token of its own in .*mute"):
        lora.answer_tokens(AutoTokenizer.from_pretrained(mute), False)


def test_steps_that_cannot_be_shared_are_refused(settings, table, tmp_path):
    with pytest.raises(LoraError, match="8 pairs a step can't be computed in 3 equal parts"):
        replace(settings, accumulation=3)
    with pytest.raises(LoraError, match="8 pairs a step can't be shared by 3 processes"):
        lora.train(settings, table, tmp_path, processes=3)


def test_a_base_without_tokenizer_is_refused(folder, settings, table, tmp_path):
    mute = shutil.copytree(folder, tmp_path / "mute")
    (mute / "tokenizer.json").unlink()
    with pytest.raises(language_models.LanguageModelError, match="mute has no tokenizer"):
        lora.train(replace(settings, base=str(mute)), table, tmp_path / "work")


def test_layers_that_are_not_there_are_named(settings, table, tmp_path):
    with pytest.raises(LoraError, match="tiny-llama can't take a LoRA on q_projection"):
        lora.train(replace(settings, targets=("q_projection",)), table, tmp_path)


def test_four_bits_without_a_gpu_are_refused(settings, table, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(LoraError, match="four_bit needs a GPU"):
        lora.train(replace(settings, four_bit=True), table, tmp_path)


def test_out_of_memory_says_what_to_lower(settings, table, tmp_path, monkeypatch):
    def full(*_, **__):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 17 bytes")

    monkeypatch.setattr(lora._AnswerTrainer, "compute_loss", full)
    with pytest.raises(
        LoraError, match=r"with 4 pairs at once\. Raise accumulation or lower batch_size, or set checkp"
    ):
        lora.train(replace(settings, accumulation=2), table, tmp_path)


# --- training ---------------------------------------------------------------------------------------------------------


def test_the_loss_falls_and_the_pairs_are_told_apart(trained, settings, table):
    tuned, history, _ = trained
    assert history.step.iloc[-1] == 24
    assert history.loss.iloc[-3:].mean() < 0.5 < 1.5 < history.loss.iloc[0]
    right = (lora.probabilities(tuned, table, False) > 0.5) == (table.answer == "Yes")
    assert right.mean() > 0.95


def test_only_the_lora_is_trained(settings, folder):
    base = language_models.load(str(folder), device="cpu")
    before = {key: value.clone() for key, value in base.model.state_dict().items()}
    model = lora.add_lora(base, settings)
    open_to_training = [name for name, weight in model.named_parameters() if weight.requires_grad]
    assert len(open_to_training) == 2 * 2 * 7  # two matrices, two layers, seven modules
    assert all("lora_" in name for name in open_to_training)
    assert all(torch.equal(value, before[key]) for key, value in folder_state(folder).items())


def folder_state(folder):
    return language_models.load(str(folder), device="cpu").model.state_dict()


def test_the_loss_is_the_answers_alone(settings, table, folder):
    base = language_models.load(str(folder), device="cpu")
    answers = lora.answer_tokens(base.tokenizer, False)
    row = table.iloc[0]
    read = lora.tokens(base.tokenizer, row.sentence_1, row.sentence_2, False)
    whole = torch.tensor([[*read, answers["Yes"]]])
    labels = torch.full_like(whole, -100)
    labels[0, -1] = answers["Yes"]
    wanted = base.model(input_ids=whole, labels=labels).loss.item()
    batch = lora.collate(
        [{"input_ids": [1, *read][1:], "answer": answers["Yes"]}, {"input_ids": [*read, *read], "answer": 0}], 0
    )
    lora._flat_head(base.model)
    first = {name: part[:1] for name, part in batch.items()}
    assert lora._AnswerTrainer.compute_loss(None, base.model, first).item() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("change", [{"accumulation": 4}, {"checkpointing": True}])
def test_what_saves_memory_changes_nothing(settings, table, trained, tmp_path, change):
    lora.train(replace(settings, **change), table, tmp_path)
    assert furthest(weights(tmp_path), weights(trained[2])) < 1e-3


def test_a_killed_training_ends_where_it_would_have(settings, table, trained, tmp_path, monkeypatch):
    compute, steps = lora._AnswerTrainer.compute_loss, []

    def killed(self, *arguments, **options):
        steps.append(1)
        if len(steps) == 15:
            raise KeyboardInterrupt
        return compute(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(lora._AnswerTrainer, "compute_loss", killed)
        with pytest.raises(KeyboardInterrupt):
            lora.train(settings, table, tmp_path, checkpoint_steps=10)
    assert checkpoints.last_checkpoint(tmp_path).endswith("checkpoint-10")
    with pytest.raises(FinetuningError, match="checkpoints of another training"):
        lora.train(replace(settings, epochs=1), table, tmp_path)
    _, history = lora.train(settings, table, tmp_path, checkpoint_steps=10)
    assert furthest(weights(tmp_path), weights(trained[2])) < 1e-5
    assert history.step.tolist() == trained[1].step.tolist()


def test_bfloat16_learns_too_and_leaves_a_float32_lora(settings, table, tmp_path):
    _, history = lora.train(replace(settings, bf16=True, epochs=3), table, tmp_path)
    assert history.loss.iloc[-3:].mean() < 0.5 * history.loss.iloc[0]
    assert {value.dtype for value in weights(tmp_path).values()} == {torch.float32}


def test_two_processes_of_the_launcher_train_the_same_adapter(settings, table, trained, tmp_path):
    few = table.head(32)
    once = replace(settings, epochs=1)
    lora.train(once, few, tmp_path / "one")
    tuned, history = lora.train(once, few, tmp_path / "two", processes=2)
    assert history.step.iloc[-1] == 4
    assert furthest(weights(tmp_path / "one"), weights(tmp_path / "two")) < 1e-4
    assert lora.probabilities(tuned, few, False).between(0, 1).all()


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("Traceback\nValueError: x\n\nnblib.tuned_llm.LoraError: Out of memory\nChildFailedError: y", "Out of memory"),
        ("Traceback\nKeyError: 'z'\n", "failed: KeyError: 'z'"),
        ("", "failed: exit status 1, without a word"),
    ],
)  # fmt: skip
def test_what_fails_in_a_process_of_the_launcher_is_said(settings, table, tmp_path, monkeypatch, stderr, said):
    failed = subprocess.CompletedProcess([], 1, stderr=stderr)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(LoraError, match=f"The training in 2 processes failed: .*{said}|{said}"):
        lora.train(settings, table.head(16), tmp_path, processes=2)


def test_a_saved_adapter_gives_identical_scores(trained, settings, table, tmp_path):
    tuned = trained[0]
    saved = tuned_llm.save(tuned, tmp_path / "hedge", "# A card", base=settings.base, seed=3)
    again = tuned_llm.load(settings.base, saved, dtype="float32")
    assert again.name == "hedge"
    before, after = (lora.probabilities(model, table, False) for model in (tuned, again))
    pd.testing.assert_series_equal(before, after, check_exact=True)
    assert tuned_llm.fingerprint(again) == tuned_llm.fingerprint(tuned)
    assert json.loads((tmp_path / "hedge.json").read_text())["seed"] == 3
