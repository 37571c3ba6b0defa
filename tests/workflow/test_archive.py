"""The predictions of record: packed as they were, without a data set's texts; the numbers compared come from them alone."""

import json
import tarfile

import numpy as np
import pandas as pd
import pytest

from nblib import artefacts, paths
from nblib.analysis import systems, training_comparison
from nblib.errors import StudyError
from nblib.workflow import archive, cli, record

NOTEBOOK = json.dumps({"metadata": {"papermill": {"parameters": {"run_dir": "runs/toy", "encoders": ["small"]}}}})
FILES = {
    **{f"notebooks/{name}.ipynb": NOTEBOOK for name in archive.COMPARING},
    "encoders/small/model.safetensors": "weights",
    "scores/small/nevir_test.parquet": "items",
    "trainings/small/epochs.csv": "epochs",
    "scores/small/gsm8k_test.parquet": "questions",
    "scores/small/mteb/full.json": "{}",
    "results/07_small.csv": "a,b",
    "figures/04_encoder_training/fig_training_small.csv": "epochs",
    "figures/07_encoder_benchmarks/fig_profile_small.csv": "profile",
    "sweep/scores/both-s0/stsb_test.parquet": "items, too",
}
SIDECARS = {
    "encoders/small.json",
    "trainings/small/training.json",
    "sweep/trainings/both-s0/training.json",
    "scores/small/system.json",
    "sweep/encoders/both-s0.json",
}
TABLES = {
    "scores/small/nevir_test.parquet", "results/07_small.csv", "figures/04_encoder_training/fig_training_small.csv",
    "sweep/scores/both-s0/stsb_test.parquet", "trainings/small/epochs.csv",
}  # fmt: skip
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
    assert archive.unpack("toy", "runs/again") == (len(PACKED), 0)
    again = record.files(project / "runs/again")
    assert set(again) == PACKED
    assert {name: file.read_text() for name, file in again.items() if name in FILES} == {
        name: text for name, text in FILES.items() if name in PACKED
    }
    assert len({file.stat().st_mtime_ns for file in again.values()}) == 1, "none is older than what it was made from"
    assert json.loads(again["09_parameters.json"].read_text()) == {"run_dir": "runs/toy", "encoders": ["small"]}


def test_the_same_run_gives_the_same_bytes(project):
    for name in ("one", "two"):
        archive.pack("toy", project / name)
        (project / "runs/toy/encoders/small.json").touch()
    assert (project / "one").read_bytes() == (project / "two").read_bytes()


def test_what_a_run_has_stays(project):
    archive.pack("toy", archive.archive("toy"))
    mine = project / "runs/toy/results/07_small.csv"
    mine.write_text("newer")
    assert archive.unpack("toy", "runs/toy") == (3, len(PACKED) - 3)  # the parameters alone were not there
    assert mine.read_text() == "newer"


def test_a_second_call_adds_what_is_absent(project):
    archive.pack("toy", archive.archive("toy"))
    archive.unpack("toy", "runs/again")
    for name in ("results/07_small.csv", "scores/small/system.json"):
        (project / "runs/again" / name).unlink()
    assert archive.unpack("toy", "runs/again") == (2, len(PACKED) - 2)
    assert (project / "runs/again/results/07_small.csv").read_text() == FILES["results/07_small.csv"]


def test_the_sidecar_of_a_file_that_stays_is_not_unpacked(project):
    archive.pack("toy", archive.archive("toy"))
    (project / "runs/again/results").mkdir(parents=True)
    (project / "runs/again/results/07_small.csv").write_text("mine")
    archive.unpack("toy", "runs/again")
    assert not (project / "runs/again/results/07_small.csv.json").exists()


