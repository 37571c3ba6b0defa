"""Contrastive fine-tuning of an encoder on triples (Truong §3.2; Weller §6), on the sentence-transformers trainer.

One training is a `Settings` and a table of triples; `train` runs it (and takes it up again where a killed run left it),
`interpolate` goes part of the way from the base to the tuned weights, `save` leaves a folder that plain
`SentenceTransformer(folder)` loads.
"""

import copy
import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn
from transformers import TrainerCallback
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint

from nblib import models, paths, provenance
from nblib.triples import TripleError, check

logger = logging.getLogger(__name__)

Method = Literal["full", "lora"]
Loss = Literal["explicit", "in-batch", "in-batch, hardness-weighted"]
SCALE = 20.0  # of the cosine in the softmax: sentence-transformers' default; the paper gives none
HARDNESS = 9.0  # weight of hard negatives; Lan et al. 2025, through MultipleNegativesRankingLoss
BUCKET = 8  # batches' worth of anchors among which those of similar length go into one batch


class FinetuningError(ValueError):
    """A training that can't be run, or can't be taken up again."""


@dataclass(frozen=True)
class Settings:
    """What a training is, beside its triples.

    Attributes:
        base: an encoder's name or folder (see `models.load`).
        method: all weights, or a LoRA on every linear layer of the transformer's blocks.
        loss: "explicit" is Eq. 1, with the anchor's own negatives only; "in-batch" adds every other text of the batch
            (MNRL, the usual form); "hardness-weighted" gives an anchor's own negatives more weight the nearer they are.
        keep: weight of the term that holds the base's similarities among anchors and positives (`KeepingLoss`); 0: none.
        batch_size: anchors a step; each brings a positive and all its negatives.
        pooling: how token vectors become a sentence's: as the base does it, or "mean" or "cls" (the paper's).
        rank: of the LoRA; its alpha is twice that.
        bf16: autocast of the forward pass; weights and optimiser stay float32.
    """

    base: str
    method: Method = "full"
    loss: Loss = "in-batch"
    learning_rate: float = 2e-5
    keep: float = 0.0
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


def examples(triples: pd.DataFrame) -> Dataset:
    """Triples as training examples: anchor, positive, negative_1, … negative_k; one for each anchor and positive.

    Raises:
        TripleError: unusable triples, or anchors with different numbers of negatives.
    """
    grouped = check(triples).groupby(["id", "anchor", "positive"], sort=False).negative.agg(list)
    sizes = grouped.map(len)
    if sizes.nunique() > 1:
        raise TripleError(
            f"Between {sizes.min()} and {sizes.max()} negatives for an anchor and a positive; a step needs equally many. "
            "Keep only anchors with every negation (triples.filtered)."
        )
    negatives = pd.DataFrame(grouped.tolist()).rename(columns=lambda number: f"negative_{number + 1}")
    texts = pd.concat([grouped.index.to_frame(index=False)[["anchor", "positive"]], negatives], axis=1)
    return Dataset.from_pandas(texts, preserve_index=False)


