"""`nblib score`: what it leaves of a system."""

import argparse
import json
import re

import pytest
from support import mteb_rows

from nblib import results
from nblib.benchmarks import catalogue, general_ability, mteb_catalogue, mteb_tasks, scoring
from nblib.models.registry import ModelError
from nblib.workflow.commands import score


def command(*given):
    parser = argparse.ArgumentParser()
    score.add_arguments(parser)
    score.run(parser.parse_args([str(word) for word in given]))


def test_the_command_prints_the_scores_and_leaves_predictions_results_and_what_it_took(tmp_path, capsys):
    command("TF-IDF", "Random", "--scale", "toy", "--run-dir", tmp_path)
    for name in ("TF-IDF", "Random"):
        assert len(scoring.load_predictions(tmp_path, name, "nevir_mini")) == 100
    table = results.load(tmp_path)
    assert set(table.scale) == {"toy"} and set(table.system) == {"TF-IDF", "Random"}
    assert set(table[table.system == "TF-IDF"].benchmark) == {
        "SemAntoNeg (mini)", "NevIR (mini)", "ExcluIR (mini)", "Contrast passages (mini)", "Exclusions (mini)",
    }  # fmt: skip
    assert (table.fingerprint.str.len() == 64).all() and set(table.trained_on) == {""}
    (nevir,) = table.query("system == 'TF-IDF' and benchmark == 'NevIR (mini)'").itertuples()
    said = capsys.readouterr().out.split("Random")[0]
    assert re.search(rf"NevIR \(mini\) +right_rank +{nevir.value:.2f} +{nevir.ci_low:.2f} – .* 100\n", said)
    about = json.loads((tmp_path / "results" / "07_TF-IDF.csv.json").read_text())
    assert (about["system"], about["pairs"] > 400, about["seconds"] > 0) == ("TF-IDF", True, True)


def test_an_encoder_is_scored_by_the_same_command_and_only_on_what_is_asked(tmp_path, tiny_encoder_folder):
    command(tiny_encoder_folder, "--benchmarks", "stsb", "excluir", "--run-dir", tmp_path)
    assert set(results.load(tmp_path).benchmark) == {"STSB (mini)", "ExcluIR (mini)"}
    with pytest.raises(scoring.ScoreError, match=r"TF-IDF .* can't do stsb_mini"):
        command("TF-IDF", "--benchmarks", "stsb", "--run-dir", tmp_path)


def test_in_brief_the_test_splits_alone_are_scored(tmp_path, tiny_encoder_folder):
    command(tiny_encoder_folder, "--brief", "--run-dir", tmp_path)
    left = {file.name for file in (tmp_path / "scores" / "tiny-encoder").glob("*.parquet")}
    assert left == {f"{name}_test.parquet" for name in catalogue.names("mini")}
    assert len(results.load(tmp_path))


def test_general_ability_says_its_time_first_and_can_be_all_that_is_scored(
    tmp_path, tiny_encoder_folder, monkeypatch, capsys
):
    monkeypatch.setattr(mteb_tasks.corpora, "load", mteb_rows.load)
    monkeypatch.setattr(mteb_catalogue, "names", lambda choice: ("STS17", "NFCorpus"))
    command(tiny_encoder_folder, "--benchmarks", "--general", "lite", "--run-dir", tmp_path)
    said = capsys.readouterr().out
    assert said.index("texts to encode: about") < said.index("mean of tasks, 2 tasks")
    assert general_ability.load(tmp_path, "tiny-encoder").task.tolist() == ["STS17", "NFCorpus"]
    assert results.load(tmp_path).benchmark.tolist() == ["MTEB STS17", "MTEB NFCorpus"]
    with pytest.raises(mteb_catalogue.GeneralError, match=r"TF-IDF .* has no embeddings"):
        command("TF-IDF", "--benchmarks", "--general", "lite", "--run-dir", tmp_path)


def test_what_is_unknown_is_named(tmp_path):
    with pytest.raises(ModelError, match="TF-IFD"):
        command("TF-IFD", "--run-dir", tmp_path)
    with pytest.raises(catalogue.BenchmarkError, match="No benchmark called nevr"):
        command("TF-IDF", "--benchmarks", "nevr", "--run-dir", tmp_path)
