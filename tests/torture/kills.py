"""Processes that write are killed (SIGKILL) at a drawn moment; then the same is done to its end, and looked at."""

import asyncio
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
from campaign import MISSED, Kind, Step
from support import faults, llm_jobs, toy_study
from support.encoders import tiny, toy_examples
from support.llm_server import LLMServer, Reply, chat, good

from nblib import artefacts
from nblib.models import embeddings, encoders
from nblib.models.folders import model_folder
from nblib.synthesis import generations
from nblib.training import tuning
from nblib.training.trainer import Settings
from nblib.workflow import archive


def repeated(work: Callable[[random.Random], object]) -> Callable[[], None]:
    def for_ever() -> None:
        chance = random.Random(os.getpid())
        while True:
            work(chance)

    return for_ever


def writing(work: Callable[[random.Random], object], artefact: Path, longest: float) -> Step:
    """Kill a process that writes an artefact over and over."""

    def step(chance: random.Random) -> tuple[str, str]:
        if not faults.killed(repeated(work), chance.random() * longest):
            return MISSED, ""
        if artefact.exists() or artefacts.sidecar(artefact).exists():
            found, said = faults.outcome(lambda: artefacts.check(artefact).exists(), True, artefact)
        else:
            found, said = "nothing yet", ""
        if found in ("TRACEBACK", "UNCLEAR"):
            return found, said
        work(chance)
        if not artefacts.is_whole(artefact):
            return "CUT AFTER RERUN", str(artefact)
        if drafts := list(artefact.parent.glob(".*.tmp")):
            return "DRAFT LEFT", str(drafts)
        return ("whole" if found == "harmless" else found), ""

    return step


def table(folder: Path) -> Step:
    file = folder / "scores" / "tiny" / "x_test.parquet"
    frame = pd.DataFrame({"number": range(30_000)})
    return writing(lambda chance: artefacts.write_table(frame * chance.random(), file), file, 0.2)


def model(folder: Path) -> Step:
    place = folder / "encoders" / "killed"

    def work(chance: random.Random) -> None:
        with model_folder(place, "# card", {"seed": 0}) as draft:
            for k in range(5):
                (draft / f"{k}.safetensors").write_bytes(chance.randbytes(300_000))

    return writing(work, place, 0.3)


def unpacking(folder: Path) -> Step:
    started = time.perf_counter()
    archive.unpack("official", folder / "whole")
    took = time.perf_counter() - started

    def step(chance: random.Random) -> tuple[str, str]:
        run = folder / str(chance.random())
        hit = faults.killed(lambda: archive.unpack("official", run), chance.random() * took)
        archive.unpack("official", run)
        cut = [file for file in run.rglob("*.parquet") if not artefacts.is_whole(file)]
        again = archive.unpack("official", run)
        shutil.rmtree(run)
        return ("CUT AFTER RERUN", str(cut or again)) if cut or again[0] else ("whole" if hit else MISSED, "")

    return step


def answers(folder: Path) -> Step:
    """Answers of a model are appended; each that was kept stays."""
    file = folder / "generations.jsonl"
    one = generations.Generation("", 0, "a", "It is red.", "negation", {}, "toy", {}, "no " * 300, "stop", "toy", 5, 1)

    def append(count: int) -> None:
        known = len(list(generations.read(file)))
        with generations.Store(file) as store:
            for number in range(known, known + count):
                store.append(replace(one, key=f"k{number}"))

    def step(chance: random.Random) -> tuple[str, str]:
        if not faults.killed(lambda: append(10**9), chance.random() * 0.2):
            return MISSED, ""
        append(1)
        found, said = faults.outcome(lambda: [g.key for g in generations.read(file)], None, file)
        if found != "SILENT":
            return found, said
        keys = [generation.key for generation in generations.read(file)]
        if len(keys) > 20_000:
            file.unlink()
        return (
            ("whole", "") if keys == [f"k{number}" for number in range(len(keys))] else ("CUT AFTER RERUN", str(file))
        )

    return step


