"""The sentence explorer: a live widget where there is a front end for it, the same numbers as a plain table elsewhere."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from nblib.analysis.diagnosis import cosines
from nblib.analysis.sentence_explorer import SentenceExplorer
from nblib.results.report.content import cells
from nblib.results.report.executed import Executed


@pytest.fixture
def explorer(tiny_encoder):
    return SentenceExplorer([tiny_encoder], "the door is open", ["the door is not open", "a red house"])


def test_its_table_has_a_row_per_sentence_and_a_column_per_encoder(explorer, tiny_encoder):
    table = explorer.table()
    assert table.index.tolist() == ["the door is not open", "a red house"]
    assert table.columns.tolist() == [tiny_encoder.name]
    assert table.iloc[0, 0] == pytest.approx(cosines(explorer.sentence, explorer.others[:1], [tiny_encoder]).iloc[0, 0])


def test_a_page_of_the_report_shows_its_table_and_not_the_widget(explorer, tmp_path):
    bundle = dict(explorer._repr_mimebundle_())
    assert "application/vnd.jupyter.widget-view+json" in bundle
    notebook = new_notebook(cells=[new_code_cell("explorer", outputs=[new_output("display_data", bundle)])])
    [cell] = cells(Executed("01_diagnosis", "", tmp_path, sweep=False, notebook=notebook))
    [output] = cell.outputs
    assert output.kind == "html" and "a red house" in output.html


def test_typing_other_sentences_changes_the_answer(explorer):
    sentence, others, answer = explorer._widget().children
    others.value = "a green house\n\nno dog"
    sentence.value = "a man"
    assert explorer.table().index.tolist() == ["a green house", "no dog"]
    assert "no dog" in answer.value and "a red house" not in answer.value


def test_an_empty_sentence_is_answered_with_the_reason(explorer):
    sentence, _, answer = explorer._widget().children
    sentence.value = " "
    assert "it is empty, or no string" in answer.value
