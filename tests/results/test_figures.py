"""The reference figures: no text covers another, and the figures' colours are the study's."""

import re

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from support.svg import overlapping

from nblib import paths
from nblib.results import plotting

FIGURES = sorted(paths.FIGURES.glob("*/*_*/*.svg"))


@pytest.mark.parametrize("file", FIGURES, ids=lambda file: str(file.relative_to(paths.FIGURES)))
def test_no_text_covers_another(file):
    assert overlapping(file) == []


def test_titles_that_collide_are_found(tmp_path):
    figure, axes = plt.subplots(1, 2, figsize=(5, 2))
    for ax in axes:
        ax.set_title("a title that is wider than its half of the figure")
    with plt.rc_context({"svg.fonttype": "none"}):
        plotting.save_figure(figure, tmp_path / "fig", pd.DataFrame({"x": [1]}))
    plt.close(figure)
    assert overlapping(tmp_path / "fig.svg") == [("a title that is wider than its half of the figure",) * 2]


def test_the_study_has_eight_colours_and_each_one_meaning():
    named = {name: value for name, value in vars(plotting).items() if re.fullmatch("#[0-9A-F]{6}", str(value))}
    assert len(set(named.values())) == len(named), "no two names for one colour"
    assert len(named.keys() - {"MUTED", "ABSENT"}) <= 8 and set(plotting.PALETTE) <= set(named.values())
    assert len(set(plotting.PALETTE)) == len(plotting.PALETTE)
