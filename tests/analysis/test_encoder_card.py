"""The encoder card: what it says, and that it says it in the direction of the numbers."""

import numpy as np
import pandas as pd
import pytest
from support.encoders import tiny

from nblib import artefacts
from nblib.analysis import encoder_card
from nblib.benchmarks import catalogue, scoring
from nblib.corpora.hedgetriple import HEDGES, NEGATIONS
from nblib.models.negation_adapter import AdapterError, NegationAdapter
from nblib.models.rankers import TfIdf
from nblib.models.systems import BiEncoder


def profile(share, **types):
    rows = [(n, h, 300, types.get(n, share), share - 3, share + 3, 0.0, 0.0, 0.0) for n in NEGATIONS for h in HEDGES]
    rows.append(("all", "all", 2400, share, share - 3, share + 3, 0.0, 0.0, 0.0))
    columns = [
        "negation",
        "hedge",
        "n",
        *(f"{what}{end}" for what in ("correct", "margin") for end in ("", "_low", "_high")),
    ]
    return pd.DataFrame(rows, columns=columns)


def summary(task, value, official=True, metric=None):
    row = {"task": task, "view": "test", "benchmark": task, "metric": metric or catalogue.get(task).headline(), "value": value,
           "ci_low": value - 1, "ci_high": value + 1, "n": 1383, "official": official, "data": f"{task} test"}  # fmt: skip
    return pd.DataFrame([row])


UNCHANGED = pd.DataFrame(columns=scoring.CHANGES)


def test_the_nearest_published_systems_bracket_the_score():
    near, known = encoder_card.nearest_published("nevir", "right_rank", 10.0), encoder_card.published_scores("nevir")
    below, above = near.value.min(), near.value.max()
    assert below <= 10.0 < above and not ((known.value > below) & (known.value < above)).any()
    equal = {"MPNet", "all-mpnet-base-v2"}  # in two papers
    assert equal <= set(encoder_card.nearest_published("nevir", "right_rank", 8.1).system)
    assert (encoder_card.nearest_published("nevir", "right_rank", 101).value == known.value.max()).all()


def test_a_mini_set_has_no_published_counterpart():
    assert encoder_card.nearest_published("nevir_mini", "right_rank", 10.0).empty
    shown = encoder_card.with_published(summary("nevir_mini", 10.0, False)).iloc[0]
    assert (shown.nearest, shown.note) == ("", "authored mini set")
    card = encoder_card.card("E", profile(75), summary("nevir_mini", 10.0, False), UNCHANGED).data
    assert "no published score is comparable" in card and "nearest published" not in card


def test_what_makes_a_score_another_quantity_is_said():
    assert "doesn't state its protocol" in encoder_card.with_published(summary("excluir", 70.0)).note.item()
    assert "a sample of 100 pairs" in encoder_card.with_published(summary("nevir_sample", 8.0)).note.item()
    m3 = encoder_card.with_published(summary("m3", 70.0)).iloc[0]
    assert "isn't published" in m3.note and m3.nearest == "", "another set's scores are not near"


def test_cannots_printed_scores_are_near_pearsons_r_alone():
    both = pd.concat([summary("cannot_wmt", 34.9, metric=metric) for metric in ("spearman", "pearson")])
    table = encoder_card.with_published(both).set_index("metric")
    rho, r = table.loc["Spearman ρ × 100"], table.loc["Pearson r × 100"]
    assert "MPNet 34.91 (truong)" in r.nearest and "fits Pearson" in r.note
    assert (rho.nearest, rho.note) == ("", "")


@pytest.mark.parametrize(
    ("share", "expected"),
    [(75, "mostly keeps the hedge closer"), (51, "no better than chance"), (30, "puts the negation closer")],
)
def test_the_sentence_follows_the_numbers(share, expected):
    sentence = encoder_card.sentence("E", profile(share, lexical=share - 9, absolute=share + 9))
    assert expected in sentence
    assert f"least often with lexical negation ({share - 9:.1f} %)" in sentence
    assert f"most often with absolute negation ({share + 9:.1f} %)" in sentence


def test_without_an_error_no_type_is_called_the_weakest():
    sentence = encoder_card.sentence("E", profile(100))
    assert "E keeps the hedge closer than the negation: in 100.0 %" in sentence
    assert sentence.endswith("It is right as often with every type of negation.")


