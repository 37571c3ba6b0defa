"""The command: it helps, it is quick to say so, and it says in one line what the user can mend."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from nblib.errors import StudyError
from nblib.workflow import cli


def test_its_help_lists_every_command_and_each_explains_its_options(capsys):
    for arguments in [[], ["run"], ["study"], ["report"], ["record"], ["export"], ["unpack"]]:
        with pytest.raises(SystemExit, match="0"):
            cli.main([*arguments, "--help"])
        said = capsys.readouterr().out
        if not arguments:
            listed = said.split("commands:")[1]
            assert all(name in listed for name in ("run", "study", "report", "record", "export", "unpack"))
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
