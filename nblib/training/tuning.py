"""A whole training: train, measure, interpolate, keep; or find what was kept when it was trained from the same before.

The training record (`records`) has what a notebook draws: the loss (`history`), the dev scores after every epoch (`epochs`),
those of every α (`alphas`), and the kept model's predictions for the dev items (`predictions`). Where the weights are gone,
the record is shown.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from datasets import DatasetDict
from torch import nn

from nblib import artefacts, paths
from nblib.models import encoders
from nblib.models.folders import FinetuningError
from nblib.training import checkpoints, finished, interpolation, records, trainer
from nblib.training.dev_scores import DevEvaluator, choose_alpha
from nblib.training.records import Trained
from nblib.training.trainer import Settings


@dataclass(frozen=True)
class Tuned(Trained):
    """A finished training with what was measured on dev data."""

    @property
    def epochs(self) -> pd.DataFrame:
        """Dev scores by epoch (0: the base); empty where nothing was measured."""
        return self.record.table("epochs")

    @property
    def alphas(self) -> pd.DataFrame:
        """Dev scores by α (0: the base, 1: as trained); empty where nothing was measured."""
        return self.record.table("alphas")

    @property
    def predictions(self) -> pd.DataFrame:
        """Of the kept model, for each dev item; empty where nothing was measured."""
        return self.record.table("predictions")

    @property
    def alpha(self) -> float:
        """How far from the base to the trained weights the kept model is."""
        return self.record.about["alpha"]

    def compared(self) -> pd.DataFrame:
        """Dev scores before and after: set, kind, n, base, tuned, difference."""
        base, tuned = (self.alphas[self.alphas.alpha == alpha].reset_index(drop=True) for alpha in (0.0, self.alpha))
        table = base[["set", "kind", "n"]].assign(base=base.value, tuned=tuned.value)
        return table.assign(difference=table.tuned - table.base)


def tune(
    architecture: str,
    settings: Settings,
    data: DatasetDict,
    folder: str | Path,
    record: str | Path,
    scratch: str | Path,
    /,
    *,
    evaluator: DevEvaluator | None = None,
    every_epoch: bool = True,
    alphas: Sequence[float] = (),
    sts_budget: float = 100.0,
    interpolations: Sequence[float] = (),
    source: str = "",
    again: bool = False,
    **about: Any,
) -> Tuned:
    """Train, leave the model and its record; or find both again, or the record alone, where they are of the same training.

    Args:
        architecture, settings, data: see `trainer.train`.
        folder: of the model to keep. The `interpolations` go next to it, named with `-a050` or the like, and the LoRA
            (if one was trained) with `-lora`.
        record: the folder of the training record.
        scratch: for checkpoints; removed at the end.
        evaluator: measures the base, the model after `every_epoch`, and each of the `alphas`.
        alphas: these are measured, and the largest within `sts_budget` is kept (`dev_scores.choose_alpha`);
            without any, the trained weights are.
        source: one line on the training data, for the model card.
        again: train even if it was trained before.
        about: for the sidecar.

    Raises:
        FinetuningError: an α that is not above 0 and up to 1.
        FinetuningError, ModelError, RankerError: see `trainer.train`.
    """
    if outside := [a for a in (*alphas, *interpolations) if not 0 < a <= 1]:
        raise FinetuningError(f"α goes from 0 (the base) to 1 (as trained), and can't be {outside[0]}.")
    folder, scratch = paths.resolve(folder), paths.resolve(scratch)
    start = trainer.ARCHITECTURES[architecture].load(settings, data).model
    dev = evaluator and [evaluator.data, finished.texts_sha256(evaluator.anchors.to_numpy().tolist())]
    made_from = {
        **settings.described(), "architecture": architecture, "alphas": list(alphas), "sts_budget": sts_budget,
        "interpolations": list(interpolations), "dev": dev, "every_epoch": every_epoch,
    }  # fmt: skip
    texts, base_weights = trainer.texts_sha256(data), encoders.fingerprint(start)
    fingerprint = finished.fingerprint(
        trainer.CODE_VERSION, made_from, texts, base_weights, "cuda" if torch.cuda.is_available() else "cpu"
    )
    parts = {folder.with_name(f"{folder.name}-a{100 * part:03.0f}"): part for part in interpolations}
    lora = folder.with_name(f"{folder.name}-lora") if settings.method == "lora" else None
    models = list(filter(None, [folder, *parts, lora]))
    checked = {"code_version": trainer.CODE_VERSION, "texts": texts, "base_weights": base_weights}
    wanted = ["epochs"] * bool(evaluator) + ["alphas"] * bool(alphas)
    if not again and (kept := records.find(record, {**made_from, **checked}, wanted, about)):
        has_model = all(finished.is_finished(left, fingerprint) for left in models)
        if has_model and kept.unknown:
            kept = kept.complete({**made_from, **checked})
        if has_model or not folder.is_dir():
            return Tuned(folder, kept, found=True, has_model=has_model)
    for left in models:
        artefacts.check_replaceable(left)
    measured_before = scratch / "epochs.csv"
    if evaluator and measured_before.is_file() and checkpoints.last_checkpoint(scratch):
        evaluator.resume(artefacts.read_table(measured_before))

    def evaluate(model: nn.Module, epoch: int) -> None:
        evaluator(model, epoch)
        artefacts.write_table(evaluator.table(), measured_before)

    before = evaluator(evaluator.base.model, 0) if evaluator else None
    started = time.perf_counter()
    each = evaluate if evaluator and every_epoch else None
    model, history = trainer.train(architecture, settings, data, scratch, evaluate=each)
    seconds = time.perf_counter() - started
    by_alpha, alpha, predicted = pd.DataFrame(), 1.0, {}
    if alphas:
        by_alpha = [before.assign(alpha=0.0)]
        for a in alphas:
            by_alpha.append(evaluator.measure(interpolation.interpolate(start, model, a)).assign(alpha=a))
            predicted[a] = evaluator.predicted
        by_alpha = pd.concat(by_alpha, ignore_index=True)
        alpha = choose_alpha(by_alpha, sts_budget) if len(alphas) > 1 else float(alphas[0])
        if not every_epoch:
            end = by_alpha[by_alpha.alpha == 1].drop(columns="alpha")
            evaluator.measured[settings.epochs] = end.assign(epoch=settings.epochs)
    by_epoch = evaluator.table() if evaluator else pd.DataFrame()
    about |= {
        **settings.described(), "architecture": architecture, "alpha": alpha, "seconds": seconds,
        finished.TRAINED_FROM: fingerprint,
    }  # fmt: skip
    card = model_card(folder.name, architecture, settings, alpha, source, by_alpha, seconds)
    for place, part in parts.items():
        interpolation.save(interpolation.interpolate(start, model, part), place, card, **{**about, "alpha": part})
    if lora:
        interpolation.save_adapter(model, lora, card, **about)
    interpolation.save(interpolation.interpolate(start, model, alpha), folder, card, **about)
    tables = {"history": history, "epochs": by_epoch, "alphas": by_alpha}
    tables["predictions"] = predicted.get(alpha, pd.DataFrame())
    kept = records.save(record, {**made_from, **checked}, tables, **about)  # last: it is done
    checkpoints.forget(scratch)
    return Tuned(folder, kept)


def model_card(
    name: str, architecture: str, settings: Settings, alpha: float, data: str, curve: pd.DataFrame, seconds: float
) -> str:
    """A model card: what it is, from which data and settings, its dev scores and the base's.

    Args:
        data: one line on the training data.
        curve: dev scores by α, or an empty table.
    """
    scores = ""
    if len(curve):
        shown = curve[curve.kind != "diagnostic"] if "kind" in curve else curve
        wide = shown[shown.alpha.isin([0.0, alpha])].pivot(index="set", columns="alpha", values="value")
        rows = "\n".join(f"| {name} | {wide[0.0][name]:.1f} | {wide[alpha][name]:.1f} |" for name in shown.set.unique())
        scores = f"""**Dev scores** (percent; nothing here is a test score):

| | {settings.base} | {name} |
|---|---|---|
{rows}

"""
    listed = "\n".join(f"| {key} | {value} |" for key, value in settings.described().items())
    return f"""---
base_model: {settings.base}
library_name: sentence-transformers
license: {"apache-2.0" if settings.base.startswith("all-") else "other"}
---

# {name}

{settings.base}, trained further as a {architecture} to tell apart what a negation changes, then interpolated with its base:
α = {alpha:g}.

**Data.** {data}

{scores}**Settings** (trained in {seconds:.0f} s):

| | |
|---|---|
{listed}

**Provenance.** {artefacts.provenance_line()}; {artefacts.BESIDE}.

**Use.** {trainer.ARCHITECTURES[architecture].use}. **Limits.** English; one voice of training data; similarities are
lower than the base's for anything negated, so thresholds tuned for the base need tuning anew.
"""
