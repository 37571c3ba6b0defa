"""LoRA fine-tuning of a language model on triples (Truong §5.2, Appendix B): do two sentences have opposite meanings?

A triple becomes two pairs with one word as the answer: anchor and negation "Yes", anchor and hedge "No". The loss is on that
word alone. One training is a `Settings` and a table of pairs. `train` runs it, and resumes it where a killed run left it. `tune`
trains, asks the dev pairs before and after, and keeps all of it; a training that was kept is not run again.
"""

import shutil
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import torch
from torch.nn.functional import cross_entropy
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase, Trainer, TrainingArguments

from nblib import artefacts, paths
from nblib.errors import check_numbers
from nblib.models import language_models, llm_adapters
from nblib.models.language_models import Dtype, LanguageModel
from nblib.models.llm_adapters import LoraError
from nblib.models.onednn import computes_bfloat16
from nblib.results import published
from nblib.training import checkpoints, finished, records
from nblib.training.records import Trained

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel

CODE_VERSION = 1  # raise it when this code changes a training's weights: all is then trained anew
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
RETIRED = ("accumulation", "four_bit", "processes")  # settings that only the records of earlier trainings name
ANSWERS = {"negation": "Yes", "hedging": "No"}


@dataclass(frozen=True)
class Settings:
    """A training without its pairs. The defaults are the paper's (Table 4), where it gives one.

    Attributes:
        base: a language model's name or folder (`language_models.load`).
        learning_rate: not in the paper.
        batch_size: pairs a step; not in the paper.
        chat_template: put the question as a user's turn, for a base that was taught to chat.
        bf16: the base's weights and the forward pass in bfloat16, by default where the machine computes in it; the LoRA and its
            optimiser stay float32.
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
    chat_template: bool = False
    bf16: bool = field(default_factory=computes_bfloat16)
    checkpointing: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", tuple(self.targets))  # JSON has lists
        numbers = ("epochs", "rank", "alpha", "learning_rate", "batch_size")
        check_numbers(self.seed, **{name: getattr(self, name) for name in numbers})
        if not 0 <= self.dropout < 1:
            raise LoraError(f"dropout must be from 0 to below 1, and is {self.dropout}.")

    @property
    def dtype(self) -> Dtype:
        """Of the base's weights."""
        return "bfloat16" if self.bf16 else "float32"


# --- pairs ------------------------------------------------------------------------------------------------------------


def pairs(triples: pd.DataFrame) -> pd.DataFrame:
    """Triples as pairs, two each as in the paper (a variant in several triples is in as many pairs): id (the anchor's),
    sentence_1, sentence_2, variant, kind ("negation" or "hedging", the latter for entailed sentences too), answer.

    Raises:
        TripleError: unusable triples (`triples.check`).
    """
    from nblib.corpora.triples import check  # brings the parser along, which a training can do without

    table = check(triples)
    sides = [("negation", table.negative, table.negation), ("hedging", table.positive, table.hedge)]
    parts = [
        pd.DataFrame({
            "id": table.id, "sentence_1": table.anchor, "sentence_2": other, "variant": variant, "kind": kind,
            "answer": ANSWERS[kind],
        })
        for kind, other, variant in sides
    ]  # fmt: skip
    return pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)


def prompt(sentence_1: str, sentence_2: str) -> str:
    """The paper's prompt, up to the answer."""
    template = published.prompts()["lora_pair"]["template"].removesuffix(" {answer}")
    return template.format(sentence_1=sentence_1, sentence_2=sentence_2)


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
    """The probability of "Yes" against "No" for each pair, float [n]."""
    model, tokenizer = language_model.model, language_model.tokenizer
    answers, pad = answer_tokens(tokenizer, chat_template), _padding(tokenizer)
    prompts = [
        {"input_ids": tokens(tokenizer, row.sentence_1, row.sentence_2, chat_template)} for row in table.itertuples()
    ]
    found = []
    with torch.inference_mode(), llm_adapters.exact_logits(model, [answers["Yes"], answers["No"]]):
        for start in tqdm(range(0, len(prompts), batch_size), desc="yes or no", leave=False):
            batch = collate(prompts[start : start + batch_size], pad)
            batch = {name: part.to(model.device) for name, part in batch.items()}
            logits = model(**batch, logits_to_keep=1).logits[:, -1]
            found += torch.sigmoid(logits[:, 0] - logits[:, 1]).tolist()
    return pd.Series(found, index=table.index, dtype=float)


