"""Paths: independent of the working directory; what is written is whole or not there."""

import os
from pathlib import Path

import pytest

from nblib import paths


def test_a_relative_path_is_taken_from_the_project_whatever_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert paths.resolve("data/registries") == Path(paths.__file__).parents[1] / "data" / "registries"
    assert paths.resolve(tmp_path / "a" / ".." / "b") == tmp_path / "b"
    assert paths.resolve("~/x") == Path.home() / "x"


def test_the_cache_is_where_the_variable_says_and_in_the_project_otherwise(fresh_cache, tmp_path, monkeypatch):
    assert paths.cache() == fresh_cache and fresh_cache.is_dir()
    monkeypatch.delenv("NBLIB_CACHE")
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path / "project")
    assert paths.cache() == tmp_path / "project" / "runs" / "cache"


def test_a_written_file_takes_its_name_when_the_block_ends(tmp_path):
    target = tmp_path / "new" / "folder" / "file.txt"
    with paths.write_atomically(target) as draft:
        draft.write_text("whole")
        assert not target.exists()
        assert target.parent in draft.parents, "a rename across file systems would not be atomic"
    assert target.read_text() == "whole"
    assert list(target.parent.iterdir()) == [target]


def test_a_block_that_raises_or_writes_nothing_keeps_the_old_file_and_leaves_no_draft(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError, match="half way"), paths.write_atomically(target) as draft:
        draft.write_text("half")
        raise RuntimeError("half way")
    with pytest.raises(FileNotFoundError), paths.write_atomically(target):
        pass
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_an_unwritable_folder_is_named_with_the_way_out(tmp_path):
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / "file" / "run"
    with pytest.raises(PermissionError, match=r"file/run can't be made.*run_dir"):
        paths.writable_folder(folder)
    with pytest.raises(PermissionError, match="can't be made"), paths.write_atomically(folder / "x.csv"):
        pytest.fail("the block must not run")
    assert os.listdir(tmp_path) == ["file"]


def test_only_a_folder_replaces_a_folder(tmp_path):
    (tmp_path / "old" / "inside").mkdir(parents=True)
    with pytest.raises(OSError), paths.write_atomically(tmp_path / "old") as draft:
        draft.write_text("a file")
    assert (tmp_path / "old" / "inside").is_dir()
    with paths.write_atomically(tmp_path / "old") as draft:
        draft.mkdir()
    assert [list(left.iterdir()) for left in tmp_path.iterdir()] == [[]]


def test_official_data_is_none_where_unset_and_an_error_where_it_names_no_folder(tmp_path, monkeypatch):
    for value, found in [("", None), (" ", None), (str(tmp_path), tmp_path)]:
        monkeypatch.setenv("NBLIB_DATA", value)
        assert paths.official_data() == found
    monkeypatch.setenv("NBLIB_DATA", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match=r"NBLIB_DATA names .*absent"):
        paths.official_data()
