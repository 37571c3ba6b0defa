"""One way to train a bi-encoder, a cross-encoder or a multi-vector model, on sentence-transformers' trainers (Truong §3.2;
Weller §6)."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import torch
from datasets import DatasetDict
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.multi_vector_encoder import MultiVectorEncoderTrainer, MultiVectorEncoderTrainingArguments
from torch import nn
from transformers import TrainerCallback

from nblib import paths
from nblib.errors import StudyError, check_numbers, one_of
from nblib.models import encoders, rankers, systems
from nblib.models.identity import fingerprint
from nblib.models.onednn import computes_bfloat16
from nblib.models.rankers import LateInteraction
from nblib.models.systems import BiEncoder, System
from nblib.training import records
from nblib.training.batches import LAYOUTS, with_base_embeddings
from nblib.training.data import Kind
from nblib.training.interpolation import add_lora, interpolate, prepare
from nblib.training.losses import LOSSES, WeightedLoss

CODE_VERSION = 1  # raise it when this code changes a training's weights: all is then trained anew
CLASSES = ("entailment", "neutral", "contradiction")  # as SNLI numbers them
Method = Literal["full", "lora"]
Pooling = Literal["base", "mean", "cls"]


@dataclass(frozen=True)
class TrainingSettings:
    """A training without its examples."""

    base: str  # an encoder's name or folder (`encoders.load`); for a cross-encoder also that of one to go on from
    architecture: str = "bi-encoder"  # one of `ARCHITECTURES`
    method: Method = "full"  # all weights, or (a bi-encoder) a LoRA (`add_lora`)
    loss: str = "in-batch"  # one of `LOSSES`
    learning_rate: float = 2e-5
    epochs: int = 1
    batch_size: int = 16
    pooling: Pooling = "base"  # as the base does it, or "mean" or "cls" (the paper's)
    rank: int = 16  # of the LoRA; its alpha is twice that
    seed: int = 0
    bf16: bool = field(default_factory=computes_bfloat16)  # autocast of the forward pass; weights stay float32
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # of a mixture, each with its own loss, instead of `loss`

    def __post_init__(self) -> None:
        one_of(self.method, get_args(Method), "method")
        one_of(self.pooling, get_args(Pooling), "pooling")
        one_of(self.loss, LOSSES, "loss")
        one_of(self.architecture, ARCHITECTURES, "architecture")
        numbers = ("learning_rate", "epochs", "batch_size", "rank")
        check_numbers(self.seed, **{name: getattr(self, name) for name in numbers})
        for loss in [kind.loss for kind in self.kinds.values()] or [self.loss]:
            able = [name for name, known in LOSSES.items() if known.architecture == self.architecture]
            if loss not in able:
                raise StudyError(f"The loss {loss!r} doesn't train a {self.architecture}; {', '.join(able)} do.")
        if self.method == "lora" and (self.architecture != "bi-encoder" or self.pooling != "base"):
            raise StudyError("Only a bi-encoder with its own pooling can be trained as a LoRA. Set method to 'full'.")

    def described(self) -> dict[str, Any]:
        """The settings as plain values, either `loss` or `kinds`."""
        unused = "loss" if self.kinds else "kinds"
        return {key: value for key, value in asdict(self).items() if key != unused}


def _bi_encoder(settings: TrainingSettings, datasets: DatasetDict) -> BiEncoder:
    encoder = encoders.load(settings.base)
    prepare(encoder.model, settings.pooling)
    if settings.pooling != "base":
        encoder = replace(encoder, fingerprint=fingerprint(encoder.model))  # its embeddings are others
    if not torch.cuda.is_available():
        # Of PyTorch's attention kernels the fastest to train with on a CPU: two thirds of the time
        encoder.model[0].auto_model.set_attn_implementation("eager")
    return BiEncoder(encoder)


def _cross_encoder(settings: TrainingSettings, datasets: DatasetDict) -> rankers.CrossEncoder:
    """The base, or an encoder's transformer with a new last layer: classes where the labels are whole numbers."""
    base = settings.base
    classes = all(examples.features["label"].dtype == "int64" for examples in datasets.values())
    start = systems.load(base)
    if not isinstance(start, BiEncoder):
        if not isinstance(start, rankers.CrossEncoder) or (start.model.num_labels == 1) == classes:
            raise StudyError(f"{base} is no cross-encoder that gives {'classes' if classes else 'one score'}.")
        return start
    encoder = start.encoder
    source = prepare(encoder.model)[0].auto_model.name_or_path
    if not Path(source).is_dir():
        raise StudyError(
            f"{base} is a LoRA, from which no cross-encoder can be trained. Take its whole encoder's folder."
        )
    torch.manual_seed(settings.seed)  # of the new layer's weights
    model = CrossEncoder(source, num_labels=len(CLASSES) if classes else 1)
    if classes:
        model.config.id2label = dict(enumerate(CLASSES))
        model.config.label2id = {name: label for label, name in model.config.id2label.items()}
    return rankers.CrossEncoder(model, encoder.name, base)