def accuracy(asked: pd.DataFrame, *by: str) -> pd.DataFrame:
    """The pairs answered right, in percent: the columns `by`, n, base, tuned.

    Args:
        asked: pairs with the probability of "Yes" `before` and `after` the training.
    """
    wanted = asked.answer == "Yes"
    right = asked.assign(**{when: (asked[when] > 0.5) == wanted for when in ("before", "after")})
    found = right.groupby(list(by), sort=False).agg(n=("id", "size"), base=("before", "mean"), tuned=("after", "mean"))
    return found.assign(base=100 * found.base, tuned=100 * found.tuned).reset_index()


def by_kind(scored: pd.DataFrame) -> pd.DataFrame:
    """The shares right of all variants of a kind together: n, base, tuned, by kind in the order of the rows.

    Args:
        scored: `accuracy` by kind and variant.
    """
    right = scored.assign(base=scored.base * scored.n, tuned=scored.tuned * scored.n)
    found = right.groupby("kind", sort=False)[["n", "base", "tuned"]].sum()
    return found.assign(base=found.base / found.n, tuned=found.tuned / found.n)


def one_answer(right: pd.Series) -> str:
    """The answer that a model gives to every pair, by the shares right of each kind; "" where it gives both."""
    given = {(100, 0): "Yes", (0, 100): "No"}
    return given.get((round(right.negation, 6), round(right.hedging, 6)), "")


def _padding(tokenizer: PreTrainedTokenizerBase) -> int:
    """Any token will do: the attention mask hides it."""
    return next(token for token in (tokenizer.pad_token_id, tokenizer.eos_token_id, 0) if token is not None)


# --- training ---------------------------------------------------------------------------------------------------------


def train(
    settings: Settings, table: pd.DataFrame, folder: str | Path, *, checkpoint_steps: int = 100
) -> tuple[LanguageModel, pd.DataFrame]:
    """Fine-tune, resuming from the last checkpoint in `folder` where the same training was interrupted.

    Args:
        table: from `pairs`.
        folder: for this training alone, with its checkpoints and its adapter; remove it (`checkpoints.forget`) when the
            result is saved.

    Returns:
        The tuned model and its history: step, epoch, loss (a mean over the steps since the row before), learning_rate.

    Raises:
        LoraError: out of memory, or a base that can't be trained so.
        FinetuningError: a checkpoint of another training.
        LanguageModelError: see `language_models.load`.
    """
    folder = paths.writable_folder(folder)
    checkpoints.reserve_folder(folder, {**asdict(settings), "pairs": _texts_sha256(table)})
    base = language_models.load(settings.base, dtype=settings.dtype, device="cpu")  # the trainer chooses the device
    answers = answer_tokens(base.tokenizer, settings.chat_template)
    inputs = [
        tokens(base.tokenizer, *texts, settings.chat_template)
        for texts in zip(table.sentence_1, table.sentence_2, strict=True)
    ]
    data = [{"input_ids": ids, "answer": answers[answer]} for ids, answer in zip(inputs, table.answer, strict=True)]
    pad, model, gpu = _padding(base.tokenizer), add_lora(base, settings), torch.cuda.is_available()
    arguments = TrainingArguments(
        output_dir=str(folder), num_train_epochs=settings.epochs, learning_rate=settings.learning_rate, warmup_steps=0.1,
        per_device_train_batch_size=settings.batch_size, lr_scheduler_type="linear", bf16=settings.bf16, use_cpu=not gpu,
        activation_checkpointing=settings.checkpointing, activation_checkpointing_kwargs={"use_reentrant": False},
        seed=settings.seed, remove_unused_columns=False, dataloader_pin_memory=gpu,
        save_strategy="steps", save_steps=checkpoint_steps, save_total_limit=1, logging_steps=0.02, report_to="none",
    )  # fmt: skip
    trainer = _AnswerTrainer(
        model=model, args=arguments, train_dataset=data, data_collator=lambda examples: collate(examples, pad)
    )
    history = checkpoints.run(trainer, folder, LoraError(
        f"Out of memory with {settings.batch_size} pairs at once. Lower batch_size"
        f"{'' if settings.checkpointing else ', or set checkpointing'}, and remove {folder}, whose checkpoints (if any) "
        "are of these settings."
    ))  # fmt: skip
    llm_adapters.save(replace(base, model=model), folder / "adapter", "", base=settings.base)
    return llm_adapters.load(settings.base, folder / "adapter", dtype=settings.dtype), history


