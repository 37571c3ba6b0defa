"""The predictions of record: packed as they were, without a data set's texts; the numbers compared come from them alone."""

import json
import re
import shutil
import tarfile

import numpy as np
import pandas as pd
import pytest

from nblib import artefacts, paths
from nblib.analysis import training_comparison
from nblib.benchmarks import scoring
from nblib.errors import StudyError
from nblib.workflow import archive, cli, record

NOTEBOOK = json.dumps({"metadata": {"papermill": {"parameters": {"run_dir": "runs/toy", "encoders": ["small"]}}}})
FILES = {
    **{f"notebooks/{name}.ipynb": NOTEBOOK for name in archive.COMPARING},
    "encoders/small/model.safetensors": "weights",
    "scores/small/nevir_test.parquet": "items",
    "trainings/small/epochs.csv": "epochs",
    "scores/small/mteb/full.json": "{}",
    "results/07_small.csv": "a,b",
    "figures/04_encoder_training/fig_training_small.csv": "epochs",
    "figures/07_encoder_benchmarks/fig_profile_small.csv": "profile",
    "notebooks/11_llm_benchmarks/small.partial.ipynb": "killed",
}
SIDECARS = {"trainings/small/training.json", "scores/small/system.json"}
TABLES = {"scores/small/nevir_test.parquet", "results/07_small.csv", "trainings/small/epochs.csv"}
TABLES |= {"figures/04_encoder_training/fig_training_small.csv"}
PACKED = {*archive.PARAMETERS.values(), *SIDECARS, *TABLES, *(f"{name}.json" for name in TABLES)}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a finished run of the scale toy."""
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    for name, text in FILES.items():
        with artefacts.write(tmp_path / "runs/toy" / name, {"seed": 1}) as draft:
            draft.write_text(text)
    for name in SIDECARS:
        artefacts.write_json(tmp_path / "runs/toy" / name, {"seed": 1})
    return tmp_path


def test_what_is_unpacked_is_what_was_packed(project):
    archive.pack("toy", archive.archive("toy"))
    assert archive.unpack(archive.archive("toy"), "runs/again") == (len(PACKED), 0)
    again = record.files(project / "runs/again")
    assert set(again) == PACKED
    assert all(again[name].read_text() == FILES[name] for name in PACKED & FILES.keys())
    assert len({file.stat().st_mtime_ns for file in again.values()}) == 1, "none is older than what it was made from"
    assert json.loads(again["09_parameters.json"].read_text()) == {"run_dir": "runs/toy", "encoders": ["small"]}


def test_the_same_run_gives_the_same_bytes(project):
    for name in ("one", "two"):
        archive.pack("toy", project / name)
        (project / "runs/toy/results/07_small.csv").touch()
    assert (project / "one").read_bytes() == (project / "two").read_bytes()


def test_what_a_run_has_stays_without_the_archives_sidecar_and_what_is_absent_is_added(project):
    archive.pack("toy", archive.archive("toy"))
    archive.unpack(archive.archive("toy"), again := project / "runs/again")
    (again / "scores/small/system.json").unlink()
    (mine := again / "results/07_small.csv").write_text("newer")
    mine.with_name("07_small.csv.json").unlink()
    assert archive.unpack(archive.archive("toy"), again) == (1, len(PACKED) - 1)
    assert mine.read_text() == "newer" and not mine.with_name("07_small.csv.json").exists()


@pytest.mark.parametrize("kind, linked", [(tarfile.SYMTYPE, "/tmp"), (tarfile.REGTYPE, "")])
def test_a_hostile_archive_is_refused_and_nothing_is_unpacked(project, kind, linked):
    with paths.write_atomically(archive.archive("toy")) as draft, tarfile.open(draft, "w:xz") as tar:
        tar.addfile(tarfile.TarInfo("results/07_fine.csv"))
        member = tarfile.TarInfo("results/evil" if linked else "../evil.csv")
        member.type, member.linkname = kind, linked
        tar.addfile(member)
    with pytest.raises(StudyError, match=r"evil.*no file below"):
        archive.unpack(archive.archive("toy"), "runs/again")
    assert not list((project / "runs/again").iterdir()) and not (project / "runs/evil.csv").exists()


def test_an_unfinished_run_goes_on_in_another_clone_and_without_an_archive_it_says_so(project, capsys):
    archive.pack("toy", archive.archive("toy"))
    (project / "runs/toy/notebooks/09_nevir_architectures.ipynb").unlink()  # so that 09_parameters.json is out of date
    (project / "runs/toy/results/07_small.csv").write_text("newer")
    cli.main(["pack", "toy"])
    assert re.search(r"figures/toy/unfinished.tar.xz: \d+\.\d MB\n", capsys.readouterr().out)
    with tarfile.open(archive.unfinished("toy")) as tar:
        names = tar.getnames()
    assert len(names) == 6 and {archive.NAMES, "results/07_small.csv", "notebooks/08_hedge_trainings.ipynb"} < {*names}
    cli.main(["unpack", "toy", "--unfinished", "--run-dir", "runs/again"])
    assert f"{len(PACKED) - 1 + 4} files unpacked.\n" in capsys.readouterr().out, "make study reads runs/toy"
    assert (project / "runs/again/results/07_small.csv").read_text() == "newer"
    with pytest.raises(StudyError, match=r"No predictions at .*quick"):
        archive.unpack(archive.archive("quick"), "runs/again")
    shutil.rmtree(project / "runs/toy")
    with pytest.raises(StudyError, match=r"Nothing to pack in .*toy"):
        archive.pack("toy", archive.unfinished("toy"), archive.archive("toy"))


def test_the_command_says_what_to_do_next(project, capsys):
    archive.pack("toy", archive.archive("toy"))
    cli.main(["unpack", "toy"])
    said = capsys.readouterr().out
    assert f"3 files unpacked, {len(PACKED) - 3} were there and are kept" in said  # the parameters alone were not there
    of_09 = 'nblib run 09 runs/toy/notebooks/09_nevir_architectures.ipynb -y "$(cat runs/toy/09_parameters.json)"'
    assert of_09 in said
    assert "nblib run 13 runs/toy/notebooks/13_results.ipynb -p scale toy -p run_dir runs/toy" in said
    cli.main(["unpack", "toy", "--run-dir", "runs/elsewhere"])
    assert f"runs/elsewhere: {len(PACKED)} files unpacked, 0 were there" in capsys.readouterr().out


@pytest.fixture(scope="module")
def of_record(tmp_path_factory):
    """The predictions of record, unpacked, and what notebooks 08 and 09 were executed with."""
    run = tmp_path_factory.mktemp("record")
    archive.unpack(archive.archive("official"), run)
    return run, *(json.loads((run / archive.PARAMETERS[number]).read_text()) for number in ("08", "09"))


def test_the_numbers_of_record_come_from_the_predictions_alone(of_record):
    run, sweep, given = of_record
    predictions = scoring.load_predictions_for(run, [*given["rankers"], *given["encoders"]], "nevir")
    ours = scoring.accuracies(predictions).set_index("system").value
    drawn = pd.read_csv(paths.FIGURES / "official" / "09_nevir_architectures" / "fig_architectures.csv")
    drawn = drawn.dropna(subset="ours").drop_duplicates("system").set_index("system").ours
    assert set(drawn.index) == set(ours.index)
    assert np.allclose(drawn, ours[drawn.index], atol=1e-3)  # as many digits as the figure's CSV has
    found = training_comparison.collect(run, sweep["trainings"][:3], sweep["form"], sweep["benchmarks"])
    drawn = pd.read_csv(paths.FIGURES / "official" / "08_hedge_trainings" / "fig_size.csv")
    drawn = drawn[drawn.label == "STSB"].set_index("encoder").value
    ours = found[found.benchmark == "stsb"].set_index("encoder").value
    assert len(ours) == 3 and np.allclose(drawn[ours.index], ours, atol=1e-3)


def test_the_predictions_of_record_hold_no_texts_but_a_models_own(of_record):
    files = list(of_record[0].rglob("*.parquet"))
    assert len(files) > 100
    for file in files:
        table = pd.read_parquet(file)
        texts = table.columns[~table.dtypes.map(pd.api.types.is_numeric_dtype)]
        for name in texts.drop("response", errors="ignore"):
            assert table[name].astype(str).str.len().max() <= 60, f"{file}: {name}"
