"""Batches against a scripted Batch API: however often it is killed or fails, no batch is made twice and no answer is lost."""

import asyncio
import json
from collections import Counter

import pytest
from llm_jobs import PROCESSES, anchors, to
from llm_server import LLMServer, Reply, chat, error, good, json_reply

from nblib import generations, llm_batch, questions, synthesis, synthesised
from nblib.generations import GenerationError
from nblib.llm_client import LLMError, Prices


class BatchAPI:
    """Files and batches in memory. `script` maps (method, path's last part) to replies to give first; an entry (reply, True)
    does what was asked before it replies."""

    def __init__(self, script=None, answer=good, status="completed", polls=1):
        self.script, self.answer, self.status, self.polls = script or {}, answer, status, polls
        self.files, self.batches, self.looks = {}, {}, Counter()

    def __call__(self, call, number):
        parts = call.path.split("?")[0].removeprefix("/v1/").split("/")
        waiting = self.script.get((call.method, parts[-1]), [])
        scripted, act = waiting.pop(0) if waiting else (None, True)
        reply = self.act(call, parts) if act else None
        return scripted or reply

    def act(self, call, parts):
        match call.method, parts:
            case "POST", ["files"]:
                self.files[f"file-{len(self.files)}"] = content = call.body.split(b"\r\n\r\n")[-1].split(b"\r\n--")[0]
                assert content.startswith(b'{"custom_id"')
                return json_reply({"id": f"file-{len(self.files) - 1}", "object": "file"})
            case "POST", ["batches"]:
                batch = {
                    "id": f"batch-{len(self.batches)}",
                    "object": "batch",
                    "status": "validating",
                    **json.loads(call.body),
                }
                self.batches[batch["id"]] = batch
                return json_reply(batch)
            case "GET", ["batches"]:
                return json_reply({"object": "list", "data": list(self.batches.values()), "has_more": False})
            case "GET", ["batches", name]:
                return json_reply(self.look(self.batches[name]))
            case "GET", ["files", name, "content"]:
                return Reply(200, self.files[name], {"Content-Type": "application/octet-stream"})
        raise AssertionError(f"{call.method} {call.path}")

    def look(self, batch):
        self.looks[batch["id"]] += 1
        asked = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        if self.looks[batch["id"]] < self.polls:
            return {
                **batch,
                "status": "in_progress",
                "request_counts": {"total": len(asked), "completed": 1, "failed": 0},
            }
        if "output_file_id" not in batch and self.status != "failed":
            lines = [self.line(row) for row in reversed(asked)]  # the order is not promised
            self.files[f"out-{batch['id']}"] = b"\n".join(line for line in lines if line) + b"\n"
            batch["output_file_id"] = f"out-{batch['id']}"
        counts = {"total": len(asked), "completed": len(asked), "failed": 0}
        errors = {"data": [{"message": "line 1 is bad", "code": "x"}]} if self.status == "failed" else None
        return {**batch, "status": self.status, "request_counts": counts, "errors": errors}

    def line(self, row):
        text = self.answer(row["body"]["messages"][0]["content"])
        if text is None:
            return None
        body = json.loads(chat(text).body)
        return json.dumps(
            {"custom_id": row["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}
        ).encode()

    def asked(self):
        """How often each question is in a batch."""
        files = [self.files[batch["input_file_id"]] for batch in self.batches.values()]
        return Counter(json.loads(line)["custom_id"] for file in files for line in file.splitlines())


@pytest.fixture
def file(tmp_path):
    return tmp_path / "generations.jsonl"


def submit(server, file, n=10, **options):
    return asyncio.run(synthesis.submit(anchors(n), to(server.base_url), file, **options))


def collect(server, file, **options):
    return asyncio.run(synthesis.collect(to(server.base_url), file, **{"poll": 0.01, **options}))


def came(server, file, n=10):
    return synthesised.results(anchors(n), to(server.base_url), file)


def test_a_batch_gives_what_direct_calls_would(file):
    api = BatchAPI(polls=3)
    with LLMServer(api) as server:
        assert submit(server, file) == ["batch-0"]
        table = collect(server, file)
        assert (came(server, file).reason == "").all()
        assert collect(server, file).empty
        assert submit(server, file) == [], "nothing is left to ask"
    assert table.iloc[0].tolist() == ["batch-0", "completed, collected", 20, 20, ""]
    assert api.batches["batch-0"]["endpoint"] == "/v1/chat/completions"
    body = json.loads(api.files["file-0"].splitlines()[0])
    assert body["body"]["max_tokens"] == 200
    kept = next(
        generation for generation in generations.read(file) if generation.id == "a1" and generation.kind == "negation"
    )
    assert (kept.answer, kept.input_tokens) == (good(questions.prompt("negation", kept.anchor, {})), 50)


def test_a_large_job_is_cut_into_several(file, monkeypatch):
    monkeypatch.setattr(llm_batch, "MAX_REQUESTS", 8)
    api = BatchAPI()
    with LLMServer(api) as server:
        assert submit(server, file) == ["batch-0", "batch-1", "batch-2"]
        assert collect(server, file).requests.tolist() == [8, 8, 4]
        assert (came(server, file).reason == "").all()
    assert set(api.asked().values()) == {1}
    monkeypatch.setattr(llm_batch, "MAX_BYTES", 3000)
    with LLMServer(api) as server:
        submit(server, file, 15)
    sizes = [len(api.files[batch["input_file_id"]]) for batch in list(api.batches.values())[3:]]
    assert max(sizes) <= 3000
    assert len(sizes) > 2


def test_submitting_again_while_a_batch_is_under_way_makes_no_other(file):
    api = BatchAPI(polls=100)
    with LLMServer(api) as server:
        for _ in range(3):
            assert submit(server, file) == ["batch-0"]
        table = collect(server, file, wait=False)
        assert table[["status", "answered"]].to_numpy().tolist() == [["in_progress", 0]]
        with pytest.raises(
            GenerationError, match=r"1 batches of .* are under way, the first batch-0: .*Collect them first"
        ):
            asyncio.run(synthesis.generate(anchors(10), to(server.base_url), file))
    assert len(api.batches) == 1


@pytest.mark.parametrize("reply", [Reply(drop="before"), error(500), Reply(delay=1.0)])
@pytest.mark.parametrize("made", [True, False])
def test_an_answer_lost_at_creation_makes_no_second_batch(file, reply, made):
    api = BatchAPI({("POST", "batches"): [(reply, made)]})
    with LLMServer(api) as server:
        options = to(server.base_url, timeout=0.5)
        assert asyncio.run(synthesis.submit(anchors(3), options, file)) == ["batch-0"]
    assert len(api.batches) == 1


def test_a_server_that_never_answers_at_creation_is_an_error_and_the_next_run_looks_first(file):
    api = BatchAPI({("POST", "batches"): [(error(500), False)] * 2 + [(error(500), True)]})
    with LLMServer(api) as server:
        with pytest.raises(LLMError, match="Run this again: it looks for the batch before"):
            submit(server, file)
        assert submit(server, file) == ["batch-0"]
    assert len(api.batches) == 1


@pytest.mark.parametrize(
    "step", [("POST", "files"), ("POST", "batches"), ("GET", "batches"), ("GET", "batch-0"), ("GET", "content")]
)
@pytest.mark.parametrize("before", [True, False])
def test_a_kill_at_any_step_submits_nothing_twice_and_loses_nothing(file, step, before):
    """Kill -9 while the server sits on its answer to a step, before or after it has done what was asked."""
    script = {step: [(Reply(delay=30), not before)]}
    if step == ("GET", "batches"):
        script["POST", "batches"] = [(error(500), False)]
    api = BatchAPI(script)
    with LLMServer(api) as server:
        process = PROCESSES.Process(target=_submit_and_collect, args=(server.base_url, file))
        process.start()
        while script[step] and process.is_alive():
            process.join(0.01)
        process.join(0.02)
        process.kill()
        process.join()
        assert process.exitcode == -9
        _submit_and_collect(server.base_url, file)
        assert (came(server, file).reason == "").all()
    assert len(api.batches) == 1
    assert len(list(generations.read(file))) == 20


def _submit_and_collect(base_url, file):
    server = to(base_url, timeout=60)
    asyncio.run(synthesis.submit(anchors(10), server, file))
    asyncio.run(synthesis.collect(server, file, poll=0.01))


def test_answers_that_are_handed_on_twice_are_kept_once(file):
    with LLMServer(BatchAPI()) as server:
        submit(server, file)
        state = next((file.parent / "generations.jsonl.batches").glob("*.json"))
        before = state.read_bytes()
        collect(server, file)
        state.write_bytes(before)  # as if killed before it was noted
        collect(server, file)
    assert len(list(generations.read(file))) == 20


def test_what_a_batch_left_out_or_answered_badly_is_asked_again_by_the_next(file):
    def answer(prompt):
        if "Negate" in prompt and "number 3 has" in prompt:
            return None
        return "no" if "Negate" in prompt and "number 4 has" in prompt else good(prompt)

    api = BatchAPI(answer=answer, status="expired")
    with LLMServer(api) as server:
        submit(server, file)
        assert collect(server, file)[["status", "answered"]].to_numpy().tolist() == [["expired, collected", 19]]
        api.answer = good
        submit(server, file)
        collect(server, file)
        assert (came(server, file).reason == "").all()
    assert len(api.asked()) == 21
    assert api.asked().total() == 22


def test_a_batch_that_the_server_finds_faulty_says_so(file):
    with LLMServer(BatchAPI(status="failed")) as server:
        submit(server, file)
        table = collect(server, file)
    assert table[["status", "answered", "note"]].to_numpy().tolist() == [["failed, collected", 0, "line 1 is bad"]]


def test_damaged_lines_of_the_output_cost_only_themselves(file, caplog):
    api = BatchAPI()
    with LLMServer(api) as server:
        submit(server, file)
        collect(server, file, wait=False)
    assert len(list(generations.read(file))) == 20
    other = file.with_name("other.jsonl")
    api = BatchAPI()
    api.line = lambda row, whole=api.line: b'{"custom_id": "x"' if row["custom_id"] == first[0] else whole(row)
    first = [next(iter(json.loads(line)["custom_id"] for line in server.handle.files["file-0"].splitlines()))]
    with LLMServer(api) as server:
        submit(server, other)
        assert collect(server, other).answered.tolist() == [19]
    assert "an answer that can't be read" in caplog.text


def test_a_budget_that_batches_could_exceed_sends_nothing(file):
    api = BatchAPI()
    with LLMServer(api) as server:
        with pytest.raises(
            LLMError, match=r"can cost up to 4000\.00, and the budget leaves 3999\.00.*Nothing was sent"
        ):
            submit(server, file, prices=Prices(output=1e6), budget=3999)
        assert not server.calls
        assert submit(server, file, prices=Prices(output=1e6), budget=4000) == ["batch-0"]


def test_batches_for_another_server_model_or_sampling_are_not_mistaken(file):
    with LLMServer(BatchAPI()) as first, LLMServer(BatchAPI()) as second:
        submit(first, file)
        others = [to(second.base_url), to(first.base_url, model="other"), to(first.base_url, sampling={})]
        seen = len(first.calls)
        for other in others:
            with pytest.raises(LLMError, match=r"is a batch for toy at http://127.0.0.1:\d+/v1 with .*, not for "):
                asyncio.run(synthesis.collect(other, file))
        assert len(first.calls) == seen
        assert not second.calls


def test_a_key_that_is_refused_is_one_line_without_it(file, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    with (
        LLMServer(BatchAPI({("POST", "files"): [(error(401, "bad key sk-canary"), False)]})) as server,
        pytest.raises(
            LLMError, match=r"batches: AuthenticationError: .*run again: nothing is submitted twice"
        ) as failure,
    ):
        submit(server, file)
    assert "sk-canary" not in str(failure.value)
    assert all("sk-canary" not in path.read_text() for path in file.parent.rglob("*") if path.is_file())
