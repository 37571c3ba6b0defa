"""What git doesn't hold is made of what it holds: PNG of SVG, HTML and LaTeX of CSV."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from nblib import paths
from nblib.results import plotting
from nblib.workflow import cli, export

TABLE = pd.DataFrame({"system": ["<script>alert(1)</script>", "a_b & 50 %"], "ours": [1 / 3, None], "n": [3152, 240]})


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Figures of record of the scale toy."""
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(paths, "PROJECT_ROOT", tmp_path)
    folder = tmp_path / "figures/toy/01_diagnosis"
    figure, ax = plt.subplots(figsize=(2, 1))
    ax.set_title("Käse")
    plotting.save_figure(figure, folder / "fig_x", TABLE)
    plt.close(figure)
    TABLE.to_csv(folder / "tab_y.csv", index=False)
    return tmp_path


def test_figures_become_png_and_tables_html_and_latex(kept, capsys):
    cli.main(["export", "toy"])
    folder = kept / "runs/toy/export/01_diagnosis"
    assert sorted(file.name for file in folder.iterdir()) == ["fig_x.png", "tab_y.html", "tab_y.tex"]
    assert "1 figures as PNG, 1 tables as HTML and LaTeX" in capsys.readouterr().out
    picture = plt.imread(folder / "fig_x.png")
    assert picture.shape[0] > 100
    assert picture[..., :3].min() < 0.2, "text and lines are drawn"
    page, source = (folder / "tab_y.html").read_text(), (folder / "tab_y.tex").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert r"a\_b \& 50 \%" in source
    assert r"\caption{01\_diagnosis: y}" in source
    assert r"\label{tab:y}" in source


def test_an_export_goes_where_it_is_told_and_twice_the_same(kept):
    for name in ("one", "two"):
        cli.main(["export", "toy", "--to", str(kept / name)])
    for file in (kept / "one").rglob("*.*"):
        assert file.read_bytes() == (kept / "two" / file.relative_to(kept / "one")).read_bytes()


def test_a_scale_that_isnt_kept_is_refused(kept):
    with pytest.raises(export.ExportError, match=r"No reference figures in .*nowhere\. There are: toy"):
        export.export("nowhere", kept)
