"""Contrastive fine-tuning of an encoder on triples (Truong §3.2; Weller §6), on the sentence-transformers trainer.

One training is a `Settings` and a table of triples; `train` runs it, and takes it up again where a killed run left it.
"""

import copy
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import torch
from datasets import Dataset, DatasetDict
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch import nn
from transformers import TrainerCallback

from nblib import checkpoints, models, paths, provenance
from nblib.checkpoints import FinetuningError
from nblib.losses import Loss, make_loss
from nblib.triples import EXCLUSION, TripleError, check
from nblib.tuned import add_lora, interpolate, prepare

Method = Literal["full", "lora"]
BUCKET = 8  # batches' worth of anchors among which those of similar length go into one batch


@dataclass(frozen=True)
class Settings:
    """What a training is, beside its triples.

    Attributes:
        base: an encoder's name or folder (see `models.load`).
        method: all weights, or a LoRA on every linear layer of the transformer's blocks.
        loss: "explicit" is Eq. 1, with the anchor's own negatives only; "in-batch" adds every other text of the batch
            (MNRL, the usual form); "in-batch, hardness-weighted" gives an anchor's own negatives more weight the nearer they
            are; "two-sided" lets negatives ask, too, with the anchor's other negatives as answers (`losses.TwoSidedLoss`).
        batch_size: anchors a step; each brings a positive ("two-sided": all of them) and all its negatives.
        pooling: how token vectors become a sentence's: as the base does it, or "mean" or "cls" (the paper's).
        rank: of the LoRA; its alpha is twice that.
        bf16: autocast of the forward pass; weights and optimiser stay float32.
    """

    base: str
    method: Method = "full"
    loss: Loss = "in-batch"
    learning_rate: float = 2e-5
    epochs: int = 1
    batch_size: int = 16
    pooling: Literal["base", "mean", "cls"] = "base"
    rank: int = 16
    seed: int = 0
    bf16: bool = True

    def __post_init__(self) -> None:
        for name, known in [("method", Method), ("loss", Loss)]:
            if getattr(self, name) not in get_args(known):
                raise FinetuningError(f"Unknown {name} {getattr(self, name)!r}; known: {', '.join(get_args(known))}.")
        if self.pooling not in ("base", "mean", "cls"):
            raise FinetuningError(f"Unknown pooling {self.pooling!r}; known: base, mean, cls.")
        if self.loss != "explicit" and self.batch_size < 2:
            raise FinetuningError(
                f"The loss {self.loss!r} needs other anchors in the batch: a batch_size of 2 or more."
            )


# --- the data of a step -----------------------------------------------------------------------------------------------


def examples(triples: pd.DataFrame, together: bool = False) -> Dataset:
    """Triples as training examples: anchor, positive_1, negative_1, … negative_k, one for each anchor and positive; or
    `together`, one for each anchor: anchor, positive_1, … positive_p, negative_1, … negative_k.

    Raises:
        TripleError: unusable triples, or anchors with different numbers of positives or negatives.
    """
    table, key = check(triples), ["id", "anchor"] if together else ["id", "anchor", "positive"]
    columns = []
    for side, variant in [("positive", "hedge"), ("negative", "negation")]:
        texts = table.drop_duplicates([*key, variant]).groupby(key, sort=False)[side].agg(list)
        sizes = texts.map(len)
        if sizes.nunique() > 1:
            raise TripleError(
                f"Between {sizes.min()} and {sizes.max()} {side}s for an anchor{'' if together else ' and a positive'}; a step "
                "needs equally many. Keep only anchors with every variant (triples.filtered)."
            )
        columns.append(pd.DataFrame(texts.tolist()).rename(columns=lambda number, side=side: f"{side}_{number + 1}"))
    anchors = texts.index.to_frame(index=False)[["anchor"]]
    return Dataset.from_pandas(pd.concat([anchors, *columns], axis=1), preserve_index=False)


def data_sets(triples: pd.DataFrame, together: bool = False) -> DatasetDict:
    """The examples of a training, statements and exclusions apart: they have different numbers of positives and negatives, and
    a batch holds one kind.

    Raises:
        TripleError: see `examples`.
    """
    kinds = check(triples).hedge.eq(EXCLUSION).map({False: "statements", True: "exclusions"})
    return DatasetDict({kind: examples(part, together) for kind, part in triples.groupby(kinds, sort=False)})


