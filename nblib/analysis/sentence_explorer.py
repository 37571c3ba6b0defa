"""Type sentences, see their cosines under each loaded encoder; a plain table where widgets don't run."""

from collections.abc import Sequence
from html import escape

import pandas as pd

from nblib.analysis.diagnosis import cosines
from nblib.models.embeddings import EmbeddingError
from nblib.models.encoders import Encoder
from nblib.results import tables


class SentenceExplorer:
    """Show it as the last line of a cell: with a live kernel a widget, on a rendered page the table of the first sentences."""

    def __init__(self, encoders: Sequence[Encoder], sentence: str, others: Sequence[str]) -> None:
        self.encoders, self.sentence, self.others = list(encoders), sentence, list(others)

    def table(self) -> pd.DataFrame:
        """The cosines, a row per other sentence, a column per encoder."""
        return cosines(self.sentence, self.others, self.encoders)

    def html(self) -> str:
        """The table as HTML."""
        table = self.table()
        return tables.show(table.reset_index(), table.index.name, digits=3).to_html()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        live = self._widget()._repr_mimebundle_() or {}
        return {**live, "text/html": self.html(), "text/plain": self.table().to_string()}

    def _widget(self):
        import ipywidgets as widgets

        wide = widgets.Layout(width="100%")
        sentence = widgets.Text(self.sentence, description="Sentence", layout=wide, continuous_update=False)
        lines = "\n".join(self.others)
        others = widgets.Textarea(lines, description="Compare", rows=6, layout=wide, continuous_update=False)
        answer = widgets.HTML(self.html())

        def update(_: object) -> None:
            self.sentence, self.others = sentence.value, [line for line in others.value.splitlines() if line.strip()]
            try:
                answer.value = self.html()
            except EmbeddingError as error:
                answer.value = escape(str(error))

        sentence.observe(update, "value")
        others.observe(update, "value")
        return widgets.VBox([sentence, others, answer])
