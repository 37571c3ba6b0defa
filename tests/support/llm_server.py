"""A scripted OpenAI-compatible server on the loopback: gives scripted replies, and counts requests."""

import asyncio
import base64
import json
import re
import threading
import time
from dataclasses import dataclass, field

USAGE = {"prompt_tokens": 50, "completion_tokens": 30, "total_tokens": 80}


@dataclass
class Reply:
    """What to send, after how many seconds; `drop` closes the connection instead, "before" or in the "middle" of the body.

    A header None isn't sent. `drip` goes on after the body: a chunk, again and again, with a pause in seconds between. `raw`
    is all that is sent, whatever it is.
    """

    status: int = 200
    body: bytes = b""
    headers: dict = field(default_factory=dict)
    delay: float = 0.0
    drop: str = ""
    drip: tuple[bytes, float] | None = None
    raw: bytes = b""


@dataclass
class Call:
    """What was asked, and when (by the monotonic clock) a complete 200 was sent back."""

    method: str
    path: str
    headers: dict
    body: bytes
    answered: float | None = None

    @property
    def prompt(self):
        return json.loads(self.body)["messages"][0]["content"]


def chat(text, finish="stop", usage=USAGE, model="toy", **more):
    """The reply that holds a chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **more}, "finish_reason": finish}
    return json_reply(
        {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage}
    )


def json_reply(content, status=200, **headers):
    return Reply(status, json.dumps(content).encode(), {"Content-Type": "application/json", **headers})


def error(status, message="no luck", code=None, **headers):
    return json_reply({"error": {"message": message, "code": code}}, status, **headers)


def good(prompt):
    """A usable answer to one of the paper's prompts."""
    text = re.search(r"^Text: (.*)$", prompt, re.M)[1].rstrip(".")
    labels = ["verbal", "absolute", "affixal", "lexical"] if "Negate" in prompt else ["word", "phrase"]
    return "\n".join(f'{place}. "{label}": {text}, {label[::-1]}.' for place, label in enumerate(labels, start=1))


def echoes(key):
    """The forms in which a server may echo a key, by name."""
    raw = key.encode()
    return {
        "plain": key, "reversed": key[::-1], "upper": key.upper(), "percent": "".join(f"%{byte:02X}" for byte in raw),
        "json": "".join(f"\\u{byte:04x}" for byte in raw), "html": "".join(f"&#{byte};" for byte in raw),
        "hex": raw.hex(), "base64": base64.b64encode(raw).decode(),
        "basic": base64.b64encode(b":" + raw).decode(), "in base64": base64.b64encode(b"Bearer " + raw + b"\n").decode(),
        "safe": base64.urlsafe_b64encode(b"??" + raw).decode(),
    }  # fmt: skip


def traces(key):
    """What must be nowhere of each of these: in base64 the signs at both ends belong to the neighbours, too."""
    return {form: echo.strip("=")[4:-4] for form, echo in echoes(key).items()}


class LLMServer:
    """A context manager; `handle(call, number)` gives the reply to the number-th call (from 0), or None for a good answer."""

    def __init__(self, handle=lambda call, number: None, port=0):
        self.handle, self.port, self.calls, self.together, self.most_together = handle, port, [], 0, 0

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def answered(self):
        """The prompts of the calls that got a complete 200."""
        return [call.prompt for call in self.calls if call.answered is not None]

    def __enter__(self):
        ready = threading.Event()

        async def serve():
            self.loop = asyncio.get_running_loop()
            self.server = await asyncio.start_server(self.connection, "127.0.0.1", self.port, backlog=1024)
            self.port = self.server.sockets[0].getsockname()[1]
            self.done = asyncio.Event()
            ready.set()
            await self.done.wait()
            self.server.close()

        self.thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
        self.thread.start()
        assert ready.wait(10)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.done.set)
        self.thread.join(10)

    async def connection(self, reader, writer):
        try:
            while (call := await self.read(reader)) is not None:
                self.calls.append(call)
                self.together += 1
                self.most_together = max(self.most_together, self.together)
                try:
                    if not await self.reply(call, len(self.calls) - 1, writer):
                        return
                finally:
                    self.together -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def read(self, reader):
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        method, path, _ = first.split(" ")
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Call(method, path, headers, body)

    async def reply(self, call, number, writer):
        reply = self.handle(call, number) or chat(good(call.prompt))
        await asyncio.sleep(reply.delay)
        if reply.drop == "before":
            writer.transport.abort()
            return False
        headers = {"Content-Length": len(reply.body), **reply.headers}
        lines = "".join(
            f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items() if value is not None
        )
        body = reply.body[: len(reply.body) // 2] if reply.drop else reply.body
        writer.write(reply.raw or f"HTTP/1.1 {reply.status} Said\r\n{lines}\r\n".encode() + body)
        await writer.drain()
        while reply.drip and not self.done.is_set():
            writer.write(reply.drip[0])
            await writer.drain()
            await asyncio.sleep(reply.drip[1])
        if reply.drop or reply.raw:
            return False
        if reply.status == 200 and not writer.transport.is_closing():
            call.answered = time.monotonic()
        return True
