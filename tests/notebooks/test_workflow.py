"""The study end to end at its smallest, through Snakemake: it runs, reruns nothing, reruns only what a change concerns."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from nblib import paths, results
from nblib.analysis import claims
from nblib.results import comparison, measurements
from nblib.workflow import sweeps

SMOKE = paths.PROJECT_ROOT / "tests" / "support" / "smoke.yaml"
RUN = paths.PROJECT_ROOT / "runs" / "smoke"
TOY = paths.PROJECT_ROOT / "runs" / "tiny-encoder"  # the configuration's only encoder
SNAKEMAKE = [sys.executable, "-m", "snakemake", "--cores", "2", "--nolock", "--rerun-incomplete", "--quiet", "host"]


# Snakemake's own lines about a job: its files, wildcards and resources, which fill screens, and a job's number and time.
ABOUT_A_JOB = re.compile(
    r"    (input|output|log|params|jobid|reason|wildcards|resources|threads|priority|benchmark|shell|conda-env|message): ?|"
    r"\[\w{3} \w{3} +\d+ [\d:]+ \d{4}\]$|Finished jobid|\d+ of \d+ steps|(Select|Execut)\w* jobs?|Storing output|"
    r"localrule |rule \w+:$|(local)?checkpoint \w+:$"
)
MOST = 20_000  # characters of a failure: a report has to be readable


def snakemake(*arguments, check=True):
    run = subprocess.run(
        [*SNAKEMAKE, *map(str, arguments)], cwd=paths.PROJECT_ROOT, capture_output=True, text=True, env=dict(os.environ)
    )
    said = run.stdout + run.stderr
    assert not check or run.returncode == 0, said_by_jobs(said)
    return said


def said_by_jobs(output):
    """What the jobs of a run printed, and which failed: the output without Snakemake's lists of files."""
    said, listing = [], False
    for line in output.split("\n"):
        # a recipe in "shell:" goes over several lines, each of them indented further
        listing = bool(ABOUT_A_JOB.match(line)) or (listing and line.startswith(" " * 8))
        if line.strip() and not listing:
            said.append(line.rpartition("\r")[2])  # of a progress bar the last state
    return "\n".join(said)[-MOST:]


FAILED = """\
[Mon Nov 23 07:14:09 2026]
rule diagnosis:
    input: {files}
    output: runs/smoke/results/01_diagnosis.csv
    jobid: 3
    reason: Missing output files: runs/smoke/results/01_diagnosis.csv
    resources: tmpdir=/tmp, gpu=0
Executing:   3%|\rExecuting:  50%|
Exception encountered at "In [5]":
TypeError: can't multiply sequence by non-int of type 'numpy.bool'
RuleException:
CalledProcessError in file "Snakefile", line 130:
[Mon Nov 23 07:14:19 2026]
Error in rule diagnosis:
    message: None
    jobid: 3
    input: {files}
    output: runs/smoke/results/01_diagnosis.csv
    shell:
        nblib run 01 runs/smoke/notebooks/01.ipynb -y '{files}'
        (command exited with non-zero exit code)
Shutting down, this might take some time.
"""


def test_of_a_failure_what_the_job_printed_is_shown_and_not_the_lists_of_files():
    said = said_by_jobs(FAILED.format(files=", ".join(f"nblib/module_{place}.py" for place in range(2000))))
    for line in ("TypeError: can't multiply", "Exception encountered", "Error in rule diagnosis:", "Executing:  50%"):
        assert line in said
    assert "module_7.py" not in said and "3%" not in said and len(said) < 600


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
    board = pd.read_csv(study / "figures" / "scoreboard.csv")
    assert board.columns.tolist() == comparison.COLUMNS
    assert set(board.measured) <= {*comparison.MEASURED}
    assert len(board) == len(results.expected())
    kept = measurements.read(study / "figures" / "measurements.csv")
    pd.testing.assert_frame_equal(kept, results.load(study), check_dtype=False)
    claimed = pd.read_csv(study / "figures" / "13_results" / "tab_claims.csv", keep_default_na=False)
    assert set(claimed.verdict) <= {*claims.VERDICTS, claims.NOT_MEASURED} and len(claimed) == len(claims.load())


@pytest.mark.notebooks
def test_mini_data_never_counts_as_reproduced(study):
    board = pd.read_csv(study / "figures" / "scoreboard.csv", keep_default_na=False)
    answered = board[board.measured != "not run"]
    assert len(answered) and not results.reproduced(board).any()
    of_models = answered[answered.data.str.contains("mini")]
    assert (
        set(of_models.measured) == {"stand-in"} and set(of_models.difference) == {""} and set(of_models.agrees) == {""}
    )


