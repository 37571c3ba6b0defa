"""The command: it helps, it is quick to say so, and it says in one line what the user can mend."""

import errno
from types import SimpleNamespace

import pytest

from nblib.errors import StudyError
from nblib.workflow import cli


def test_its_help_lists_every_command_and_each_explains_its_options(capsys):
    commands = cli.parser()._subparsers._group_actions[0].choices
    for arguments in [[], *([name] for name in commands)]:
        with pytest.raises(SystemExit, match="0"):
            cli.main([*arguments, "--help"])
        said = capsys.readouterr().out
        if arguments:
            assert f"nblib {arguments[0]} " in said.split("examples:")[1]
        else:
            assert all(name in said.split("commands:")[1] for name in ("run", "score", "report", "record", "unpack"))
    assert all(option.help for command in commands.values() for option in command._actions)


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (StudyError("mend this"), 2, "error: mend this\n"),
        (FileNotFoundError("not there"), 2, "error: not there\n"),
        (OSError(errno.ENOSPC, "No space left", "/a/b"), 2, "error: No space left: /a/b. Free some space and"),
        (OSError(errno.EISDIR, "Is a directory", "runs"), 2, "error: Is a directory: runs. Mend that and run"),
        (KeyboardInterrupt(), 130, "error: interrupted. Run the same command to go on: what is finished is kept.\n"),
        (KeyError("x"), 1, "Traceback"),
    ],
)
def test_what_the_user_can_mend_is_one_sentence_and_a_fault_of_the_package_has_its_traceback(
    monkeypatch, capsys, error, status, said
):
    def fail(given):
        raise error

    command = SimpleNamespace(parse_args=lambda arguments: SimpleNamespace(run=fail))
    monkeypatch.setattr(cli, "parser", lambda: command)
    with pytest.raises(SystemExit, match=str(status)):
        cli.main([])
    shown = capsys.readouterr().err
    assert shown.startswith(said)
    assert status != 1 or "error: a fault in nblib (KeyError: 'x'). Please report" in shown.splitlines()[-1]
