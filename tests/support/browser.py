"""A headless Chromium driven over its DevTools protocol: what a page asks for, what it complains of, what a script answers."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import websocket

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
COMPLAINTS = ("Runtime.exceptionThrown", "Page.javascriptDialogOpening", "Network.loadingFailed", "Log.entryAdded")


class Browser:
    """One tab.

    Attributes:
        requests: the addresses that pages asked for since `open`.
        complaints: errors and warnings of the console, exceptions and dialogues since `open`.
    """

    def __init__(self, socket: websocket.WebSocket) -> None:
        self.socket, self.ids, self.requests, self.complaints = socket, itertools.count(1), [], []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)  # else newer versions send no focus event

    def send(self, method: str, **parameters: object) -> dict:
        """Call a method of the protocol and wait for its answer."""
        number = self._call(method, parameters)
        return self._until(lambda message: message.get("id") == number).get("result", {})

    def open(self, file: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.requests.clear()
        self.complaints.clear()
        self._call("Page.navigate", {"url": file.as_uri()})  # its answer may come after the load event
        self._until(lambda message: message.get("method") == "Page.loadEventFired")

    def evaluate(self, script: str) -> object:
        """The value of a JavaScript expression in the page."""
        return self.send("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def _call(self, method: str, parameters: dict) -> int:
        number = next(self.ids)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        return number

    def _until(self, wanted) -> dict:
        while True:
            message = json.loads(self.socket.recv())
            method, params = message.get("method", ""), message.get("params", {})
            if method == "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            elif method in COMPLAINTS or params.get("type") in ("error", "warning"):
                self.complaints.append(params)
            if wanted(message):
                return message


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile, closed at the end."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
               f"--user-data-dir={profile}", "--remote-debugging-port=0", "--remote-allow-origins=*", "about:blank"]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = next(found[0] for line in process.stderr if (found := re.search(r"ws://\S+", line)))
            control = websocket.create_connection(address, timeout=60)
            control.send(json.dumps({"id": 1, "method": "Target.getTargets"}))
            targets = json.loads(control.recv())["result"]["targetInfos"]
            tab = next(target["targetId"] for target in targets if target["type"] == "page")
            page = websocket.create_connection(address.split("/devtools")[0] + f"/devtools/page/{tab}", timeout=60)
            yield Browser(page)
        finally:
            process.terminate()
