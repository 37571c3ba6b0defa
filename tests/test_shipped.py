"""Registries: what is malformed is named with its place, and nothing malformed passes."""

import re
import shutil

import pytest

from nblib import paths, shipped
from nblib.corpora.registry import Corpus
from nblib.errors import StudyError
from nblib.models.registry import ModelSpec


@pytest.fixture
def registries(tmp_path, monkeypatch):
    """A copy of the registries, to spoil."""
    shutil.copytree(paths.DATA / "registries", tmp_path / "data" / "registries")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    return tmp_path / "data" / "registries"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("max_length: 256", "max_length: long", "all-MiniLM-L6-v2.max_length Input should be a valid integer"),
        ("max_length: 256", "max_lenght: 256", "all-MiniLM-L6-v2.max_lenght Unexpected keyword argument"),
        ("max_length: 256", "similarity: euclid", "similarity Input should be 'cosine'"),
    ],
)
def test_a_malformed_registry_entry_is_named(registries, old, new, fault):
    file = registries / "models.yaml"
    content = file.read_text()
    assert old in content
    file.write_text(content.replace(old, new, 1))
    with pytest.raises(StudyError, match=re.escape(fault)) as error:
        shipped.read_registry("models.yaml", ModelSpec)
    assert str(file) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["", "[]", "a: 1", "{", "\0"])
def test_a_registry_that_is_none_is_named(registries, content):
    (registries / "corpora.yaml").write_text(content)
    with pytest.raises(StudyError, match=r"corpora\.yaml"):
        shipped.read_registry("corpora.yaml", Corpus)
