"""The reference predictions: with this archive notebooks 08, 09, 10 and 13 need no model.

`nblib unpack official` restores the files below `runs/official`; what a run has of its own stays.
"""

import io
import json
import os
import tarfile
import tempfile
import time
from pathlib import Path

from nblib import artefacts, paths
from nblib.errors import StudyError
from nblib.results import answers

# Settings, training records, per-item predictions and results of each system, those of the sweep included.
PARTS = [
    "encoders/*.json", "trainings/*/*", "scores/*/*", "results/*", "figures/04_encoder_training/fig_training_*.csv*",
    "sweep/encoders/*.json", "sweep/trainings/*/*", "sweep/scores/*/*",
]  # fmt: skip
TEXTS = ["gsm8k_*"]  # files with a data set's texts, which we don't distribute
# The tables behind the figures that show an exhibit without numbers: notebook 13 looks for them.
PICTURES = [f"figures/{one.file.replace('{system}', '*')}.csv*" for one in answers.pictures()]
COMPARING = ("08_hedge_trainings", "09_nevir_architectures", "10_semantoneg_families")
# Number of a notebook → the file with its parameters.
PARAMETERS = {name[:2]: f"{name[:2]}_parameters.json" for name in COMPARING}


def archive(scale: str) -> Path:
    """The archive of a scale."""
    return paths.inside(paths.FIGURES, scale, "predictions.tar.xz")


def pack(scale: str, target: Path) -> None:
    """Pack a run's predictions, with their SHA-256 beside them; the same files always give the same bytes.

    Raises:
        StudyError: notebook 08, 09 or 10 was not executed in this run.
    """
    run = paths.resolve(f"runs/{scale}")
    packed = {}
    for name, parameters in zip(COMPARING, PARAMETERS.values(), strict=True):
        executed = run / "notebooks" / f"{name}.ipynb"
        if not executed.is_file():
            raise StudyError(f"No executed notebook at {executed}. Run: make study SCALE={scale}")
        given = json.loads(executed.read_text(encoding="utf-8"))["metadata"]["papermill"]["parameters"]
        packed[parameters] = json.dumps(given, indent=2, sort_keys=True).encode()
    found = [file for part in {*PARTS, *PICTURES} for file in run.glob(part) if file.is_file()]
    kept = [file for file in found if not any(file.match(name) for name in TEXTS)]
    packed |= {file.relative_to(run).as_posix(): file.read_bytes() for file in kept}
    with paths.write_atomically(target) as draft, tarfile.open(draft, "w:xz") as tar:
        for name, content in sorted(packed.items()):
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    artefacts.write_json(artefacts.sidecar(target), {artefacts.SHA256: artefacts.sha256(target)})


def unpack(scale: str, run_dir: str | Path) -> tuple[int, int]:
    """Unpack a scale's predictions below a run: those that aren't there.

    Returns:
        How many files were unpacked, and how many were there and stayed.

    Raises:
        StudyError: there are none of that scale, or the archive is not as it was written; then nothing is unpacked.
    """
    source, run = archive(scale), paths.writable_folder(run_dir)
    if not source.is_file():
        raise StudyError(
            f"No reference predictions at {source}: only the official scale has them. Restore it: git checkout {source}"
        )
    artefacts.check(source)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=run) as draft:
        with tarfile.open(source) as tar:
            tar.extractall(draft, filter="data")
        packed = [file.relative_to(draft).as_posix() for file in Path(draft).rglob("*") if file.is_file()]
        there = {name for name in packed if (run / name).exists()}
        # The sidecar of a file that stays isn't unpacked, either
        wanted = [name for name in packed if name not in there and name.removesuffix(".json") not in there]
        now = time.time_ns()  # one date for all: to the workflow none is older than what it was made from
        for name in sorted(wanted, reverse=True):  # sidecars first: one that a kill leaves out would stay out
            os.utime(Path(draft, name), ns=(now, now))
            paths.writable_folder((run / name).parent)
            os.replace(Path(draft, name), run / name)
    return len(wanted), len(packed) - len(wanted)
