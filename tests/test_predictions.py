"""The predictions of record: packed as they were, without a data set's texts; notebook 08's numbers come from them alone."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from nblib import comparison, paths, predictions, record, systems
from nblib.predictions import PredictionsError

NOTEBOOK = json.dumps({"metadata": {"papermill": {"parameters": {"run_dir": "runs/toy", "singles": ["small"]}}}})
FILES = {
    "notebooks/08_encoder_comparison.ipynb": NOTEBOOK,
    "encoders/small.json": "{}",
    "encoders/small/model.safetensors": "weights",
    "scores/small/NevIR_test.parquet": "items",
    "scores/small/gsm8k_test.parquet": "questions",
    "scores/small/mteb/full.json": "{}",
    "results/07_small.csv": "a,b",
    "figures/fig_04_training_small.csv": "epochs",
    "figures/fig_07_profile_small.csv": "profile",
    "sweep/scores/both-s0/STSB_test.parquet": "items, too",
    "sweep/encoders/both-s0.json": "{}",
}
PACKED = {
    "08_parameters.json", "encoders/small.json", "scores/small/NevIR_test.parquet", "results/07_small.csv",
    "figures/fig_04_training_small.csv", "sweep/scores/both-s0/STSB_test.parquet", "sweep/encoders/both-s0.json",
}  # fmt: skip


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a finished run of the scale toy."""
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    for name, text in FILES.items():
        file = tmp_path / "runs/toy" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_what_is_unpacked_is_what_was_packed(project):
    predictions.pack("toy", predictions.archive("toy"))
    assert predictions.unpack("toy", "runs/again") == (len(PACKED), 0)
    again = record.files(project / "runs/again")
    assert set(again) == PACKED
    assert {name: file.read_text() for name, file in again.items() if name in FILES} == {
        name: text for name, text in FILES.items() if name in PACKED
    }
    assert json.loads(again["08_parameters.json"].read_text()) == {"run_dir": "runs/toy", "singles": ["small"]}


def test_the_same_run_gives_the_same_bytes(project):
    for name in ("one", "two"):
        predictions.pack("toy", project / name)
        (project / "runs/toy/encoders/small.json").touch()
    assert (project / "one").read_bytes() == (project / "two").read_bytes()


def test_what_a_run_has_stays(project):
    predictions.pack("toy", predictions.archive("toy"))
    mine = project / "runs/toy/results/07_small.csv"
    mine.write_text("newer")
    assert predictions.unpack("toy", "runs/toy") == (1, len(PACKED) - 1)  # the parameters alone were not there
    assert mine.read_text() == "newer"


def test_without_notebook_08_or_an_archive_it_says_so(project, monkeypatch):
    (project / "runs/toy/notebooks/08_encoder_comparison.ipynb").unlink()
    with pytest.raises(PredictionsError, match=r"No executed notebook 08 at .*make study SCALE=toy"):
        predictions.pack("toy", project / "one")
    assert not (project / "one").exists()
    monkeypatch.setattr(sys, "argv", ["nblib.predictions", "quick"])
    with pytest.raises(SystemExit, match=r"error: No predictions of record at .*quick"):
        predictions.main()


def test_the_command_says_what_to_do_next(project, monkeypatch, capsys):
    predictions.pack("toy", predictions.archive("toy"))
    monkeypatch.setattr(sys, "argv", ["nblib.predictions", "toy"])
    predictions.main()
    said = capsys.readouterr().out
    assert "1 files unpacked, 6 were there and are kept" in said
    assert 'nblib.execution 08 runs/toy/08.ipynb -y "$(cat runs/toy/08_parameters.json)"' in said


@pytest.fixture(scope="module")
def of_record(tmp_path_factory):
    """The predictions of record, unpacked, and what notebook 08 was executed with."""
    run = tmp_path_factory.mktemp("record")
    predictions.unpack("official", run)
    return run, json.loads((run / predictions.PARAMETERS).read_text())


def test_the_systems_of_record_come_from_the_predictions_alone(of_record):
    run, given = of_record
    ours = systems.accuracies(systems.left_by(run, [*given["rankers"], *given["singles"]], "NevIR")).set_index("system")
    drawn = pd.read_csv(paths.FIGURES / "official" / "fig_08_architectures.csv").dropna(subset="ours")
    drawn = drawn.drop_duplicates("system").set_index("system")
    assert set(drawn.index) == set(ours.index)
    assert np.allclose(drawn.ours, ours.value[drawn.index], atol=1e-3)  # as many digits as the figure's CSV has


def test_the_sweep_of_record_comes_from_the_predictions_alone(of_record):
    run, given = of_record
    found = comparison.collect(run / "sweep", given["trainings"][:3], given["suite"])
    drawn = pd.read_csv(paths.FIGURES / "official" / "fig_08_size.csv")
    both = found[found.benchmark == "STSB"].set_index("encoder").value
    expected = drawn[drawn.encoder.isin(both.index) & (drawn.benchmark == "STSB")].set_index("encoder").value
    assert len(expected) == 3
    assert np.allclose(expected, both[expected.index], atol=1e-3)


def test_the_predictions_of_record_hold_no_texts(of_record):
    run, _ = of_record
    files = list(run.rglob("*.parquet"))
    assert len(files) > 100
    for file in files:
        table = pd.read_parquet(file)
        for name in table.columns[~table.dtypes.map(pd.api.types.is_numeric_dtype)]:
            assert table[name].astype(str).str.len().max() <= 60, f"{file}: {name}"
