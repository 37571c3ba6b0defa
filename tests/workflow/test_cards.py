"""The cards of the adapters that ship: what the hub reads of them."""

import pandas as pd
import pytest
from huggingface_hub import ModelCard

from nblib import paths
from nblib.results import measurements
from nblib.workflow import cards, documents

ADAPTERS = sorted(folder.name for folder in (paths.DATA / "adapters").iterdir() if folder.is_dir())
CARD = "---\nlicense: mit\n---\n\n# tuned\n\nBefore.\n\n<!-- made: scores -->\nold\n<!-- end -->\n\nAfter.\n"


def rows(**changes):
    about = {"data": "nevir test", "n": 1383, "scale": "official", "interval": (33.4, 38.5)} | changes
    return measurements.row("tuned", about.pop("benchmark", "NevIR"), about.pop("metric", "right_rank"), 35.94, **about)


@pytest.fixture
def measured():
    return measurements.validate(pd.DataFrame([
        rows(), rows(data="nevir test, negation undone", n=694), rows(metric="accuracy"), rows(benchmark="MTEB STS12",
        metric="spearman", data="STS12 test", n=3108),
    ]), "here")  # fmt: skip


def test_a_card_has_the_scores_on_whole_test_sets_in_its_head_and_in_its_table(measured):
    made = cards.card(CARD, "tuned", cards.official_scores(measured, "tuned"))
    assert "| NevIR | right rank | 35.9 | 33.4 – 38.5 | 1,383 |\n| MTEB STS12 | Spearman" in made
    assert "old" not in made and made.index("Before.") < made.index("| NevIR") < made.index("After.")
    found = ModelCard(made).data
    assert found.license == "mit"
    assert [(one.dataset_name, one.metric_type, one.metric_value) for one in found.eval_results] == [
        ("NevIR test", "right_rank", 35.94), ("MTEB STS12 test", "spearman", 35.94),
    ]  # fmt: skip
    assert cards.card(made, "tuned", cards.official_scores(measured, "tuned")) == made


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_cards_that_ship_have_the_scores_of_the_record(name):
    text = (paths.DATA / "adapters" / name / "README.md").read_text(encoding="utf-8")
    assert cards.card(text, name, cards.official_scores(documents.Record().measured, name)) == text
    assert "Intended use" in text and "Limits" in text and "Training data" in text
