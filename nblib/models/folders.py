"""Model folders: written whole or not at all, each with a model card and a provenance sidecar."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nblib import paths, provenance
from nblib.errors import StudyError

ADAPTER_CONFIG = "adapter_config.json"  # peft's, in the folder of a LoRA


class FinetuningError(StudyError):
    """A training that can't run or resume, or models that don't belong together."""


@contextmanager
def model_folder(folder: str | Path, card: str, about: dict[str, Any]) -> Iterator[Path]:
    """Yield an empty draft folder that replaces `folder` when the block ends well, with its card and sidecar.

    Args:
        card: the model card, `README.md` in the folder.
        about: for the provenance sidecar.
    """
    target = paths.resolve(folder)
    draft = target.with_name(f".{target.name}.saving")
    shutil.rmtree(draft, ignore_errors=True)  # a killed process may have left one
    try:
        yield paths.writable_folder(draft)
        (draft / "README.md").write_text(card, encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        draft.rename(target)
        provenance.write_sidecar(target, **about)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def edit_adapter_config(folder: Path, base: str | None, alpha: float | None = None) -> None:
    """Name the base in a saved LoRA's configuration (None: keep the one in it); scale its change by `alpha`."""
    file = folder / ADAPTER_CONFIG
    config = json.loads(file.read_text(encoding="utf-8"))
    if alpha is not None:
        config["lora_alpha"] *= alpha
    config["base_model_name_or_path"] = base or config.get("base_model_name_or_path")
    file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
