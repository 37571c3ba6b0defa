"""Errors that a user can mend: one sentence, whatever went wrong underneath."""

import json
from dataclasses import asdict

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell

from nblib.analysis.gsm8k import Gsm8kError
from nblib.errors import StudyError, check_numbers, one_of, readable
from nblib.results import measurements
from nblib.results.measurements import ResultsError
from nblib.synthesis import generations, outcomes


def test_a_notebook_shows_the_sentence_alone(capsys):
    shell = InteractiveShell()
    for error, lines in [("gsm8k.Gsm8kError('mend this')", 1), ("ValueError('a fault')", 3)]:
        shell.run_cell(f"from nblib.analysis import gsm8k\nraise {error}")
        shown = capsys.readouterr().out.strip().splitlines()
        assert len(shown) >= lines
        assert (shown == ["Gsm8kError: mend this"]) == (lines == 1)


def test_whatever_a_parser_raises_is_one_sentence_with_file_and_remedy():
    with pytest.raises(Gsm8kError, match=r"^/a/b\.csv can't be read, .*\(OSError: x y\)\. Mend it\.$"), \
            readable("/a/b.csv", "Mend it.", Gsm8kError):  # fmt: skip
        raise OSError("x\n y")
    for own in (StudyError("as it is"), FileNotFoundError(2, "none"), PermissionError(13, "no")):
        with pytest.raises(type(own)) as failure, readable("f", "r"):
            raise own
        assert failure.value is own


def test_a_word_that_must_be_one_of_several_names_them():
    assert one_of("a", ("a", "b"), "data") == "a"
    with pytest.raises(StudyError, match=r"^No data called 'c'\. Known: a, b\.$"):
        one_of("c", ("a", "b"), "data")


def test_a_number_that_cannot_be_one_is_named():
    check_numbers(2**32 - 1, epochs=1, learning_rate=1e-9)
    for name, number in [("epochs", 0), ("rank", -1), ("learning_rate", float("nan"))]:
        with pytest.raises(StudyError, match=f"{name} must be above 0, and is {number}"):
            check_numbers(0, **{name: number})
    for seed in (-1, 2**32):
        with pytest.raises(StudyError, match=f"seed must be from 0 to 4294967295, and is {seed}"):
            check_numbers(seed)


# --- files that people edit, or that a disk has damaged: a value or one sentence, never another error --------------------

GENERATION = generations.Generation(
    "k", 0, "a1", "It rains.", "negation", {}, "toy", {}, "1. x", "stop", "toy", 1, None
)
LINE = json.dumps(asdict(GENERATION)) + "\n"
FILES = {
    "results.csv": (
        f"{','.join(measurements.COLUMNS)}\ns,b,m,d,3,1.5,,,toy,,\n",
        lambda file: measurements.validate(measurements.read(file), str(file)), ResultsError,
    ),
    "generations.jsonl": (LINE, lambda file: list(generations.read(file)), StudyError),
    "recording.jsonl": (
        LINE,
        lambda file: outcomes.results(*outcomes.load_recording(file), file), StudyError,
    ),
}  # fmt: skip


def damaged(text):
    """A file's bytes, cut, with bytes replaced, or with something put in."""
    raw = text.encode()
    place = st.integers(0, len(raw))
    piece = st.binary(max_size=4) | st.sampled_from(
        [b'"', b",", b"\n", b"\x00", b"\xff", b"null", b"[" * 2000, b"-1", b"{}"]
    )
    put = st.tuples(place, place, piece).map(lambda cut: raw[: cut[0]] + cut[2] + raw[cut[1] :])
    return st.one_of(put, put, st.binary(max_size=40), st.just(b""))


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=150)
@given(data=st.data())
def test_a_damaged_file_is_read_or_named(name, tmp_path_factory, data):
    text, read, kind = FILES[name]
    file = tmp_path_factory.getbasetemp() / name
    file.write_bytes(data.draw(damaged(text)))
    try:
        read(file)
    except kind as error:
        assert str(error) and "\n" not in str(error)


@pytest.mark.parametrize("name", FILES)
def test_the_sound_files_of_these_tests_are_read(name, tmp_path):
    text, read, _ = FILES[name]
    (tmp_path / name).write_text(text)
    assert len(read(tmp_path / name))


def test_a_folder_in_place_of_a_recording_is_named(tmp_path):
    with pytest.raises(StudyError, match=r"No answers in .*Give a file of generations"):
        outcomes.load_recording(tmp_path)


def test_a_table_of_measurements_that_is_none_is_one_sentence(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "07_x.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ResultsError, match=r"07_x\.csv can't be read.*Run the notebook again that wrote it"):
        measurements.read(tmp_path / "results" / "07_x.csv")
    pd.DataFrame(columns=measurements.COLUMNS).to_csv(tmp_path / "results" / "07_x.csv", index=False)
    assert measurements.read(tmp_path / "results" / "07_x.csv").empty
