"""LoRA fine-tuning of a language model on triples (Truong §5.2, Appendix B): do two sentences have opposite meanings? The loss
is on the answer alone: "Yes" for anchor and negation, "No" for anchor and hedge."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase, Trainer, TrainingArguments

from nblib import artefacts, paths
from nblib.benchmarks import scoring
from nblib.corpora.triples import check
from nblib.errors import StudyError, check_numbers
from nblib.models import language_models
from nblib.models.language_models import Dtype, LanguageModel
from nblib.models.onednn import computes_bfloat16
from nblib.results import published
from nblib.training import records
from nblib.training.records import TrainingRecord

CODE_VERSION = 1  # raise it when this code changes a training's weights: all is then trained anew
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")  # Table 4
BIAS = "none"  # Table 4
ANSWERS = {"negation": "Yes", "hedging": "No"}


@dataclass(frozen=True)
class LoraSettings:
    """A training without its pairs. The defaults are the paper's (Table 4), where it gives one."""

    base: str  # a language model's name or folder (`language_models.load`)
    epochs: int = 20
    rank: int = 16
    alpha: int = 16
    dropout: float = 0.0
    learning_rate: float = 2e-4  # not in the paper, nor is the batch's size
    batch_size: int = 16
    chat_template: bool = False  # put the question as a user's turn
    bf16: bool = field(default_factory=computes_bfloat16)  # of the base's weights and the forward pass
    checkpointing: bool = True  # compute activations again in the backward pass: less memory, a third slower
    seed: int = 0

    def __post_init__(self) -> None:
        numbers = ("epochs", "rank", "alpha", "learning_rate", "batch_size")
        check_numbers(self.seed, **{name: getattr(self, name) for name in numbers})

    @property
    def dtype(self) -> Dtype:
        """Of the base's weights."""
        return "bfloat16" if self.bf16 else "float32"


def pairs(triples: pd.DataFrame) -> pd.DataFrame:
    """Triples as pairs, two each as in the paper: id (the anchor's), sentence_1, sentence_2, variant, edit ("negation" or
    "hedging", the latter for entailed sentences too), answer. StudyError: unusable triples (`triples.check`)."""
    shared = check(triples)[["id", "anchor"]].rename(columns={"anchor": "sentence_1"})
    sides = [("negation", triples.negative, triples.negation), ("hedging", triples.positive, triples.hedge)]
    parts = [
        shared.assign(sentence_2=other, variant=variant, edit=edit, answer=ANSWERS[edit])
        for edit, other, variant in sides
    ]
    return pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)


def prompt(sentence_1: str, sentence_2: str) -> str:
    """The paper's prompt, up to the answer."""
    template = published.prompts()["lora_pair"]["template"].removesuffix(" {answer}")
    return template.format(sentence_1=sentence_1, sentence_2=sentence_2)


def encode(
    tokenizer: PreTrainedTokenizerBase, prompts: list[str], chat_template: bool = False
) -> dict[str, torch.Tensor]:
    """Prompts as the model reads them: input_ids, attention_mask, [batch, longest]; padded on the left, as the answer follows."""
    if chat_template:
        turns = [[{"role": "user", "content": text}] for text in prompts]
        prompts = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    options = {"padding": True, "padding_side": "left", "add_special_tokens": not chat_template}
    return dict(tokenizer(prompts, **options, return_token_type_ids=False, return_tensors="pt"))


def answer_tokens(tokenizer: PreTrainedTokenizerBase, chat_template: bool = False) -> dict[str, int]:
    """The token of each answer, as it follows the prompt. StudyError: it is no single token, or there is no chat template."""
    if chat_template and not tokenizer.chat_template:
        raise StudyError(f"{tokenizer.name_or_path} has no chat template. Set chat_template to False.")
    ids = {}
    for answer in ANSWERS.values():
        text = answer if chat_template else f" {answer}"
        read = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(read) != 1 or read[0] == tokenizer.unk_token_id:
            raise StudyError(f"{text!r} is no token of its own in {tokenizer.name_or_path}, as the loss needs it.")
        ids[answer] = read[0]
    return ids


def probabilities(language_model: LanguageModel, table: pd.DataFrame, chat_template: bool = False) -> pd.Series:
    """The probability of "Yes" against "No" for each pair, float [n]; from logits in float32."""
    model, tokenizer = language_model.model, language_model.tokenizer
    answers, head = answer_tokens(tokenizer, chat_template), model.get_output_embeddings()
    rows = [answers["Yes"], answers["No"]]
    weight, bias = head.weight[rows].float(), None if head.bias is None else head.bias[rows].float()
    prompts = list(map(prompt, table.sentence_1, table.sentence_2))
    shares = []
    with torch.inference_mode():
        for start in tqdm(range(0, len(prompts), 16), desc="yes or no", leave=False):
            batch = encode(tokenizer, prompts[start : start + 16], chat_template)
            hidden = _last_states(model, {name: part.to(model.device) for name, part in batch.items()})
            logits = linear(hidden.float(), weight, bias)
            shares += torch.sigmoid(logits[:, 0] - logits[:, 1]).tolist()
    return pd.Series(shares, index=table.index, dtype=float)