class AnchorBatches(DefaultBatchSampler):
    """Batches without two examples of one anchor (its hedge would become another's negative), of similar lengths.

    Without the second, half of what a CPU multiplies is padding. The order depends on seed and epoch alone, so that an
    interrupted training finds its place again.
    """

    def __init__(self, dataset: Dataset, **options: Any) -> None:
        super().__init__(dataset, **options)
        anchors = pd.Series(list(dataset["anchor"]))
        self.turns = anchors.groupby(anchors).cumcount().to_numpy()  # an anchor's first example, its second, …
        self.codes = pd.factorize(anchors)[0]
        self.lengths = anchors.str.len().to_numpy()

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.Generator().manual_seed(self.seed + self.epoch)
        batches = self._batches(order)
        yield from (batches[place] for place in torch.randperm(len(batches), generator=order).tolist())

    def _batches(self, order: torch.Generator) -> list[list[int]]:
        shuffled = torch.randperm(len(self.codes), generator=order).numpy()
        # Which of an anchor's examples comes first changes from epoch to epoch
        turn = pd.Series(self.codes[shuffled]).groupby(self.codes[shuffled]).cumcount().to_numpy()
        batches = []
        for number in range(int(turn.max()) + 1):
            examples, chunk = shuffled[turn == number], BUCKET * self.batch_size
            for start in range(0, len(examples), chunk):
                alike = sorted(examples[start : start + chunk].tolist(), key=lambda place: self.lengths[place])
                batches += [alike[at : at + self.batch_size] for at in range(0, len(alike), self.batch_size)]
        return batches

    def __len__(self) -> int:
        sizes = pd.Series(self.turns).value_counts()
        return int(sum(-(-size // self.batch_size) for size in sizes))


# --- the losses -------------------------------------------------------------------------------------------------------


class ExplicitNegativesLoss(nn.Module):
    """Eq. 1: cross-entropy of an anchor's positive among that and the anchor's own negatives, cosine times `scale`.

    No option of sentence-transformers' MultipleNegativesRankingLoss takes the other examples of the batch out.
    """

    def __init__(self, model: SentenceTransformer, scale: float = SCALE) -> None:
        super().__init__()
        self.model = model
        self.scale = scale

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        return self.compute_loss_from_embeddings(embed_columns(self.model, sentence_features), labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        anchors, *candidates = embeddings
        near = torch.stack([torch.cosine_similarity(anchors, texts) for texts in candidates], dim=1)
        target = torch.zeros(len(anchors), dtype=torch.long, device=anchors.device)  # the positive comes first
        return nn.functional.cross_entropy(self.scale * near, target)

    def get_config_dict(self) -> dict[str, Any]:
        return {"scale": self.scale}


class KeepingLoss(nn.Module):
    """A contrastive loss plus what holds the rest in place: `keep` times the mean squared difference between the tuned and
    the base's cosines among the batch's anchors and positives (none of them negated). The study's own addition: without
    it, what separates a sentence from its negation also moves unrelated sentences.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        contrastive: nn.Module,
        base: SentenceTransformer,
        keep: float,
        bf16: bool = False,
    ) -> None:
        super().__init__()
        self.model, self.contrastive, self.keep, self.bf16 = model, contrastive, keep, bf16
        self.frozen = [base.eval().requires_grad_(False)]  # in a list: no part of what is trained, moved or saved

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> dict[str, Tensor]:
        features = list(sentence_features)
        with torch.no_grad(), torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.bf16):
            before = _cosines(embed_columns(self.frozen[0], [dict(column) for column in features[:2]]))
        embeddings = embed_columns(self.model, features)
        moved = (_cosines(embeddings[:2]) - before).square().mean()
        return {
            "contrastive": self.contrastive.compute_loss_from_embeddings(embeddings, labels),
            "keeping": self.keep * moved,
        }

    def get_config_dict(self) -> dict[str, Any]:
        return {**self.contrastive.get_config_dict(), "keep": self.keep}


def _cosines(columns: list[Tensor]) -> Tensor:
    units = nn.functional.normalize(torch.cat(columns).float(), dim=1)
    return units @ units.T


def make_loss(
    model: SentenceTransformer, base: SentenceTransformer, loss: Loss, keep: float = 0.0, bf16: bool = False
) -> nn.Module:
    """The loss of that name (see `Settings`), with what keeps the base's similarities where that is asked for."""
    if loss == "explicit":
        contrastive: nn.Module = ExplicitNegativesLoss(model)
    else:
        weighting = {} if loss == "in-batch" else {"hardness_mode": "hard_negatives", "hardness_strength": HARDNESS}
        contrastive = MultipleNegativesRankingLoss(model, scale=SCALE, **weighting)
    return KeepingLoss(model, contrastive, base, keep, bf16) if keep else contrastive


# --- training ---------------------------------------------------------------------------------------------------------


def prepare(model: SentenceTransformer, pooling: str = "base") -> SentenceTransformer:
    """A base as it is trained from, with its pooling set.

    Raises:
        FinetuningError: the base is no transformer that sentence-transformers can train.
    """
    if not isinstance(model, SentenceTransformer) or not hasattr(model[0], "auto_model"):
        raise FinetuningError(
            "The base is no text encoder with trainable transformer weights. Give a sentence-transformers model."
        )
    if pooling != "base":
        place = next((place for place, module in enumerate(model) if isinstance(module, Pooling)), None)
        if place is None:
            raise FinetuningError("The base has no pooling to change. Set pooling to 'base'.")
        model[place] = Pooling(model.get_embedding_dimension(), pooling_mode=pooling)
    return model


def add_lora(model: SentenceTransformer, rank: int, seed: int) -> SentenceTransformer:
    """The model with a LoRA on every linear layer of the transformer's blocks; only that will be trained."""
    from peft import LoraConfig

    torch.manual_seed(seed)  # of the adapter's first weights
    linear = {name.rsplit(".", 1)[-1] for name, layer in _blocks(model) if isinstance(layer, nn.Linear)}
    model.add_adapter(LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules=sorted(linear), exclude_modules=r".*pooler.*",
    ))  # fmt: skip
    return model


def _blocks(model: SentenceTransformer) -> Iterator[tuple[str, nn.Module]]:
    return ((name, layer) for name, layer in model[0].auto_model.named_modules() if "pooler" not in name)


def train(
    settings: Settings,
    triples: pd.DataFrame,
    checkpoints: str | Path,
    *,
    evaluate: Callable[[SentenceTransformer, float], None] | None = None,
    checkpoint_steps: int = 100,
) -> tuple[SentenceTransformer, pd.DataFrame]:
    """Fine-tune, resuming from the last checkpoint in `checkpoints` where the same training was interrupted.

    Args:
        triples: id, anchor, positive, negative, hedge, negation (`triples.build`).
        checkpoints: a folder for this training alone; empty it (`forget`) when the result is saved.
        evaluate: called with the model and the epoch after every epoch.

    Returns:
        The tuned model and its history: step, epoch, loss (a mean over the steps since the row before), learning_rate.

    Raises:
        FinetuningError: out of memory, or a checkpoint of another training.
        TripleError: see `examples`.
    """
    data, folder = examples(triples), paths.writable_folder(checkpoints)
    _claim(folder, settings, data)
    base = prepare(models.load(settings.base).model, settings.pooling)
    model = copy.deepcopy(base)
    if settings.method == "lora":
        model = add_lora(model, settings.rank, settings.seed)
    gpu = torch.cuda.is_available()
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder), num_train_epochs=settings.epochs, per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate, warmup_steps=0.1, lr_scheduler_type="linear", bf16=settings.bf16, use_cpu=not gpu,
        seed=settings.seed, batch_sampler=AnchorBatches, dataloader_pin_memory=gpu,
        save_strategy="steps", save_steps=checkpoint_steps, save_total_limit=1, logging_steps=0.02, report_to="none",
    )  # fmt: skip
    watch = [_AfterEpoch(base, model, evaluate)] if evaluate else []
    trainer = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=data,
        loss=make_loss(model, base, settings.loss, settings.keep, settings.bf16),
        callbacks=watch,
    )
    try:
        trainer.train(resume_from_checkpoint=_last_checkpoint(folder))
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) and "memory" not in str(error):
            raise
        raise FinetuningError(
            f"Out of memory with {settings.batch_size} anchors a step ({settings.batch_size * len(data.column_names)} texts). "
            f"Lower batch_size, or choose method 'lora', and remove {folder}, whose checkpoints (if any) are of these settings."
        ) from error
    columns = ["step", "epoch", "loss", "learning_rate"]
    logged = pd.DataFrame([entry for entry in trainer.state.log_history if "loss" in entry], columns=columns)
    model = trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)  # out of autocast: float32 again
    return model.eval(), logged.astype(float)


