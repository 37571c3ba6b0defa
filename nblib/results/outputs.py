"""The outputs of one execution of a notebook: figures, tables and results, each written in one line."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from nblib import paths
from nblib.results import measurements, plotting, tables


class Outputs:
    """The outputs of a notebook in a run: figures and tables in `<run_dir>/figures/<notebook>/`, results in `<run_dir>/results/`.

    A notebook that is executed once for each of several models names the model in `variant`; its files' names end in that.

    Attributes:
        results: the file that `record` writes.
    """

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
        return tables.save_table(table, self.folder / f"tab_{name}{self.ending}", caption, digits)

    def record(self, rows: Sequence[dict], **about: object) -> pd.DataFrame:
        """Write the measurements (see `results.row`) and the provenance sidecar; return them as a table.

        Raises:
            ResultsError: a row breaks the schema, or stands twice.
        """
        return measurements.save(list(rows), self.results, **{"notebook": self.notebook, **about})