@pytest.mark.notebooks
def test_a_finished_study_has_nothing_to_do(study):
    assert "Nothing to be done" in snakemake("--configfile", SMOKE, "-n")


@pytest.mark.notebooks
def test_a_changed_parameter_reruns_only_what_depends_on_it(study, tmp_path):
    config = yaml.safe_load(SMOKE.read_text())
    config["06"]["common"]["repeats"] = 4
    changed = tmp_path / "changed.yaml"
    changed.write_text(yaml.safe_dump(config))
    jobs = planned(snakemake("--configfile", changed, "-n"))
    # notebook 07 measures the adapter as an intervention; the diagnosis has nothing to do with it
    comparing = {"hedge_trainings", "nevir_architectures", "semantoneg_families"}
    assert set(jobs) == {"negation_adapter", "encoder_benchmarks", *comparing, "results", "site", "all"}


@pytest.mark.notebooks
def test_a_changed_training_reruns_it_and_what_it_is_measured_for(study, tmp_path):
    config = yaml.safe_load(SMOKE.read_text())
    config["04"]["trainings"]["hedge-tiny"]["epochs"] = 2
    changed = tmp_path / "changed.yaml"
    changed.write_text(yaml.safe_dump(config))
    jobs = planned(snakemake("--configfile", changed, "-n"))
    assert jobs["encoder_training"] == jobs["tuned_benchmarks"] == jobs["encoder_benchmarks"] == 1
    assert not {"triples", "diagnosis", "negation_adapter"} & set(jobs)


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
    assert set(jobs) == {"diagnosis", "results", "site", "all"}


@pytest.mark.notebooks
def test_a_notebook_that_is_executed_again_finds_its_training(study):
    trained = study / "encoders" / "hedge-tiny.json"
    before, figures = (
        trained.read_text(),
        {file: file.read_bytes() for file in study.glob("figures/04_*/*hedge-tiny.csv")},
    )
    snakemake("--configfile", SMOKE, "--force", f"runs/smoke/notebooks/04_encoder_training/{trained.stem}.ipynb")
    assert trained.read_text() == before, "trained anew"
    assert len(figures) == 4 and figures == {file: file.read_bytes() for file in figures}


@pytest.mark.parametrize("scale", ["quick", "official", "paper"])
def test_every_scale_can_be_planned(scale):
    jobs = planned(snakemake("--configfile", f"config/{scale}.yaml", "-n", "--forceall"))
    config = yaml.safe_load((paths.CONFIG / f"{scale}.yaml").read_text())
    assert config["scale"] == scale
    assert jobs["negation_adapter"] == len(config["06"]["encoders"]) + len(sweeps.adapted(config))
    assert jobs["encoder_training"] == len(sweeps.trainings(config))
    assert jobs.get("merge", 0) == len(sweeps.merged(config))
    swept = [name for name, training in sweeps.scored(config).items() if training not in sweeps.of_record(config)]
    assert jobs.get("sweep_benchmarks", 0) == len(swept)
    assert jobs["tuned_benchmarks"] == len(sweeps.scored(config)) - len(swept)
    trained = sweeps.by_command(config)
    assert jobs.get("train", 0) == len(trained)
    assert jobs["score"] == len(config["09"]["rankers"]) + sum("score" in settings for settings in trained.values())


def test_the_lines_of_a_configuration_fit_a_screen():
    for file in [*paths.CONFIG.glob("*.yaml"), SMOKE]:
        assert [line for line in file.read_text(encoding="utf-8").splitlines() if len(line) > 120] == [], file.name


def test_on_a_cluster_each_training_asks_for_its_gpu():
    profile = ["--configfile", "config/paper.yaml", "--profile", "config/slurm"]
    run = subprocess.run(
        [sys.executable, "-m", "snakemake", *profile, "-n", "--nolock"],
        cwd=paths.PROJECT_ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    trainings = [rule for rule in run.stdout.split("\nrule ") if rule.startswith("llm_lora")]
    assert len(trainings) == 3
    assert all("gpu=1" in rule and "runtime=7200" in rule and "mem_mb=64000" in rule for rule in trainings)


def test_an_unknown_scale_is_a_clear_error():
    run = subprocess.run(
        ["make", "study", "SCALE=huge", f"PYTHON={sys.executable}"],
        cwd=paths.PROJECT_ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert "no scale 'huge'. Scales: quick, official, paper" in run.stdout + run.stderr


def test_snakemake_without_a_scale_says_what_to_add():
    assert "Add --configfile config/quick.yaml" in snakemake("-n", check=False)
