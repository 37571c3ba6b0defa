"""Large jobs by the Batch API of an OpenAI-compatible server: half the price, within a day (prepare, submit, collect).

A folder holds what is under way: for each batch its requests, and a small state file that is written *before* each step that
can't be taken twice. A batch bears a name of ours in its metadata: where a kill leaves open whether it was created, the server's
list tells. So whatever is killed is run again, and no batch is submitted twice.
"""

import asyncio
import json
import logging
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import openai
import pandas as pd
from tqdm.auto import tqdm

from nblib import paths
from nblib.llm_client import Keep, LLMError, Prices, Request, Server, connect
from nblib.llm_replies import describe, read

logger = logging.getLogger(__name__)

MAX_REQUESTS, MAX_BYTES = 50_000, 190_000_000  # OpenAI's limits: 50,000 requests and 200 MB a batch
ENDPOINT = "/v1/chat/completions"
WINDOW = "24h"
TRIES = 3  # at creating a batch, when it is unclear whether the last one did
ENDED = ("completed", "expired", "cancelled", "failed")


@dataclass
class _State:
    """How far one batch has come; `creating` means that it may exist though its id isn't known yet."""

    name: str
    base_url: str
    model: str
    sampling: dict
    requests: int
    input_file: str = ""
    creating: bool = False
    batch: str = ""
    status: str = "prepared"


def prepare(
    server: Server, requests: Iterable[Request], folder: str | Path, *, prices: Prices, budget: float | None = None
) -> None:
    """Cut requests into batches on disk; nothing is sent.

    Raises:
        LLMError: they could cost more than the budget.
    """
    folder = paths.writable_folder(folder)
    number = len(list(folder.glob("*.requests.jsonl")))
    prepared, bound = [], 0.0
    for part in _parts(server, requests):
        number += 1
        file = folder / f"batch-{number:04}.requests.jsonl"
        prepared.append((file, len(part)))
        with paths.write_atomically(file) as draft, draft.open("w", encoding="utf-8") as lines:
            for request in part:
                lines.write(json.dumps(asdict(request)) + "\n")
                bound += prices.bound(server.body(request)) if budget is not None else 0.0
    if budget is not None and bound > budget:
        for file, _ in prepared:
            file.unlink()
        raise LLMError(
            f"These batches can cost up to {bound:.2f}, and the budget leaves {max(budget, 0):.2f}: ask less, lower max_tokens, "
            "or raise the budget. Nothing was sent."
        )
    for file, count in prepared:  # a file of requests without a state beside it counts for nothing
        _save(_state_file(file), _State(uuid.uuid4().hex, server.base_url, server.model, dict(server.sampling), count))


def waiting(folder: str | Path) -> list[str]:
    """The batches that are prepared or under way and not collected: their ids, or the name of the state file."""
    return [state.batch or file.name for file, state in _open(folder)]


async def submit(server: Server, folder: str | Path) -> list[str]:
    """Send the prepared batches; safe to run again, and again, after a kill.

    Returns:
        the ids of all batches under way.

    Raises:
        LLMError: the server can't be reached, refuses, or is not the one the batches were prepared for.
    """
    with _plainly(server):
        async with connect(server, retries=server.attempts) as client:
            for file, state in _open(folder):
                _same_server(server, state, file)
                if not state.batch:
                    await _submit(client, server, file, state)
    return waiting(folder)


async def _submit(client: openai.AsyncOpenAI, server: Server, file: Path, state: _State) -> None:
    if not state.input_file:
        with _upload_file(server, file) as upload, upload.open("rb") as content:
            uploaded = await client.files.create(file=(f"{state.name}.jsonl", content), purpose="batch")
        state.input_file = uploaded.id
        _save(file, state)
    for turn in range(TRIES):
        if state.creating and (found := await _find(client, state.name)):
            state.batch = found
            break
        state.creating = True
        _save(file, state)
        try:
            # no retries of the library's own: the request whose answer was lost may have made a batch
            created = await client.with_options(max_retries=0).batches.create(
                input_file_id=state.input_file,
                endpoint=ENDPOINT,
                completion_window=WINDOW,
                metadata={"nblib": state.name},
            )
        except (openai.APIConnectionError, openai.InternalServerError) as error:
            logger.warning("creating a batch: %s", describe(error))
            await asyncio.sleep(server.backoff * 2**turn)
        else:
            state.batch = created.id
            break
    else:
        raise LLMError(
            f"{server.base_url} did not say whether it has created a batch ({file.name}, tried {TRIES} times). Run this again: "
            "it looks for the batch before it creates another."
        )
    state.status = "submitted"
    _save(file, state)


async def _find(client: openai.AsyncOpenAI, name: str) -> str:
    """The id of the batch that bears this name; "" where the server has none."""
    async for batch in client.batches.list(limit=100):
        if (batch.metadata or {}).get("nblib") == name:
            return batch.id
    return ""


