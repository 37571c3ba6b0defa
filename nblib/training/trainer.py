"""One way to train a bi-encoder, a cross-encoder or a multi-vector model, on sentence-transformers' trainers (Truong §3.2;
Weller §6).

One training is a `Settings` and examples (`batches.data_sets`); `train` runs it, and goes on where a killed run left it.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import torch
from datasets import Dataset, DatasetDict
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.multi_vector_encoder import MultiVectorEncoderTrainer, MultiVectorEncoderTrainingArguments
from torch import nn
from transformers import TrainerCallback

from nblib import paths
from nblib.corpora import pairs
from nblib.errors import check_numbers
from nblib.models import encoders, rankers
from nblib.models.folders import FinetuningError
from nblib.models.onednn import computes_bfloat16
from nblib.models.rankers import Cross, LateInteraction
from nblib.models.systems import BiEncoder, System
from nblib.training import checkpoints, finished
from nblib.training.batches import LAYOUTS, StatementsLast, with_base_embeddings
from nblib.training.interpolation import add_lora, interpolate, prepare
from nblib.training.losses import LOSSES, WeightedLoss
from nblib.training.mixture import UNLABELLED, Kind

CODE_VERSION = 1  # raise it when this code changes a training's weights: finished trainings are then run anew
CLASSES = {pairs.ENTAILMENT: "entailment", pairs.NEUTRAL: "neutral", pairs.CONTRADICTION: "contradiction"}
Method = Literal["full", "lora"]
Pooling = Literal["base", "mean", "cls"]
Order = Literal["together", "statements last"]


@dataclass(frozen=True)
class Settings:
    """A training without its architecture and examples.

    Attributes:
        base: an encoder's name or folder (see `encoders.load`); for a cross-encoder also that of a cross-encoder to go on from.
        method: all weights, or (a bi-encoder) a LoRA on every linear layer of the transformer's blocks.
        loss: one of `losses.LOSSES`. "explicit" is Eq. 1, with the anchor's own negatives only; "in-batch" adds every other
            text of the batch (MNRL, the usual form); "in-batch, hardness-weighted" gives an anchor's own negatives more weight
            the closer they are; "symmetric-supcon" makes every text a query, the negatives too (`SymmetricSupConLoss`).
        batch_size: examples a step.
        pooling: how token vectors become a sentence's: as the base does it, or "mean" or "cls" (the paper's).
        rank: of the LoRA; its alpha is twice that.
        bf16: autocast of the forward pass, by default where the machine computes in it; weights and optimiser stay float32.
        dropout: whether the base's dropout is on. Retention compares with the base without it, so its noise would be a loss.
        kinds: of a training on several kinds of batches, each with its own loss (`mixture.read`); empty: `loss` is that of all.
        order: of these kinds within an epoch: mixed, or statements after all that ranks passages; retention stays mixed.
    """

    base: str
    method: Method = "full"
    loss: str = "in-batch"
    learning_rate: float = 2e-5
    epochs: int = 1
    batch_size: int = 16
    pooling: Pooling = "base"
    rank: int = 16
    seed: int = 0
    bf16: bool = field(default_factory=computes_bfloat16)
    dropout: bool = True
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    order: Order = "together"

    def __post_init__(self) -> None:
        choices = {"method": Method, "pooling": Pooling, "order": Order}
        for name, known in {"loss": tuple(LOSSES), **{name: get_args(kind) for name, kind in choices.items()}}.items():
            if getattr(self, name) not in known:
                raise FinetuningError(f"Unknown {name} {getattr(self, name)!r}; known: {', '.join(known)}.")
        numbers = ("learning_rate", "epochs", "batch_size", "rank")
        check_numbers(self.seed, **{name: getattr(self, name) for name in numbers})
        if self.order != "together" and "statements" not in self.kinds:
            raise FinetuningError(
                f"The order {self.order!r} needs the kind statements. Add it, or leave the order out."
            )
        for loss in self.losses:
            if LOSSES[loss].in_batch and self.batch_size < 2:
                raise FinetuningError(f"The loss {loss!r} needs other anchors in the batch: a batch_size of 2 or more.")
            if self.method == "lora" and LOSSES[loss].architecture != "bi-encoder":
                raise FinetuningError("Only a bi-encoder can be trained as a LoRA. Set method to 'full'.")

    @property
    def losses(self) -> list[str]:
        """The names of its losses."""
        return [kind.loss for kind in self.kinds.values()] or [self.loss]

    def described(self) -> dict[str, Any]:
        """All settings as plain values; those of trainings on several kinds only there, and then no `loss`."""
        unused = {"loss"} if self.kinds else {"kinds", "dropout"}
        unused |= {"order"} if self.order == "together" else set()  # records from before there was another have none
        return {key: value for key, value in asdict(self).items() if key not in unused}


# --- architectures ----------------------------------------------------------------------------------------------------


def _bi_encoder(settings: Settings, data: DatasetDict) -> BiEncoder:
    encoder = encoders.load(settings.base)
    prepare(encoder.model, settings.pooling)
    if not torch.cuda.is_available():
        # Of PyTorch's attention kernels this is the fastest to train with on a CPU: steps take two thirds of the time
        encoder.model[0].auto_model.set_attn_implementation("eager")
    return BiEncoder(encoder)


def _cross_encoder(settings: Settings, data: DatasetDict) -> Cross:
    """The cross-encoder to go on from, if `base` is one; else one with a new last layer on an encoder's transformer: classes
    where the labels are whole numbers, one score else."""
    base = settings.base
    classes = all(part.features["label"].dtype == "int64" for part in data.values())
    if base in rankers.entries() or rankers.saved_in(paths.resolve(base)) == "CrossEncoder":
        ranker = rankers.load(base)
        if not isinstance(ranker, Cross) or (ranker.model.num_labels == 1) == classes:
            raise FinetuningError(
                f"{base} is no cross-encoder that gives {'classes' if classes else 'one score'}. Choose another."
            )
        return ranker
    encoder = encoders.load(base)
    source = prepare(encoder.model)[0].auto_model.name_or_path
    torch.manual_seed(settings.seed)  # of the new layer's weights
    model = CrossEncoder(source, num_labels=len(CLASSES) if classes else 1, revision=encoder.spec.revision)
    if classes:
        model.config.id2label, model.config.label2id = CLASSES, {label: place for place, label in CLASSES.items()}
    return Cross(model, encoder.name, base)


def _multi_vector(settings: Settings, data: DatasetDict) -> LateInteraction:
    """MaxSim over an encoder's token vectors, its mean over the query's tokens: STS compares the scores of different queries."""
    ranker = rankers.token_maxsim(encoders.load(settings.base))
    ranker.model.similarity_fn_name = "meanmaxsim"
    return ranker


@dataclass(frozen=True)
class Architecture:
    """A kind of model that can be trained.

    Attributes:
        load: gives the base; its `model` is trained.
        trainer, arguments: sentence-transformers' classes.
        use: how its folder is loaded, for the model card.
        graded: whether its score is a degree of similarity, so that STS can be measured.
    """

    load: Callable[[Settings, DatasetDict], System]
    trainer: type
    arguments: type
    use: str
    graded: bool = True


ARCHITECTURES = {
    "bi-encoder": Architecture(
        _bi_encoder, SentenceTransformerTrainer, SentenceTransformerTrainingArguments,
        "`SentenceTransformer(folder)`, or where the folder holds a LoRA alone, `SentenceTransformer(base)` and then its "
        "`load_adapter(folder)`",
    ),
    "cross-encoder": Architecture(
        _cross_encoder, CrossEncoderTrainer, CrossEncoderTrainingArguments, "`CrossEncoder(folder)`", graded=False
    ),
    "multi-vector": Architecture(
        _multi_vector, MultiVectorEncoderTrainer, MultiVectorEncoderTrainingArguments, "`MultiVectorEncoder(folder)`"
    ),
}  # fmt: skip


# --- training ---------------------------------------------------------------------------------------------------------


def train(
    architecture: str,
    settings: Settings,
    data: DatasetDict,
    folder: str | Path,
    *,
    evaluate: Callable[[nn.Module, int], object] | None = None,
    checkpoint_steps: int = 100,
) -> tuple[nn.Module, pd.DataFrame]:
    """Train, resuming from the last checkpoint in `folder` where the same training was interrupted.

    Args:
        architecture: one of `ARCHITECTURES`.
        data: from `batches.data_sets`, in the layout of the loss.
        folder: for the checkpoints of this training alone; remove it (`checkpoints.forget`) when the result is saved.
        evaluate: called with a float32 copy of the model and the epoch after every epoch.

    Returns:
        The trained model and its history: step, epoch, loss (a mean over the steps since the row before), learning_rate.

    Raises:
        FinetuningError: a loss of another architecture, out of memory, or a checkpoint of another training.
        ModelError, RankerError: the base can't be loaded.
    """
    for loss in settings.losses:
        if LOSSES[loss].architecture != architecture:
            known = ", ".join(name for name, other in LOSSES.items() if other.architecture == architecture)
            raise FinetuningError(f"The loss {loss!r} doesn't train a {architecture}. Losses that do: {known}.")
    folder = paths.writable_folder(folder)
    checkpoints.reserve_folder(
        folder, {"architecture": architecture, **settings.described(), "texts": texts_sha256(data)}
    )
    chosen = ARCHITECTURES[architecture]
    system = chosen.load(settings, data)
    base, model = system.model, _model(system.model, settings)
    gpu, sampler = torch.cuda.is_available(), LAYOUTS[LOSSES[settings.losses[0]].layout].sampler
    arguments = chosen.arguments(
        output_dir=str(folder), num_train_epochs=settings.epochs, seed=settings.seed,
        per_device_train_batch_size=settings.batch_size, learning_rate=settings.learning_rate, warmup_steps=0.1,
        lr_scheduler_type="linear", bf16=settings.bf16, use_cpu=not gpu, dataloader_pin_memory=gpu,
        batch_sampler=sampler, multi_dataset_batch_sampler=_order(settings, list(data)),
        save_strategy="steps", save_steps=checkpoint_steps, save_total_limit=1, logging_steps=0.02, report_to="none",
    )  # fmt: skip
    losses = {}
    for name, part in data.items():
        kind = settings.kinds.get(name) or Kind(settings.loss)
        made = LOSSES[kind.loss].make(model, _positives(part))
        losses[name] = made if kind.weight == 1 else WeightedLoss(made, kind.weight)
        if LOSSES[kind.loss].layout == "texts":
            data = DatasetDict({**data, name: with_base_embeddings(part, system.encoder)})
    (train_set, of_kind), *others = [(data[kind], losses[kind]) for kind in data]  # one kind needs no dictionary
    trainer = chosen.trainer(
        model=model, args=arguments, train_dataset=data if others else train_set, loss=losses if others else of_kind,
        callbacks=[_AfterEpoch(base, model, evaluate)] if evaluate else [],
    )  # fmt: skip
    widest = max(len(part.column_names) for part in data.values())
    history = checkpoints.run(trainer, folder, FinetuningError(
        f"Out of memory with {settings.batch_size} anchors a step ({settings.batch_size * widest} texts). "
        f"Lower batch_size, or choose method 'lora', and remove {folder}, whose checkpoints (if any) are of these settings."
    ))  # fmt: skip
    model = trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)  # out of autocast: float32 again
    return model.eval(), history


def _order(settings: Settings, kinds: list[str]) -> Any:
    """In which order batches of several kinds come, as the trainer's arguments take it."""
    if settings.order == "together":
        return "proportional"
    throughout = {place for place, kind in enumerate(kinds) if kind in UNLABELLED}
    return partial(StatementsLast, last=kinds.index("statements"), throughout=throughout)


