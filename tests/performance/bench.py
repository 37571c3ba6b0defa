"""`make bench`: the study's own work beside the way it is commonly done, alternately in one process.

Where a machine's speed changes from minute to minute, only neighbouring times compare: each round runs both ways, the first
one in turn, and a ratio is taken within a round. The table goes to figures/performance.csv and into docs/performance.md.
"""

import asyncio
import gc
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import openai
import pandas as pd
from datasets import Dataset, DatasetDict
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from support.llm_server import LLMServer

from nblib import artefacts, corpora, paths
from nblib.corpora import triples
from nblib.models import embeddings, encoders
from nblib.models.negation_adapter import GRID, NegationAdapter, contributions, softmax_weights
from nblib.synthesis import generations, prompts
from nblib.synthesis.client import Server, generate
from nblib.training import batches, trainer
from nblib.training.losses import LOSSES

TABLE, PAGE = paths.FIGURES / "performance.csv", paths.PROJECT_ROOT / "docs" / "performance.md"
COLUMNS = {"nevir_mini": ["q1", "q2", "doc1", "doc2"], "stsb_mini": ["sentence1", "sentence2"]}
ROW = "| {case} | {ours:.3g} | {stock:.3g} | {times:.2f} ({lowest:.2f}–{highest:.2f}) |"
IN_FLIGHT = 64


@dataclass(frozen=True)
class Case:
    """Something to do in two ways, which give numbers that may lie so far apart."""

    what: str
    ours: Callable[[], object]
    stock: Callable[[], object]
    allowed: float


def encoding(name: str, corpus: str, rows: int) -> Case:
    """Embeddings of a benchmark's texts; ours starts with an empty cache, which it fills."""
    encoder, table = encoders.load(name), corpora.load(corpus, "test").head(rows)
    texts = [text for column in COLUMNS[corpus] for text in table[column]]

    def ours() -> np.ndarray:
        with patch.dict(os.environ, NBLIB_CACHE=tempfile.mkdtemp()):
            return embeddings.encode(encoder, texts)

    what = f"encoding {len(texts):,} texts of {corpus} by {encoder.name}; stock: `SentenceTransformer.encode`"
    return Case(what, ours, lambda: encoder.model.encode(texts, show_progress_bar=False), 1e-5)