async def collect(
    server: Server, folder: str | Path, keep: Keep, *, wait: bool = True, poll: float = 60.0
) -> pd.DataFrame:
    """Hand on the answers of the batches that have ended; safe to run again after a kill (`keep` may then get some twice).

    Args:
        wait: until all have ended; False looks once.
        poll: seconds between two looks.

    Returns:
        batch, status (the server's, "collected" added where the answers were handed on), requests, answered, note.

    Raises:
        LLMError: as `submit`, or a batch that was prepared but not submitted.
    """
    rows: dict[str, tuple] = {}
    done: dict[str, int] = {}
    todo = _open(folder)
    with _plainly(server), tqdm(total=sum(s.requests for _, s in todo), desc="batches", unit="answer") as progress:
        async with connect(server, retries=server.attempts) as client:
            while todo:
                for file, state in todo:
                    _same_server(server, state, file)
                    if not state.batch:
                        raise LLMError(f"{file} was prepared but not submitted. Submit it first.")
                    batch = await client.batches.retrieve(state.batch)
                    counts = batch.request_counts
                    state.status, done[state.name] = batch.status, counts.completed + counts.failed if counts else 0
                    answered, note = 0, _complaint(batch)
                    if batch.status in ENDED:
                        answered = await _hand_on(client, file, batch.output_file_id, keep)
                        state.status = f"{batch.status}, collected"
                        done[state.name] = state.requests
                    _save(file, state)
                    rows[state.batch] = (state.batch, state.status, state.requests, answered, note)
                progress.update(sum(done.values()) - progress.n)
                todo = [(file, state) for file, state in todo if not _collected(state)]
                if not wait or not todo:
                    break
                await asyncio.sleep(poll)
    return pd.DataFrame(list(rows.values()), columns=["batch", "status", "requests", "answered", "note"])


async def _hand_on(client: openai.AsyncOpenAI, file: Path, output: str | None, keep: Keep) -> int:
    """Fetch a batch's answers to disk, then hand them on; how many."""
    if not output:
        return 0
    fetched = file.with_suffix(".output.jsonl")
    with paths.write_atomically(fetched) as draft:
        async with client.files.with_streaming_response.content(output) as response:
            await response.stream_to_file(draft)
    asked = {request.key: request for request in _requests(file)}
    answered = 0
    with fetched.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                row = json.loads(line)
                request, response = asked[row["custom_id"]], row["response"]
                if response["status_code"] != 200:
                    continue
                answer = read(response["body"])
            except (ValueError, KeyError, TypeError) as error:  # that one is asked again
                logger.warning(
                    "%s: an answer that can't be read (%s): %.200s", fetched.name, type(error).__name__, line
                )
                continue
            keep(request, answer)
            answered += 1
    return answered


def _complaint(batch: openai.types.Batch) -> str:
    errors = batch.errors.data if batch.errors and batch.errors.data else []
    return "; ".join(str(error.message) for error in errors[:3])


# --- on disk ----------------------------------------------------------------------------------------------------------


def _parts(server: Server, requests: Iterable[Request]) -> Iterator[list[Request]]:
    part, size = [], 0
    for request in requests:
        length = len(_line(server, request))
        if part and (len(part) == MAX_REQUESTS or size + length > MAX_BYTES):
            yield part
            part, size = [], 0
        part.append(request)
        size += length
    if part:
        yield part


def _line(server: Server, request: Request) -> str:
    """A request as the Batch API takes it."""
    said = {"custom_id": request.key, "method": "POST", "url": ENDPOINT, "body": server.body(request)}
    return json.dumps(said) + "\n"


@contextmanager
def _upload_file(server: Server, file: Path) -> Iterator[Path]:
    upload = file.with_suffix(".upload.jsonl")
    try:
        with upload.open("w", encoding="utf-8") as lines:
            lines.writelines(_line(server, request) for request in _requests(file))
        yield upload
    finally:
        upload.unlink(missing_ok=True)


def _requests(state_file: Path) -> Iterator[Request]:
    with state_file.with_suffix(".requests.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield Request(**json.loads(line))


def _state_file(requests: Path) -> Path:
    return requests.with_name(requests.name.replace(".requests.jsonl", ".json"))


def _save(file: Path, state: _State) -> None:
    with paths.write_atomically(file) as draft:
        draft.write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")


def _open(folder: str | Path) -> list[tuple[Path, _State]]:
    """The batches not collected, in order."""
    files = sorted(paths.resolve(folder).glob("batch-*.json"))
    states = [(file, _State(**json.loads(file.read_text(encoding="utf-8")))) for file in files]
    return [(file, state) for file, state in states if not _collected(state)]


def _collected(state: _State) -> bool:
    return state.status.endswith("collected")


def _same_server(server: Server, state: _State, file: Path) -> None:
    theirs, ours = (state.base_url, state.model, state.sampling), (server.base_url, server.model, dict(server.sampling))
    if theirs != ours:
        told = [f"{model} at {base_url} with {json.dumps(sampling)}" for base_url, model, sampling in (theirs, ours)]
        raise LLMError(
            f"{file} is a batch for {told[0]}, not for {told[1]}. Go on with the former until it is collected."
        )


@contextmanager
def _plainly(server: Server) -> Iterator[None]:
    """Whatever the client library raises, as one line without the key."""
    try:
        yield
    except openai.OpenAIError as error:
        raise LLMError(
            f"{server.base_url}, batches: {describe(error)}. Mend that and run again: nothing is submitted twice."
        ) from None
