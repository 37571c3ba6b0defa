"""Sidecars have an artefact's provenance and no secrets; what is read back is what was written."""

import json
import re
import subprocess
import sys
from pathlib import Path

from nblib import artefacts, paths


def test_a_sidecar_has_what_is_known_and_commit_versions_and_device_and_no_secrets(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "NBLIB_DATA"):
        monkeypatch.setenv(name, "canary-5f3c")
    with artefacts.write(tmp_path / "adapter.safetensors", {"seed": 3, "encoder": "tiny"}) as draft:
        draft.write_text("weights")
    text = (tmp_path / "adapter.safetensors.json").read_text()
    about = json.loads(text)
    assert (about["seed"], about["encoder"], about["python"]) == (3, "tiny", sys.version.split()[0])
    assert re.fullmatch(r"[0-9a-f]{12}(\+changes)?|unknown", about["commit"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", about["finished"])
    assert about["device"] and about["threads"] and "canary" not in text
    assert all(re.match(r"\d+\.", version) for version in about["packages"].values()), about["packages"]
    line = artefacts.provenance_line(scale="quick", seed=1)
    assert re.fullmatch(r"scale quick, seed 1 · commit \S+ · torch \d\S+ on .+", line)


def test_an_artefact_of_which_nothing_is_known_has_no_sidecar_and_keeps_none(tmp_path):
    for about, expected in [({"seed": 1}, 1), (None, None)]:
        with artefacts.write(tmp_path / "x.csv", about) as draft:
            draft.write_text("a\n1\n")
        assert artefacts.about(tmp_path / "x.csv").get("seed") == expected
    assert [file.name for file in tmp_path.iterdir()] == ["x.csv"]


def test_a_folder_whose_sidecar_a_kill_left_out_is_still_the_studys(tmp_path, monkeypatch):
    write_json = artefacts.write_json
    monkeypatch.setattr(artefacts, "write_json", lambda path, about: about or write_json(path, about))
    for _ in range(2):  # the second time the folder of the first is in the way
        with artefacts.write(tmp_path / "model", {"seed": 1}) as draft:
            draft.mkdir()
            (draft / "weights").touch()
    assert artefacts.about(tmp_path / "model") == {}


def test_json_is_read_as_it_was_written_and_what_json_does_not_know_is_text(tmp_path):
    content = {"checksum": "a", "b": [1, None, 0.1], "path": Path("/x"), "of": {1: (2, 3)}}
    found = artefacts.read_json(artefacts.write_json(tmp_path / "x.json", content))
    assert found == artefacts.as_json(content) == {**content, "path": "/x", "of": {"1": [2, 3]}}


def test_the_commit_is_that_of_the_project_and_says_whether_files_differ_from_it(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    assert artefacts.provenance()["commit"] == "unknown"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    artefacts.write_json(tmp_path / "figures" / "a record's commit, which changes no code", {})
    (tmp_path / "file").write_text("x")
    code = (["init"], ["add", "file"], ["commit", "-m", "first"], ["tag", "-a", "v1", "-m", "one"])
    for command in (*code, ["add", "figures"], ["commit", "-m", "second"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    head = subprocess.check_output([*git, "rev-parse", "HEAD~1"], text=True)[:12]
    assert artefacts.provenance()["commit"] == head
    (tmp_path / "file").write_text("y")
    assert artefacts.provenance()["commit"] == f"{head}+changes"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert artefacts.provenance()["commit"] == "unknown"
