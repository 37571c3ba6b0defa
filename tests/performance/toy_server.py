"""A language model's server that answers everything after a while, as a process of its own: `toy_server.py DELAY`."""

import asyncio
import atexit
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from nblib.synthesis import client, generations, prompts
from nblib.synthesis.client import Server

CONCURRENCY, DELAY = 64, 0.25  # requests at once, seconds


async def serve(delay):
    """Answer everything after a while, with as little work as can be."""
    replies = []
    for labels in prompts.KINDS.values():
        text = "\n".join(f'{n}. "{label}": It is {label} now.' for n, label in enumerate(labels, 1))
        choices = [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
        usage = {"prompt_tokens": 150, "completion_tokens": 60}
        body = json.dumps({"model": "toy", "choices": choices, "usage": usage})
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        replies.append((head + body).encode())

    async def connection(reader, writer):
        try:
            while True:
                asked = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in asked.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                question = await reader.readexactly(int(length.split(b":")[1]))
                await asyncio.sleep(delay)
                writer.write(replies[b"hedging" in question])
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def start(delay: float) -> Server:
    """The server as a process of its own, until this one ends."""
    process = subprocess.Popen([sys.executable, __file__, str(delay)], stdout=subprocess.PIPE, text=True)
    atexit.register(process.kill)
    return Server("toy", f"http://127.0.0.1:{process.stdout.readline().strip()}/v1", concurrency=CONCURRENCY)


def anchors(n: int) -> pd.DataFrame:
    """Anchors that make that many questions, each of its own text."""
    return pd.DataFrame(
        {"id": f"a{k}", "anchor": f"Plane number {k} is flying in the clouds and blue sky."} for k in range(n // 2)
    )


def ask(server: Server, n: int) -> list[str]:
    """The answers to that many questions, by the study's client."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(client.generate(anchors(n), server, Path(folder) / "generations.jsonl"))
        return [generation.answer for generation in generations.read(Path(folder) / "generations.jsonl")]


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
