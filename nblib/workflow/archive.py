"""The reference predictions: with this archive notebooks 08, 09, 10 and 13 need no model.

`nblib unpack official` restores the files below `runs/official`; what a run has of its own stays, unless it is damaged.
"""

import io
import json
import os
import tarfile
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


class PredictionsError(StudyError):
    """Predictions that can't be packed or unpacked."""


def archive(scale: str) -> Path:
    """The archive of a scale."""
    return paths.inside(paths.FIGURES, scale, "predictions.tar.xz")


def pack(scale: str, target: Path) -> None:
    """Pack a run's predictions; the same files always give the same bytes.

    Raises:
        PredictionsError: notebook 08, 09 or 10 was not executed in this run.
        DamageError: a file is not as it was written.
    """
    run = paths.resolve(f"runs/{scale}")
    packed = {}
    for name, parameters in zip(COMPARING, PARAMETERS.values(), strict=True):
        executed = run / "notebooks" / f"{name}.ipynb"
        if not executed.is_file():
            raise PredictionsError(f"No executed notebook at {executed}. Run: make study SCALE={scale}")
        given = json.loads(executed.read_text(encoding="utf-8"))["metadata"]["papermill"]["parameters"]
        packed[parameters] = json.dumps(given, indent=2, sort_keys=True).encode()
    found = [file for part in {*PARTS, *PICTURES} for file in run.glob(part) if file.is_file()]
    kept = [file for file in found if not any(file.match(name) for name in TEXTS)]
    packed |= {file.relative_to(run).as_posix(): artefacts.check(file).read_bytes() for file in kept}
    write(packed, target)


def write(packed: dict[str, bytes], target: Path) -> None:
    """Write files by their names into an archive."""
    with artefacts.write(target) as draft, tarfile.open(draft, "w:xz") as tar:
        for name, content in sorted(packed.items()):
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))


def unpack(scale: str, run_dir: str | Path) -> tuple[int, int]:
    """Unpack a scale's predictions below a run: those that aren't there, or are damaged there.

    Returns:
        How many files were unpacked, and how many were whole and stayed.

    Raises:
        PredictionsError: there are none of that scale, or the archive holds anything but files.
        DamageError: the archive is not as it was written; then nothing is unpacked.
    """
    source, run = archive(scale), paths.writable_folder(run_dir)
    if not source.is_file():
        raise PredictionsError(
            f"No reference predictions at {source}: only the official scale has them. Restore it: git checkout {source}"
        )
    with tarfile.open(artefacts.check(source)) as tar:
        members = tar.getmembers()
        if others := [member.name for member in members if not member.isfile()]:
            raise PredictionsError(f"{source} holds {others[0]!r}, which is no file. Restore it: git checkout {source}")
        packed = {member.name: tar.extractfile(member).read() for member in members}
    files = {name: paths.inside(run, *name.split("/")) for name in packed}
    wanted = [name for name in packed if not _stays(name, files[name], packed)]
    now = time.time_ns()  # one date for all: to the workflow none is older than what it was made from
    for name in wanted:
        with paths.write_atomically(files[name]) as draft:
            draft.write_bytes(packed[name])
        os.utime(files[name], ns=(now, now))
    return len(wanted), len(packed) - len(wanted)


def _stays(name: str, file: Path, packed: dict[str, bytes]) -> bool:
    """Whether a run's own file is kept: it is whole (a sidecar: what it belongs to is)."""
    if name in PARAMETERS.values():
        return file.is_file() and file.read_bytes() == packed[name]
    described = name.endswith(".json") and name.removesuffix(".json") in packed
    return artefacts.is_whole(file.with_suffix("") if described else file)
