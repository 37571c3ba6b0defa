"""Synthesis as a job that another process can run, and kill."""

import asyncio
import multiprocessing

import pandas as pd

from nblib.synthesis import run
from nblib.synthesis.client import Server

PROCESSES = multiprocessing.get_context("forkserver")  # each starts with the package imported, and no thread of ours
PROCESSES.set_forkserver_preload(["nblib.synthesis.run"])
SAMPLING = {"temperature": 1.0, "max_tokens": 200}


def anchors(n):
    return pd.DataFrame(
        {"id": [f"a{k}" for k in range(n)], "anchor": [f"House number {k} has a red door." for k in range(n)]}
    )


def to(base_url, **options):
    return Server(
        **{"model": "toy", "base_url": base_url, "concurrency": 8, "timeout": 5, "sampling": SAMPLING, **options}
    )


def generate(base_url, file, n, **options):
    return asyncio.run(run.generate(anchors(n), to(base_url), file, **options))
