"""The rest of the study's work, each beside the way it is commonly done."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import toy_server
from measure import STOCK, Case

from nblib import corpora, paths, stats
from nblib.analysis import contamination
from nblib.corpora import triples
from nblib.corpora.hedgetriple import HEDGES, NEGATIONS, VARIANTS
from nblib.models import embeddings
from nblib.models.negation_adapter import GRID, NegationAdapter, contributions, softmax_weights
from nblib.synthesis import prompts

OURS = "ours"


def many_anchors(n: int) -> pd.DataFrame:
    """The 2,000 authored anchors with their variants; beyond, as many of their words drawn at random, with a word put in for each
    variant."""
    authored = corpora.load("hedgetriple")
    rng, pool = np.random.default_rng(0), np.array(" ".join(authored.anchor).split())
    rows = []
    for number in range(len(authored), n):
        words = rng.choice(pool, 12).tolist()
        place = int(rng.integers(1, 12))
        inserted = {name: " ".join([*words[:place], name, *words[place:]]) for name in ("entailment", *VARIANTS)}
        rows.append({"id": f"drawn-{number}", "anchor": " ".join(words), **inserted})
    columns = ["id", "anchor", "entailment", *VARIANTS]
    return pd.concat([authored[columns], pd.DataFrame(rows, columns=columns)], ignore_index=True).head(n)


def cases(sample: int | None) -> Iterator[Case]:
    """All of them, one after the other.

    Args:
        sample: how many anchors, requests or items; None: enough for a few seconds.
    """
    yield adapter_fit()
    yield levenshtein_filter(sample or 5_000)
    yield triple_building(sample or 5_000)
    yield contamination_check(sample or 2_000)
    yield paired_bootstrap()
    yield synthesis_client(sample or 1_000)
    yield training(min(sample or 32, 32))
    for scale in ("quick", "official"):
        if (paths.resolve("runs") / scale / "notebooks").is_dir():
            yield report_build(scale)


def adapter_fit(n: int = 1_000) -> Case:
    rng = np.random.default_rng(0)
    t = rng.normal(size=(n, 768)).astype(np.float32)
    p, q = (t + 0.5 * rng.normal(size=t.shape).astype(np.float32) for _ in range(2))
    q[:, :5] *= -1

    def ours() -> np.ndarray:
        return NegationAdapter("weighted embeddings").fit(t, p, q).training_accuracy_

    def value_by_value() -> list[float]:
        weights = softmax_weights(contributions(t, p, q[:, None]), GRID)
        return [
            100 * (embeddings.similarity(t * w, p * w) > embeddings.similarity(t * w, q * w)).mean() for w in weights
        ]

    ways = {OURS: ours, STOCK: value_by_value}
    return Case("adapter fit, 21 values of a; stock: value by value", f"{n:,} triplets", ways, 100 / n)


def levenshtein_filter(n: int) -> Case:
    from rapidfuzz.distance import Levenshtein

    anchors = many_anchors(n)

    def one_by_one() -> np.ndarray:
        near = [all(Levenshtein.distance(row.anchor, getattr(row, name)) <= triples.THRESHOLD for name in VARIANTS)
                for row in anchors.itertuples()]  # fmt: skip
        return anchors.anchor[near].map(len).to_numpy()

    ways = {OURS: lambda: triples.filtered(anchors).anchor.map(len).to_numpy(), STOCK: one_by_one}
    return Case("Levenshtein filter; stock: rapidfuzz pair by pair", f"{n:,} anchors", ways)


def triple_building(n: int) -> Case:
    anchors = many_anchors(n)

    def row_by_row() -> list[int]:
        rows = [
            {"id": row["id"], "anchor": row["anchor"], "positive": row[hedge], "negative": row[name]}
            for _, row in anchors.iterrows() for hedge in HEDGES for name in NEGATIONS
        ]  # fmt: skip
        return pd.DataFrame(rows).negative.map(len).tolist()

    ways = {OURS: lambda: triples.build(anchors).negative.map(len).tolist(), STOCK: row_by_row}
    return Case("triple building; stock: pandas' iterrows", f"{8 * n:,} triples", ways)


def contamination_check(n: int) -> Case:
    table = triples.build(many_anchors(n))
    texts, names = {*table.anchor, *table.positive, *table.negative}, ["stsb_mini", "nevir_mini", "semantoneg_mini"]

    def grams_of(text: str, size: int) -> set[tuple[str, ...]]:
        return contamination.ngrams(contamination.words(text), size)

    def sets_of_ngrams() -> list[float]:
        fields, counts = pd.concat([contamination.fields(name).assign(corpus=name) for name in names]), []
        for size in contamination.SIZES:
            seen = set().union(*(grams_of(text, size) for text in texts))
            hit = fields.text.map(lambda text, size=size, seen=seen: not seen.isdisjoint(grams_of(text, size)))
            counts.append(hit.groupby([fields.corpus, fields.item]).any().groupby("corpus").sum()[names])
        return np.transpose(counts).ravel().tolist()

    def ours() -> list[float]:
        found = contamination.check(texts, names)
        return [round(share * row["items"] / 100) for _, row in found.iterrows()
                for share in row[[f"ngram_{size}" for size in contamination.SIZES]]]  # fmt: skip

    label = "contamination check with matches and longest runs; stock: sets of n-grams alone"
    return Case(label, f"{len(table):,} triples", {OURS: ours, STOCK: sets_of_ngrams})


def paired_bootstrap(n: int = 7_804) -> Case:
    from scipy.stats import bootstrap

    rng = np.random.default_rng(0)
    before, after = rng.random(n) < 0.4, rng.random(n) < 0.45
    difference = after.astype(float) - before

    def scipys() -> list[float]:
        found = bootstrap((difference,), np.mean, n_resamples=2000, method="percentile", batch=100, rng=0)
        return [difference.mean(), *found.confidence_interval]

    def first() -> tuple[float, float, float]:
        stats._draws.cache_clear()
        return stats.paired_bootstrap(before, after)

    # How often each item is drawn is kept: two further systems on the same items need no new draws
    ways = {OURS: first, "ours, a further comparison": lambda: stats.paired_bootstrap(before, after), STOCK: scipys}
    return Case("paired bootstrap, 2,000 resamples; stock: scipy.stats.bootstrap", f"{n:,} items", ways, 0.002)


def synthesis_client(n: int) -> Case:
    server, ideal = toy_server.start(toy_server.DELAY), n * toy_server.DELAY / toy_server.CONCURRENCY
    toy_server.ask(server, toy_server.CONCURRENCY)  # connections, imports

    async def gathered() -> list[str]:
        from openai import AsyncOpenAI

        free = asyncio.Semaphore(toy_server.CONCURRENCY)

        async def one(prompt: str) -> str:
            async with free:
                messages = [{"role": "user", "content": prompt}]
                found = await sdk.chat.completions.create(model="toy", messages=messages, max_tokens=512)
                return found.choices[0].message.content

        async with AsyncOpenAI(base_url=server.base_url, api_key="none") as sdk:
            questions = prompts.questions(toy_server.anchors(n), "toy", {})
            return await asyncio.gather(*(one(prompts.prompt(q.kind, q.anchor, q.cues)) for q in questions))

    def lengths(run: Callable[[], list[str]]) -> Callable[[], list[int]]:
        return lambda: sorted(map(len, run()))

    ways = {OURS: lengths(lambda: toy_server.ask(server, n)), STOCK: lengths(lambda: asyncio.run(gathered()))}
    label = f"synthesis client, {toy_server.CONCURRENCY} in flight; stock: the openai SDK and asyncio.gather"
    return Case(
        label, f"{n:,} requests", ways, remark=lambda way, took: f"{100 * ideal / took:.0f} % of the ideal rate"
    )


def training(n: int) -> Case:
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from nblib.models import encoders
    from nblib.training import batches, trainer
    from nblib.training.losses import LOSSES

    table = triples.build(many_anchors(n))
    settings = trainer.Settings("all-MiniLM-L6-v2", loss="in-batch", bf16=False)
    data = batches.data_sets(table, LOSSES[settings.loss].layout)

    def ours() -> None:
        trainer.train("bi-encoder", settings, data, Path(tempfile.mkdtemp()) / "checkpoints")

    def defaults() -> None:
        from datasets import Dataset

        model = encoders.load(settings.base).model
        arguments = SentenceTransformerTrainingArguments(
            tempfile.mkdtemp(), num_train_epochs=1, per_device_train_batch_size=16, learning_rate=2e-5,
            report_to="none", save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        rows = Dataset.from_pandas(table[["anchor", "positive", "negative"]], preserve_index=False)
        loss = MultipleNegativesRankingLoss(model)
        SentenceTransformerTrainer(model, arguments, train_dataset=rows, loss=loss).train()

    label = "an epoch of training all-MiniLM-L6-v2, each text of an anchor once; stock: sentence-transformers, triple by triple"
    return Case(label, f"{len(table):,} triples", {OURS: ours, STOCK: defaults}, allowed=None)


def report_build(scale: str) -> Case:
    from nbconvert import HTMLExporter

    from nblib.results import report
    from nblib.results.report import executed

    notebooks = executed.find(paths.resolve("runs") / scale)

    def exported() -> None:
        for notebook in notebooks:
            HTMLExporter().from_notebook_node(notebook.notebook)

    ways = {OURS: lambda: report.build(scale), STOCK: exported}
    return Case("report build; stock: nbconvert's pages alone", f"{len(notebooks)} notebooks", ways, allowed=None)
