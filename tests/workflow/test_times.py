"""What a job is expected to take: as the last time, else as its rule's others, else as the configuration says."""

import json
import re

import pytest
import yaml

from nblib import paths
from nblib.workflow.times import Times


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(paths, "CONFIG", tmp_path / "config")
    (tmp_path / "config" / "times").mkdir(parents=True)
    (tmp_path / "config" / "times" / "toy.yaml").write_text("score: 5\ntriples: 7\n")
    return tmp_path


def test_a_first_run_expects_what_the_configuration_says(project):
    assert Times("toy").expected("score", "TF-IDF") == 5
    assert Times("toy").expected("diagnosis", "") is None
    assert Times("other").expected("score", "TF-IDF") is None


def test_a_later_run_expects_what_the_last_one_took(project):
    times = Times("toy")
    times.took("score", "TF-IDF", 10.04)
    times.took("score", "Random", 20.0)
    again = Times("toy")
    assert again.expected("score", "TF-IDF") == 10.0
    assert again.expected("score", "new") == again.expected("score") == 15.0
    assert again.expected("triples") == 7
    assert json.loads((project / "runs" / "toy" / "times.json").read_text()) == {
        "score/Random": 20.0,
        "score/TF-IDF": 10.0,
    }


@pytest.mark.parametrize("scale", ["quick", "official"])
def test_every_rule_of_the_study_has_a_time_for_the_first_run(scale):
    source = (paths.PROJECT_ROOT / "Snakefile").read_text(encoding="utf-8")
    rules = {*re.findall(r"^rule (\w+):", source, re.M), *re.findall(r"^use rule \w+ as (\w+)", source, re.M)}
    given = yaml.safe_load((paths.CONFIG / "times" / f"{scale}.yaml").read_text(encoding="utf-8"))
    assert set(given) == rules - {"all", "mixtures"}, "these two only gather files"
    assert all(seconds > 0 for seconds in given.values())
