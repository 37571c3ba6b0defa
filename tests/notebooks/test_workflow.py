"""The study end to end at its smallest, through Snakemake: it runs, reruns nothing, reruns only what a change concerns."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from nblib import paths, results
from nblib.analysis import claims
from nblib.results import measurements, scoreboard
from nblib.workflow import run_notebook, sweeps

SMOKE = paths.PROJECT_ROOT / "tests" / "support" / "smoke.yaml"
RUN = paths.PROJECT_ROOT / "runs" / "smoke"
TOY = paths.PROJECT_ROOT / "runs" / "tiny-encoder"  # the configuration's only encoder
SNAKEMAKE = [sys.executable, "-m", "snakemake", "--cores", "2", "--nolock", "--rerun-incomplete", "--quiet", "host"]

MOST = 20_000  # characters of a failure: a report has to be readable


def snakemake(*arguments, check=True):
    run = subprocess.run(
        [*SNAKEMAKE, *map(str, arguments)], cwd=paths.PROJECT_ROOT, capture_output=True, text=True, env=dict(os.environ)
    )
    said = run.stdout + run.stderr
    assert not check or run.returncode == 0, said[-MOST:]
    return said


def planned(output):
    """Job counts by rule from a dry run."""
    stats = output.rsplit("Job stats:", 1)[-1].split("total", 1)[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", stats, flags=re.M)}


@pytest.fixture(scope="module")
def study(tiny_encoder_folder):
    shutil.rmtree(RUN, ignore_errors=True)
    shutil.copytree(tiny_encoder_folder, TOY, dirs_exist_ok=True)
    status = git_status()
    snakemake("--configfile", SMOKE)
    assert git_status() == status, "running the study changed the working tree"
    return RUN


def git_status():
    run = subprocess.run(["git", "status", "--porcelain"], cwd=paths.PROJECT_ROOT, capture_output=True, text=True)
    return run.stdout


@pytest.mark.notebooks
def test_the_study_makes_figures_results_adapter_and_report(study):
    assert (study / "site" / "index.html").is_file()
    assert (study / "adapters" / "tiny-encoder.safetensors.json").is_file()
    board = scoreboard.read(study / "figures" / "scoreboard.csv")
    assert board.columns.tolist() == scoreboard.COLUMNS
    assert set(board.measured) <= {*scoreboard.MEASURED}
    assert len(board) == len(scoreboard.expected())
    kept = measurements.read(study / "figures" / "measurements.csv")
    pd.testing.assert_frame_equal(kept, results.load(study), check_dtype=False)
    claimed = pd.read_csv(study / "figures" / "13_results" / "tab_claims.csv", keep_default_na=False)
    assert set(claimed.verdict) <= {*claims.VERDICTS, claims.NOT_MEASURED} and len(claimed) == len(claims.load())


@pytest.mark.notebooks
def test_a_finished_study_has_nothing_to_do(study):
    assert "Nothing to be done" in snakemake("--configfile", SMOKE, "-n")


@pytest.mark.notebooks
def test_a_changed_training_reruns_it_and_what_it_is_measured_for(study, tmp_path):
    config = yaml.safe_load(SMOKE.read_text())
    config["trainings"]["hedge-tiny"]["epochs"] = 2
    changed = tmp_path / "changed.yaml"
    changed.write_text(yaml.safe_dump(config))
    jobs = planned(snakemake("--configfile", changed, "-n"))
    assert (jobs["train"], jobs["encoder_benchmarks"], jobs["negation_adapter"]) == (1, 1, 2)
    assert not {"triples", "score"} & set(jobs)


@pytest.mark.notebooks
def test_an_interrupted_study_makes_only_what_is_missing(study):
    # What a kill before the diagnosis ended leaves: the others' outputs, but neither its own nor those that need it.
    lost = [study / "notebooks/01_diagnosis.ipynb", study / "notebooks/13_results.ipynb", study / "site/index.html"]
    for file in lost:
        file.rename(f"{file}.kept")
    try:
        jobs = planned(snakemake("--configfile", SMOKE, "-n"))
    finally:
        for file in lost:
            Path(f"{file}.kept").rename(file)
    assert jobs == {"once": 2, "site": 1, "all": 1}


@pytest.mark.notebooks
def test_a_notebook_that_is_executed_again_finds_its_training(study):
    trained = study / "encoders" / "hedge-tiny.json"
    before = trained.read_text()
    figures = {file: file.read_bytes() for file in study.glob("figures/04_*/*hedge-tiny.csv")}
    snakemake("--configfile", SMOKE, "--force", f"runs/smoke/notebooks/04_encoder_training/{trained.stem}.ipynb")
    assert trained.read_text() == before, "trained anew"
    assert len(figures) == 4 and figures == {file: file.read_bytes() for file in figures}


@pytest.mark.parametrize("scale", ["quick", "official", "paper"])
def test_every_scale_can_be_planned_with_parameters_that_the_notebooks_have(scale):
    said = snakemake("--configfile", f"config/{scale}.yaml", "-n", "-p", "--forceall")
    trainings = sweeps.declared(yaml.safe_load((paths.PROJECT_ROOT / f"config/{scale}.yaml").read_text()))
    assert planned(said)["train"] == sum("shipped" not in settings for settings in trainings.values())
    commands = [shlex.split(line) for line in said.splitlines() if "nblib.workflow.cli run" in line]
    assert len(commands) > 20
    for command in commands:
        _, notebook, _, _, parameters, *_ = command[command.index("run") :]
        run_notebook.check_parameters(paths.PROJECT_ROOT / notebook, json.loads(parameters))


def test_on_a_cluster_each_training_asks_for_its_gpu():
    said = snakemake("--configfile", "config/paper.yaml", "--profile", "config/slurm", "-n")
    trainings = [rule for rule in said.split("\nrule ") if rule.startswith("llm_lora")]
    assert len(trainings) == 3
    assert all("gpu=1" in rule and "runtime=7200" in rule and "mem_mb=64000" in rule for rule in trainings)


def test_an_unknown_scale_is_a_clear_error():
    command = ["make", "study", "SCALE=huge", f"PYTHON={sys.executable}"]
    run = subprocess.run(command, cwd=paths.PROJECT_ROOT, capture_output=True, text=True)
    assert run.returncode != 0
    assert "no scale 'huge'. Scales: quick, official, paper" in run.stdout + run.stderr