def training(base: str, anchors: int) -> Case:
    """An epoch: ours takes an anchor and a positive with all negatives together, the stock way triple by triple."""
    table = triples.build(corpora.load("authored_triples").head(anchors))
    settings = trainer.TrainingSettings(base, loss="in-batch", bf16=False)
    data = DatasetDict(triples=batches.lay_out(table, LOSSES[settings.loss].layout))

    def ours() -> None:
        trainer.train(settings, data, Path(tempfile.mkdtemp()) / "checkpoints")

    def stock() -> None:
        model, rows = encoders.load(base).model, table[["anchor", "positive", "negative"]]
        arguments = SentenceTransformerTrainingArguments(
            tempfile.mkdtemp(), num_train_epochs=1, per_device_train_batch_size=16, learning_rate=2e-5,
            report_to="none", save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        loss, rows = MultipleNegativesRankingLoss(model), Dataset.from_pandas(rows, preserve_index=False)
        SentenceTransformerTrainer(model, arguments, train_dataset=rows, loss=loss).train()

    what = f"an epoch of {Path(base).name} on {len(table):,} triples; stock: `SentenceTransformerTrainer`"
    return Case(what, ours, stock, 0)


def synthesis(questions: int, delay: float) -> Case:
    """Answers of a server that takes some time for each; ours also keeps them, and looks whether they are usable."""
    url, texts = (
        LLMServer(seconds=delay).__enter__().base_url,
        [f"House number {k} has a red door." for k in range(questions // 2)],
    )

    def ours() -> int:
        anchors, file = pd.DataFrame({"id": texts, "anchor": texts}), Path(tempfile.mkdtemp()) / "generations.jsonl"
        asyncio.run(generate(anchors, Server("toy", url, concurrency=IN_FLIGHT), file))
        return sum(not prompts.parse(answer).reason for answer in generations.read(file))

    async def gathered() -> int:
        free = asyncio.Semaphore(IN_FLIGHT)

        async def ask(text: str) -> object:
            message = {"role": "user", "content": prompts.prompt("negation", text, {})}
            async with free:
                return await client.chat.completions.create(model="toy", messages=[message], max_tokens=512)

        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
            return len(await asyncio.gather(*map(ask, 2 * texts)))

    what = f"{questions:,} questions to a language model, {IN_FLIGHT} at once; stock: `AsyncOpenAI`, `asyncio.gather`"
    return Case(what, ours, lambda: asyncio.run(gathered()), 0)


def adapter_fit(triplets: int) -> Case:
    """Cao's search for a: ours tries all values in three products, the stock way one after the other."""
    rng = np.random.default_rng(0)
    t = rng.normal(size=(triplets, 768)).astype(np.float32)
    p, q = (t + 0.5 * rng.normal(size=t.shape).astype(np.float32) for _ in range(2))
    q[:, :5] *= -1

    def value_by_value() -> list[float]:
        weights, near = softmax_weights(contributions(t, p, q[:, None]), GRID), embeddings.similarity
        return [100 * (near(t * w, p * w) > near(t * w, q * w)).mean() for w in weights]

    what = f"fit of an adapter on {triplets:,} triplets; stock: value by value of a"
    adapter = NegationAdapter("weighted embeddings")
    return Case(what, lambda: adapter.fit(t, p, q).training_accuracy_, value_by_value, 0.1)


def cases(
    models: Sequence[str] = ("all-MiniLM-L6-v2", "all-mpnet-base-v2"), rows: int = 100, anchors: int = 32,
    questions: int = 1_000, delay: float = 0.25, triplets: int = 1_000,
) -> Iterator[Case]:  # fmt: skip
    """All of them; the first model is the one that is trained."""
    yield from (encoding(name, corpus, rows) for name in models for corpus in COLUMNS)
    yield from (training(models[0], anchors), synthesis(questions, delay), adapter_fit(triplets))


def measure(case: Case, rounds: int = 3) -> dict[str, object]:
    """A row of the table: both ways' median seconds, and how many times as fast ours is. Two ways that differ end the run."""
    taken, found = [], {}
    for turn in range(rounds):
        seconds = {}
        for way in ("ours", "stock") if turn % 2 else ("stock", "ours"):
            gc.collect()
            started = time.perf_counter()
            found[way] = np.asarray(getattr(case, way)(), float)  # nan where nothing comes of it
            seconds[way] = time.perf_counter() - started
        taken.append({**seconds, "times": seconds["stock"] / seconds["ours"]})
    if (apart := float(np.abs(np.subtract(*found.values())).max())) > case.allowed:
        raise SystemExit(f"{case.what}: the two ways differ by {apart:.2g}.")
    median, times = pd.DataFrame(taken).median(), [one["times"] for one in taken]
    return {"case": case.what, **median, "lowest": min(times), "highest": max(times), "difference": apart}


def page(table: pd.DataFrame, about: dict, text: str) -> str:
    """The text of docs/performance.md with this table in it, and the machine and commit below."""
    lines = ["| what | ours, s | stock, s | times as fast (lowest–highest) |", "|---|---|---|---|"]
    lines += [ROW.format(**row) for row in table.to_dict("records")]
    machine = f"{about['cores']} cores of {about['processor']}, load {about['load']:.1f}, commit {about['commit']}."
    return re.sub(r"(?s)(?<=<!-- measured -->\n).*(?=<!-- end -->)", "\n".join([*lines, "", f"{machine}\n"]), text)


def main() -> None:
    cpus, rows = Path("/proc/cpuinfo"), []
    names = re.findall(r"model name\s*: (.*)", cpus.read_text() if cpus.exists() else "") or ["unknown"]
    about = {"cores": os.cpu_count(), "processor": names[0], "load": os.getloadavg()[0]}
    for case in cases():
        rows.append(measure(case))
        print(ROW.format(**rows[-1]), flush=True)  # noqa: T201
    artefacts.write_table(table := pd.DataFrame(rows), TABLE, about, float_format="%.4g")
    PAGE.write_text(page(table, artefacts.about(TABLE), PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="bench") as tempfile.tempdir:  # of every case
        main()
