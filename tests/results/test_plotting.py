"""Figures: the same picture is the same bytes, with the data behind it."""

import datetime
import re
from itertools import combinations

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from nblib.results import plotting

DATA = pd.DataFrame({"x": [0, 1, 2], "y": [0.123456, 1 / 3, 2.0], "name": ["a", "b, c", "d"]})


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context():
        plotting.use_style()
        yield
    plt.close("all")


def test_a_figure_saved_twice_is_the_same_bytes_without_a_date_and_with_its_data(tmp_path):
    def save(folder, title=""):
        figure, axes = plt.subplots(figsize=(3, 2))
        axes.plot(DATA.x, DATA.y, label="Käse")
        axes.fill_between(DATA.x, DATA.y, hatch="/")
        axes.legend(title=title)
        plotting.save_figure(figure, tmp_path / folder / "fig_x", DATA)
        return [(tmp_path / folder / f"fig_x.{ending}").read_text() for ending in ("svg", "csv")]

    svg, table = save("one")
    mpl.rcParams["svg.hashsalt"] = None  # as a notebook that changes the settings might
    assert save("two") == [svg, table] != save("three", "changed")
    assert table == 'x,y,name\n0,0.1235,a\n1,0.3333,"b, c"\n2,2.0,d\n', "rounded and whole"
    assert "Käse" in svg and "<dc:date>" not in svg
    assert str(datetime.date.today().year) not in re.sub(r'd="[^"]*"', "", svg)


def test_labels_of_crowded_points_cover_neither_each_other_nor_a_point_and_stay_the_same():
    def placed():
        figure, ax = plt.subplots(figsize=(8, 5))
        x, y = [1.0, 1.01, 1.02, 1.03, 2.0], [5.0, 5.02, 5.0, 5.03, 6.0]
        ax.plot(x, y, "o")
        plotting.label_points(ax, x, y, [f"a label of point {k}" for k in range(5)])
        figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in ax.texts if text.get_text()]
        return boxes, ax.transData.transform(list(zip(x, y, strict=True)))

    boxes, points = placed()
    assert len(boxes) == 5
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert not any(box.contains(*point) for box in boxes for point in points)
    assert [box.bounds for box in placed()[0]] == [box.bounds for box in boxes]


def test_an_interval_plot_has_a_line_for_each_label_or_category_with_its_dots_intervals_and_published_ticks():
    columns = {"system": ["first", "first", "second", "second", "bare"], "value": [10.0, 12.0, 20.0, None, 30.0]}
    columns |= {"low": [9.0, 11.0, 18.0, None, None], "high": [13.0, 14.0, 21.0, None, None]}
    table = pd.DataFrame({**columns, "printed": [11.0, None, 22.0, 25.0, None]}, index=[7, 7, 8, 9, 10])
    _, ax = plt.subplots()
    plotting.interval_plot(ax, table, published="printed")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["first", "second", "bare"]
    assert ax.yaxis_inverted()
    ticks, dots = ax.lines
    assert pd.DataFrame(ticks.get_xydata()).dropna().to_numpy().tolist() == [[11, 0], [22, 1], [25, 1]]
    assert dots.get_xydata().tolist() == [[10, 0], [12, 0.15], [20, 1], [30, 2]]
    arms = [segment[:, 0].tolist() for segment in ax.collections[0].get_segments()]
    assert arms == [[9, 13], [11, 14], [18, 21], [30, 30]]
    names = pd.Categorical(["b"], categories=["a", "b"])
    table = pd.DataFrame({"name": names, "ours": [1.0], "least": [0.5], "most": [2.0]})
    _, ax = plt.subplots()
    plotting.interval_plot(ax, table, label="name", value="ours", low="least", high="most")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]
    assert [line.get_xydata().tolist() for line in ax.lines] == [[[1, 1]]]


def test_a_finding_takes_as_many_lines_as_its_axes_are_wide():
    figure, ax = plt.subplots(figsize=(3, 2))
    finding = "a finding that is far wider than the axes under it, and goes on for a while"
    plotting.set_title(ax, finding)
    figure.draw_without_rendering()
    assert ax.get_title(loc="left").replace("\n", " ") == finding and "\n" in ax.get_title(loc="left")
    assert ax._left_title.get_window_extent().x1 <= figure.bbox.x1


def test_no_two_of_many_curves_look_alike():
    names = [f"set {n}" for n in range(11)]
    rows = [(name, x, n + x) for n, name in enumerate(names) for x in (1.0, 0.0)]
    ax = plt.subplots()[1]
    plotting.curves(ax, pd.DataFrame(rows, columns=["set", "x", "value"]), "x")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == names
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == len(names)
    assert ax.lines[3].get_xydata().tolist() == [[0.0, 3.0], [1.0, 4.0]], "from left to right"


def test_a_trade_off_has_a_dot_for_each_row_and_an_arrow_for_each_pair():
    table = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 5.0], "kind": ["plain", "trained"]})
    _, ax = plt.subplots()
    plotting.trade_off(ax, table, "x", "y", kind="kind", arrows=[((1, 3), (2, 5))])
    assert ax.collections[0].get_offsets().tolist() == [[1, 3], [2, 5]]
    (arrow,) = ax.texts
    assert (arrow.xyann, arrow.xy) == ((1, 3), (2, 5))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["plain", "trained"]


def test_a_map_of_changes_brackets_those_whose_interval_has_0_and_keeps_the_order():
    rows = [("b", "y", -2.0, -3.0, -1.0), ("b", "x", 1.0, -1.0, 3.0), ("a", "x", 4.0, 3.0, 5.0)]
    _, ax = plt.subplots()
    table = pd.DataFrame(rows, columns=["who", "what", "difference", "low", "high"])
    plotting.change_map(ax, table, "who", "what")
    labels = [[label.get_text() for label in axis.get_ticklabels()] for axis in (ax.yaxis, ax.xaxis)]
    assert labels == [["b", "a"], ["y", "x"]] and [text.get_text() for text in ax.texts] == ["−2.0", "(+1.0)", "+4.0"]
    plt.close()
