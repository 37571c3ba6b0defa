"""LoRA fine-tuning of a language model on triples (Truong §5.2, Appendix B): do two sentences have opposite meanings?

A triple becomes two pairs with one word as the answer: anchor and negation "Yes", anchor and hedge "No". The loss is on that
word alone. One training is a `Settings` and a table of pairs; `train` runs it in this process, or in several through
accelerate's launcher (`accelerate launch -m nblib.lora FOLDER`), and takes it up again where a killed run left it.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import torch
from torch.nn.functional import cross_entropy
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase, Trainer, TrainingArguments

from nblib import checkpoints, language_models, paths, tuned_llm
from nblib.language_models import LanguageModel
from nblib.tuned_llm import LoraError

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
ANSWERS = {"negation": "Yes", "hedging": "No"}


@dataclass(frozen=True)
class Settings:
    """What a training is, beside its pairs. The defaults are the paper's (Table 4) as far as it says.

    Attributes:
        base: a language model's name or folder (`language_models.load`).
        learning_rate, batch_size: the paper doesn't say.
        batch_size: pairs a step, over all processes.
        accumulation: in how many parts a step is computed, one after the other: less memory, the same gradient.
        chat_template: put the question as a user's turn, for a base that was taught to chat.
        bf16: the base's weights and the forward pass in bfloat16; the LoRA and its optimiser stay float32.
        four_bit: the base's weights in four bits (needs a GPU and bitsandbytes).
        checkpointing: compute activations again in the backward pass instead of keeping them: less memory, a third slower.
    """

    base: str
    epochs: int = 20
    rank: int = 16
    alpha: int = 16
    dropout: float = 0.0
    bias: Literal["none", "all", "lora_only"] = "none"
    targets: tuple[str, ...] = TARGETS
    learning_rate: float = 2e-4
    batch_size: int = 16
    accumulation: int = 1
    chat_template: bool = False
    bf16: bool = True
    four_bit: bool = False
    checkpointing: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", tuple(self.targets))  # JSON has lists
        if self.batch_size % self.accumulation:
            raise LoraError(f"{self.batch_size} pairs a step can't be computed in {self.accumulation} equal parts.")


# --- pairs ------------------------------------------------------------------------------------------------------------


def pairs(triples: pd.DataFrame) -> pd.DataFrame:
    """Triples as pairs, two each as in the paper (so a variant that is in several triples comes as often): id (the anchor's),
    sentence_1, sentence_2, variant, kind ("negation" or "hedging", the latter for entailed sentences too), answer.

    Raises:
        TripleError: unusable triples (`triples.check`).
    """
    from nblib.triples import check  # brings the parser along, which a training can do without

    table = check(triples)
    sides = [("negation", table.negative, table.negation), ("hedging", table.positive, table.hedge)]
    made = [
        pd.DataFrame({
            "id": table.id, "sentence_1": table.anchor, "sentence_2": other, "variant": variant, "kind": kind,
            "answer": ANSWERS[kind],
        })
        for kind, other, variant in sides
    ]  # fmt: skip
    return pd.concat(made).sort_index(kind="stable").reset_index(drop=True)


@cache
def _template() -> str:
    prompts = json.loads((paths.DATA / "published" / "prompts.json").read_text(encoding="utf-8"))
    return prompts["lora_pair"]["template"].removesuffix(" {answer}")


def prompt(sentence_1: str, sentence_2: str) -> str:
    """The paper's prompt, up to the answer."""
    return _template().format(sentence_1=sentence_1, sentence_2=sentence_2)


def tokens(tokenizer: PreTrainedTokenizerBase, sentence_1: str, sentence_2: str, chat_template: bool) -> list[int]:
    """The prompt as the model reads it, up to the answer's token."""
    text = prompt(sentence_1, sentence_2)
    if not chat_template:
        return tokenizer(text)["input_ids"]
    turn = [{"role": "user", "content": text}]
    return tokenizer.apply_chat_template(turn, add_generation_prompt=True, return_dict=True)["input_ids"]


def answer_tokens(tokenizer: PreTrainedTokenizerBase, chat_template: bool) -> dict[str, int]:
    """The token of each answer, as it follows the prompt.

    Raises:
        LoraError: an answer is no single token, or there is no chat template to put the question in.
    """
    if chat_template and not tokenizer.chat_template:
        raise LoraError(f"{tokenizer.name_or_path} has no chat template. Set chat_template to False.")
    found = {}
    for answer in ANSWERS.values():
        text = answer if chat_template else f" {answer}"
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
            raise LoraError(
                f"{text!r} is no token of its own in {tokenizer.name_or_path}: the loss needs one for an answer."
            )
        found[answer] = ids[0]
    return found


def collate(examples: list[dict], pad: int) -> dict[str, torch.Tensor]:
    """A batch, padded on the left so that the answer follows every last token: input_ids and attention_mask [batch, longest],
    and, where the examples have one, answer [batch]."""
    longest = max(len(example["input_ids"]) for example in examples)
    gaps = [longest - len(example["input_ids"]) for example in examples]
    batch = {
        "input_ids": [[pad] * gap + example["input_ids"] for gap, example in zip(gaps, examples, strict=True)],
        "attention_mask": [[0] * gap + [1] * (longest - gap) for gap in gaps],
    }
    if "answer" in examples[0]:
        batch["answer"] = [example["answer"] for example in examples]
    return {name: torch.tensor(rows) for name, rows in batch.items()}


def probabilities(
    language_model: LanguageModel, table: pd.DataFrame, chat_template: bool, batch_size: int = 16
) -> pd.Series:
    """How probable "Yes" is beside "No" for each pair, float [n]: 0.5 is undecided."""
    model, tokenizer = language_model.model, language_model.tokenizer
    answers, pad = answer_tokens(tokenizer, chat_template), _padding(tokenizer)
    read = [
        {"input_ids": tokens(tokenizer, row.sentence_1, row.sentence_2, chat_template)} for row in table.itertuples()
    ]
    found = []
    with torch.inference_mode(), tuned_llm.exact_logits(model):
        for start in tqdm(range(0, len(read), batch_size), desc="yes or no", leave=False):
            batch = {
                name: part.to(model.device) for name, part in collate(read[start : start + batch_size], pad).items()
            }
            logits = model(**batch, logits_to_keep=1).logits[:, -1]
            found += torch.sigmoid(logits[:, answers["Yes"]] - logits[:, answers["No"]]).tolist()
    return pd.Series(found, index=table.index, dtype=float)


def _padding(tokenizer: PreTrainedTokenizerBase) -> int:
    """Any token will do: the attention mask hides it."""
    return next(token for token in (tokenizer.pad_token_id, tokenizer.eos_token_id, 0) if token is not None)


# --- training ---------------------------------------------------------------------------------------------------------


def train(
    settings: Settings, table: pd.DataFrame, folder: str | Path, *, processes: int = 1, checkpoint_steps: int = 100
) -> tuple[LanguageModel, pd.DataFrame]:
    """Fine-tune, resuming from the last checkpoint in `folder` where the same training was interrupted.

    Args:
        table: from `pairs`.
        folder: for this training alone, with its checkpoints and its adapter; remove it (`checkpoints.forget`) when the
            result is saved.
        processes: more than one are started by accelerate's launcher, one for each GPU (or on the CPU).

    Returns:
        The tuned model and its history: step, epoch, loss (a mean over the steps since the row before), learning_rate.

    Raises:
        LoraError: out of memory, a base that can't be trained so, or processes that can't share a step.
        FinetuningError: a checkpoint of another training.
        LanguageModelError: see `language_models.load`.
    """
    folder = paths.writable_folder(folder)
    if settings.batch_size % (settings.accumulation * processes):
        raise LoraError(
            f"{settings.batch_size} pairs a step can't be shared by {processes} processes in {settings.accumulation} parts each."
        )
    texts = "\n".join(f"{row.sentence_1}\n{row.sentence_2}\n{row.answer}" for row in table.itertuples())
    checkpoints.claim(folder, {**asdict(settings), "pairs": hashlib.sha256(texts.encode()).hexdigest()})
    with paths.write_atomically(folder / "pairs.parquet") as draft:
        table.to_parquet(draft, index=False)
    job = {"settings": asdict(settings), "processes": processes, "checkpoint_steps": checkpoint_steps}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    if processes == 1:
        _run(folder)
    else:
        _launch(folder, processes)
    tuned = tuned_llm.load(settings.base, folder / "adapter", dtype="bfloat16" if settings.bf16 else "float32")
    return tuned, pd.read_csv(folder / "history.csv")


def _launch(folder: Path, processes: int) -> None:
    """Run `_run` in several processes, as `accelerate launch --multi_gpu -m nblib.lora FOLDER` does (where there is no GPU the
    trainer takes the CPU)."""
    launcher = ["accelerate.commands.launch", "--multi_gpu", "--num_machines", "1", "--num_processes", str(processes)]
    trainers = ["--mixed_precision", "no", "--dynamo_backend", "no"]  # is the trainer's business
    done = subprocess.run(
        [sys.executable, "-m", *launcher, *trainers, "-m", "nblib.lora", str(folder)],
        cwd=paths.PROJECT_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}, without a word"]
        own = [line for line in lines if line.startswith("nblib.")]
        raise LoraError(f"The training in {processes} processes failed: {(own or lines)[0 if own else -1]}")


class _AnswerTrainer(Trainer):
    """The loss is on the answer alone, so the vocabulary's logits are computed there alone: a third of the time."""

    def compute_loss(self, model: Any, inputs: dict, return_outputs: bool = False, **_: Any) -> Any:
        answer = inputs.pop("answer")
        outputs = model(**inputs, logits_to_keep=1)
        loss = cross_entropy(outputs.logits[:, -1].float(), answer)
        return (loss, outputs) if return_outputs else loss


def _run(folder: Path) -> None:
    """What each process does: train on the pairs in the folder; the first leaves adapter and history there."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    settings, processes = Settings(**job["settings"]), job["processes"]
    base, gpu = _base(settings), torch.cuda.is_available()
    answers = answer_tokens(base.tokenizer, settings.chat_template)
    table = pd.read_parquet(folder / "pairs.parquet")
    read = [
        tokens(base.tokenizer, row.sentence_1, row.sentence_2, settings.chat_template) for row in table.itertuples()
    ]
    data = [{"input_ids": ids, "answer": answers[word]} for ids, word in zip(read, table.answer, strict=True)]
    pad, model = _padding(base.tokenizer), add_lora(base, settings)
    arguments = TrainingArguments(
        output_dir=str(folder), num_train_epochs=settings.epochs, learning_rate=settings.learning_rate, warmup_steps=0.1,
        per_device_train_batch_size=settings.batch_size // settings.accumulation // processes,
        gradient_accumulation_steps=settings.accumulation, lr_scheduler_type="linear", bf16=settings.bf16, use_cpu=not gpu,
        activation_checkpointing=settings.checkpointing, activation_checkpointing_kwargs={"use_reentrant": False},
        seed=settings.seed, remove_unused_columns=False, dataloader_pin_memory=gpu, ddp_find_unused_parameters=False,
        ddp_backend="gloo" if processes > 1 and not gpu else None,
        save_strategy="steps", save_steps=job["checkpoint_steps"], save_total_limit=1, logging_steps=0.02, report_to="none",
    )  # fmt: skip
    trainer = _AnswerTrainer(
        model=model, args=arguments, train_dataset=data, data_collator=lambda examples: collate(examples, pad)
    )
    try:
        trainer.train(resume_from_checkpoint=checkpoints.last_checkpoint(folder))
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not checkpoints.out_of_memory(error):
            raise
        raise LoraError(
            f"Out of memory with {settings.batch_size // settings.accumulation} pairs at once. Raise accumulation or lower "
            f"batch_size{'' if settings.checkpointing else ', or set checkpointing'}"
            f"{'' if settings.four_bit or not gpu else ', or set four_bit'}, and remove {folder}, whose checkpoints (if any) "
            "are of these settings."
        ) from error
    if trainer.is_world_process_zero():
        logged = pd.DataFrame([entry for entry in trainer.state.log_history if "loss" in entry])
        logged[["step", "epoch", "loss", "learning_rate"]].astype(float).to_csv(folder / "history.csv", index=False)
        tuned_llm.save(replace(base, model=model), folder / "adapter", "", base=settings.base)


def _base(settings: Settings) -> LanguageModel:
    """The base, not yet on a device (the trainer says who gets which GPU), unless it is quantised while it is loaded."""
    if not settings.four_bit:
        return language_models.load(settings.base, dtype="bfloat16" if settings.bf16 else "float32", device="cpu")
    if not torch.cuda.is_available():
        raise LoraError("four_bit needs a GPU. Set it to False.")
    from accelerate import PartialState
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

    source = language_models.folder(settings.base)
    quantised = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    model = AutoModelForCausalLM.from_pretrained(
        source, quantization_config=quantised, dtype=torch.bfloat16, device_map={"": PartialState().process_index}
    )
    return LanguageModel(settings.base, source, model, AutoTokenizer.from_pretrained(source))


def _flat_head(model: "PreTrainedModel") -> None:
    """Let the vocabulary's logits be one product of two matrices: with frozen bfloat16 weights, torch takes ten times as long
    on a CPU for the same as a batch of products, most of it in the backward pass."""

    def flat(head: torch.nn.Module, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        return (inputs[0].flatten(0, -2),)

    def shaped(head: torch.nn.Module, inputs: tuple[torch.Tensor], logits: torch.Tensor) -> torch.Tensor:
        return logits.unsqueeze(1)  # the loss asks for one place a row

    head = model.get_output_embeddings()
    head.register_forward_pre_hook(flat)
    head.register_forward_hook(shaped)


def add_lora(base: LanguageModel, settings: Settings) -> "PeftModel":
    """The base with a fresh LoRA; only that will be trained.

    Raises:
        LoraError: the base has no layers of these names.
    """
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(settings.seed)  # of the adapter's first weights
    config = LoraConfig(
        task_type="CAUSAL_LM", r=settings.rank, lora_alpha=settings.alpha, lora_dropout=settings.dropout,
        bias=settings.bias, target_modules=list(settings.targets),
    )  # fmt: skip
    _flat_head(base.model)
    try:
        return get_peft_model(base.model, config)
    except ValueError as error:
        raise LoraError(f"{base.name} can't take a LoRA on {', '.join(settings.targets)}: {error}") from error


def main(arguments: list[str] | None = None) -> None:
    """One process of a training that `train` has prepared."""
    parser = argparse.ArgumentParser(prog="accelerate launch -m nblib.lora", description="One process of a training.")
    parser.add_argument("folder", type=Path, help="where lora.train has left job.json and pairs.parquet")
    _run(parser.parse_args(arguments).folder)


if __name__ == "__main__":
    main()
