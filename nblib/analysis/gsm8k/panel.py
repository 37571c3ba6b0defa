"""A panel for labelling errors in JupyterLab: one problem at a time, a button for each type; a plain table without a kernel.

Labelling is blind: the panel shows no other labels, and every pass has its own order.
"""

import re
from difflib import SequenceMatcher
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from nblib.analysis.gsm8k import labels
from nblib.analysis.gsm8k.arithmetic import normalise
from nblib.analysis.gsm8k.errors import CATEGORIES
from nblib.results.tables import show

CSS = (
    "<style>.gsm8k td{vertical-align:top;text-align:left;width:33%;white-space:normal;padding:.4em .8em}"
    ".gsm8k ol{margin:0;padding-left:1.6em}.gsm8k mark{background:#E69F0066;color:inherit}</style>"
)


class Panel:
    """Show it as the last line of a cell. Each click writes the label to disk; a new panel continues where this one stopped.

    Args:
        errors: from `predictions.sample_errors`.
        folder: of labels (`data/gsm8k/labels`).
        annotator: part of the file's name; "none" to look only.
        number: of the pass, from 1.
        seed: of the order, together with the pass.

    Raises:
        LabelError: see `labels.file_of` and `labels.read`.
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
        """Save a label for the problem shown, and show the next one without."""
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
        if self.errors.empty:
            return "<p>There are no errors.</p>"
        if self.place >= len(self.errors):
            return "<p>Every error of this pass has its label.</p>"
        row = self.errors.iloc[self.place]
        base = f"base ({'right' if row.base_correct else 'wrong'})"
        solutions = {base: row.base_solution, "tuned (wrong)": row.tuned_solution}
        return f"<p>{escape(row.id)}</p>" + side_by_side(row.question, row.gold, solutions, row.reference)

    def table(self) -> pd.DataFrame:
        """The problems in this pass's order: id, gold, base answer, tuned answer, labelled."""
        done = self.done()
        columns = {"id": "id", "gold": "gold", "base_prediction": "base answer", "tuned_prediction": "tuned answer"}
        table = self.errors[list(columns)].rename(columns=columns)
        return table.assign(labelled=["yes" if item in done else "no" for item in table["id"]])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        live = self._widget()._repr_mimebundle_() or {}
        return {**live, "text/html": show(self.table(), self.progress()).to_html(), "text/plain": self.progress()}

    def _widget(self):
        import ipywidgets as widgets

        progress, shown = widgets.Label(self.progress()), widgets.HTML()

        def act(button: widgets.Button) -> None:
            try:
                self.back() if button.description == "back" else self.label(button.description)
                progress.value = self.progress()
            except (labels.LabelError, PermissionError) as error:
                progress.value = str(error)
            refresh()

        def refresh() -> None:
            shown.value = self.html()
            for button in buttons:
                button.disabled = self.file is None or (self.place >= len(self.errors) and button.description != "back")

        wide = widgets.Layout(width="auto")
        tips = {**CATEGORIES, "undecided": "None of these, or can't be told", "back": "The one before"}
        buttons = [widgets.Button(description=name, tooltip=tip, layout=wide) for name, tip in tips.items()]
        for button in buttons:
            button.on_click(act)
        refresh()
        row = widgets.Box(buttons, layout=widgets.Layout(flex_flow="row wrap"))
        return widgets.VBox([progress, row, shown])


# --- two solutions side by side ---------------------------------------------------------------------------------------


def steps(solution: str) -> list[str]:
    """A solution's steps: its lines, and the sentences within them."""
    found = re.split(r"(?<=[.!?])\s+(?=\S)|\n", "\n".join(solution.splitlines()))
    return [step.strip() for step in found if step.strip()]


def first_difference(first: str, second: str) -> tuple[int | None, int | None]:
    """The place of the first differing step in each solution; None where there is none. The spelling of a step (×, spaces,
    calculator marks, case) doesn't matter."""
    plain = [[_plain(step) for step in steps(text)] for text in (first, second)]
    for tag, a, b, c, d in SequenceMatcher(None, *plain, autojunk=False).get_opcodes():
        if tag != "equal":
            return (a if b > a else None), (c if d > c else None)
    return None, None


def side_by_side(question: str, gold: str, solutions: dict[str, str], reference: str = "") -> str:
    """The problem, its answer, and the solutions in columns; in the first two the first differing step is marked.

    Args:
        solutions: heading → text; the first two are compared.
        reference: the data set's own solution, shown last.
    """
    compared = list(solutions.values())[:2]
    marked = first_difference(*compared) if len(compared) == 2 else (None, None)
    columns = {**solutions, **({"data set's solution": reference} if reference else {})}
    places = [*marked, *[None] * len(columns)]
    heads = "".join(f"<th>{escape(name)}</th>" for name in columns)
    cells = "".join(f"<td>{_list(text, place)}</td>" for text, place in zip(columns.values(), places, strict=False))
    return (
        f"{CSS}<p><b>Problem.</b> {escape(question)} <b>Answer:</b> {escape(gold)}</p>"
        f'<table class="gsm8k"><thead><tr>{heads}</tr></thead><tbody><tr>{cells}</tr></tbody></table>'
    )


def _list(text: str, marked: int | None) -> str:
    shown = [escape(step) for step in steps(text)]
    if marked is not None:
        shown[marked] = f"<mark>{shown[marked]}</mark>"
    return "<ol>" + "".join(f"<li>{step}</li>" for step in shown) + "</ol>" if shown else "<i>nothing</i>"


def _plain(step: str) -> str:
    return re.sub(r"<<.*?>>|[\s$.,]", "", normalise(step)).lower()