class AnchorBatches(DefaultBatchSampler):
    """Batches without two examples of one anchor (its hedge would become another's negative), of similar lengths.

    Without the second, half of what a CPU multiplies is padding. The order depends on seed and epoch alone, so that an
    interrupted training finds its place again.
    """

    def __init__(self, dataset: Dataset, **options: Any) -> None:
        super().__init__(dataset, **options)
        anchors = pd.Series(list(dataset["anchor"]))
        self.codes = pd.factorize(anchors)[0]
        self.lengths = anchors.str.len().to_numpy()

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.Generator().manual_seed(self.seed + self.epoch)
        batches = self._batches(order)
        yield from (batches[place] for place in torch.randperm(len(batches), generator=order).tolist())

    def _batches(self, order: torch.Generator) -> list[list[int]]:
        shuffled = torch.randperm(len(self.codes), generator=order).numpy()
        # Which of an anchor's examples comes first changes from epoch to epoch
        turn = _turns(self.codes[shuffled])
        batches = []
        for number in range(int(turn.max()) + 1):
            examples, chunk = shuffled[turn == number], BUCKET * self.batch_size
            for start in range(0, len(examples), chunk):
                alike = sorted(examples[start : start + chunk].tolist(), key=lambda place: self.lengths[place])
                batches += [alike[at : at + self.batch_size] for at in range(0, len(alike), self.batch_size)]
        return batches

    def __len__(self) -> int:
        sizes = np.bincount(_turns(self.codes))
        return int(sum(-(-size // self.batch_size) for size in sizes))


def _turns(codes: np.ndarray) -> np.ndarray:
    """For each example whether it is its anchor's first (0), its second (1), …"""
    return pd.Series(codes).groupby(codes).cumcount().to_numpy()


# --- training ---------------------------------------------------------------------------------------------------------


def train(
    settings: Settings,
    triples: pd.DataFrame,
    folder: str | Path,
    *,
    evaluate: Callable[[SentenceTransformer, int], object] | None = None,
    checkpoint_steps: int = 100,
) -> tuple[SentenceTransformer, pd.DataFrame]:
    """Fine-tune on triples (id, anchor, positive, negative, hedge, negation: `triples.build`); all else as `fit`.

    Raises:
        FinetuningError, TripleError: see `fit` and `examples`; or a loss that takes no triples.
    """
    if settings.loss == "graded":
        raise FinetuningError("The loss 'graded' learns from pairs with a score; triples have none. Choose another.")
    data = data_sets(triples, settings.loss == "two-sided")
    return fit(settings, data, folder, evaluate=evaluate, checkpoint_steps=checkpoint_steps)


def fit(
    settings: Settings,
    data: DatasetDict,
    folder: str | Path,
    *,
    evaluate: Callable[[SentenceTransformer, int], object] | None = None,
    checkpoint_steps: int = 100,
) -> tuple[SentenceTransformer, pd.DataFrame]:
    """Fine-tune, resuming from the last checkpoint in `folder` where the same training was interrupted.

    Args:
        data: examples by kind (a batch holds one kind): `anchor` and the columns that the loss wants after it.
        folder: for the checkpoints of this training alone; remove it (`checkpoints.forget`) when the result is saved.
        evaluate: called with the model and the epoch after every epoch.

    Returns:
        The tuned model and its history: step, epoch, loss (a mean over the steps since the row before), learning_rate.

    Raises:
        FinetuningError: out of memory, or a checkpoint of another training.
    """
    folder = paths.writable_folder(folder)
    texts = "\n".join(str(text) for part in data.values() for column in part.column_names for text in part[column])
    number = sum(map(len, data.values()))
    about = {**asdict(settings), "examples": number, "texts": hashlib.sha256(texts.encode()).hexdigest()}
    checkpoints.claim(folder, about)
    base = prepare(models.load(settings.base).model, settings.pooling)
    model = copy.deepcopy(base)
    if settings.method == "lora":
        model = add_lora(model, settings.rank, settings.seed)
    losses = {kind: make_loss(model, settings.loss, _count(part, "positive")) for kind, part in data.items()}
    arguments = SentenceTransformerTrainingArguments(
        **schedule(settings, folder), batch_sampler=AnchorBatches, multi_dataset_batch_sampler="proportional",
        save_strategy="steps", save_steps=checkpoint_steps, save_total_limit=1,
    )  # fmt: skip
    watch = [AfterEpoch(base, model, evaluate)] if evaluate else []
    trainer = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=data,
        loss=losses,
        callbacks=watch,
    )
    try:
        trainer.train(resume_from_checkpoint=checkpoints.last_checkpoint(folder))
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not checkpoints.out_of_memory(error):
            raise
        widest = max(len(part.column_names) for part in data.values())
        raise FinetuningError(
            f"Out of memory with {settings.batch_size} anchors a step ({settings.batch_size * widest} texts). "
            f"Lower batch_size, or choose method 'lora', and remove {folder}, whose checkpoints (if any) are of these settings."
        ) from error
    columns = ["step", "epoch", "loss", "learning_rate"]
    logged = pd.DataFrame([entry for entry in trainer.state.log_history if "loss" in entry], columns=columns)
    model = trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)  # out of autocast: float32 again
    return model.eval(), logged.astype(float)


def schedule(settings: Settings, folder: Path) -> dict[str, Any]:
    """What any trainer of sentence-transformers is told of a training: steps, learning rate, seed, machine."""
    gpu = torch.cuda.is_available()
    return {
        "output_dir": str(folder), "num_train_epochs": settings.epochs, "seed": settings.seed,
        "per_device_train_batch_size": settings.batch_size, "learning_rate": settings.learning_rate, "warmup_steps": 0.1,
        "lr_scheduler_type": "linear", "bf16": settings.bf16, "use_cpu": not gpu, "dataloader_pin_memory": gpu,
        "logging_steps": 0.02, "report_to": "none",
    }  # fmt: skip


def _count(part: Dataset, side: str) -> int:
    return sum(column.startswith(side) for column in part.column_names)


class AfterEpoch(TrainerCallback):
    """Calls `evaluate` with a float32 copy: the model itself is wrapped in autocast, and looking must not change it.

    Args:
        base: what `model` is trained from, untouched; of any architecture.
        evaluate: takes the copy and the number of the epoch that has ended.
    """

    def __init__(self, base: nn.Module, model: nn.Module, evaluate: Callable) -> None:
        self.base, self.model, self.evaluate = base, model, evaluate

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        with torch.random.fork_rng():  # a dev task of mteb's sets the seed, and dropout would draw from there
            self.evaluate(interpolate(self.base, self.model, 1.0), round(state.epoch))


def model_card(name: str, settings: Settings, alpha: float, data: str, scored: pd.DataFrame, seconds: float) -> str:
    """A model card: what it is, from which data and settings, its dev scores beside the base's.

    Args:
        data: one line on the triples.
        scored: set, base, tuned (percent).
    """
    rows = "\n".join(f"| {row.set} | {row.base:.1f} | {row.tuned:.1f} |" for row in scored.itertuples())
    listed = "\n".join(f"| {key} | {value} |" for key, value in asdict(settings).items())
    return f"""---
base_model: {settings.base}
library_name: sentence-transformers
license: {"apache-2.0" if settings.base.startswith("all-") else "other"}
---

# {name}

{settings.base}, fine-tuned to tell a negated sentence from a hedged one (Truong et al., *Learning Robust Negation Text
Representations*, with other data and another recipe), then interpolated with its base: α = {alpha:g}.

**Data.** {data}

**Dev scores** (percent; nothing here is a test score):

| | {settings.base} | {name} |
|---|---|---|
{rows}

**Settings** (trained in {seconds:.0f} s):

| | |
|---|---|
{listed}

**Provenance.** {provenance.line()}; more in the `.json` beside the folder.

**Use.** `SentenceTransformer(folder)`, or where the folder holds a LoRA alone, `SentenceTransformer(base)` and then its
`load_adapter(folder)`. **Limits.** English; one voice of training data; similarities are lower than the base's for anything
negated, so thresholds tuned for the base need tuning anew.
"""
