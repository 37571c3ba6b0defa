"""A panel for labelling errors in JupyterLab: one problem at a time, a button for each type; a plain table without a kernel.

It is blind: it shows neither the rules' nor a judge's verdict, nor an earlier pass's, and every pass has an order of its own.
"""

from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from nblib.gsm8k import labels, view
from nblib.gsm8k.categories import CATEGORIES
from nblib.tables import show


class Panel:
    """Show it as the last line of a cell. Each click writes the label to disk; opened again, it goes on where it stopped.

    Args:
        errors: from `predictions.draw_errors`.
        folder: where labels are kept (`data/labels`).
        annotator: who is labelling, as part of the file's name; "none" to look only.
        number: of the pass, from 1.
        seed: of the order, together with the pass.

    Raises:
        LabelError: a name that can't be a file's, or a file of labels that can't be used.
    """

    def __init__(
        self, errors: pd.DataFrame, folder: str | Path, annotator: str, number: int = 1, seed: int = 0
    ) -> None:
        order = np.random.default_rng([seed, number]).permutation(len(errors))
        self.errors = errors.iloc[order].reset_index(drop=True)
        self.file = None if annotator == "none" else labels.file_of(folder, annotator, number)
        self.place = self._first_open()

    def done(self) -> set[str]:
        """The ids that this pass has labelled."""
        if self.file is None:
            return set()
        table = labels.read(self.file)
        kept = set(zip(table.id, table.solution, strict=True))
        return {row.id for row in self.errors.itertuples() if (row.id, labels.fingerprint(row.tuned_solution)) in kept}

    def _first_open(self) -> int:
        done = self.done()
        return next((place for place, item in enumerate(self.errors.id) if item not in done), len(self.errors))

    def label(self, category: str) -> None:
        """Keep a label for the problem shown, and go on to the next that has none."""
        row = self.errors.iloc[self.place]
        labels.put(self.file, row.id, row.tuned_solution, category)
        self.place = self._first_open()

    def back(self) -> None:
        """Show the problem before this one again."""
        self.place = max(self.place - 1, 0)

    def progress(self) -> str:
        """How far this pass is."""
        where = "set annotator to your name to label" if self.file is None else self.file.name
        return f"{len(self.done())} of {len(self.errors)} labelled ({where})"

    def html(self) -> str:
        """The problem shown, both solutions side by side."""
        if self.place >= len(self.errors):
            return (
                "<p>Every error of this pass has its label.</p>" if len(self.errors) else "<p>There are no errors.</p>"
            )
        row = self.errors.iloc[self.place]
        base = f"base ({'right' if row.base_correct else 'wrong'})"
        solutions = {base: row.base_solution, "tuned (wrong)": row.tuned_solution}
        return f"<p>{escape(row.id)}</p>" + view.side_by_side(row.question, row.gold, solutions, row.reference)

    def table(self) -> pd.DataFrame:
        """What there is to label, in this pass's order: id, gold, base answer, tuned answer, whether it has its label."""
        done = self.done()
        columns = {"id": "id", "gold": "gold", "base_prediction": "base answer", "tuned_prediction": "tuned answer"}
        table = self.errors[list(columns)].rename(columns=columns)
        return table.assign(labelled=["yes" if item in done else "no" for item in table["id"]])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        live = self._widget()._repr_mimebundle_() or {}
        return {**live, "text/html": show(self.table(), self.progress()).to_html(), "text/plain": self.progress()}

    def _widget(self):
        import ipywidgets as widgets

        told, shown = widgets.Label(self.progress()), widgets.HTML(self.html())

        def act(button: widgets.Button) -> None:
            try:
                self.back() if button.description == "back" else self.label(button.description)
                told.value = self.progress()
            except (labels.LabelError, PermissionError) as error:
                told.value = str(error)
            shown.value = self.html()
            for button in buttons:
                button.disabled = self.file is None or (self.place >= len(self.errors) and button.description != "back")

        wide = widgets.Layout(width="auto")
        tips = {**CATEGORIES, "undecided": "None of these, or can't be told", "back": "The one before"}
        buttons = [widgets.Button(description=name, tooltip=tip, layout=wide) for name, tip in tips.items()]
        for button in buttons:
            button.disabled = self.file is None or (self.place >= len(self.errors) and button.description != "back")
            button.on_click(act)
        row = widgets.Box(buttons, layout=widgets.Layout(flex_flow="row wrap"))
        return widgets.VBox([told, row, shown])
