"""The benchmark suite's measuring; the suite itself is no test."""

import pytest
from performance import measure
from performance.measure import STOCK, Case


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
