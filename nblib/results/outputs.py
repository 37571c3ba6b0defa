"""The outputs of one execution of a notebook: figures, tables and results, each written in one line."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from nblib import artefacts, paths
from nblib.results import measurements, plotting, tables


class Outputs:
    """The outputs of a notebook in a run: figures and tables in `<run_dir>/figures/<notebook>/`, results in
    `<run_dir>/results/`; where it is executed for each of several models, their names end in the model (`variant`)."""

    def __init__(self, notebook: str, run_dir: str | Path, variant: str = "") -> None:
        number, _, rest = notebook.partition("_")
        self.notebook = notebook
        self.run_dir = paths.resolve(run_dir)
        self.folder = paths.inside(run_dir, "figures", notebook)
        self.ending = f"_{variant}" if variant else ""
        self.results = paths.inside(run_dir, "results", f"{number}_{variant or rest}.csv")

    def figure(self, figure: Figure, name: str, data: pd.DataFrame) -> None:
        """Write `fig_<name>` as SVG, and its data as CSV."""
        plotting.save_figure(figure, self.folder / f"fig_{name}{self.ending}", data)

    def table(self, table: pd.DataFrame, name: str, caption: str, digits: int = 2) -> Styler:
        """Write `tab_<name>` as CSV; return what the notebook shows."""
        artefacts.write_table(table.round(measurements.DECIMALS), self.folder / f"tab_{name}{self.ending}.csv")
        return tables.show(table, caption, digits)

    def save_results(self, *rows: pd.DataFrame, **about: object) -> pd.DataFrame:
        """Write measurements (see `results.record`) with the provenance sidecar; return them as one table."""
        table = pd.concat(rows, ignore_index=True)
        return measurements.save(table, self.results, **{"notebook": self.notebook, **about})