class _AfterEpoch(TrainerCallback):
    """Calls `evaluate` with a float32 copy: the model itself is wrapped in autocast, and looking must not change it."""

    def __init__(self, base: SentenceTransformer, model: SentenceTransformer, evaluate: Callable) -> None:
        self.base, self.model, self.evaluate = base, model, evaluate

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        with torch.random.fork_rng():  # a dev task of mteb's sets the seed, and dropout would draw from there
            self.evaluate(interpolate(self.base, self.model, 1.0), round(state.epoch))


def _claim(folder: Path, settings: Settings, data: Dataset) -> None:
    """Make the folder this training's, or see that it is.

    Raises:
        FinetuningError: it holds the checkpoints of another.
    """
    texts = "\n".join(text for column in data.column_names for text in data[column])
    mine = {**asdict(settings), "examples": len(data), "texts": hashlib.sha256(texts.encode()).hexdigest()}
    file = folder / "training.json"
    if file.is_file() and _last_checkpoint(folder) and json.loads(file.read_text(encoding="utf-8")) != mine:
        raise FinetuningError(
            f"{folder} holds the checkpoints of another training. Remove the folder, or give this training another name."
        )
    with paths.write_atomically(file) as draft:
        draft.write_text(json.dumps(mine, indent=2) + "\n", encoding="utf-8")


def _last_checkpoint(folder: Path) -> str | None:
    """The last checkpoint to go on from; one that a kill left half-written (its state is written last) is removed."""
    for checkpoint in folder.glob("checkpoint-*"):
        if not (checkpoint / TRAINER_STATE_NAME).is_file():
            shutil.rmtree(checkpoint)
    return get_last_checkpoint(str(folder))


def forget(checkpoints: str | Path) -> None:
    """Remove a finished training's checkpoints."""
    shutil.rmtree(paths.resolve(checkpoints), ignore_errors=True)


# --- what comes out ---------------------------------------------------------------------------------------------------