@pytest.mark.parametrize(
    ("task", "expected"),
    [("semantoneg_mini", 100 / 3), ("nevir_mini", 25), ("excluir_mini", 50), ("m3_mini", 0), ("topics_mini", np.nan)],
)
def test_chance_is_that_of_the_task(task, expected):
    assert catalogue.get(task).chance == pytest.approx(expected, nan_ok=True)
    if expected > 0:
        rows = catalogue.get(task).rows("test")
        guessed = (1 / (1 + rows.negatives.map(len))).groupby(rows.id).prod()
        assert np.allclose(guessed, expected / 100)
    card = encoder_card.card("E", profile(75), summary(task, 10.0, False), UNCHANGED).data
    assert (f"chance {expected:.1f}" in card) == (expected == expected)


def test_an_encoder_trained_on_such_texts_says_so(tmp_path):
    for name, training_data in [("hedge", "both"), ("nevir", "NevIR")]:
        artefacts.write_json(tmp_path / f"{name}.json", {"training_data": training_data})
    note = encoder_card.training_caveat(str(tmp_path / "hedge"))
    scored = summary("nevir_mini", 1.0, False)
    assert "trained on" in note and note in encoder_card.card("E", profile(75), scored, UNCHANGED, note).data
    for other in (str(tmp_path / "nevir"), "all-MiniLM-L6-v2"):
        assert encoder_card.training_caveat(other) == ""


@pytest.mark.parametrize(("change", "said"), [(-0.04, "-0.04"), (0.0, "+0.0"), (0.26, "+0.3"), (-9.96, "-10.0")])
def test_a_change_never_reads_as_none(change, said):
    assert encoder_card.points(change) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.1, 2, "helps"), (-2, -0.1, "harms"), (-1, 1, "no clear change"), (0, 1, "no clear change")],
)
def test_an_effect_needs_an_interval_without_zero(low, high, said):
    assert encoder_card.effect(low, high) == said


def test_the_card_shows_all_parts_and_escapes_names():
    change = {"task": "nevir", "encoder": "E+adapter", "before": 8.1, "after": 9.0, "difference": 0.9}
    changes = pd.DataFrame([{**change, "low": 0.2, "high": 1.6, "n": 1383, "effect": "helps"}])
    scored = pd.concat([summary("nevir", 8.1), summary("stsb", 83.4)])
    html = encoder_card.card("<b>E", profile(75), scored, changes).data
    assert "&lt;b&gt;E" in html and "<b>E" not in html.replace("<b>E+adapter", "")
    for part in ("75.0 %", "MPNet 8.1", "stsb", "83.4", "E+adapter", "helps"):
        assert part in html
    assert "None measured" in encoder_card.card("E", profile(75), scored, changes.head(0)).data


def test_an_intervention_is_measured_on_the_tasks_and_the_profile(tmp_path, monkeypatch):
    monkeypatch.setenv("NBLIB_CACHE", str(tmp_path / "cache"))
    encoder, run = BiEncoder(tiny(tmp_path)), tmp_path / "run"
    scoring.score(encoder, ["nevir_mini"], run)
    encoder_card.score_profile(encoder, run)
    assert encoder_card.compare_interventions(encoder, [], ["nevir_mini"], run).empty
    rng = np.random.default_rng(0)
    anchors = rng.normal(size=(20, 32))
    adapter = NegationAdapter(grid=[4.0]).fit(anchors, anchors + rng.normal(size=anchors.shape), -anchors)
    file = str(adapter.save(tmp_path / "adapter.safetensors"))
    changes = encoder_card.compare_interventions(encoder, [file], ["nevir_mini"], run)
    assert changes.task.tolist() == ["nevir_mini", "negation_profile"] and set(changes.encoder) == {"tiny+adapter"}
    assert changes.n.tolist() == [100, 2400]
    np.testing.assert_allclose(changes.after - changes.before, changes.difference)
    by_name = encoder_card.compare_interventions(encoder, ["tiny+adapter"], ["nevir_mini"], run)
    pd.testing.assert_frame_equal(by_name, changes)
    with pytest.raises(scoring.ScoreError, match="No predictions"):
        encoder_card.compare_interventions(encoder, ["nobody"], ["nevir_mini"], run)
    with pytest.raises(AdapterError, match=r"TF-IDF .* has no embeddings"):
        encoder_card.compare_interventions(TfIdf(), [file], ["nevir_mini"], run)


def test_the_best_published_score_and_the_encoder_that_the_paper_trains_are_named():
    known = pd.DataFrame(
        [
            ("MPNet", 8.1, "NevIR"),
            ("Jina", 14.6, "NevIR"),
            ("MonoT5", 50.6, "NevIR"),
            ("all-mpnet-base-v2", 8.1, "NevIR"),
        ],
        columns=["system", "value", "line"],
    )
    assert encoder_card.landmarks(known).system.tolist() == ["MPNet", "MonoT5"]
    assert encoder_card.landmarks(known.head(0)).empty
