"""Sidecars have a result's provenance and no secrets."""

import json
import re
import subprocess
import sys

from nblib import artefacts, paths, provenance


def test_a_sidecar_has_its_artefacts_name_and_commit_versions_and_device(tmp_path):
    with artefacts.write(tmp_path / "adapter.safetensors", {"seed": 3, "encoder": "tiny"}) as draft:
        draft.write_text("weights")
    about = json.loads((tmp_path / "adapter.safetensors.json").read_text())
    assert about["seed"] == 3
    assert about["encoder"] == "tiny"
    assert re.fullmatch(r"[0-9a-f]{12}(\+changes)?|unknown", about["commit"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", about["finished"])
    assert about["python"] == sys.version.split()[0]
    assert about["device"]
    assert about["threads"]
    assert all(re.match(r"\d+\.", version) for version in about["packages"].values()), about["packages"]
    assert {"torch", "sentence-transformers", "transformers", "numpy"} <= set(about["packages"])


def test_the_commit_is_that_of_the_project_whatever_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = subprocess.run(["git", "-C", paths.PROJECT_ROOT, "rev-parse", "HEAD"], capture_output=True, text=True)
    assert head.returncode or head.stdout.startswith(provenance.collect()["commit"].removesuffix("+changes"))


def test_a_copy_without_git_is_of_unknown_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    assert provenance.collect()["commit"] == "unknown"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.collect()["commit"] == "unknown"


def test_the_environments_secrets_are_not_written_down(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "NBLIB_DATA"):
        monkeypatch.setenv(name, "canary-5f3c")
    assert "canary" not in json.dumps(provenance.collect())
    assert "canary" not in provenance.line(seed=1)


def test_a_notebooks_line_has_its_parameters_and_what_runs():
    assert provenance.line().startswith("commit ")
    assert re.fullmatch(r"scale quick, seed 1 · commit \S+ · torch \d\S+ on .+", provenance.line(scale="quick", seed=1))


def test_a_package_that_is_not_there_is_recorded_as_absent(monkeypatch):
    monkeypatch.setattr(provenance, "PACKAGES", ("no-such-package",))
    assert provenance.collect()["packages"] == {"no-such-package": "not installed"}