def _texts_sha256(table: pd.DataFrame) -> str:
    return finished.texts_sha256(table[["sentence_1", "sentence_2", "answer"]].itertuples(index=False))


class _AnswerTrainer(Trainer):
    """The loss is on the answer alone, so the vocabulary's logits are computed there alone: a third of the time."""

    def compute_loss(self, model: Any, inputs: dict, return_outputs: bool = False, **_: Any) -> Any:
        answer = inputs.pop("answer")
        outputs = model(**inputs, logits_to_keep=1)
        loss = cross_entropy(outputs.logits[:, -1].float(), answer)
        return (loss, outputs) if return_outputs else loss


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


# --- a training that is kept ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tuned(Trained):
    """A finished LoRA with what it answers to the dev pairs."""

    @property
    def dev(self) -> pd.DataFrame:
        """The dev pairs answered right, before and after, in percent: kind, variant, n, base, tuned."""
        return self.record.table("dev")


def tune(
    settings: Settings, table: pd.DataFrame, dev_pairs: pd.DataFrame, run_dir: str | Path, name: str, *,
    again: bool = False, data: str = "", **about: Any,
) -> Tuned:  # fmt: skip
    """Train a LoRA, keep it as `<run_dir>/llms/<name>` and its record; or find both again, or the record alone, where they are
    of the same training.

    Args:
        table, dev_pairs: from `pairs`.
        again: train anew all the same.
        data: where the pairs are from, for the model card.
        about: for the sidecar.

    Raises:
        LoraError: the kept adapter isn't the trained one to the last bit; see also `train`.
    """
    folder, record, checkpointed = (paths.inside(run_dir, part, name) for part in ("llms", "trainings", "checkpoints"))
    dev_pairs = dev_pairs.reset_index(drop=True)
    base = llm_adapters.load(settings.base, dtype=settings.dtype)
    made_from, texts = asdict(settings), _texts_sha256(table)
    base_weights = llm_adapters.fingerprint(base)
    trained_from = finished.fingerprint(
        CODE_VERSION, made_from, texts, base_weights, "cuda" if torch.cuda.is_available() else "cpu"
    )
    checked = {"code_version": CODE_VERSION, "texts": texts, "base_weights": base_weights}
    made_from |= {**checked, "dev": _texts_sha256(dev_pairs)}
    found = not again and finished.is_finished(folder, trained_from)
    kept = None if again else records.find(record, made_from, ["history", "dev"], about, apart_from=["dev", *RETIRED])
    same_dev = kept and kept.about["made_from"].get("dev", made_from["dev"]) == made_from["dev"]
    if same_dev and (found or not folder.is_dir()):
        return Tuned(folder, kept, found=True, has_model=found)
    artefacts.check_replaceable(folder)
    before = probabilities(base, dev_pairs, settings.chat_template)
    del base  # the training wants the memory
    if found and kept:  # of the same training, but other dev pairs were asked
        trained = llm_adapters.load(settings.base, folder, dtype=settings.dtype)
        dev = dev_pairs.assign(before=before, after=probabilities(trained, dev_pairs, settings.chat_template))
        kept = kept.add("dev", accuracy(dev, "kind", "variant"), made_from=made_from)
        return Tuned(folder, kept, found=True)
    started = perf_counter()
    trained, history = train(settings, table, checkpointed)
    seconds = perf_counter() - started
    dev = dev_pairs.assign(before=before, after=probabilities(trained, dev_pairs, settings.chat_template))
    source = f"{len(table):,} pairs of {table.id.nunique():,} anchors{data and f' ({data})'}."
    card = llm_adapters.model_card(name, asdict(settings), source, accuracy(dev, "kind"), seconds)
    about |= {**asdict(settings), "name": name, "pairs": len(table), "seconds": seconds}
    about[finished.TRAINED_FROM] = trained_from
    llm_adapters.save(trained, folder, card, **about)
    answers_by = llm_adapters.fingerprint(trained)
    if llm_adapters.fingerprint(llm_adapters.load(settings.base, folder, dtype=settings.dtype)) != answers_by:
        shutil.rmtree(folder)
        raise LoraError(f"The adapter kept in {folder} isn't the trained one, bit by bit. Train it anew.")
    tables = {"history": history, "dev": accuracy(dev, "kind", "variant")}
    kept = records.save(record, made_from, tables, **about)
    checkpoints.forget(checkpointed)
    return Tuned(folder, kept)
