"""Model folders: written whole or not at all, each with a model card and a provenance sidecar."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nblib import artefacts
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
    with artefacts.write(folder, about) as draft:
        draft.mkdir()
        yield draft
        (draft / artefacts.CARD).write_text(card, encoding="utf-8")


def edit_adapter_config(folder: Path, base: str | None, alpha: float | None = None) -> None:
    """Name the base in a saved LoRA's configuration (None: keep the one in it); scale its change by `alpha`."""
    file = folder / ADAPTER_CONFIG
    config = json.loads(file.read_text(encoding="utf-8"))
    if alpha is not None:
        config["lora_alpha"] *= alpha
    config["base_model_name_or_path"] = base or config.get("base_model_name_or_path")
    file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
