"""The archive of reference predictions, with which (`nblib unpack official`) notebooks 08, 09, 10 and 13 score no model; and that
of an unfinished run, which goes on from it in another clone."""

import io
import json
import os
import tarfile
import tempfile
import time
from pathlib import Path

from nblib import artefacts, paths
from nblib.errors import StudyError
from nblib.results import scoreboard

# Records of trainings, per-item predictions and results of each system
PARTS = ["trainings/*/*", "scores/*/*", "results/*", "figures/04_encoder_training/fig_training_*.csv*"]
# What else an unfinished run goes on from, so that nothing is executed twice
REST = ["notebooks/**/*.ipynb", "figures/**/*", "adapters/*", "synthesis/*", "triples/**/*"]
COMPARING = ("08_hedge_trainings", "09_nevir_architectures", "10_semantoneg_families")
NAMES = "names.json"  # of all files of an unfinished run
ABSENT = "No predictions at {}: the official run alone has them, in git; of an unfinished run, once `nblib pack` has packed it."
PARAMETERS = {name[:2]: f"{name[:2]}_parameters.json" for name in COMPARING}  # by the notebook's number


def archive(scale: str) -> Path:
    """The archive of a scale."""
    return paths.inside(paths.FIGURES, scale, "predictions.tar.xz")


def unfinished(scale: str) -> Path:
    """The archive of an unfinished run of a scale; recording the finished one removes it."""
    return archive(scale).with_name("unfinished.tar.xz")


def pack(scale: str, target: Path, over: Path | None = None) -> None:
    """Pack a run's predictions, with their SHA-256 beside them; the same files always give the same bytes. Over another archive
    the executed notebooks, figures and adapters are packed, too; of all files only those that differ from the other archive's,
    and the names of all, as some of the other archive's may be out of date. A StudyError: there is no such run, or no other
    archive."""
    run, contents = paths.resolve(f"runs/{scale}"), {}
    for name, parameters in zip(COMPARING, PARAMETERS.values(), strict=True):
        executed = run / "notebooks" / f"{name}.ipynb"
        if executed.is_file():
            given = artefacts.read_json(executed)["metadata"]["papermill"]["parameters"]
            contents[parameters] = json.dumps(given, indent=2, sort_keys=True).encode()
    # The tables behind the figures that show an exhibit without numbers: notebook 13 looks for them
    pictures = {f"figures/{one['file'].replace('{system}', '*')}.csv*" for one in scoreboard.pictures()}
    files = {file for part in {*PARTS, *pictures, *(REST if over else [])} for file in run.glob(part)}
    files = {file for file in files if file.is_file() and not file.name.endswith(".partial.ipynb")}
    contents |= {file.relative_to(run).as_posix(): file.read_bytes() for file in files}
    if over:
        if not files:
            raise StudyError(f"Nothing to pack in {run}. Run: make study SCALE={scale}")
        if not over.is_file():
            raise StudyError(ABSENT.format(over))
        with tarfile.open(artefacts.check(over)) as tar:
            known = {member.name: tar.extractfile(member).read() for member in tar}
        names = json.dumps(sorted(contents)).encode()
        contents = {name: content for name, content in contents.items() if content != known.get(name)} | {NAMES: names}
    with paths.write_atomically(target) as draft, tarfile.open(draft, "w:xz") as tar:
        for name, content in sorted(contents.items()):
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    artefacts.write_json(artefacts.sidecar(target), {artefacts.SHA256: artefacts.sha256(target)})


def unpack(source: Path, run_dir: str | Path, over: Path | None = None) -> tuple[int, int]:
    """Unpack an archive below a run, but for what is there; how many files were unpacked, and how many stayed. One that was
    packed over another needs that one, too. A StudyError: there is no archive, or it is damaged; then nothing is unpacked."""
    run = paths.writable_folder(run_dir)
    if not source.is_file():
        raise StudyError(ABSENT.format(source))
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=run) as draft:
        for one in filter(None, [over, source]):
            artefacts.unpack(one, draft)
        packed = [file.relative_to(draft).as_posix() for file in Path(draft).rglob("*") if file.is_file()]
        if over:
            packed = artefacts.read_json(Path(draft, NAMES))
        there = {name for name in packed if (run / name).exists()}
        # The sidecar of a file that stays isn't unpacked, either
        wanted = [name for name in packed if name not in there and name.removesuffix(".json") not in there]
        now = time.time_ns()  # one date for all: to the workflow none is older than what it was made from
        for name in sorted(wanted, reverse=True):  # sidecars first: one that a kill leaves out would stay out
            os.utime(Path(draft, name), ns=(now, now))
            paths.writable_folder((run / name).parent)
            os.replace(Path(draft, name), run / name)
    return len(wanted), len(packed) - len(wanted)
