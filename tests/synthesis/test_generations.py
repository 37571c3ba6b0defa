"""The file of generations: whole lines only, one writer, nothing that was kept is lost."""

import json
import os
import resource
from dataclasses import asdict, replace

import pytest
from support.llm_jobs import PROCESSES

from nblib.synthesis import generations
from nblib.synthesis.generations import Generation, GenerationError, Store

ONE = Generation(
    "k0", 0, "a0", "It is red.", "negation", {}, "toy", {"max_tokens": 9}, 'é "\ud800" \u2028', "stop", "toy", 5, None
)


def some(n):
    return [replace(ONE, key=f"k{number}") for number in range(n)]


def fill(file, n=3):
    with Store(file) as store:
        for generation in some(n):
            store.append(generation)
    return file


@pytest.fixture
def file(tmp_path):
    return tmp_path / "new" / "generations.jsonl"


def test_what_was_kept_is_read_back(file):
    assert list(generations.read(file)) == []
    fill(file)
    with Store(file) as store:
        store.append(replace(ONE, key="later"))
    assert list(generations.read(file)) == [*some(3), replace(ONE, key="later")]


def test_a_line_is_there_before_the_store_is_closed(file):
    with Store(file) as store:
        store.append(ONE)
        assert list(generations.read(file)) == [ONE]


def test_every_way_to_cut_the_last_line_loses_that_line_alone(file, caplog):
    whole = fill(file).read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start + 1, len(whole) - 1):
        file.write_bytes(whole[:end])
        assert list(generations.read(file)) == some(2)
        with Store(file):
            pass
        assert file.read_bytes() == whole[:start]
    assert "ended in half a line" in caplog.text


def test_a_last_line_that_lacks_only_its_end_is_kept(file):
    whole = fill(file).read_bytes()
    file.write_bytes(whole[:-1])
    with Store(file) as store:
        store.append(replace(ONE, key="k3"))
    assert list(generations.read(file)) == some(4)


def test_a_last_line_longer_than_any_buffer_is_found(file):
    fill(file)
    before = file.read_bytes()
    file.write_bytes(before + b'{"answer": "' + b"x" * 200_000)
    with Store(file):
        pass
    assert file.read_bytes() == before


@pytest.mark.parametrize("line", ["{", "[]", "{}", "", json.dumps({**asdict(ONE), "attempt": "0"}), "\x00\x00"])
def test_a_damaged_line_before_the_last_is_an_error_that_names_it(file, line):
    lines = fill(file).read_text().split("\n")
    file.write_text("\n".join([lines[0], line, *lines[1:]]))
    with pytest.raises(GenerationError, match=r"generations.jsonl, line 2: no generation .*or delete that line"):
        list(generations.read(file))


def _hold(file, opened, go_on):
    with Store(file) as store:
        store.append(ONE)
        opened.set()
        go_on.wait(30)


def test_a_second_run_on_the_file_is_refused_until_the_first_is_gone(file):
    opened, go_on = PROCESSES.Event(), PROCESSES.Event()
    other = PROCESSES.Process(target=_hold, args=(file, opened, go_on))
    other.start()
    assert opened.wait(60)
    with (
        pytest.raises(
            GenerationError, match=r"Another run is writing to .*generations.jsonl. Wait for it to end, or give"
        ),
        Store(file),
    ):
        pass
    assert list(generations.read(file)) == [ONE], "reading needs no lock"
    os.kill(other.pid, 9)
    other.join()
    with Store(file) as store:
        store.append(replace(ONE, key="k1"))
    assert list(generations.read(file)) == some(2)


def test_a_full_disk_is_an_error_and_leaves_whole_lines(file):
    fill(file)
    before = file.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store(file) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))  # a write past it is cut, then fails
        try:
            with pytest.raises(
                GenerationError, match=r"Can't write to .*Free space, then run again: all before is kept"
            ):
                store.append(replace(ONE, key="k3"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        store.append(replace(ONE, key="k3"))
    assert list(generations.read(file)) == some(4)


def test_a_key_depends_on_all_that_was_asked_and_on_nothing_else():
    key = generations.key("m", "p", {"temperature": 1.0, "seed": 1})
    assert key == generations.key("m", "p", {"seed": 1, "temperature": 1.0})
    sampling = {"temperature": 1.0, "seed": 1}
    others = [("n", "p", sampling), ("m", "q", sampling), ("m", "p", {"temperature": 1.0})]
    assert key not in {generations.key(*other) for other in others}