def synthesis(folder: Path) -> Step:
    """A whole job against a server: the same command ends it, and asks nothing again that was kept."""
    server = LLMServer(lambda call, _: Reply(200, chat(good(call.prompt)).body, delay=0.02)).__enter__()

    def step(chance: random.Random) -> tuple[str, str]:
        file, count = folder / f"{chance.random()}.jsonl", 60
        seen = len(server.calls)
        job = llm_jobs.PROCESSES.Process(target=llm_jobs.generate, args=(server.base_url, file, count))
        job.start()
        while len(server.calls) == seen and job.is_alive():
            job.join(0.002)
        job.join(chance.random() * 0.5)
        hit = job.is_alive()
        job.kill()
        job.join()
        kept = {generation.key for generation in generations.read(file)}
        asyncio.run(llm_jobs.run.generate(llm_jobs.anchors(count), llm_jobs.to(server.base_url), file))
        keys = [generation.key for generation in generations.read(file)]
        if len(keys) != 2 * count or len(set(keys)) != len(keys) or not kept <= set(keys):
            return "CUT AFTER RERUN", f"{len(keys)} answers"
        return ("whole" if hit else MISSED), ""

    return step


def embedding_store(folder: Path) -> Step:
    encoder = tiny(folder)
    texts = [f"the {'not ' * (k % 3)}boat {k}" for k in range(1500)]
    expected = embeddings.encode(replace(encoder, cacheable=False), texts)

    def step(chance: random.Random) -> tuple[str, str]:
        shutil.rmtree(folder / "cache", ignore_errors=True)
        os.environ["NBLIB_CACHE"], before = str(folder / "cache"), os.environ["NBLIB_CACHE"]
        try:
            if not faults.killed(lambda: embeddings.encode(encoder, texts, batch_size=8), chance.random()):
                return MISSED, ""
            read = lambda: np.allclose(embeddings.encode(encoder, texts), expected, atol=1e-6)  # noqa: E731
            found, said = faults.outcome(read, True, folder)
        finally:
            os.environ["NBLIB_CACHE"] = before
        return {"harmless": "whole", "SILENT": "CUT AFTER RERUN"}.get(found, found), said

    return step


def training(folder: Path) -> Step:
    """A training: run again, it leaves the very weights of one that nobody killed."""
    tiny(folder)
    settings = Settings(str(folder / "model"), learning_rate=1e-2, epochs=30, batch_size=4, bf16=False)
    examples = toy_examples()

    def train(name: str) -> str:
        place = folder / name
        places = [place / kind / "x" for kind in ("encoders", "trainings", "checkpoints")]
        tuning.tune("bi-encoder", settings, examples, *places)
        return encoders.load(str(place / "encoders" / "x"), device="cpu").fingerprint

    started = time.perf_counter()
    expected = train("whole")
    took = time.perf_counter() - started

    def step(chance: random.Random) -> tuple[str, str]:
        name = str(chance.random())
        hit = faults.killed(lambda: train(name), chance.random() * took)
        found, said = faults.outcome(lambda: train(name), expected, folder)
        shutil.rmtree(folder / name)
        if found == "harmless" and not hit:
            return MISSED, ""
        return {"harmless": "whole", "SILENT": "CUT AFTER RERUN"}.get(found, found), said

    return step


def study(folder: Path) -> Step:
    """`nblib study` with all its jobs; the same command ends it."""
    started = time.perf_counter()
    toy_study.go(toy_study.make(folder / "whole"))
    took = time.perf_counter() - started

    def step(chance: random.Random) -> tuple[str, str]:
        root = toy_study.make(folder / str(chance.random()))
        process = toy_study.start(root)
        time.sleep(chance.uniform(0.3, 0.9) * took)
        hit = process.poll() is None
        for victim in [*psutil.Process(process.pid).children(recursive=True), process] if hit else []:
            victim.send_signal(signal.SIGKILL)
        process.communicate()
        done = toy_study.go(root)
        left = {file.name for file in (root / "runs" / "toy").rglob("*.csv")}
        if done.returncode or not {"01.csv", "TF-IDF.csv", "13.csv"} <= left:
            return "CUT AFTER RERUN", f"{sorted(left)} {done.stderr[-200:]}"
        return ("whole" if hit else MISSED), ""

    return step


KINDS = [
    Kind("kill", "writing a table", 20, table),
    Kind("kill", "writing a model's folder", 20, model),
    Kind("kill", "appending answers", 20, answers),
    Kind("kill", "asking a language model", 12, synthesis),
    Kind("kill", "encoding texts", 12, embedding_store),
    Kind("kill", "training an encoder", 10, training),
    Kind("kill", "unpacking predictions", 6, unpacking),
    Kind("kill", "nblib study", 4, study),
]
