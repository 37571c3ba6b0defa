"""The benchmark suite's measuring, and the tables that the docs make of it; the suite itself is no test."""

import pandas as pd
import pytest
from performance import measure
from performance.measure import STOCK, Case

from nblib import artefacts
from nblib.workflow import documents


@pytest.fixture(autouse=True)
def uncollected(monkeypatch):
    """Garbage collection before each way takes a second where many modules are loaded."""
    monkeypatch.setattr(measure.gc, "collect", lambda: 0)


def test_every_round_runs_every_way_in_turning_order():
    order = []
    ways = {name: lambda name=name: order.append(name) or [1.0] for name in ("ours", "warm", STOCK)}
    table = measure.compare(Case("toy", "1 text", ways), 3)
    assert order == ["ours", "warm", STOCK, "warm", STOCK, "ours", STOCK, "ours", "warm"]
    assert table.way.tolist() == ["ours", "warm", STOCK]
    assert (table.lowest <= table.times).all() and (table.times <= table.highest).all()
    assert table.set_index("way").times[STOCK] == 1


def test_a_way_with_other_scores_is_refused_unless_it_may():
    ways = {"ours": lambda: [0.5, 0.7], STOCK: lambda: [0.5, 0.71]}
    with pytest.raises(SystemExit, match=r"ours differs from the stock way by 0\.01"):
        measure.compare(Case("toy", "2 texts", ways, allowed=0.001), 1)
    table = measure.compare(Case("toy", "2 texts", ways, allowed=0.001, by_way={"ours": 0.02}), 1)
    assert table.difference.round(9).tolist() == [0.01, 0]


def test_the_docs_show_spread_exponent_and_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "PERFORMANCE", str(tmp_path))
    assert {documents.PARTS[name](None) for name in ("performance", "growth", "machine")} == {documents.UNMEASURED}
    about = {"cores": 2, "processor": "toy", "load": 0.1}
    rows = [("encoding", "9 texts", way, 0.5, 3.0, 2.5, 3.5, 400.0, None, None) for way in ("ours", STOCK)]
    artefacts.write_table(pd.DataFrame(rows, columns=measure.COLUMNS), tmp_path / "encoding.csv", about)
    grown = {
        "what": "triples",
        "unit": "triples",
        "size": [1000, 10000],
        "seconds": 1.0,
        "peak_mib": 9.0,
        "exponent": 1.04,
    }
    artefacts.write_table(pd.DataFrame(grown), tmp_path / "growth" / "triples.csv", about)
    assert "| encoding | 9 texts | ours | 0.5 | 3 × (2.5–3.5) | 400 |" in documents.PARTS["performance"](None)
    assert "| triples | 10,000 triples | 1 | 9 | 1.04 |" in documents.PARTS["growth"](None)
    assert "2 cores of toy" in documents.PARTS["machine"](None)
