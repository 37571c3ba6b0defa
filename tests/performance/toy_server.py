"""A language model's server that answers everything after a while, as a process of its own: `toy_server.py DELAY`."""

import asyncio
import atexit
import json
import subprocess
import sys
from collections.abc import Iterator

from nblib.synthesis import client, prompts
from nblib.synthesis.client import Request, Server

CONCURRENCY, DELAY = 64, 0.25  # requests at once, seconds


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


def start(delay: float) -> Server:
    """The server as a process of its own, until this one ends."""
    process = subprocess.Popen([sys.executable, __file__, str(delay)], stdout=subprocess.PIPE, text=True)
    atexit.register(process.kill)
    return Server("toy", f"http://127.0.0.1:{process.stdout.readline().strip()}/v1", concurrency=CONCURRENCY)


def requests(n: int) -> Iterator[Request]:
    """That many of the study's own questions."""
    prompt = prompts.prompt("negation", "A yellow and black plane is flying in the clouds and blue sky.", {})
    return (Request(f"q{k}", prompt) for k in range(n))


def ask(server: Server, n: int) -> list[str]:
    """The answers to that many questions, by the study's client."""
    answers = []
    asyncio.run(client.ask(server, requests(n), lambda request, answer: answers.append(answer.text), total=n))
    return answers


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
