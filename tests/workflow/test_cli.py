"""The command: it helps, it is quick to say so, and it says in one line what the user can mend."""

import contextlib
import errno
import io
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nblib import paths
from nblib.errors import StudyError
from nblib.workflow import cli


def test_its_help_lists_every_command_and_each_explains_its_options(capsys):
    for arguments in [[], ["run"], ["report"], ["record"], ["unpack"]]:
        with pytest.raises(SystemExit, match="0"):
            cli.main([*arguments, "--help"])
        said = capsys.readouterr().out
        if not arguments:
            listed = said.split("commands:")[1]
            assert all(name in listed for name in ("run", "report", "record", "unpack"))
        else:
            assert "examples:" in said
            assert f"nblib {arguments[0]} " in said.split("examples:")[1]
    for action in cli.parser()._subparsers._group_actions[0].choices.values():
        assert all(option.help for option in action._actions), action.prog


def test_an_unknown_command_is_a_usage_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["scroe"])
    assert "invalid choice: 'scroe'" in capsys.readouterr().err


@pytest.mark.parametrize("error", [StudyError("mend this"), FileNotFoundError("not there"), PermissionError("no")])
def test_what_the_user_can_mend_is_one_line_and_status_2(monkeypatch, capsys, error):
    def fail(arguments):
        raise error

    command = SimpleNamespace(parse_args=lambda arguments: SimpleNamespace(run=fail))
    monkeypatch.setattr(cli, "parser", lambda: command)
    with pytest.raises(SystemExit, match="2"):
        cli.main([])
    assert capsys.readouterr().err == f"error: {error}\n"


def test_its_help_imports_nothing_slow():
    code = "import json, sys; from nblib.workflow import cli; cli.parser(); print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {"torch", "mteb", "pandas", "matplotlib", "papermill", "grimp"}
    assert not slow & set(json.loads(done.stdout))


def fails(monkeypatch, error):
    def fail(arguments):
        raise error

    command = SimpleNamespace(parse_args=lambda arguments: SimpleNamespace(run=fail))
    monkeypatch.setattr(cli, "parser", lambda: command)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "/a/b"),
            "No space left on device: /a/b. Free some space and run",
        ),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x"), "File name too long: x. Choose a shorter name."),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "runs"), "Is a directory: runs. Mend that and run the same"),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "x"),
            "No such file or directory: x. Check the path.",
        ),
    ],
)
def test_an_error_of_the_system_is_a_sentence_with_file_and_remedy(monkeypatch, capsys, error, said):
    fails(monkeypatch, error)
    with pytest.raises(SystemExit, match="2"):
        cli.main([])
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_an_interrupt_says_how_to_go_on(monkeypatch, capsys):
    fails(monkeypatch, KeyboardInterrupt())
    with pytest.raises(SystemExit, match="130"):
        cli.main([])
    assert capsys.readouterr().err == "error: interrupted. Run the same command to go on: what is finished is kept.\n"


def test_a_fault_of_the_package_keeps_its_traceback(monkeypatch, capsys):
    fails(monkeypatch, KeyError("x"))
    with pytest.raises(SystemExit, match="1"):
        cli.main([])
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.splitlines()[-1] == "error: a fault in nblib (KeyError: 'x'). Please report it with the lines above."


def test_a_reader_who_stops_reading_is_no_error():
    command = f"{sys.executable} -m nblib.workflow.cli unpack --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


WORDS = [
    "run", "score", "train", "report", "unpack", "record", "--data", "mini", "official", "--run-dir",
    "--scale", "x", "..", "../../x", "/", "~", "-p", "seed=1", "-y", "{a", "07", "out.ipynb", "nope", "é",
    "--general", "--to", "-1", "*", "--benchmarks", "nope:nope", "maxsim:", "+", "--", "%s", "",
    "x" * 300,
]  # fmt: skip


@settings(max_examples=60)
@given(
    words=st.tuples(
        st.sampled_from(["run", "report", "unpack", "record"]), st.lists(st.sampled_from(WORDS), max_size=4)
    )
)
def test_any_command_line_ends_in_success_usage_or_one_sentence(words, tmp_path_factory):
    """Commands that touch no model, in a project of their own: nothing outside it may change."""
    root = tmp_path_factory.mktemp("project", numbered=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, folder in {
            "PROJECT_ROOT": "",
            "FIGURES": "figures",
            "CONFIG": "config",
            "NOTEBOOKS": "notebooks",
        }.items():
            (root / folder).mkdir(exist_ok=True)
            patch.setattr(paths, name, root / folder)
        patch.setenv("NBLIB_CACHE", str(root / "cache"))
        patch.setenv("HOME", str(root))
        patch.chdir(root)
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr), contextlib.redirect_stdout(io.StringIO()):
            try:
                cli.main([words[0], *words[1]])
            except SystemExit as end:
                assert end.code in (0, 2), stderr.getvalue()
    assert "Traceback" not in stderr.getvalue()