def _multi_vector(settings: TrainingSettings, datasets: DatasetDict) -> LateInteraction:
    """MaxSim over an encoder's token vectors, its mean over the query's: STS compares different queries."""
    ranker = rankers.token_maxsim(encoders.load(settings.base))
    ranker.model.similarity_fn_name = "meanmaxsim"
    return ranker


@dataclass(frozen=True)
class Architecture:
    """An architecture that can be trained."""

    load: Callable[[TrainingSettings, DatasetDict], System]  # gives the base; its `model` is trained
    trainer: type
    arguments: type
    graded: bool = True  # whether its score is a degree of similarity, so that STS can be measured


ARCHITECTURES = {
    "bi-encoder": Architecture(_bi_encoder, SentenceTransformerTrainer, SentenceTransformerTrainingArguments),
    "cross-encoder": Architecture(_cross_encoder, CrossEncoderTrainer, CrossEncoderTrainingArguments, graded=False),
    "multi-vector": Architecture(_multi_vector, MultiVectorEncoderTrainer, MultiVectorEncoderTrainingArguments),
}


def train(
    settings: TrainingSettings,
    datasets: DatasetDict,
    folder: str | Path,
    *,
    after_epoch: Callable[[nn.Module, int], object] | None = None,
) -> tuple[nn.Module, pd.DataFrame]:
    """Train, resuming from the last checkpoint in `folder` where the same training was interrupted; the trained model and its
    history (`records.run`, also for errors).

    Args:
        datasets: the examples by kind (`data.load`), each in the layout of its loss.
        folder: for this training's checkpoints alone (`records.reserve_folder`); remove it (`records.forget`) when the result
            is saved.
        after_epoch: called with a float32 copy of the model and the epoch.
    """
    folder = paths.writable_folder(folder)
    architecture = ARCHITECTURES[settings.architecture]
    system = architecture.load(settings, datasets)
    model = copy.deepcopy(system.model)
    if settings.method == "lora":
        model = add_lora(model, settings.rank, settings.seed)
    kinds = {name: settings.kinds.get(name) or Kind(settings.loss) for name in datasets}
    losses, laid_out = {}, {}
    for name, examples in datasets.items():
        loss, weight = LOSSES[kinds[name].loss], kinds[name].weight
        own = loss.make(model, sum(column.startswith("positive") for column in examples.column_names))
        losses[name] = own if weight == 1 else WeightedLoss(own, weight)
        laid_out[name] = with_base_embeddings(examples, system.encoder) if loss.layout == "texts" else examples
    sampler = LAYOUTS[loss.layout].sampler  # the same of all that an architecture learns from
    options = records.arguments(settings)
    options |= {"batch_sampler": sampler, "multi_dataset_batch_sampler": "proportional"}
    arguments = architecture.arguments(str(folder), **options)
    several = len(datasets) > 1  # one kind needs no dictionary
    trainer = architecture.trainer(
        model=model,
        args=arguments,
        train_dataset=DatasetDict(laid_out) if several else next(iter(laid_out.values())),
        loss=losses if several else next(iter(losses.values())),
        callbacks=[_AfterEpoch(system.model, model, after_epoch)] if after_epoch else [],
    )
    history = records.run(trainer, folder, f"Lower batch_size ({settings.batch_size}), or choose method 'lora'.")
    model = trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)  # float32 again
    return model.eval(), history


def texts_sha256(datasets: DatasetDict) -> str:
    """SHA-256 of the examples: columns and values, in order."""
    parts = ([part.column_names, *(example.values() for example in part)] for part in datasets.values())
    return records.texts_sha256(chain.from_iterable(parts))


class _AfterEpoch(TrainerCallback):
    """Calls a function with a float32 copy (the model itself is wrapped in autocast) and the epoch."""

    def __init__(self, base: nn.Module, model: nn.Module, call: Callable) -> None:
        self.base, self.model, self.call = base, model, call

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        with torch.random.fork_rng():  # a dev task of mteb's sets the seed that dropout draws by
            self.call(interpolate(self.base, self.model, 1.0), round(state.epoch))
