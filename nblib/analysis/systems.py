"""Comparison of systems of every architecture, from their predictions. No model is loaded here."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from nblib.benchmarks import scoring

# Weller's Table 2 names its kinds in the plural
KINDS = {
    "bi-encoder": "Bi-Encoders", "chance": "Random", "tf-idf": "Sparse", "sparse": "Sparse",
    "late-interaction": "Late Interaction", "cross-encoder": "Cross-Encoders", "monot5": "Cross-Encoders",
}  # fmt: skip


def load_predictions_for(run_dir: str | Path, names: Sequence[str], task: str) -> dict[str, pd.DataFrame]:
    """Name → test predictions of the systems that were scored on the whole task (a sample's aren't comparable).

    Raises:
        ScoreError: no system was, or none is named.
    """
    if not names:
        raise scoring.ScoreError(f"No system is named to compare on {task}. Name at least one.")
    scored = [name for name in names if (scoring.folder_of(run_dir, name) / f"{task}_test.parquet").is_file()]
    # without any, the error names the first
    return {name: scoring.load_predictions(run_dir, name, task) for name in scored or names[:1]}


def accuracies(predictions: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """system, value (percent right), low, high (95 %, resampled by cluster), n; a row per system.

    Args:
        predictions: from `load_predictions_for`, of a pairwise task.
    """
    measured = [{"system": name, **scoring.measure(table)} for name, table in predictions.items()]
    table = pd.DataFrame(measured, columns=["system", "value", "ci_low", "ci_high", "n"])
    return table.rename(columns={"ci_low": "low", "ci_high": "high"})


def kind(run_dir: str | Path, name: str) -> str:
    """The architecture of a scored system, as Weller calls it; one that Weller doesn't have keeps its own name."""
    own = scoring.about(run_dir, name).get("kind", "bi-encoder")
    return KINDS.get(own, own)
