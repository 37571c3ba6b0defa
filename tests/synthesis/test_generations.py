"""The file of generations: whole lines only, and nothing that was kept is lost."""

import json
import resource
from dataclasses import asdict, replace

import pytest

from nblib.errors import StudyError
from nblib.synthesis import generations
from nblib.synthesis.generations import Generation

ANSWER = ('é "\ud800" \u2028', "stop", "toy", 5, None)
ONE = Generation("k0", "a0", "It is red.", "negation", {}, 0, "toy", {"max_tokens": 9}, *ANSWER)
THREE = [replace(ONE, key=f"k{number}") for number in range(3)]


@pytest.fixture
def file(tmp_path):
    for generation in THREE:
        generations.append(generation, tmp_path / "generations.jsonl")
    return tmp_path / "generations.jsonl"


def test_what_was_kept_is_read_back(file, tmp_path):
    assert list(generations.read(file)) == THREE
    assert list(generations.read(tmp_path / "none.jsonl")) == []


def test_every_way_to_cut_the_last_line_loses_that_line_alone(file):
    whole = file.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start + 1, len(whole) - 1):
        file.write_bytes(whole[:end])
        assert list(generations.read(file)) == THREE[:2]
        generations.drop_half_line(file)
        assert file.read_bytes() == whole[:start]


@pytest.mark.parametrize("line", ["{", "[]", "{}", "", json.dumps({**asdict(ONE), "kind": "other"})])
def test_a_damaged_line_before_the_last_is_an_error_that_names_it(file, line):
    lines = file.read_text().split("\n")
    file.write_text("\n".join([lines[0], line, *lines[1:]]))
    with pytest.raises(StudyError, match=r"generations.jsonl, line 2 can't be read"):
        list(generations.read(file))


def test_a_full_disk_is_an_error_and_leaves_whole_lines(file):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 100, limits[1]))  # a write past it is cut
    try:
        with pytest.raises(StudyError, match="is full"):
            generations.append(ONE, file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    generations.append(ONE, file)
    assert list(generations.read(file)) == [*THREE, ONE]


def test_a_key_depends_on_all_that_was_asked_and_on_nothing_else():
    sampling = {"temperature": 1.0, "seed": 1}
    key = generations.key("m", "p", sampling)
    assert key == generations.key("m", "p", {"seed": 1, "temperature": 1.0})
    others = [("n", "p", sampling), ("m", "q", sampling), ("m", "p", {"temperature": 1.0})]
    assert key not in {generations.key(*other) for other in others}
