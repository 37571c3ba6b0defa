"""The cases of `make bench` at toy sizes: that both ways run and come to the same, not how long they take."""

import pandas as pd
import pytest
from performance import bench


def test_every_case_runs_both_ways_and_the_page_shows_it(tiny_encoder_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.tempfile, "tempdir", str(tmp_path))
    cases = bench.cases([str(tiny_encoder_folder)], rows=4, anchors=4, questions=6, delay=0.0, triplets=20)
    table = pd.DataFrame([bench.measure(case, rounds=1) for case in cases])
    assert len(table) == 5 and (table[["ours", "stock", "times"]] > 0).all(axis=None)
    about = {"cores": 2, "processor": "toy", "load": 0.1, "packages": {"torch": "2"}, "commit": "abc"}
    text = bench.page(table, about, "Before.\n<!-- measured -->\nold\n<!-- end -->\nAfter.\n")
    assert text.startswith("Before.\n<!-- measured -->\n| what |") and text.endswith("\n<!-- end -->\nAfter.\n")
    assert text.count("stock:") == 5 and "2 cores of toy" in text and "old" not in text
    with pytest.raises(SystemExit, match="differ"):
        bench.measure(bench.Case("toy", lambda: [1.0], lambda: [1.5], 0.1), rounds=1)
