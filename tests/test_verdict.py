"""The verdict card: what it says, and that it says it in the direction of the numbers."""

import numpy as np
import pandas as pd
import pytest
from encoders import tiny

from nblib import provenance, scores, tasks, verdict
from nblib.negation_adapter import NegationAdapter
from nblib.negation_profile import HEDGES, NEGATIONS


def profile(share, **types):
    rows = [(n, h, 300, types.get(n, share), share - 3, share + 3, 0.0, 0.0, 0.0) for n in NEGATIONS for h in HEDGES]
    rows.append(("all", "all", 2400, share, share - 3, share + 3, 0.0, 0.0, 0.0))
    columns = [
        "negation",
        "hedge",
        "n",
        "correct",
        "correct_low",
        "correct_high",
        "margin",
        "margin_low",
        "margin_high",
    ]
    return pd.DataFrame(rows, columns=columns)


def summary(task, value, official=True):
    row = {"task": task, "view": "test", "benchmark": task, "metric": "accuracy", "value": value, "ci_low": value - 1,
           "ci_high": value + 1, "n": 1383, "official": official}  # fmt: skip
    return pd.DataFrame([row])


def test_the_nearest_published_systems_bracket_the_score():
    near, known = verdict.nearest_published("NevIR", 10.0), verdict.published_scores("NevIR")
    below, above = near.value.min(), near.value.max()
    assert below <= 10.0 < above and not ((known.value > below) & (known.value < above)).any()
    assert {"MPNet", "all-mpnet-base-v2"} <= set(verdict.nearest_published("NevIR", 8.1).system)  # equal in two papers
    assert (verdict.nearest_published("NevIR", 101).value == known.value.max()).all()


def test_a_miniature_has_no_published_counterpart():
    assert verdict.nearest_published("NevIRMini", 10.0).empty
    shown = verdict.beside_published(summary("NevIRMini", 10.0, False)).iloc[0]
    assert (shown.nearest, shown.note) == ("", "authored miniature")
    card = verdict.card("E", profile(75), summary("NevIRMini", 10.0, False), pd.DataFrame(columns=scores.CHANGES)).data
    assert "no published score is comparable" in card and "nearest published" not in card


def test_a_reservation_is_said():
    assert "1,014 of 3,452" in verdict.beside_published(summary("ExcluIR", 70.0)).note.item()
    m3 = verdict.beside_published(summary("M3Derived", 70.0)).iloc[0]
    assert "our own set" in m3.note and m3.nearest == "", "another set's scores are not near"


@pytest.mark.parametrize(
    ("share", "said"),
    [(75, "mostly keeps the hedge nearer"), (51, "no better than a coin"), (30, "puts the negation nearer")],
)
def test_the_sentence_follows_the_numbers(share, said):
    told = verdict.sentence("E", profile(share, lexical=share - 9, absolute=share + 9))
    assert said in told
    assert f"least often with lexical negation ({share - 9:.1f} %)" in told
    assert f"most often with absolute negation ({share + 9:.1f} %)" in told


def test_without_an_error_no_type_is_called_the_weakest():
    told = verdict.sentence("E", profile(100))
    assert "E keeps the hedge nearer than the negation: in 100.0 %" in told
    assert told.endswith("It is right as often with every type of negation.")


@pytest.mark.parametrize(
    ("task", "expected"),
    [("SemAntoNegMini", 100 / 3), ("NevIRMini", 25), ("ExcluIRMini", 50), ("M3Mini", 0), ("TopicsMini", np.nan)],
)
def test_chance_is_that_of_the_task(task, expected):
    assert verdict.chance(task) == pytest.approx(expected, nan_ok=True)
    if expected > 0:
        rows = tasks.get(task).rows("test")
        guessed = (1 / (1 + rows.negatives.map(len))).groupby(rows.id).prod()
        assert np.allclose(guessed, expected / 100)
    card = verdict.card("E", profile(75), summary(task, 10.0, False), pd.DataFrame(columns=scores.CHANGES)).data
    assert (f"chance {expected:.1f}" in card) == (expected == expected)


def test_an_encoder_trained_on_such_texts_says_so(tmp_path):
    for name, recipe in [("hedge", "both"), ("nevir", "NevIR")]:
        provenance.write_sidecar(tmp_path / name, recipe=recipe)
    note = verdict.familiar(str(tmp_path / "hedge"))
    scored, nothing = summary("NevIRMini", 1.0, False), pd.DataFrame(columns=scores.CHANGES)
    assert "trained on" in note and note in verdict.card("E", profile(75), scored, nothing, note).data
    assert verdict.familiar(str(tmp_path / "nevir")) == verdict.familiar("all-MiniLM-L6-v2") == ""


@pytest.mark.parametrize(("change", "said"), [(-0.04, "-0.04"), (0.0, "+0.0"), (0.26, "+0.3"), (-9.96, "-10.0")])
def test_a_change_never_reads_as_none(change, said):
    assert verdict.points(change) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.1, 2, "helps"), (-2, -0.1, "harms"), (-1, 1, "no clear change"), (0, 1, "no clear change")],
)
def test_an_effect_needs_an_interval_without_zero(low, high, said):
    assert verdict.effect(low, high) == said


def test_the_card_shows_all_parts_and_escapes_names():
    changes = pd.DataFrame(
        [
            {
                "task": "NevIR",
                "encoder": "E+adapter",
                "before": 8.1,
                "after": 9.0,
                "difference": 0.9,
                "low": 0.2,
                "high": 1.6,
                "n": 1383,
                "effect": "helps",
            }
        ]
    )
    scored = pd.concat([summary("NevIR", 8.1), summary("STSB", 83.4)])
    html = verdict.card("<b>E", profile(75), scored, changes).data
    assert "&lt;b&gt;E" in html and "<b>E" not in html.replace("<b>E+adapter", "")
    for part in ("75.0 %", "MPNet 8.1", "STSB", "83.4", "E+adapter", "helps"):
        assert part in html
    assert "None measured" in verdict.card("E", profile(75), scored, changes.head(0)).data


def test_a_cure_is_measured_on_the_tasks_and_the_profile(tmp_path, monkeypatch):
    monkeypatch.setenv("NBLIB_CACHE", str(tmp_path / "cache"))
    encoder, run = tiny(tmp_path), tmp_path / "run"
    scores.score(encoder, ["NevIRMini"], run)
    verdict.score_profile(encoder, run)
    assert verdict.measure_cures(encoder, [], ["NevIRMini"], run).empty
    rng = np.random.default_rng(0)
    anchors = rng.normal(size=(20, 32))
    adapter = NegationAdapter(grid=[4.0]).fit(anchors, anchors + rng.normal(size=anchors.shape), -anchors)
    file = str(adapter.save(tmp_path / "adapter.safetensors"))
    changes = verdict.measure_cures(encoder, [file], ["NevIRMini"], run)
    assert changes.task.tolist() == ["NevIRMini", "NegationProfile"] and set(changes.encoder) == {"tiny+adapter"}
    assert changes.n.tolist() == [100, 2400] and (changes.after - changes.before).tolist() == pytest.approx(
        changes.difference.tolist()
    )
    by_name = verdict.measure_cures(encoder, ["tiny+adapter"], ["NevIRMini"], run)
    pd.testing.assert_frame_equal(by_name, changes)
    with pytest.raises(scores.ScoreError, match="No predictions"):
        verdict.measure_cures(encoder, ["nobody"], ["NevIRMini"], run)
