"""Errors that a user can mend: one sentence, whatever went wrong underneath."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from nblib.errors import StudyError, check_numbers, check_parameters, readable
from nblib.results import ResultsError


def test_a_notebook_shows_the_sentence_alone(capsys):
    shell = InteractiveShell()
    for error, lines in [("errors.StudyError('mend this')", 1), ("ValueError('a fault')", 3)]:
        shell.run_cell(f"from nblib import errors\nraise {error}")
        shown = capsys.readouterr().out.strip().splitlines()
        assert len(shown) >= lines and (shown == ["StudyError: mend this"]) == (lines == 1)


def test_whatever_a_parser_raises_is_one_sentence_with_file_and_remedy():
    sentence = r"^/a/b\.csv can't be read, .*\(OSError: x y\)\. Mend it\.$"
    with pytest.raises(ResultsError, match=sentence), readable("/a/b.csv", "Mend it.", ResultsError):
        raise OSError("x\n y")
    for own in (StudyError("as it is"), FileNotFoundError(2, "none"), PermissionError(13, "no")):
        with pytest.raises(type(own)) as failure, readable("f", "r"):
            raise own
        assert failure.value is own


def test_a_number_that_cannot_be_one_is_named():
    check_numbers(2**32 - 1, epochs=1, learning_rate=1e-9)
    for seed, number, named in [(0, 0, "epochs"), (0, float("nan"), "epochs"), (-1, 1, "seed"), (2**32, 1, "seed")]:
        with pytest.raises(StudyError, match=f"^{named} must be"):
            check_numbers(seed, epochs=number)


def test_a_parameter_of_another_type_is_named_with_how_papermill_takes_it():
    declared = {"system": str, "size": int, "share": float, "encoders": list}
    given = {"system": "007", "size": 1, "share": 1, "encoders": [], "__annotations__": declared}
    check_parameters(given)
    check_parameters({})
    for name, value, how in [("system", 7, "-r system"), ("encoders", "[a]", "-y 'enc"), ("size", True, "a int")]:
        with pytest.raises(StudyError, match=f"^{name} must be .*{how}"):
            check_parameters({**given, name: value})
