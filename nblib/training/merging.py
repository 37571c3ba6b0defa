"""LoRAs of one base, trained apart, as one encoder: is one training on all kinds of data better than merging several?"""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from sentence_transformers import SentenceTransformer

from nblib import artefacts, paths
from nblib.models import encoders
from nblib.models.folders import ADAPTER_CONFIG, FinetuningError, edit_adapter_config, model_folder
from nblib.training import interpolation, records
from nblib.training.dev_scores import DevEvaluator
from nblib.training.tuning import Tuned

if TYPE_CHECKING:
    from peft import PeftModel

MERGED = "default"  # peft saves an adapter of this name into the folder itself

# Way of merging → peft's name for it, what each LoRA's change is multiplied with (given their number), the share of each
# LoRA's changes that is kept
WAYS = {
    "mean": ("cat", lambda number: 1 / number, None),
    "sum": ("cat", lambda number: 1.0, None),  # task arithmetic (Ilharco et al. 2023)
    "ties": ("ties_svd", lambda number: 1.0, 0.5),  # Yadav et al. 2023
}


def merge(
    model: SentenceTransformer, loras: Sequence[str | Path], way: str, weights: Sequence[float] | None = None
) -> "PeftModel":
    """Give a base the merged change of several LoRAs as its one LoRA, in half precision.

    A merged LoRA has the ranks of all together: half precision keeps it as small as one of them.

    Args:
        model: the base that all were trained from; its layers are replaced.
        loras: folders that `interpolation.save_adapter` left.
        way: one of `WAYS`.
        weights: what each LoRA's change is multiplied with, instead of the same for all.

    Returns:
        peft's view of the model, to save the LoRA from, or to add it to the weights (`merge_and_unload`).

    Raises:
        FinetuningError: an unknown way, fewer than two LoRAs, not as many weights, or a folder without a LoRA.
    """
    from peft import PeftModel

    if way not in WAYS:
        raise FinetuningError(f"Unknown way of merging {way!r}; known: {', '.join(WAYS)}.")
    folders = [paths.resolve(folder) for folder in loras]
    if len(folders) < 2:
        raise FinetuningError(f"Merging takes two LoRAs or more, not {len(folders)}.")
    kind, factor, density = WAYS[way]
    weights = list(weights or [factor(len(folders))] * len(folders))
    if len(weights) != len(folders):
        raise FinetuningError(f"{len(folders)} LoRAs take as many weights, not {len(weights)}.")
    for folder in folders:
        if not (folder / ADAPTER_CONFIG).is_file():
            raise FinetuningError(f"There is no LoRA in {folder}. Train one by notebook 04 with method 'lora'.")
    names = [f"lora_{place}" for place in range(len(folders))]
    tuned = PeftModel.from_pretrained(model[0].auto_model, str(folders[0]), adapter_name=names[0])
    for name, folder in zip(names[1:], folders[1:], strict=True):
        tuned.load_adapter(str(folder), adapter_name=name)
    tuned.add_weighted_adapter(names, weights, MERGED, kind, density=density)
    tuned.set_adapter(MERGED)
    for name in names:
        tuned.delete_adapter(name)
    for name, part in tuned.named_parameters():
        if f".{MERGED}." in name:
            part.data = part.data.half()
    return tuned


def keep(
    base: str, loras: Sequence[str | Path], way: str, folder: str | Path, record: str | Path, evaluator: DevEvaluator,
    weights: Sequence[float] | None = None, **about: Any,
) -> Tuned:  # fmt: skip
    """Merge LoRAs, measure the dev data, and leave the encoder, its LoRA and its record, as `tuning.tune` does after a
    training.

    Args:
        base: the name of the model that all were trained from.
        loras, way, weights: as `merge` takes them.
        evaluator: measures the base and the merged encoder.
        about: for the sidecar.

    Raises:
        FinetuningError: see `merge`.
    """
    folder = paths.resolve(folder)
    artefacts.check_replaceable(folder)
    start = encoders.load(base).model
    model = copy.deepcopy(start)
    tuned = merge(model, loras, way, weights)
    names = [Path(lora).name for lora in loras]
    about |= {"base": base, "method": "merged", "merged": names, "way": way, "weights": weights, "alpha": 1.0}
    card = _card(folder.name, base, names, way, weights)
    with model_folder(folder.with_name(f"{folder.name}-lora"), card, about) as draft:
        tuned.save_pretrained(str(draft), selected_adapters=[MERGED])
        edit_adapter_config(draft, base)
    tuned.float().merge_and_unload()  # within `model`
    before, after = evaluator.measure(start).assign(alpha=0.0), evaluator.measure(model.eval()).assign(alpha=1.0)
    interpolation.save(model, folder, card, **about)
    tables = {"alphas": pd.concat([before, after], ignore_index=True), "predictions": evaluator.predicted}
    merged = {Path(one).name: artefacts.about(one)["sha256"] for one in loras}
    made_from = {"base": base, "way": way, "weights": weights, "merged": merged}
    return Tuned(folder, records.save(record, made_from, tables, **about))


def _card(name: str, base: str, loras: Sequence[str], way: str, weights: Sequence[float] | None) -> str:
    weighted = [f"{weight:g} × {lora}" for weight, lora in zip(weights, loras, strict=True)] if weights else loras
    return f"""---
base_model: {base}
library_name: sentence-transformers
---

# {name}

{base} with {len(loras)} LoRAs merged ({way}): {", ".join(weighted)}.
"""
