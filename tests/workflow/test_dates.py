"""Dates of files: what a clock that was set back, or a file with an old date, would make Snakemake judge wrongly."""

import os
import time

import pytest

from nblib import paths
from nblib.workflow import cli, dates


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(paths, "CONFIG", tmp_path / "config")
    for name in ("config/toy.yaml", "nblib/stats.py", "notebooks/01.ipynb", "data/x.csv", "runs/toy/results/01.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as it was")
    return tmp_path


@pytest.mark.parametrize("name", ["runs/toy/results/01.csv", "nblib/stats.py", "data/x.csv"])
def test_a_file_dated_in_the_future_stops_a_study_before_it_judges_anything(project, name, capsys):
    dates.check(project / "runs" / "toy")
    os.utime(project / name, (time.time() + 3600,) * 2)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["study", "toy"])
    said = capsys.readouterr().err
    assert f"error: 1 files are dated in the future, the first is {project / name}: the clock was set back" in said
    assert said.count("\n") == 1


def test_a_source_that_changed_and_has_an_old_date_is_dated_anew(project):
    run, changed, same = project / "runs" / "toy", project / "nblib" / "stats.py", project / "data" / "x.csv"
    dates.renew(run)
    changed.write_text("otherwise")
    for file in (changed, same):
        os.utime(file, (1e9, 1e9))
    dates.renew(run)
    assert changed.stat().st_mtime > time.time() - 600
    assert same.stat().st_mtime == 1e9
    os.utime(changed, (1e9, 1e9))
    dates.renew(run)
    assert changed.stat().st_mtime == 1e9, "it is known now"
