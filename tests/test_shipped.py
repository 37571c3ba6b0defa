"""Registries and published numbers: what is malformed is named with its place, and nothing malformed passes."""

import re
import shutil

import pytest

from nblib import paths, shipped
from nblib.corpora.registry import Corpus
from nblib.models.registry import ModelSpec
from nblib.results import published
from nblib.shipped import ShippedError


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A copy of the published numbers and registries, to spoil."""
    for folder in ("published", "registries"):
        shutil.copytree(paths.DATA / folder, tmp_path / "data" / folder)
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize("cell", ["8.O1", "n/a", "1,5", "8..1", "inf", "nan", " ", "0x1"])
def test_a_malformed_number_is_named_by_row_and_column(data, cell):
    file = data / "published" / "weller.csv"
    lines = file.read_text().splitlines()
    place = next(
        k for k, line in enumerate(lines) if line.startswith("weller,Table 2,") and ",pairwise_accuracy," in line
    )
    number = published.load("weller").printed[place - 1]
    quoted = f'"{cell}"' if "," in cell else cell
    lines[place] = lines[place].replace(f",{number},", f",{quoted},", 1)
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(
        ShippedError, match=rf"weller\.csv, row {place + 1}, column value: .* is not a number\. .*git checkout"
    ):
        published.load("weller")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a,b\n1,2\n", b'"unclosed', b"a\0b"])
def test_a_damaged_table_is_named(data, content):
    (data / "published" / "cao.csv").write_bytes(content)
    with pytest.raises(ShippedError, match=r"cao\.csv, (the file|row 1): .*git checkout"):
        published.load("cao")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("max_length: 256", "max_length: long", "'all-MiniLM-L6-v2': max_length: Input should be a valid integer"),
        ("max_length: 256", "max_lenght: 256", "'all-MiniLM-L6-v2': the unknown field max_lenght"),
        ("max_length: 256", "max_length: [", "the file: while parsing"),
        ("pooling: mean", "similarity: euclid", "similarity: Input should be 'cosine' or 'dot'"),
    ],
)
def test_a_malformed_registry_entry_is_named(data, old, new, fault):
    file = data / "registries" / "models.yaml"
    content = file.read_text()
    assert old in content
    file.write_text(content.replace(old, new, 1))
    with pytest.raises(ShippedError, match=re.escape(fault)) as error:
        shipped.read_registry("models.yaml", ModelSpec)
    assert str(file) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["", "[]", "- a", "a: 1", "a: {title: x}", "{", "\0"])
def test_a_registry_that_is_none_is_named(data, content):
    (data / "registries" / "corpora.yaml").write_text(content)
    with pytest.raises(ShippedError, match=r"corpora\.yaml"):
        shipped.read_registry("corpora.yaml", Corpus)