def _model(base: nn.Module, settings: Settings) -> nn.Module:
    """A copy of the base as it is trained: with a fresh LoRA, and without dropout where the settings say so."""
    model = copy.deepcopy(base)
    if settings.method == "lora":
        model = add_lora(model, settings.rank, settings.seed)
    if not settings.dropout:
        for layer in model.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = 0.0
    return model


def texts_sha256(data: DatasetDict) -> str:
    """SHA-256 of the examples: their columns, and every text, score and label in order."""
    return finished.texts_sha256(
        row for part in data.values() for row in [part.column_names, *(example.values() for example in part)]
    )


def _positives(part: Dataset) -> int:
    return sum(column.startswith("positive") for column in part.column_names)


class _AfterEpoch(TrainerCallback):
    """Calls `evaluate` with a float32 copy: the model itself is wrapped in autocast, and measuring must not change it.

    Args:
        base: what `model` is trained from, untouched; of any architecture.
        evaluate: takes the copy and the number of the epoch that has ended.
    """

    def __init__(self, base: nn.Module, model: nn.Module, evaluate: Callable) -> None:
        self.base, self.model, self.evaluate = base, model, evaluate

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        with torch.random.fork_rng():  # a dev task of mteb's sets the seed, and dropout would draw from there
            self.evaluate(interpolate(self.base, self.model, 1.0), round(state.epoch))