@pytest.mark.parametrize("kind, linked", [(tarfile.SYMTYPE, "/tmp"), (tarfile.REGTYPE, "")])
def test_a_hostile_archive_is_refused_and_nothing_is_unpacked(project, kind, linked):
    with paths.write_atomically(archive.archive("toy")) as draft, tarfile.open(draft, "w:xz") as tar:
        tar.addfile(tarfile.TarInfo("results/07_fine.csv"))
        member = tarfile.TarInfo("results/evil" if linked else "../evil.csv")
        member.type, member.linkname = kind, linked
        tar.addfile(member)
    with pytest.raises(tarfile.FilterError):
        archive.unpack("toy", "runs/again")
    assert not list((project / "runs/again").iterdir()) and not (project / "runs/evil.csv").exists()


def test_without_a_comparing_notebook_or_an_archive_it_says_so(project):
    (project / "runs/toy/notebooks/09_nevir_architectures.ipynb").unlink()
    with pytest.raises(StudyError, match=r"No executed notebook at .*09_nevir_arch.*make study SCALE=toy"):
        archive.pack("toy", project / "one")
    assert not (project / "one").exists()
    with pytest.raises(StudyError, match=r"No reference predictions at .*quick"):
        archive.unpack("quick", "runs/again")


def test_the_command_says_what_to_do_next(project, capsys):
    archive.pack("toy", archive.archive("toy"))
    cli.main(["unpack", "toy"])
    said = capsys.readouterr().out
    assert f"3 files unpacked, {len(PACKED) - 3} were there and are kept" in said
    assert (
        'nblib run 09 runs/toy/notebooks/09_nevir_architectures.ipynb -y "$(cat runs/toy/09_parameters.json)"' in said
    )
    assert "nblib run 13 runs/toy/notebooks/13_results.ipynb -p scale toy -p run_dir runs/toy" in said
    cli.main(["unpack", "toy", "--run-dir", "runs/elsewhere"])
    assert f"runs/elsewhere: {len(PACKED)} files unpacked, 0 were there" in capsys.readouterr().out


@pytest.fixture(scope="module")
def of_record(tmp_path_factory):
    """The predictions of record, unpacked, and what notebooks 08 and 09 were executed with."""
    run = tmp_path_factory.mktemp("record")
    archive.unpack("official", run)
    return run, *(json.loads((run / archive.PARAMETERS[number]).read_text()) for number in ("08", "09"))


def test_the_systems_of_record_come_from_the_predictions_alone(of_record):
    run, _, given = of_record
    predictions = systems.load_predictions_for(run, [*given["rankers"], *given["encoders"]], "nevir")
    ours = systems.accuracies(predictions).set_index("system")
    drawn = pd.read_csv(paths.FIGURES / "official" / "09_nevir_architectures" / "fig_architectures.csv").dropna(
        subset="ours"
    )
    drawn = drawn.drop_duplicates("system").set_index("system")
    assert set(drawn.index) == set(ours.index)
    assert np.allclose(drawn.ours, ours.value[drawn.index], atol=1e-3)  # as many digits as the figure's CSV has


def test_the_sweep_of_record_comes_from_the_predictions_alone(of_record):
    run, given, _ = of_record
    found = training_comparison.collect(run / "sweep", given["trainings"][:3], given["data"])
    drawn = pd.read_csv(paths.FIGURES / "official" / "08_hedge_trainings" / "fig_size.csv")
    both = found[found.benchmark == "STSB"].set_index("encoder").value
    expected = drawn[drawn.encoder.isin(both.index) & (drawn.benchmark == "STSB")].set_index("encoder").value
    assert len(expected) == 3
    assert np.allclose(expected, both[expected.index], atol=1e-3)


def test_the_predictions_of_record_hold_no_texts(of_record):
    run, *_ = of_record
    files = list(run.rglob("*.parquet"))
    assert len(files) > 100
    for file in files:
        table = pd.read_parquet(file)
        for name in table.columns[~table.dtypes.map(pd.api.types.is_numeric_dtype)]:
            assert table[name].astype(str).str.len().max() <= 60, f"{file}: {name}"
