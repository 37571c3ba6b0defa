"""A scripted server with OpenAI's API on the loopback: it gives the replies it is told to, and counts the calls."""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd

USAGE = {"prompt_tokens": 50, "completion_tokens": 30}


def anchors(n):
    """So many anchors: id, anchor."""
    return pd.DataFrame({"id": f"a{k}", "anchor": f"House number {k} has a red door."} for k in range(n))


def chat(content, finish="stop", usage=USAGE, **message):
    """The reply that holds a chat completion: status and content."""
    choice = {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return 200, {"choices": [choice], "model": "toy", "usage": usage}


def error(status, message="no luck"):
    """The reply that holds an error."""
    return status, {"error": {"message": message}}


def good(prompt):
    """A usable answer to one of the paper's prompts."""
    text = re.search(r"^Text: (.*)$", prompt, re.M)[1].rstrip(".")
    labels = ["verbal", "absolute", "affixal", "lexical"] if "Negate" in prompt else ["word", "phrase"]
    return "\n".join(f'{n}. "{label}": {text}, {label[::-1]}.' for n, label in enumerate(labels, start=1))


class LLMServer(ThreadingHTTPServer):
    """A context manager.

    `handle(prompt, number)` gives the reply to the number-th call (from 0): status and content (JSON, or a text as it is), "drop"
    for none, or None for a good answer. Each takes `seconds`. `prompts`, `bodies`, `keys` and `paths` are what was asked.
    """

    daemon_threads, request_queue_size = True, 128

    def __init__(self, handle=lambda prompt, number: None, seconds=0.0):
        super().__init__(("127.0.0.1", 0), _Connection)
        self.handle, self.seconds, self.lock = handle, seconds, threading.Lock()
        self.bodies, self.keys, self.paths, self.together, self.most_together = [], set(), set(), 0, 0
        self.base_url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def prompts(self):
        return [body["messages"][0]["content"] for body in self.bodies]

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body, server = json.loads(self.rfile.read(int(self.headers["Content-Length"]))), self.server
        prompt = body["messages"][0]["content"]
        with server.lock:
            number = len(server.bodies)
            server.bodies.append(body)
            server.keys.add(self.headers["Authorization"] or self.headers["api-key"])
            server.paths.add(self.path)
            server.together += 1
            server.most_together = max(server.most_together, server.together)
        time.sleep(server.seconds)
        reply = server.handle(prompt, number) or chat(good(prompt))
        with server.lock:
            server.together -= 1
        if reply == "drop":
            self.close_connection = True
            return
        plain = isinstance(reply[1], str)
        sent = (reply[1] if plain else json.dumps(reply[1])).encode()
        self.send_response(reply[0])
        self.send_header("Content-Type", "text/html" if plain else "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        pass
