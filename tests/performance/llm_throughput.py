"""`python tests/performance/llm_throughput.py`: the client's rate against the ideal one, and its memory as the job grows.

The server is another process (`… server DELAY` starts it alone). Not a test: a busy machine's rates vary.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from nblib.synthesis import client, prompts, run
from nblib.synthesis.client import Request, Server

CONCURRENCY, DELAY = 64, 0.5  # requests at once, seconds


async def serve(delay):
    """Answer everything after a while, with as little work as can be."""
    text = "\n".join(
        f'{n}. "{label}": It is {label} now.' for n, label in enumerate(("verbal", "absolute", "affixal", "lexical"), 1)
    )
    text += '\n5. "word": It may be.\n6. "phrase": It is not clear.'
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 150, "completion_tokens": 60, "total_tokens": 210}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "toy", "choices": choices, "usage": usage}
    )
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    reply = (head + body).encode()

    async def connection(reader, writer):
        try:
            while True:
                asked = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in asked.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.split(b":")[1]))
                await asyncio.sleep(delay)
                writer.write(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


class Running:
    """The server as a process of its own."""

    def __init__(self, delay):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "server", str(delay)], stdout=subprocess.PIPE, text=True
        )
        port = self.process.stdout.readline().strip()
        self.server = Server("toy", f"http://127.0.0.1:{port}/v1", concurrency=CONCURRENCY)

    def __enter__(self):
        return self.server

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def memory():
    """What this process has in memory now, MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def requests(n):
    prompt = prompts.prompt("negation", "A yellow and black plane is flying in the clouds and blue sky.", {})
    return (Request(f"q{k}", prompt) for k in range(n))


def ask(server, n):
    asyncio.run(client.ask(server, requests(n), lambda request, answer: None, total=n))


def rate(n=2000):
    ideal = CONCURRENCY / DELAY
    with Running(DELAY) as server:
        ask(server, CONCURRENCY)  # connections, imports
        spent, started = time.process_time(), time.perf_counter()
        ask(server, n)
        took, spent = time.perf_counter() - started, time.process_time() - spent
        say(
            f"client: {n} requests at {CONCURRENCY} at once, {DELAY * 1000:.0f} ms each: {took:.1f} s, {n / took:.1f}/s, "
            f"{100 * n / took / ideal:.1f} % of the ideal {ideal:.0f}/s; {1000 * spent / n:.2f} ms of processor a request"
        )
        anchors = pd.DataFrame(
            {"id": range(n // 2), "anchor": [f"House {k} has a red door." for k in range(n // 2)]}
        ).astype(str)
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            asyncio.run(run.generate(anchors, server, Path(folder) / "generations.jsonl", attempts=1))
            took = time.perf_counter() - started
        say(
            f"synthesis, parsed and kept on disk: {took:.1f} s, {n / took:.1f}/s, {100 * n / took / ideal:.1f} % of the ideal"
        )


def flatness(largest):
    with Running(0.0) as server:
        ask(server, CONCURRENCY)
        for n in [size for size in (1_000, 10_000, 100_000) if size <= largest]:
            peak, asked = 0.0, 0
            started = time.perf_counter()

            def keep(request, answer):
                nonlocal peak, asked
                asked += 1
                if asked % 100 == 0:
                    peak = max(peak, memory())

            asyncio.run(client.ask(server, requests(n), keep, total=n))
            say(f"memory, {n:,} requests: at most {peak:.1f} MiB ({time.perf_counter() - started:.0f} s)")


def say(line):
    tqdm.write(line, file=sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["server"]:
        asyncio.run(serve(float(sys.argv[2])))
    else:
        say(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        rate()
        flatness(int(sys.argv[1]) if sys.argv[1:] else 100_000)