def interpolate(base: SentenceTransformer, tuned: SentenceTransformer, alpha: float) -> SentenceTransformer:
    """The encoder α of the way from the base to the tuned weights (α = 0 the base, 1 the tuned one, LoRA merged).

    Part of the way keeps much of what was learnt and forgets less of what was known (Wortsman et al. 2022).

    Args:
        base: the model `tuned` was trained from, with its pooling (`prepare`).

    Raises:
        FinetuningError: the two have different weights.
    """
    blend = copy.deepcopy(base)
    start, end = blend.state_dict(), _merged(tuned)
    if {key: value.shape for key, value in start.items()} != {key: value.shape for key, value in end.items()}:
        raise FinetuningError("Weights of different shapes: interpolate between a base and what was trained from it.")
    blend.load_state_dict({
        key: torch.lerp(value, end[key], alpha) if value.is_floating_point() else value for key, value in start.items()
    })  # fmt: skip
    return blend.eval()


def _merged(model: SentenceTransformer) -> dict[str, Tensor]:
    """A model's weights under the names they have without LoRA, with the LoRA's change added."""
    from peft.tuners.lora import LoraLayer

    weights = {key.replace(".base_layer", ""): value for key, value in model.state_dict().items() if "lora_" not in key}
    for name, layer in model.named_modules():
        if isinstance(layer, LoraLayer):
            weights[f"{name}.weight"] = layer.get_base_layer().weight + layer.get_delta_weight("default")
    return weights


def compress(base: SentenceTransformer, tuned: SentenceTransformer, rank: int) -> tuple[SentenceTransformer, float]:
    """The base with a LoRA that comes nearest to what full fine-tuning changed: the singular vectors of each linear layer's
    change that carry most of it. What changed in other weights (embeddings, biases, norms) is left out.

    Args:
        base: the model `tuned` was trained from, with its pooling (`prepare`).

    Returns:
        The model, for `save_adapter` and `interpolate`, and the share of the linear layers' change it keeps (of the sum of
        squares, 0 to 1).
    """
    from peft.tuners.lora import LoraLayer

    model, end = add_lora(copy.deepcopy(base), rank, seed=0), tuned.state_dict()
    kept = total = 0.0
    for name, layer in model.named_modules():
        if isinstance(layer, LoraLayer):
            change = end[f"{name}.weight"] - layer.get_base_layer().weight.detach()
            left, sizes, right = torch.linalg.svd(change, full_matrices=False)
            root = sizes[:rank].sqrt()
            layer.lora_A["default"].weight.data = root[:, None] * right[:rank]
            layer.lora_B["default"].weight.data = left[:, :rank] * root / layer.scaling["default"]
            kept, total = kept + float(sizes[:rank].square().sum()), total + float(sizes.square().sum())
    return model.eval(), kept / total if total else 1.0


def save(model: SentenceTransformer, folder: str | Path, card: str, **about: Any) -> Path:
    """Leave an encoder as a folder with a model card and a provenance sidecar; nothing half-written is ever there.

    Args:
        card: what to say of it (`model_card`).
        about: for the sidecar.
    """
    target = paths.resolve(folder)
    with _drafted(target) as draft:
        model.save_pretrained(str(draft), create_model_card=False)
        return _in_place(draft, target, card, about)


def save_adapter(model: SentenceTransformer, folder: str | Path, card: str, alpha: float = 1.0, **about: Any) -> Path:
    """Leave a trained LoRA alone, scaled by α: `SentenceTransformer(base).load_adapter(folder)` is `interpolate`'s blend.

    Raises:
        FinetuningError: the model was not trained with method "lora".
    """
    transformer = model[0].auto_model
    if not getattr(transformer, "peft_config", None):
        raise FinetuningError("There is no LoRA in this model. Train with method 'lora'.")
    target = paths.resolve(folder)
    with _drafted(target) as draft:
        transformer.save_pretrained(str(draft))
        file = draft / "adapter_config.json"
        config = json.loads(file.read_text(encoding="utf-8"))
        config["lora_alpha"] *= alpha
        config["base_model_name_or_path"] = about.get("base", config.get("base_model_name_or_path"))
        file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        return _in_place(draft, target, card, about)


@contextmanager
def _drafted(target: Path) -> Iterator[Path]:
    """An empty folder beside the target to write into, gone afterwards."""
    draft = target.with_name(f".{target.name}.saving")
    shutil.rmtree(draft, ignore_errors=True)  # what a killed process left
    try:
        yield paths.writable_folder(draft)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _in_place(draft: Path, target: Path, card: str, about: dict[str, Any]) -> Path:
    (draft / "README.md").write_text(card, encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)
    provenance.write_sidecar(target, **about)
    return target


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

**Use.** `SentenceTransformer(folder)`. **Limits.** English; one voice of training data; similarities are lower than the
base's for anything negated, so thresholds tuned for the base need tuning anew.
"""
