"""Processes that start others."""

import sys
import time

from nblib.workflow import forks


def await_forks() -> None:
    """Until the server of forks is ready."""
    deadline = time.monotonic() + 120
    while not (connection := forks.connect()):
        assert time.monotonic() < deadline, "the server isn't ready"
        time.sleep(0.05)
    connection.close()


def tell_modules() -> None:
    """What is imported here."""
    sys.stdout.write(" ".join(sys.modules))
