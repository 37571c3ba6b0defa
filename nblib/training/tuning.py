"""A whole training: train, measure on dev data, interpolate with the base, keep; or find it again where it was run before.

Kept are `encoders/<name>` (interpolated), `<name>-lora` of a LoRA; and the record, with the tables history, epochs, alphas and
predictions.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from datasets import DatasetDict
from torch import nn

from nblib import artefacts, paths
from nblib.errors import StudyError
from nblib.models.identity import fingerprint
from nblib.training import interpolation, records, trainer
from nblib.training.dev_scores import DevEvaluator, choose_alpha
from nblib.training.records import TrainingRecord
from nblib.training.trainer import ARCHITECTURES, TrainingSettings


@dataclass(frozen=True)
class Plan:
    """A training (see `trainer.train`) and what is kept of it."""

    settings: TrainingSettings
    datasets: DatasetDict
    run_dir: str | Path
    name: str
    evaluator: DevEvaluator | None = None  # measures base, epochs (if `every_epoch`) and `alphas`
    every_epoch: bool = True
    alphas: tuple[float, ...] = (1.0,)  # above 0 (the base) to 1 (as trained); of several `choose_alpha` keeps one
    sts_budget: float = 100.0  # points of general ability that may be lost
    record_suffices: bool = False  # whether the record of a finished training will do, without its weights
    about: Mapping[str, Any] = field(default_factory=dict)  # for the record: variant, training_data, scale, …

    def __post_init__(self) -> None:
        if not self.alphas or not all(0 < alpha <= 1 for alpha in self.alphas):
            raise StudyError("alphas must be one number or more above 0 (the base) to 1 (as trained), such as 1.0.")
        if len(self.alphas) > 1 and self.evaluator and not self.evaluator.graded:
            raise StudyError(
                "A cross-encoder has no STSB score to choose α by. Set alphas to one number, such as [1.0]."
            )

    def folder(self, kind: str, name: str = "") -> Path:
        """Where encoders, trainings or checkpoints are kept."""
        return paths.inside(self.run_dir, kind, name or self.name)

    @property
    def lora(self) -> list[str]:
        """The name of the LoRA, where one is trained."""
        return [f"{self.name}-lora"] * (self.settings.method == "lora")

    def made_from(self, base: nn.Module) -> dict[str, Any]:
        """All that decides the result of training from a base, for the record."""
        measured = {name: getattr(self, name) for name in ("alphas", "every_epoch", "sts_budget")}
        if self.evaluator:
            measured["dev"] = [self.evaluator.data, records.texts_sha256(self.evaluator.anchors.to_numpy().tolist())]
        texts = {"texts": trainer.texts_sha256(self.datasets), "base_weights": fingerprint(base)}
        return {"code_version": trainer.CODE_VERSION, **self.settings.described(), **texts, **measured}


def fit_and_keep(plan: Plan) -> TrainingRecord:
    """Train, leave the models and the record; or find them again where they are of the same training. StudyError: see
    `trainer.train`; or a folder is in the way that is no model of this study."""
    start = ARCHITECTURES[plan.settings.architecture].load(plan.settings, plan.datasets).model
    made_from = plan.made_from(start)
    left = [plan.folder("encoders", name) for name in (plan.name, *plan.lora)]
    ignored = ("device", "bf16", "interpolations")  # the last is in older records, and left the training as it was
    record = records.find(plan.folder("trainings"), made_from, ignored)
    if record and (plan.record_suffices or all(model.is_dir() for model in left)):
        return record
    for model in left:
        artefacts.check_replaceable(model)
    records.forget(plan.folder("trainings"))  # a record says that its weights are there
    records.reserve_folder(plan.folder("checkpoints"), made_from)
    epochs = _EpochScores(plan)
    if plan.evaluator and 0 not in epochs.tables:
        epochs(plan.evaluator.base.model, 0)
    resumed, started = records.last_checkpoint(plan.folder("checkpoints")), time.perf_counter()
    after_epoch = epochs if plan.evaluator and plan.every_epoch else None
    tuned, history = trainer.train(plan.settings, plan.datasets, plan.folder("checkpoints"), after_epoch=after_epoch)
    seconds = None if resumed else time.perf_counter() - started  # of a part nothing follows
    alphas, predictions, alpha = _measure_alphas(plan, start, tuned, epochs)
    base = paths.resolve(plan.settings.base)
    about = {**plan.settings.described(), "base": base.name if base.is_dir() else plan.settings.base}
    about |= {**plan.about, "name": plan.name, "alpha": alpha, "seconds": seconds}
    _save(start, tuned, plan.folder("encoders"), alphas, about)
    for name in plan.lora:
        with artefacts.write(plan.folder("encoders", name), about) as draft:
            interpolation.save_lora(tuned, draft, plan.settings.base, alpha)
    tables = {"history": history, "epochs": epochs.table(), "alphas": alphas, "predictions": predictions}
    record = records.save(plan.folder("trainings"), made_from, tables, **about)  # last: it is done
    records.forget(plan.folder("checkpoints"))
    return record


class _EpochScores:
    """The dev scores by epoch, beside the checkpoints, so that they survive an interruption."""

    def __init__(self, plan: Plan) -> None:
        self.evaluator, self.file = plan.evaluator, plan.folder("checkpoints") / "epochs.csv"
        resumed = self.file.is_file() and records.last_checkpoint(self.file.parent)
        table = artefacts.read_table(self.file) if resumed else pd.DataFrame({"epoch": []})
        self.tables = {int(epoch): part for epoch, part in table.groupby("epoch", sort=False)}

    def __call__(self, model: nn.Module, epoch: int) -> None:
        self.tables[epoch] = self.evaluator.measure(model).assign(epoch=epoch)
        artefacts.write_table(self.table(), self.file)

    def table(self) -> pd.DataFrame:
        return pd.concat(self.tables.values(), ignore_index=True) if self.tables else pd.DataFrame()


def _measure_alphas(
    plan: Plan, start: nn.Module, tuned: nn.Module, epochs: _EpochScores
) -> tuple[pd.DataFrame, pd.DataFrame, float]:
    """The dev scores by α (0: the base), the dev predictions of the α to keep, and that."""
    if not plan.evaluator:
        return pd.DataFrame(), pd.DataFrame(), max(plan.alphas)
    scores, predictions = [epochs.tables[0].drop(columns="epoch").assign(alpha=0.0)], {}
    for alpha in plan.alphas:
        scores.append(plan.evaluator.measure(interpolation.interpolate(start, tuned, alpha)).assign(alpha=alpha))
        predictions[alpha] = plan.evaluator.predicted
    table = pd.concat(scores, ignore_index=True)
    alpha = choose_alpha(table, plan.sts_budget) if len(plan.alphas) > 1 else plan.alphas[0]
    if not plan.every_epoch and 1.0 in plan.alphas:
        end = table[table.alpha == 1].drop(columns="alpha")
        epochs.tables[plan.settings.epochs] = end.assign(epoch=plan.settings.epochs)
    return table, predictions[alpha], float(alpha)


def _save(start: nn.Module, tuned: nn.Module, folder: Path, scores: pd.DataFrame, about: Mapping[str, Any]) -> None:
    """Leave an interpolated model as sentence-transformers saves it, with dev scores under the library's card."""
    model = interpolation.interpolate(start, tuned, about["alpha"])
    model.model_card_data = tuned.model_card_data  # how it was trained
    model.model_card_data.register_model(model)
    wide = scores.pivot(index="set", columns="alpha", values="value").round(1).to_string() if len(scores) else "none"
    with artefacts.write(folder, about) as draft:
        model.save_pretrained(str(draft))
        with open(draft / artefacts.CARD, "a", encoding="utf-8") as card:
            head = f"Dev scores by α, from {about['base']} (0) to as trained (1). Here: α = {about['alpha']:g}"
            card.write(f"\n## {head}\n\n```\n{wide}\n```\n")
