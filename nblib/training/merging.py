"""LoRAs of one base, trained apart, as one encoder: is one training on all kinds of data better than merging several?"""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sentence_transformers import SentenceTransformer

from nblib import artefacts, paths
from nblib.models import encoders
from nblib.models.folders import FinetuningError
from nblib.training import interpolation, records
from nblib.training.dev_scores import DevEvaluator
from nblib.training.tuning import Tuned

# Way of merging → peft's name for it, what each LoRA's change is multiplied with (given their number), the share of each
# LoRA's changes that is kept
WAYS = {
    "mean": ("cat", lambda number: 1 / number, None),
    "sum": ("cat", lambda number: 1.0, None),  # task arithmetic (Ilharco et al. 2023)
    "ties": ("ties_svd", lambda number: 1.0, 0.5),  # Yadav et al. 2023
}


def merge(base: SentenceTransformer, loras: Sequence[str | Path], way: str) -> SentenceTransformer:
    """The base with the merged change of several LoRAs.

    Args:
        base: the model that all were trained from; it stays as it is.
        loras: folders that `interpolation.save_adapter` left.
        way: one of `WAYS`.

    Raises:
        FinetuningError: an unknown way, fewer than two LoRAs, or a folder without one.
    """
    from peft import PeftModel

    if way not in WAYS:
        raise FinetuningError(f"Unknown way of merging {way!r}; known: {', '.join(WAYS)}.")
    folders = [paths.resolve(folder) for folder in loras]
    if len(folders) < 2:
        raise FinetuningError(f"Merging takes two LoRAs or more, not {len(folders)}.")
    for folder in folders:
        if not (folder / "adapter_config.json").is_file():
            raise FinetuningError(f"There is no LoRA in {folder}. Train one by notebook 04 with method 'lora'.")
        artefacts.check(folder)
    merged, names = copy.deepcopy(base), [f"lora_{place}" for place in range(len(folders))]
    tuned = PeftModel.from_pretrained(merged[0].auto_model, str(folders[0]), adapter_name=names[0])
    for name, folder in zip(names[1:], folders[1:], strict=True):
        tuned.load_adapter(str(folder), adapter_name=name)
    kind, weight, density = WAYS[way]
    tuned.add_weighted_adapter(names, [weight(len(names))] * len(names), "merged", kind, density=density)
    tuned.set_adapter("merged")
    tuned.merge_and_unload()  # within `merged`
    return merged.eval()


def keep(
    base: str, loras: Sequence[str | Path], way: str, folder: str | Path, record: str | Path, evaluator: DevEvaluator,
    **about: Any,
) -> Tuned:  # fmt: skip
    """Merge LoRAs, measure the dev data, and leave the encoder and its record, as `tuning.tune` does after a training.

    Args:
        base, loras, way: as `merge` takes them.
        evaluator: measures the base and the merged encoder.
        about: for the sidecar.

    Raises:
        FinetuningError, DamageError: see `merge`.
    """
    folder = paths.resolve(folder)
    artefacts.check_replaceable(folder)
    start = encoders.load(base).model
    model = merge(start, loras, way)
    before, after = evaluator.measure(start).assign(alpha=0.0), evaluator.measure(model).assign(alpha=1.0)
    names = [Path(lora).name for lora in loras]
    about |= {"base": base, "method": "merged", "merged": names, "way": way, "alpha": 1.0}
    interpolation.save(model, folder, _card(folder.name, base, names, way), **about)
    tables = {"alphas": pd.concat([before, after], ignore_index=True), "predictions": evaluator.predicted}
    made_from = {"base": base, "way": way, "merged": {Path(one).name: artefacts.about(one)["sha256"] for one in loras}}
    return Tuned(folder, records.save(record, made_from, tables, **about))


def _card(name: str, base: str, loras: Sequence[str], way: str) -> str:
    return f"""---
base_model: {base}
library_name: sentence-transformers
---

# {name}

{base} with {len(loras)} LoRAs merged ({way}): {", ".join(loras)}.
"""
