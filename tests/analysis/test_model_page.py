"""The page of a scored system: one file with its scores, their place, and how they were made."""

import re
from types import SimpleNamespace

import pandas as pd
import pytest
from support import svg

from nblib import results
from nblib.analysis import encoder_card, model_page
from nblib.benchmarks import negation_profile, scoring
from nblib.corpora import hedgetriple

SYSTEM = SimpleNamespace(name="<mine>", kind="bi-encoder", source="a folder", fingerprint="f" * 64, model=None)


def summary(**scores):
    rows = [
        {"task": task, "view": "test", "benchmark": task, "metric": metric, "value": value, "ci_low": value - 2,
         "ci_high": value + 2, "n": 1000, "clusters": 500, "official": "_mini" not in task, "data": data}
        for task, (metric, value, data) in scores.items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


SCORED = summary(
    nevir=("right_rank", 10.0, "nevir test"), excluir=("right_rank", 50.5, "excluir test"),
    semantoneg=("accuracy", 70.0, "semantoneg test"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [(26, 30, "above guessing on all 1 "), (20, 24, "below guessing on 1 (b)"), (24, 26, "no differently from guessing on 1")],
)  # fmt: skip
def test_the_verdict_follows_the_interval_and_not_the_score(lower, upper, said):
    shown = pd.DataFrame({"benchmark": ["b"], "chance": [25.0], "ci_low": [lower], "ci_high": [upper]})
    assert said in encoder_card.verdict("E", shown)


def test_a_place_counts_the_higher_scores_on_the_same_items_by_the_same_metric():
    def row(system, value, data="nevir test", metric="right_rank"):
        return results.row(system, "NevIR", metric, value, data=data, n=9, scale="official")

    others = [row("A", 20), row("B", 5), row("C", 90, data="nevir dev"), row("D", 90, metric="accuracy")]
    shown = pd.DataFrame(
        {"task": ["nevir"], "benchmark": ["NevIR"], "key": ["right_rank"], "data": ["nevir test"], "ours": [10.0]}
    )
    (place,) = model_page.places(shown, pd.DataFrame(others))
    assert place.startswith("2 of 3 measured here; ") and place.endswith(" printed")
    higher, all_of_them = map(int, re.search(r"; (\d+) of (\d+) printed", place).groups())
    assert 1 < higher < all_of_them


def test_the_page_needs_nothing_outside_it_and_escapes_what_it_names(tmp_path):
    anchors = hedgetriple.load()
    nearness = [float(number % 3) for number in range(6 * len(anchors))]
    predicted = negation_profile.score_items(anchors, pd.Series(nearness).to_numpy())
    scoring.save_predictions(predicted, tmp_path, SYSTEM.name, negation_profile.TASK)
    file = model_page.write(SYSTEM, SCORED, tmp_path, "nblib score '<mine>'")
    text = file.read_text(encoding="utf-8")
    assert file.parent == tmp_path / "pages" and file.stat().st_size < 1_500_000
    assert "<mine>" not in text and "&lt;mine&gt;" in text
    assert not re.search(r"""(src|href)=["'](?!data:|#)|<script|@import|url\((?!#)""", text)
    assert "scores above guessing on 1 (semantoneg), below guessing on 1 (nevir), no differently" in text
    assert "nearest printed" in text and "hedge" in text and "nevir test" in text and "f" * 64 in text
    assert "Not measured. The option <code>--general short</code>" in text


def test_the_pictures_texts_cover_each_other_nowhere(tmp_path):
    shown = SCORED.assign(
        chance=[25.0, 50.0, 33.3], ours=SCORED.value, key=SCORED.metric, metric="right rank of both questions"
    )
    picture = tmp_path / "picture.svg"
    picture.write_text(model_page.picture(shown, encoder_card.verdict("a-model-with-a-rather-long-name", shown)))
    assert svg.overlapping(picture) == []
    assert len([text for text, _ in svg.text_boxes(picture) if "guessing" in text]) >= 2, "the title, and the legend"


def test_general_ability_alone_is_a_page_too(tmp_path):
    text = model_page.write(SYSTEM, None, tmp_path, "nblib score x --benchmarks").read_text(encoding="utf-8")
    assert "No negation benchmark of &lt;mine&gt; was measured here." in text and "<table" not in text
