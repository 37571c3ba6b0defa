"""The predictions of record: what the notebooks 08 and 11 compare, packed beside the figures, so that both need no model.

Unpacked below `runs/official`, they stand where that run's own would; what is there already stays.

    python -m nblib.predictions official
"""

import argparse
import io
import json
import sys
import tarfile
from pathlib import Path

from nblib import paths

# How each system was made, its per-item predictions and what was measured of it; of the sweep the same.
PARTS = [
    "encoders/*.json", "scores/*/*", "results/*", "figures/fig_04_training_*.csv",
    "sweep/encoders/*.json", "sweep/scores/*/*",
]  # fmt: skip
TEXTS = ["gsm8k_*"]  # what holds a data set's texts, which are not ours to give
PARAMETERS = "08_parameters.json"  # what notebook 08 was executed with


class PredictionsError(ValueError):
    """Predictions that can't be packed or unpacked."""


def archive(scale: str) -> Path:
    """Where a scale's predictions of record are."""
    return paths.FIGURES / scale / "predictions.tar.xz"


def pack(scale: str, target: Path) -> None:
    """Pack a run's predictions; the same files always give the same bytes.

    Raises:
        PredictionsError: notebook 08 was not executed in this run.
    """
    run = paths.resolve(f"runs/{scale}")
    executed = run / "notebooks" / "08_encoder_comparison.ipynb"
    if not executed.is_file():
        raise PredictionsError(f"No executed notebook 08 at {executed}. Make it: make study SCALE={scale}")
    given = json.loads(executed.read_text(encoding="utf-8"))["metadata"]["papermill"]["parameters"]
    packed = {PARAMETERS: json.dumps(given, indent=2, sort_keys=True).encode()}
    found = [file for part in PARTS for file in run.glob(part) if file.is_file()]
    kept = [file for file in found if not any(file.match(name) for name in TEXTS)]
    packed |= {file.relative_to(run).as_posix(): file.read_bytes() for file in kept}
    with paths.write_atomically(target) as draft, tarfile.open(draft, "w:xz") as tar:
        for name, content in sorted(packed.items()):
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))


def unpack(scale: str, run_dir: str | Path) -> tuple[int, int]:
    """Put a scale's predictions of record below a run; a file that is there stays. Returns how many were put, how many stayed.

    Raises:
        PredictionsError: there are none of that scale.
    """
    source, run = archive(scale), paths.writable_folder(run_dir)
    if not source.is_file():
        raise PredictionsError(f"No predictions of record at {source}: they are kept of the official scale alone.")
    with tarfile.open(source) as tar:
        members = tar.getmembers()
        wanted = [member for member in members if not (run / member.name).exists()]
        tar.extractall(run, wanted, filter="data")
    return len(wanted), len(members) - len(wanted)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m nblib.predictions", description=__doc__.splitlines()[0])
    parser.add_argument("scale")
    scale = parser.parse_args().scale
    run = f"runs/{scale}"
    try:
        put, stayed = unpack(scale, run)
    except (PredictionsError, PermissionError) as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(
        f"{run}: {put} files unpacked, {stayed} were there and are kept. No model is needed for\n"
        f'  python -m nblib.execution 08 {run}/08.ipynb -y "$(cat {run}/{PARAMETERS})"\n'
        f"  python -m nblib.execution 11 {run}/11.ipynb -p scale {scale} -p run_dir {run}\n"
    )


if __name__ == "__main__":
    main()
