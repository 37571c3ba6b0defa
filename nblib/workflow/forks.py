"""Start the jobs of a study as forks of one process that has imported the libraries.

Importing them takes a job and its kernel some seven seconds of computing; a fork starts in a tenth of a second. `serving()` runs
that process, the server. While it does, `python -m nblib.workflow.cli` and the kernels of `nblib run` are clients: each lets a
fork do its work, passes signals on to it and ends with its exit status; a fork whose client dies is stopped. Without a server, or
before it is ready, each does its work itself.

`python -m nblib.workflow.forks MODULE:FUNCTION ARGUMENT...` calls a function in this way.
"""

import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADDRESS = "NBLIB_FORKS"  # the environment variable with the server's socket
LONGEST = 2**20  # bytes of a message
PATIENCE = 1.0  # seconds after which a client looks whether its parent is still there

# Neither matplotlib nor ipykernel, which read the environment when they are imported, and a kernel has its own; nor mteb, whose
# polars starts threads
LIBRARIES = ("papermill", "IPython", "pandas", "scipy.stats", "sentence_transformers", "peft")

FIXED = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # which libraries read once
GPUS = ("/dev/nvidiactl", "/dev/kfd")  # one of these is there where a GPU of NVIDIA or AMD is

# glibc returns each large tensor's memory to the system; keeping it makes training on a CPU 1.4 times as fast
# (all-mpnet-base-v2, 96 texts a step). Other C libraries ignore these.
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(2**32),
    "MALLOC_TRIM_THRESHOLD_": str(2**34),
    "MALLOC_TOP_PAD_": str(2**28),
}


def possible() -> bool:
    """Whether a server can be run: on Linux without a GPU.

    On other systems some libraries don't survive a fork; nor does a GPU that is in use, as it may be once a library is imported.
    """
    return hasattr(os, "pidfd_open") and not any(map(os.path.exists, GPUS))


@contextmanager
def serving() -> Iterator[None]:
    """Run a server until the end of the block, for the processes that this one starts; nothing where that isn't possible."""
    if not possible():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="nblib-") as folder:
        os.environ[ADDRESS] = str(Path(folder) / "forks")
        environment = {**os.environ, **FIXED, **KEEP_MEMORY}
        command = [sys.executable, "-m", __name__, "--serve", os.environ[ADDRESS], *LIBRARIES]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=environment)
        try:
            yield
        finally:
            del os.environ[ADDRESS]
            server.stdin.close()
            server.wait()


# --- the client -------------------------------------------------------------------------------------------------------


def connect() -> socket.socket | None:
    """A connection to the server; None where there is none (yet), or this process wants other threads than a fork has."""
    if ADDRESS not in os.environ or os.environ.get("OMP_NUM_THREADS") != FIXED["OMP_NUM_THREADS"]:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(os.environ[ADDRESS])
    except OSError:
        connection.close()
        return None
    return connection


def call(connection: socket.socket, function: str, arguments: Sequence[str]) -> int:
    """Let a fork call a function in this process's folder and environment, with its standard streams.

    Args:
        function: as MODULE:FUNCTION; it takes its arguments from `sys.argv`.

    Returns:
        The fork's exit status: 128 and the signal's number where one ended it, 1 where the server died.
    """
    here = {"folder": os.getcwd(), "environment": dict(os.environ)}
    request = {"function": function, "arguments": list(arguments), **here}
    parent, signals = os.getppid(), {signal.SIGINT, signal.SIGTERM}
    with connection:
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # until there is whom to pass them on to
        socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
        fork = int(connection.recv(LONGEST) or 0)
        if not fork:
            return 1
        for number in signals:
            signal.signal(number, lambda number, _: _send_signal(fork, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        connection.settimeout(PATIENCE)
        while os.getppid() == parent:  # else nobody wants the work any more
            with suppress(TimeoutError):
                status = int(connection.recv(LONGEST) or 1)
                return 128 - status if status < 0 else status
    return 1


def _send_signal(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


# --- the server -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fork:
    """A fork at work.

    Attributes:
        ended: a descriptor that can be read when it has.
        client: the connection to whom it works for.
    """

    pid: int
    ended: int
    client: socket.socket

    def close(self) -> None:
        """Close both."""
        self.client.close()
        os.close(self.ended)


class Server:
    """Forks for each request, until its standard input ends, as it does with the process that started this one."""

    def __init__(self, address: str) -> None:
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(address)
        self.listener.listen()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, self._accept)
        self.selector.register(sys.stdin, selectors.EVENT_READ, self._stop)
        self.forks: set[Fork] = set()
        self.stopping = False
        self.request: dict[str, Any] | None = None  # in a fork

    def run(self) -> dict[str, Any] | None:
        """Serve. Returns in a fork with its request, and when all has ended with None."""
        while self.forks or not self.stopping:
            for key, _ in self.selector.select():
                if self.selector.get_map().get(key.fd) == key:  # nothing before it has closed it
                    key.data()
                if self.request:
                    return self.request
        return None

    def _accept(self) -> None:
        client, _ = self.listener.accept()
        message, streams = b"", []
        with suppress(OSError):  # it died before it said what it wants
            message, streams, _, _ = socket.recv_fds(client, LONGEST, 3)
        if not message:
            client.close()
        elif pid := os.fork():
            fork = Fork(pid, os.pidfd_open(pid), client)
            self.forks.add(fork)
            self.selector.register(fork.ended, selectors.EVENT_READ, lambda: self._report(fork))
            self.selector.register(client, selectors.EVENT_READ, lambda: self._abandon(fork))
            with suppress(OSError):
                client.send(str(pid).encode())
        else:
            self._close()
            client.close()
            self.request = json.loads(message)
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
        for stream in streams:
            os.close(stream)

    def _report(self, fork: Fork) -> None:
        """Tell a client how its fork ended."""
        _, status = os.waitpid(fork.pid, 0)
        with suppress(OSError):
            fork.client.send(str(os.waitstatus_to_exitcode(status)).encode())
        for part in (fork.ended, fork.client):
            with suppress(KeyError):
                self.selector.unregister(part)
        self.forks.remove(fork)
        fork.close()

    def _abandon(self, fork: Fork) -> None:
        """Stop a fork whose client is dead."""
        self.selector.unregister(fork.client)
        os.kill(fork.pid, signal.SIGTERM)

    def _stop(self) -> None:
        """Stop all forks, and take no more requests."""
        self.stopping = True
        self.selector.unregister(sys.stdin)
        self.selector.unregister(self.listener)
        for fork in self.forks:
            os.kill(fork.pid, signal.SIGTERM)

    def _close(self) -> None:
        """In a fork, close what is the server's. A client's connection that stayed open here would hide its death."""
        self.selector.close()
        self.listener.close()
        for fork in self.forks:
            fork.close()


def serve(address: str, *libraries: str) -> None:
    """Import libraries, then run a server; in its forks, do as requested."""
    for name in libraries:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # forks share its memory as long as nobody writes to it
    if request := Server(address).run():
        os.setsid()  # signals come from the client alone
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.path[0] = request["folder"]  # as `python -m` has it
        _call(request["function"], request["arguments"])


def _call(function: str, arguments: Sequence[str]) -> None:
    module, _, name = function.partition(":")
    sys.argv = [function, *arguments]
    getattr(importlib.import_module(module), name)()


def main() -> None:
    """Serve, or call a function: in a fork where there is a server."""
    function, *arguments = sys.argv[1:]
    if function == "--serve":
        serve(*arguments)
    elif connection := connect():
        raise SystemExit(call(connection, function, arguments))
    else:
        _call(function, arguments)


if __name__ == "__main__":
    main()
