"""`nblib score`: what it leaves of a system."""

import json
import re
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from support import mteb_rows

from nblib import artefacts, results
from nblib.benchmarks import mteb, scoring
from nblib.errors import StudyError
from nblib.workflow import cli


def score(*given):
    arguments = cli.parser().parse_args(["score", *map(str, given)])
    arguments.run(arguments)


def test_the_command_prints_the_scores_and_leaves_predictions_results_and_what_it_took(tmp_path, capsys):
    score("TF-IDF", "Random", "--scale", "toy", "--run-dir", tmp_path)
    for name in ("TF-IDF", "Random"):
        assert len(scoring.load_predictions(tmp_path, name, "nevir_mini")) == 100
    table = results.load(tmp_path)
    assert set(table.scale) == {"toy"} and set(table.system) == {"TF-IDF", "Random"}
    assert set(table.corpus) >= {"semantoneg_mini", "nevir_mini", "excluir_mini"}
    assert (table.fingerprint.str.len() == 64).all() and set(table.trained_on) == {""}
    (nevir,) = table.query("system == 'TF-IDF' and benchmark == 'nevir'").itertuples()
    said = capsys.readouterr().out.split("Random")[0]
    assert re.search(rf"nevir +nevir_mini +test +right_rank +{nevir.value:.2f} +{nevir.ci_low:.2f} – .* 100\n", said)
    about = json.loads((tmp_path / "results" / "07_TF-IDF.csv.json").read_text())
    assert about["system"] == "TF-IDF" and about["seconds"] > 0


def test_an_encoder_is_scored_by_the_same_command_and_only_on_what_is_asked(tmp_path, tiny_encoder_folder):
    score(tiny_encoder_folder, "--benchmarks", "stsb", "excluir", "--brief", "--run-dir", tmp_path / "brief")
    left = {file.name for file in (tmp_path / "brief").rglob("*.parquet")}
    assert left == {"stsb_mini_test.parquet", "excluir_mini_test.parquet"}
    assert not (tmp_path / "brief" / "results").exists(), "in brief the test splits' predictions alone are left"
    for benchmark in ("stsb", "excluir"):
        score(tiny_encoder_folder, "--benchmarks", benchmark, "--run-dir", tmp_path)
    assert set(results.load(tmp_path).corpus) == {"stsb_mini", "excluir_mini"}, "results of before are kept"
    with pytest.raises(scoring.ScoreError, match=r"TF-IDF .* can't do stsb_mini"):
        score("TF-IDF", "--benchmarks", "stsb", "--run-dir", tmp_path)


def test_scores_outlive_the_weights_until_they_are_trained_again(tmp_path, tiny_encoder_folder, capsys, monkeypatch):
    trained = shutil.copytree(tiny_encoder_folder, tmp_path / "encoders" / "mine")
    record, now = tmp_path / "trainings" / "mine" / "training.json", datetime.now(UTC)
    artefacts.write_json(record, {"finished": (now - timedelta(minutes=1)).isoformat()})
    again = (trained, "--benchmarks", "stsb", "--brief", "--run-dir", tmp_path)
    score(*again)
    shutil.rmtree(trained)
    score(*again)
    assert capsys.readouterr().out.endswith(f"Its scores, of commit {artefacts.commit()}, stay.\n")
    with monkeypatch.context() as patch, pytest.raises(StudyError, match="mine is gone, and stsb_mini can't be scored"):
        patch.setattr(scoring, "CODE_VERSION", 0)
        score(*again)
    artefacts.write_json(record, {"finished": (now + timedelta(minutes=1)).isoformat()})
    with pytest.raises(StudyError, match="no folder"):
        score(*again)


def test_general_ability_can_be_all_that_is_scored(tmp_path, tiny_encoder_folder, monkeypatch, capsys):
    monkeypatch.setattr(mteb.corpora, "load", mteb_rows.load)
    monkeypatch.setattr(mteb, "names", lambda choice: ["STS17", "NFCorpus"])
    score(tiny_encoder_folder, "--benchmarks", "--general", "lite", "--run-dir", tmp_path)
    assert "mean of tasks, 2 tasks" in capsys.readouterr().out
    assert mteb.load(tmp_path, tiny_encoder_folder.name).task.tolist() == ["STS17", "NFCorpus"]
    assert not (tmp_path / "results").exists(), "notebook 09 records them"
