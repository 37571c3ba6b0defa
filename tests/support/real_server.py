"""A real OpenAI-compatible server with a real small language model, on the loopback: `transformers serve` with Gemma 3 270M."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from nblib import paths
from nblib.models import language_models

MODEL = "gemma-3-270m-q4"
FRAME = paths.DATA / "synthesis" / "chat_templates" / "worked_examples.jinja"
STARTED = 300  # seconds until it must have


class RealServer:
    """A context manager: the server as a process of its own, which writes what it says to `log`.

    It runs in the parent of the model's folder, so that the model's name there is its registered one, whatever the machine.
    """

    def __init__(self, log: Path) -> None:
        self.log = log

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def asked(self) -> int:
        """How many chat completions it was asked for and has answered, by its own log."""
        return self.log.read_text().count("POST /v1/chat/completions")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> "RealServer":
        folder = language_models.folder(MODEL)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        frame = json.dumps({"chat_template": FRAME.read_text(encoding="utf-8")})
        command = [
            Path(sys.executable).with_name("transformers"), "serve", folder.name, "--device=cpu", "--dtype=bfloat16",
        ]  # fmt: skip
        command += ["--host=127.0.0.1", f"--port={self.port}", "--chat-template-kwargs", frame]
        with self.log.open("wb") as log:
            environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
            self.process = subprocess.Popen(command, cwd=folder.parent, env=environment, stdout=log, stderr=log)
        try:
            self.wait()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def wait(self) -> None:
        end = time.monotonic() + STARTED
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        raise AssertionError(f"the server did not start:\n{self.log.read_text()[-3000:]}")
