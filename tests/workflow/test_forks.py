"""Forks instead of fresh processes: they do the same, pass signals on, and none outlives its client."""

import os
import signal
import subprocess
import sys
import textwrap

import psutil
import pytest
from support.processes import await_forks

from nblib import paths
from nblib.workflow import forks

pytestmark = pytest.mark.skipif(not forks.possible(), reason="forks need Linux without a GPU")
WORK = """
    import json, os, sys, time

    def tell():
        print(json.dumps({"arguments": sys.argv[1:], "folder": os.getcwd(), "word": os.environ.get("WORD"),
                          "parent": os.getppid(), "first": sys.path[0]}))
        print("a warning", file=sys.stderr)
        print("read:", sys.stdin.readline(), end="")

    def fail():
        raise SystemExit(7)

    def die():
        os.kill(os.getpid(), 9)

    def wait():
        try:
            print(os.getpid(), flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            raise SystemExit(130)
"""


@pytest.fixture(scope="module")
def server():
    """A server without libraries, and its process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setattr(forks, "LIBRARIES", ())
        with forks.serving():
            await_forks()
            yield next(child for child in psutil.Process().children() if "--serve" in child.cmdline())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work.py").write_text(textwrap.dedent(WORK))
    return tmp_path


def start(folder, function, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", forks.__name__, f"work:{function}", *arguments], cwd=folder, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(paths.PROJECT_ROOT), **environment},
    )  # fmt: skip


def gone(pid):
    """Whether a process ends within seconds."""
    try:
        psutil.Process(pid).wait(10)
    except psutil.NoSuchProcess:
        pass
    except psutil.TimeoutExpired:
        return False
    return True


def test_a_fork_has_its_clients_arguments_folder_environment_and_streams(server, folder):
    said, warned = start(folder, "tell", "one", "two words", WORD="ja").communicate("a line\n", timeout=60)
    told = (
        f'{{"arguments": ["one", "two words"], "folder": "{folder}", "word": "ja", "parent": {server.pid}, '
        f'"first": "{folder}"}}'
    )
    assert said == f"{told}\nread: a line\n" and warned == "a warning\n"


@pytest.mark.parametrize(("function", "status"), [("fail", 7), ("die", 128 + 9), ("absent", 1)])
def test_a_client_ends_as_its_fork_does(server, folder, function, status):
    client = start(folder, function)
    _, warned = client.communicate(timeout=60)
    assert client.returncode == status
    assert function != "absent" or "AttributeError: module 'work' has no attribute 'absent'" in warned


def test_an_interrupt_reaches_the_fork(server, folder):
    client = start(folder, "wait")
    assert int(client.stdout.readline()) != client.pid
    client.send_signal(signal.SIGINT)
    assert client.communicate(timeout=60)[0] == "interrupted\n" and client.returncode == 130


def test_a_fork_whose_client_is_killed_is_stopped(server, folder):
    client, other = start(folder, "wait"), start(folder, "wait")
    pid, others = (int(one.stdout.readline()) for one in (client, other))
    client.kill()
    assert gone(pid) and psutil.pid_exists(others)
    other.send_signal(signal.SIGTERM)
    assert other.wait(60) == 128 + 15


def test_a_client_whose_parent_is_killed_ends_and_its_fork_with_it(server, folder):
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-m', '{forks.__name__}', 'work:wait'])"
    parent = subprocess.Popen(
        [sys.executable, "-c", nested], cwd=folder, text=True, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(paths.PROJECT_ROOT)},
    )  # fmt: skip
    pid = int(parent.stdout.readline())
    parent.kill()
    assert gone(pid)


def test_many_at_once(server, folder):
    clients = [start(folder, "fail") for _ in range(12)]
    assert [client.wait(60) for client in clients] == [7] * 12
    assert not server.children()


@pytest.mark.parametrize("how", ["no server", "a server that is gone", "other threads"])
def test_without_a_server_for_it_a_client_does_the_work_itself(server, folder, monkeypatch, how):
    if how == "no server":
        monkeypatch.delenv(forks.ADDRESS)
    elif how == "a server that is gone":
        monkeypatch.setenv(forks.ADDRESS, str(folder / "forks"))
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
    client = start(folder, "wait")
    assert int(client.stdout.readline()) == client.pid
    client.kill()
    client.wait()


def test_where_a_fork_could_not_use_a_gpu_no_server_is_run(monkeypatch, folder):
    monkeypatch.setattr(forks, "GPUS", (str(folder),))
    monkeypatch.delenv(forks.ADDRESS, raising=False)
    with forks.serving():
        assert forks.ADDRESS not in os.environ and forks.connect() is None


def test_a_server_ends_with_its_block_or_its_process_and_its_forks_with_it(folder, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv(forks.ADDRESS, raising=False)
    monkeypatch.setattr(forks, "LIBRARIES", ())
    with forks.serving():
        await_forks()
        client = start(folder, "wait")
        pid = int(client.stdout.readline())
    assert gone(pid) and client.wait(60) == 128 + 15 and forks.ADDRESS not in os.environ

    nested = f"""
        import os, subprocess, sys, time
        from nblib.workflow import forks
        forks.LIBRARIES = ()
        with forks.serving():
            while not forks.connect():
                time.sleep(0.05)
            subprocess.run([sys.executable, "-m", "{forks.__name__}", "work:wait"])
    """
    host = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(nested)], cwd=folder, text=True, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(paths.PROJECT_ROOT)},
    )  # fmt: skip
    pid = int(host.stdout.readline())
    server = psutil.Process(pid).ppid()
    host.kill()
    assert gone(pid) and gone(server)