def _last_states(model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The last token's hidden states, [batch, width]: logits from these alone are one product of two matrices, which torch
    computes ten times as fast with frozen bfloat16 weights on a CPU."""
    return model.get_decoder()(**batch).last_hidden_state[:, -1]


def accuracy(asked: pd.DataFrame) -> pd.DataFrame:
    """The pairs answered right (percent) by the probability of "Yes" `before` and `after`: edit, variant, n, base, tuned."""
    yes = asked.answer == "Yes"
    right = asked.assign(base=100.0 * ((asked.before > 0.5) == yes), tuned=100.0 * ((asked.after > 0.5) == yes))
    groups = right.groupby(["edit", "variant"], sort=False)
    return groups.agg(n=("id", "size"), base=("base", "mean"), tuned=("tuned", "mean")).reset_index()


def _texts_sha256(table: pd.DataFrame) -> str:
    return records.texts_sha256(table[["sentence_1", "sentence_2", "answer"]].itertuples(index=False))


class _AnswerTrainer(Trainer):
    def compute_loss(self, model: Any, inputs: dict, return_outputs: bool = False, **_: Any) -> Any:
        """The loss of the answer alone."""
        answer, plain = inputs.pop("answer"), self.accelerator.unwrap_model(model)
        with self.accelerator.autocast():
            logits = plain.get_output_embeddings()(_last_states(plain, inputs))
        loss = cross_entropy(logits.float(), answer)
        return (loss, {"logits": logits}) if return_outputs else loss


def train(settings: LoraSettings, table: pd.DataFrame, folder: str | Path) -> tuple[LanguageModel, pd.DataFrame]:
    """Fine-tune on `pairs`, resuming from the last checkpoint in `folder` (for this training's alone: `records.reserve_folder`)
    where it was interrupted; the tuned model and its history (`records.run`, also for errors)."""
    folder = paths.writable_folder(folder)
    base = language_models.load(settings.base, dtype=settings.dtype, device="cpu")  # the trainer chooses the device
    answers = answer_tokens(base.tokenizer, settings.chat_template)
    prompts = map(prompt, table.sentence_1, table.sentence_2)
    examples = list(zip(prompts, table.answer.map(answers), strict=True))
    model = add_lora(base, settings)

    def collate(batch: list[tuple[str, int]]) -> dict[str, torch.Tensor]:
        prompts, answers = zip(*batch, strict=True)
        return {**encode(base.tokenizer, list(prompts), settings.chat_template), "answer": torch.tensor(answers)}

    options = records.arguments(settings)
    options |= {"activation_checkpointing": settings.checkpointing, "remove_unused_columns": False}
    arguments = TrainingArguments(str(folder), **options)
    trainer = _AnswerTrainer(model=model, args=arguments, train_dataset=examples, data_collator=collate)
    history = records.run(trainer, folder, "Lower batch_size, or set checkpointing.")
    return replace(base, model=model.eval()), history


def add_lora(base: LanguageModel, settings: LoraSettings) -> nn.Module:
    """The base with a fresh LoRA; only that will be trained."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(settings.seed)  # of the LoRA's first weights
    sizes = {"r": settings.rank, "lora_alpha": settings.alpha, "lora_dropout": settings.dropout}
    config = LoraConfig(task_type="CAUSAL_LM", **sizes, bias=BIAS, target_modules=list(TARGETS))
    return get_peft_model(base.model, config)


def fit_and_keep(
    settings: LoraSettings, table: pd.DataFrame, dev_pairs: pd.DataFrame, run_dir: str | Path, name: str, **about: Any
) -> TrainingRecord:
    """Train a LoRA on `pairs`, and keep it as `<run_dir>/llms/<name>` and its record, with the tables `history` and `dev`
    (`accuracy`), seconds and `about`; or find both again, where they are of this training. Of a LoRA that is gone the record will
    do, as long as its answers are kept."""
    folder, record, checkpoints = (paths.inside(run_dir, part, name) for part in ("llms", "trainings", "checkpoints"))
    base = language_models.load(settings.base, dtype=settings.dtype)
    made_from = {**asdict(settings), "texts": _texts_sha256(table), "dev": _texts_sha256(dev_pairs)}
    made_from |= {"base_weights": language_models.fingerprint(base), "code_version": CODE_VERSION}
    kept = records.find(record, made_from)
    if kept and (folder.is_dir() or scoring.outlive_weights(run_dir, folder)):
        return kept
    artefacts.check_replaceable(folder)
    records.forget(record)  # that of other weights of this name
    records.reserve_folder(checkpoints, made_from)
    before = probabilities(base, dev_pairs, settings.chat_template)
    del base  # the training wants the memory
    resumed, started = records.last_checkpoint(checkpoints), perf_counter()
    trained, history = train(settings, table, checkpoints)
    seconds = None if resumed else perf_counter() - started  # of a part nothing follows
    about |= {"base": settings.base, "seed": settings.seed, "training_items": table.id.nunique()}
    language_models.save_lora(trained, folder, name=name, **about)
    del trained
    tuned = language_models.load(settings.base, folder, dtype=settings.dtype)
    dev = dev_pairs.assign(before=before, after=probabilities(tuned, dev_pairs, settings.chat_template))
    kept = records.save(record, made_from, {"history": history, "dev": accuracy(dev)}, **about, seconds=seconds)
    records.forget(checkpoints)
    return kept
