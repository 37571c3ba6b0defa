"""The texts of items are found by the ids of their predictions."""

import pytest

from nblib.benchmarks import catalogue, item_texts, negation_profile
from nblib.corpora import hedgetriple


@pytest.mark.parametrize("task", ["nevir_mini", "semantoneg_mini", "m3_mini", "cannot_wmt_mini"])
def test_an_item_of_a_prediction_is_found_with_its_texts(task):
    rows = catalogue.get(task).rows("test")
    wanted = [str(one) for one in rows.id.drop_duplicates().iloc[[3, 1]]]
    found = item_texts.find(f"llm_{task}", wanted)
    assert list(dict.fromkeys(found.id)) == wanted
    texts = {"query", "positive"} if "query" in rows else {"sentence1", "sentence2"}
    assert texts <= set(found)


def test_an_item_of_the_profile_is_its_anchor():
    anchor = hedgetriple.load().iloc[5]
    found = item_texts.find(negation_profile.TASK, [f"{anchor.id}/lexical/phrase"])
    assert found.anchor.item() == anchor.anchor


def test_a_question_of_mmlu_is_numbered_within_its_subject():
    found = item_texts.find("mmlu_mini", ["elementary_mathematics/1"])
    assert found.question.item().startswith("Rounded to the nearest hundred")


@pytest.mark.parametrize(
    ("task", "id_", "said"), [("nevir_mini", "x", "has no item x"), ("nothing", "x", "No benchmark")]
)
def test_what_does_not_exist_is_named(task, id_, said):
    with pytest.raises(item_texts.ItemError, match=said):
        item_texts.find(task, [id_])
